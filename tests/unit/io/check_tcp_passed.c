#include "testing.h"

#include "io/tcp_passed.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;
static char peer[64];

/* `ip` of both families: "::" takes IPv4 too. */
static int listening(const char *ip)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    bool is_v6 = inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1;
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

    if (!is_v6)
        ck_assert_int_eq(inet_pton(AF_INET, ip, &v4.sin_addr), 1);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(is_v6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
                           : bind(fd, (struct sockaddr *)&v4, sizeof(v4)),
                     0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static int connected(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(inet_pton(AF_INET, "127.0.0.1", &a.sin_addr), 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void on_accept(void *context, struct tcp_conn *conn)
{
    (void)context;
    snprintf(peer, sizeof(peer), "%s", tcp_peer(conn));
    tcp_close(conn, TCP_CLOSE_TOO_MANY);
}

/* What a client of 127.0.0.1 is to the server, over a socket at this address. */
static void accept_one(const char *ip)
{
    struct tcp_passed passed = {.count = 0};
    struct tcp_listener *listener;
    struct tcp_address a;
    int client;

    ck_ok(loop_init(&loop));
    ck_ok(tcp_passed_add(&passed, listening(ip), TCP_PASSED_BY_OTHERS));
    ck_assert(tcp_passed_any(&passed, &a));
    ck_ok(tcp_bind(&loop, &a, &passed, &listener));
    ck_assert(!tcp_passed_any(&passed, &a));
    ck_ok(tcp_listener_start(listener, on_accept, NULL));
    client = connected(tcp_listener_port(listener));
    peer[0] = '\0';
    while (peer[0] == '\0')
        loop_run_once(&loop);
    close(client);
    tcp_listener_close(listener);
    loop_done(&loop);
}

START_TEST(an_ipv4_client_is_one_over_either_family)
{
    accept_one("127.0.0.1");
    ck_assert_str_eq(peer, "127.0.0.1");
    accept_one("::");
    ck_assert_str_eq(peer, "127.0.0.1");
}
END_TEST

START_TEST(there_is_room_for_so_many)
{
    struct tcp_passed passed = {.count = 0};
    struct tcp_address a;
    int extra;

    for (unsigned i = 0; i < TCP_PASSED_MOST; i++)
        ck_ok(tcp_passed_add(&passed, listening("127.0.0.1"), TCP_PASSED_BY_OTHERS));
    extra = listening("127.0.0.1");
    ck_fails(tcp_passed_add(&passed, extra, TCP_PASSED_OWN), ERR_UNKNOWN, "too many");
    ck_assert_int_ne(close(extra), 0); /* it was taken over all the same */
    ck_assert(tcp_passed_any(&passed, &a));
    tcp_passed_done(&passed);
    ck_assert(!tcp_passed_any(&passed, &a));
}
END_TEST

START_TEST(another_port_or_address_is_not_taken)
{
    struct tcp_passed passed = {.count = 0};
    struct tcp_listener *listener;
    struct tcp_address mine, other;

    ck_ok(loop_init(&loop));
    ck_ok(tcp_passed_add(&passed, listening("127.0.0.1"), TCP_PASSED_BY_OTHERS));
    ck_assert(tcp_passed_any(&passed, &mine));
    ck_ok(tcp_parse_address(SPAN("127.0.0.1:0"), &other));
    ck_ok(tcp_bind(&loop, &other, &passed, &listener));
    tcp_listener_close(listener);
    ck_assert_uint_eq(passed.count, 1);
    ck_ok(tcp_parse_address(SPAN("127.0.0.2:0"), &other));
    other.port = mine.port;
    ck_ok(tcp_bind(&loop, &other, &passed, &listener));
    tcp_listener_close(listener);
    ck_assert_uint_eq(passed.count, 1);
    tcp_passed_done(&passed);
    loop_done(&loop);
}
END_TEST

/* Of a listener that is closed: whoever connects waits for the next one, which has the port that
 * the kernel chose for the first. */
START_TEST(kept_sockets_go_on)
{
    struct tcp_passed kept = {.count = 0};
    struct tcp_listener *listener;
    struct tcp_address any, other;
    uint16_t port;
    int early, late;

    ck_ok(loop_init(&loop));
    ck_ok(tcp_parse_address(SPAN("127.0.0.1:0"), &any));
    ck_ok(tcp_bind(&loop, &any, &kept, &listener));
    ck_ok(tcp_listener_start(listener, on_accept, NULL));
    port = tcp_listener_port(listener);
    ck_ok(tcp_passed_keep(&kept, listener));
    ck_assert_uint_eq(kept.count, 1);
    ck_assert(tcp_passed_has(&kept, TCP_PASSED_OWN_ANY_PORT));
    ck_assert(!tcp_passed_has(&kept, TCP_PASSED_BY_OTHERS));
    early = connected(port);
    tcp_listener_close(listener);
    late = connected(port);
    ck_ok(tcp_parse_address(SPAN("127.0.0.2:0"), &other));
    ck_ok(tcp_bind(&loop, &other, &kept, &listener)); /* another address */
    tcp_listener_close(listener);
    ck_assert_uint_eq(kept.count, 1);
    ck_ok(tcp_bind(&loop, &any, &kept, &listener));
    ck_assert_uint_eq(kept.count, 0);
    ck_assert_uint_eq(tcp_listener_port(listener), port);
    peer[0] = '\0';
    ck_ok(tcp_listener_start(listener, on_accept, NULL));
    while (peer[0] == '\0')
        loop_run_once(&loop);
    ck_assert_str_eq(peer, "127.0.0.1");
    ck_ok(tcp_passed_keep(&kept, listener));
    tcp_passed_close_own(&kept);
    ck_assert_uint_eq(kept.count, 0);
    tcp_listener_close(listener);
    close(early);
    close(late);
    loop_done(&loop);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, kept_sockets_go_on);
    tcase_add_test(tc, an_ipv4_client_is_one_over_either_family);
    tcase_add_test(tc, there_is_room_for_so_many);
    tcase_add_test(tc, another_port_or_address_is_not_taken);
}
