/* Both ends live in this process: ours on the loop, the client a plain blocking socket. */
#include "testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/tcp_passed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MS 1000000u
#define MANY 200
#define BIG 20000000u

static struct loop loop;
static struct tcp_listener *listener;

/* Our end of one connection, and what was heard from it. */
static struct side {
    struct tcp_conn *conn; /* NULL after on_close */
    struct buf got;
    unsigned reads, ends, drains, closes;
    enum tcp_close_reason reason;
    struct span answer;                 /* written on each read */
    void (*on_read)(struct side *side); /* besides */
} sides[MANY];
static unsigned accepted;
static char *big; /* BIG bytes, no two stretches alike, where a test makes them */

static void side_on_read(void *context, struct span bytes)
{
    struct side *side = context;

    side->reads++;
    buf_add(&side->got, bytes);
    tcp_write(side->conn, side->answer);
    if (side->on_read != NULL)
        side->on_read(side);
}

static void side_on_end(void *context)
{
    ((struct side *)context)->ends++;
}

static void side_on_drain(void *context)
{
    struct side *side = context;

    ck_assert_uint_eq(tcp_pending(side->conn), 0);
    side->drains++;
}

static void side_on_close(void *context, enum tcp_close_reason reason)
{
    struct side *side = context;

    side->closes++;
    side->reason = reason;
    ck_assert_uint_gt(strlen(tcp_peer(side->conn)), 0);
    side->conn = NULL;
}

static const struct tcp_callbacks callbacks = {side_on_read, side_on_end, side_on_drain,
                                               side_on_close};

static void accept_side(void *context, struct tcp_conn *conn)
{
    struct side *side = &sides[accepted++];

    ck_assert_ptr_eq(context, &loop);
    ck_assert_uint_le(accepted, ARRAY_LEN(sides));
    side->conn = conn;
    tcp_start(conn, &callbacks, side);
}

static void accept_and_close(void *context, struct tcp_conn *conn)
{
    (void)context;
    accepted++;
    tcp_close(conn, TCP_CLOSE_TOO_MANY);
}

static void accept_the_last(void *context, struct tcp_conn *conn)
{
    accept_and_close(context, conn);
    tcp_listener_close(TAKE(listener));
}

static struct tcp_address address(const char *text)
{
    struct tcp_address a;

    ck_ok(tcp_parse_address(span_str(text), &a));
    return a;
}

static struct err *try_to_listen(const struct tcp_address *a, tcp_accept_fn *on_accept,
                                 struct tcp_listener **out_listener)
{
    struct tcp_listener *l;
    struct err *e;

    TRY(tcp_bind(&loop, a, &(struct tcp_passed){.count = 0}, &l));
    e = tcp_listener_start(l, on_accept, &loop);
    if (e != NULL)
        tcp_listener_close(l);
    else
        *out_listener = l;
    return e;
}

static void listen_at(const char *text, tcp_accept_fn *on_accept)
{
    struct tcp_address a = address(text);

    ck_ok(try_to_listen(&a, on_accept, &listener));
}

static void begin(const char *text)
{
    memset(sides, 0, sizeof(sides));
    for (unsigned i = 0; i < ARRAY_LEN(sides); i++)
        buf_init(&sides[i].got, BUF_NO_CAP);
    accepted = 0;
    ck_ok(loop_init(&loop));
    listen_at(text, accept_side);
}

/* Closes what is open; every connection that was started hears of it exactly once. */
static void end(void)
{
    for (unsigned i = 0; i < accepted; i++)
        if (sides[i].conn != NULL)
            tcp_close(sides[i].conn, TCP_CLOSE_SHUTDOWN);
    tcp_listener_close(listener);
    listener = NULL;
    loop_done(&loop);
    for (unsigned i = 0; i < accepted; i++) {
        ck_assert_uint_eq(sides[i].closes, 1);
        buf_done(&sides[i].got);
    }
    mem_free(TAKE(big));
}

/* No time passes: what ends does not end for having waited. */
static void stop_clock(void)
{
    clock_fake(0, 1000 * (uint64_t)MS);
}

static void turn(void)
{
    loop_wake(&loop); /* does not wait */
    loop_run_once(&loop);
}

#define TURN_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (unsigned i_ = 0; i_ < 50000 && !(condition); i_++) {                                  \
            turn();                                                                                \
            usleep(100);                                                                           \
        }                                                                                          \
        ck_assert_msg(condition, "never: " #condition);                                            \
    } while (0)

/* Gives what must not happen a chance to. */
static void some_turns(void)
{
    for (unsigned i = 0; i < 50; i++) {
        turn();
        usleep(100);
    }
}

static int new_socket(int family)
{
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static int try_connect(int fd, const char *ip, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1)
        return connect(fd, (struct sockaddr *)&v4, sizeof(v4));
    ck_assert_int_eq(inet_pton(AF_INET6, ip, &v6.sin6_addr), 1);
    return connect(fd, (struct sockaddr *)&v6, sizeof(v6));
}

static int try_connect_path(int fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

static int client_to(const char *ip)
{
    int fd = new_socket(strchr(ip, ':') != NULL ? AF_INET6 : AF_INET);

    ck_assert_int_eq(try_connect(fd, ip, tcp_listener_port(listener)), 0);
    return fd;
}

/* Connected and accepted. */
static int client(void)
{
    unsigned before = accepted;
    int fd = client_to("127.0.0.1");

    TURN_UNTIL(accepted == before + 1);
    return fd;
}

static void send_text(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Turns until the client has received something: how many bytes, 0 at the end, or -errno. */
static ssize_t receive(int fd, char *out, size_t n)
{
    ssize_t got = -1;

    errno = EAGAIN;
    for (unsigned i = 0; i < 50000 && got < 0 && errno == EAGAIN; i++) {
        turn();
        got = recv(fd, out, n, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) {
            usleep(100);
            errno = EAGAIN;
        }
    }
    return got < 0 ? -errno : got;
}

static void expect_text(int fd, const char *text)
{
    size_t n = 0, length = strlen(text);
    char got[256];

    ck_assert_uint_lt(length, sizeof(got));
    while (n < length) {
        ssize_t more = receive(fd, got + n, length - n);

        ck_assert_int_gt(more, 0);
        n += (size_t)more;
    }
    ck_assert_mem_eq(got, text, length);
}

static void expect_end(int fd)
{
    char byte;

    ck_assert_int_eq(receive(fd, &byte, 1), 0);
}

/* Leaves with a reset. */
static void reset(int fd)
{
    struct linger none = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(fd);
}

/* --- Listening --- */

START_TEST(echo_over_each_family)
{
    static const char *const hosts[][2] = {{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"}};
    struct in6_addr expected, ip;
    int fd;

    begin(hosts[_i][0]);
    ck_assert_uint_ne(tcp_listener_port(listener), 0);
    sides[0].answer = SPAN("pong");
    fd = client_to(hosts[_i][1]);
    send_text(fd, "ping");
    expect_text(fd, "pong");
    ck_span_eq(buf_span(&sides[0].got), "ping");
    ck_assert_str_eq(tcp_peer(sides[0].conn), hosts[_i][1]);
    ck_assert(tcp_peer_ip(sides[0].conn, &ip) && ip_parse(span_str(hosts[_i][1]), &expected));
    ck_assert_mem_eq(&ip, &expected, sizeof(ip));
    close(fd);
    end();
}
END_TEST

START_TEST(localhost_is_both_families_on_one_port)
{
    static const char *const ips[] = {"127.0.0.1", "::1"};

    begin("localhost:0");
    for (unsigned i = 0; i < ARRAY_LEN(ips); i++) {
        int fd = client_to(ips[i]);

        sides[i].answer = SPAN("hello");
        send_text(fd, "x");
        expect_text(fd, "hello");
        close(fd);
    }
    ck_assert_uint_eq(accepted, 2);
    end();
}
END_TEST

/* Bound and not listening: nobody else can answer there. -1: the port is taken. */
static int take_v4_port(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = new_socket(AF_INET);

    ck_assert_int_eq(inet_pton(AF_INET, "127.0.0.1", &a.sin_addr), 1);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    ck_assert_int_eq(errno, EADDRINUSE);
    close(fd);
    return -1;
}

/* The port may be another program's with v4: then the next is tried. */
START_TEST(v6_any_takes_no_v4)
{
    int fd = new_socket(AF_INET), taken;
    unsigned tries = 0;

    begin("[::]:0");
    while ((taken = take_v4_port(tcp_listener_port(listener))) < 0) {
        ck_assert_uint_lt(++tries, 20);
        end();
        begin("[::]:0");
    }
    ck_assert_int_eq(try_connect(fd, "127.0.0.1", tcp_listener_port(listener)), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
    close(taken);
    end();
}
END_TEST

START_TEST(a_port_in_use_is_an_error)
{
    struct tcp_listener *second = NULL;
    struct tcp_address a = address("127.0.0.1:0");
    char text[64];

    begin("127.0.0.1:0");
    a.port = tcp_listener_port(listener);
    snprintf(text, sizeof(text), "'127.0.0.1:%u': Address already in use", a.port);
    snprintf(a.text, sizeof(a.text), "127.0.0.1:%u", a.port);
    ck_fails(try_to_listen(&a, accept_side, &second), ERR_UNKNOWN, text);
    ck_assert_ptr_null(second);
    end();
}
END_TEST

START_TEST(localhost_fails_when_one_family_is_taken)
{
    struct tcp_listener *second = NULL;
    struct tcp_address a = address("localhost:0");

    begin("[::1]:0");
    a.port = tcp_listener_port(listener);
    ck_fails(try_to_listen(&a, accept_side, &second), ERR_UNKNOWN, "in use");
    end();
}
END_TEST

START_TEST(a_foreign_address_is_an_error)
{
    struct tcp_address a = address("192.0.2.1:80");
    struct tcp_listener *l;

    ck_ok(loop_init(&loop));
    ck_fails(try_to_listen(&a, accept_side, &l), ERR_UNKNOWN, "'192.0.2.1:80': Cannot");
    loop_done(&loop);
}
END_TEST

START_TEST(a_crowd_is_accepted)
{
    int fds[MANY];

    begin("127.0.0.1:0");
    for (unsigned i = 0; i < MANY; i++)
        fds[i] = client_to("127.0.0.1");
    turn();
    ck_assert_uint_lt(accepted, MANY); /* not all in one turn */
    TURN_UNTIL(accepted == MANY);
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    end();
}
END_TEST

START_TEST(accept_may_close_the_connection)
{
    int fd;

    begin("127.0.0.1:0");
    tcp_listener_close(listener);
    listen_at("127.0.0.1:0", accept_and_close);
    fd = client_to("127.0.0.1");
    expect_end(fd);
    close(fd);
    ck_assert_uint_eq(accepted, 1);
    accepted = 0; /* nobody hears of it */
    end();
}
END_TEST

START_TEST(accept_may_close_the_listener)
{
    int first, second;

    begin("127.0.0.1:0");
    tcp_listener_close(listener);
    listen_at("127.0.0.1:0", accept_the_last);
    first = client_to("127.0.0.1");
    second = client_to("127.0.0.1");
    TURN_UNTIL(accepted == 1);
    some_turns();
    ck_assert_uint_eq(accepted, 1);
    ck_assert_int_le(receive(second, (char[1]){0}, 1), 0);
    close(first);
    close(second);
    accepted = 0;
    end();
}
END_TEST

START_TEST(closed_listener_refuses_at_once)
{
    uint16_t port;
    int fd = new_socket(AF_INET);

    begin("127.0.0.1:0");
    port = tcp_listener_port(listener);
    tcp_listener_close(TAKE(listener));
    tcp_listener_close(NULL);
    ck_assert_int_eq(try_connect(fd, "127.0.0.1", port), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
    end();
}
END_TEST

/* The descriptor of our end: its peer has the client's own address. */
static int our_end(int client_fd)
{
    struct sockaddr_in mine, other;
    socklen_t n = sizeof(mine);

    ck_assert_int_eq(getsockname(client_fd, (struct sockaddr *)&mine, &n), 0);
    for (int fd = 3; fd < 200; fd++) {
        n = sizeof(other);
        if (getpeername(fd, (struct sockaddr *)&other, &n) == 0 && other.sin_family == AF_INET &&
            other.sin_port == mine.sin_port)
            return fd;
    }
    return -1;
}

START_TEST(accepted_sockets_have_no_delay)
{
    int fd, value = 0;
    socklen_t n = sizeof(value);

    begin("127.0.0.1:0");
    fd = client();
    ck_assert_int_eq(getsockopt(our_end(fd), IPPROTO_TCP, TCP_NODELAY, &value, &n), 0);
    ck_assert_int_ne(value, 0);
    close(fd);
    end();
}
END_TEST

/* --- Want of descriptors --- */

static unsigned turns;

static void count_turn(struct loop_hook *hook)
{
    (void)hook;
    turns++;
}

static unsigned lines_logged(int fd)
{
    char text[4096];
    ssize_t n = read(fd, text, sizeof(text));
    unsigned lines = 0;

    for (ssize_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* No descriptor beyond those that are open can be had until the limit is put back. */
static struct rlimit use_up_descriptors(void)
{
    struct rlimit before, none;
    int next = dup(STDERR_FILENO);

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next;
    close(next);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(dup(STDERR_FILENO), -1);
    return before;
}

START_TEST(rests_without_descriptors_and_loses_nobody)
{
    struct loop_hook counter = {.run = count_turn};
    struct rlimit before;
    int logged[2], clients[3];
    uint64_t began;

    begin("127.0.0.1:0");
    ck_assert_int_eq(pipe2(logged, O_NONBLOCK | O_CLOEXEC), 0);
    log_to(logged[1]);
    clients[0] = client(); /* libuv has taken its spare descriptor by now */
    for (unsigned i = 1; i < 3; i++)
        clients[i] = new_socket(AF_INET);
    before = use_up_descriptors();
    for (unsigned i = 1; i < 3; i++)
        ck_assert_int_eq(try_connect(clients[i], "127.0.0.1", tcp_listener_port(listener)), 0);

    loop_add_hook(&loop, &counter);
    turns = 0;
    began = clock_mono_ms();
    while (clock_mono_ms() - began < 450)
        loop_run_once(&loop);
    ck_assert_uint_eq(accepted, 1);
    ck_assert_msg(turns >= 4 && turns <= 30, "%u turns", turns);
    ck_assert_uint_eq(lines_logged(logged[0]), 1);

    sides[1].answer = sides[2].answer = SPAN("at last");
    setrlimit(RLIMIT_NOFILE, &before);
    for (unsigned i = 1; i < 3; i++) {
        send_text(clients[i], "?");
        expect_text(clients[i], "at last");
    }
    ck_assert_uint_eq(accepted, 3);
    for (unsigned i = 0; i < 3; i++)
        close(clients[i]);
    log_to(STDERR_FILENO);
    loop_remove_hook(&loop, &counter);
    end();
}
END_TEST

START_TEST(complains_once_a_minute)
{
    struct rlimit before;
    unsigned lines = 0;
    int logged[2], fd;

    clock_fake(0, 1000000 * (uint64_t)MS);
    begin("127.0.0.1:0");
    ck_assert_int_eq(pipe2(logged, O_NONBLOCK | O_CLOEXEC), 0);
    log_to(logged[1]);
    close(client());
    fd = new_socket(AF_INET);
    before = use_up_descriptors();
    ck_assert_int_eq(try_connect(fd, "127.0.0.1", tcp_listener_port(listener)), 0);
    for (unsigned i = 0; i < 1210; i++) { /* two minutes and a second, in rests of 100 ms */
        turn();
        clock_advance(100 * MS);
        lines += lines_logged(logged[0]);
    }
    ck_assert_uint_eq(lines, 3);
    setrlimit(RLIMIT_NOFILE, &before);
    log_to(STDERR_FILENO);
    close(fd);
    end();
}
END_TEST

START_TEST(closes_while_it_rests)
{
    struct rlimit before;
    int fd;

    begin("localhost:0");
    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    close(client());
    fd = new_socket(AF_INET);
    before = use_up_descriptors();
    ck_assert_int_eq(try_connect(fd, "127.0.0.1", tcp_listener_port(listener)), 0);
    some_turns();
    ck_assert_uint_eq(accepted, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    log_to(STDERR_FILENO);
    end();
    close(fd);
}
END_TEST

/* --- UNIX sockets --- */

static char directory[32];
static char path[64];    /* of the socket */
static char at_path[80]; /* the same as an address */

static void begin_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/check_tcp.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/s", directory);
    snprintf(at_path, sizeof(at_path), "unix:%s", path);
}

static void end_directory(void)
{
    ck_assert_int_eq(rmdir(directory), 0); /* nothing is left in it */
}

/* A socket file that nobody listens on. */
static void leave_stale_socket(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = new_socket(AF_UNIX);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
}

static void expect_refused(const char *why)
{
    struct tcp_address a = address(at_path);
    struct tcp_listener *l;

    ck_fails(try_to_listen(&a, accept_side, &l), ERR_UNKNOWN, why);
}

START_TEST(unix_socket_echo_mode_and_removal)
{
    struct stat file;
    int fd = new_socket(AF_UNIX);
    struct in6_addr ip;

    begin_directory();
    begin(at_path);
    ck_assert_uint_eq(tcp_listener_port(listener), 0);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 07777, 0660);
    ck_assert_int_eq(try_connect_path(fd, path), 0);
    sides[0].answer = SPAN("pong");
    send_text(fd, "ping");
    expect_text(fd, "pong");
    ck_assert_str_eq(tcp_peer(sides[0].conn), "unix");
    ck_assert(!tcp_peer_ip(sides[0].conn, &ip));
    close(fd);
    TURN_UNTIL(sides[0].ends == 1);
    end();
    end_directory();
}
END_TEST

START_TEST(stale_unix_socket_is_replaced)
{
    int fd = new_socket(AF_UNIX);

    begin_directory();
    leave_stale_socket();
    begin(at_path);
    ck_assert_int_eq(try_connect_path(fd, path), 0);
    TURN_UNTIL(accepted == 1);
    close(fd);
    end();
    end_directory();
}
END_TEST

START_TEST(living_unix_socket_is_not_replaced)
{
    int fd = new_socket(AF_UNIX);

    begin_directory();
    begin(at_path);
    expect_refused("Address already in use");
    ck_assert_int_eq(try_connect_path(fd, path), 0);
    close(fd);
    TURN_UNTIL(accepted == 2); /* the probe was the first */
    end();
    end_directory();
}
END_TEST

START_TEST(another_file_is_not_replaced)
{
    int fd;

    begin_directory();
    ck_ok(loop_init(&loop));
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    expect_refused("Address already in use");
    ck_assert_int_eq(unlink(path), 0); /* it is still there */
    ck_assert_int_eq(symlink("nowhere", path), 0);
    expect_refused("Address already in use");
    ck_assert_int_eq(unlink(path), 0);
    loop_done(&loop);
    end_directory();
}
END_TEST

START_TEST(a_path_that_cannot_be_is_an_error)
{
    begin_directory();
    ck_ok(loop_init(&loop));
    snprintf(at_path, sizeof(at_path), "unix:%s/no/s", directory);
    expect_refused("No such file or directory");
    loop_done(&loop);
    end_directory();
}
END_TEST

START_TEST(the_socket_of_a_successor_is_left_alone)
{
    struct tcp_address a;
    struct tcp_listener *successor;

    begin_directory();
    begin(at_path);
    ck_assert_int_eq(unlink(path), 0);
    a = address(at_path);
    ck_ok(try_to_listen(&a, accept_side, &successor));
    tcp_listener_close(TAKE(listener));
    ck_assert_int_eq(access(path, F_OK), 0);
    tcp_listener_close(successor);
    ck_assert_int_ne(access(path, F_OK), 0);
    end();
    end_directory();
}
END_TEST

/* --- Reading --- */

static void pause_side(struct side *side)
{
    tcp_pause(side->conn);
}

START_TEST(pause_holds_reads_back)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    sides[0].on_read = pause_side;
    send_text(fd, "one");
    TURN_UNTIL(sides[0].reads == 1);
    send_text(fd, "two");
    shutdown(fd, SHUT_WR);
    some_turns();
    ck_assert_uint_eq(sides[0].reads, 1);
    ck_assert_uint_eq(sides[0].ends, 0);
    sides[0].on_read = NULL;
    tcp_resume(sides[0].conn);
    tcp_resume(sides[0].conn);
    TURN_UNTIL(sides[0].ends == 1);
    ck_span_eq(buf_span(&sides[0].got), "onetwo");
    close(fd);
    end();
}
END_TEST

/* Something was read before: the kernel is told apart from then on (tcp.c, poll_edges). */
static int client_known(void)
{
    int fd = client();

    send_text(fd, "hello ");
    TURN_UNTIL(sides[accepted - 1].reads == 1);
    some_turns();
    return fd;
}

static unsigned order_of_reads[3], reads_in_order;

static void note_order(struct side *side)
{
    order_of_reads[reads_in_order++ % ARRAY_LEN(order_of_reads)] = (unsigned)(side - sides);
}

/* Who was served in the turn before is not before others. */
START_TEST(those_who_asked_first_are_served_first)
{
    static const unsigned order[] = {2, 0, 1};
    int fds[ARRAY_LEN(order)];

    begin("127.0.0.1:0");
    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = client_known();
    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        send_text(fds[i], "in their order");
    TURN_UNTIL(sides[0].reads == 2 && sides[1].reads == 2 && sides[2].reads == 2);
    for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
        sides[i].on_read = note_order;
        send_text(fds[order[i]], "in another");
    }
    TURN_UNTIL(reads_in_order == ARRAY_LEN(order));
    for (unsigned i = 0; i < ARRAY_LEN(order); i++)
        ck_assert_uint_eq(order_of_reads[i], order[i]);
    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    end();
}
END_TEST

/* It comes with them: nothing tells of it once they are read. */
START_TEST(an_end_behind_the_last_bytes_is_seen)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client_known();
    send_text(fd, "world");
    shutdown(fd, SHUT_WR);
    TURN_UNTIL(sides[0].ends == 1);
    ck_span_eq(buf_span(&sides[0].got), "hello world");
    close(fd);
    end();
}
END_TEST

START_TEST(pause_holds_back_what_comes_later)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client_known();
    for (unsigned i = 1; i <= 3; i++) {
        tcp_pause(sides[0].conn);
        send_text(fd, "more ");
        if (i == 3)
            shutdown(fd, SHUT_WR);
        some_turns();
        ck_assert_uint_eq(sides[0].reads, i);
        tcp_resume(sides[0].conn);
        TURN_UNTIL(sides[0].reads == i + 1);
    }
    TURN_UNTIL(sides[0].ends == 1);
    ck_span_eq(buf_span(&sides[0].got), "hello more more more ");
    close(fd);
    end();
}
END_TEST

START_TEST(half_closed_client_still_gets_its_answer)
{
    int fd;

    stop_clock();
    begin("127.0.0.1:0");
    fd = client();
    send_text(fd, "question");
    shutdown(fd, SHUT_WR);
    TURN_UNTIL(sides[0].ends == 1);
    tcp_pause(sides[0].conn);
    tcp_resume(sides[0].conn); /* brings no second end */
    some_turns();
    ck_assert_uint_eq(sides[0].ends, 1);
    ck_assert_uint_eq(sides[0].closes, 0);
    tcp_write(sides[0].conn, SPAN("answer"));
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    expect_text(fd, "answer");
    expect_end(fd);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_DONE);
    close(fd);
    end();
}
END_TEST

START_TEST(much_arrives_whole)
{
    static char sent[1000000];
    size_t done = 0, before;
    int fd;

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char)(i * 7 + i / 256);
    begin("127.0.0.1:0");
    fd = _i == 0 ? client() : client_known();
    before = sides[0].got.n;
    while (done < sizeof(sent)) {
        ssize_t n = send(fd, sent + done, sizeof(sent) - done, MSG_DONTWAIT | MSG_NOSIGNAL);

        done += n > 0 ? (size_t)n : 0;
        turn();
    }
    TURN_UNTIL(sides[0].got.n == before + sizeof(sent));
    ck_assert_mem_eq(sides[0].got.p + before, sent, sizeof(sent));
    close(fd);
    end();
}
END_TEST

/* --- Writing --- */

static void make_big(void)
{
    big = mem_alloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 31 + i / 1000);
}

/* The client reads all of it in order; nothing else. */
static void expect_big(int fd)
{
    static char chunk[100000];

    for (size_t n = 0; n < BIG;) {
        ssize_t got = receive(fd, chunk, MIN(sizeof(chunk), BIG - n));

        ck_assert_int_gt(got, 0);
        ck_assert(memcmp(chunk, big + n, (size_t)got) == 0);
        n += (size_t)got;
    }
}

static void write_big(struct tcp_conn *conn)
{
    for (size_t n = 0, step = 1; n < BIG; n += step, step = step * 3 + 1)
        tcp_write(conn, span_sub(span_of(big, BIG), n, n + step));
}

START_TEST(slow_client_gets_all_in_order)
{
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    tcp_write(sides[0].conn, SPAN(""));
    ck_assert_uint_eq(tcp_pending(sides[0].conn), 0);
    write_big(sides[0].conn);
    ck_assert_uint_gt(tcp_pending(sides[0].conn), 0);
    some_turns();
    ck_assert_uint_eq(sides[0].drains, 0);
    expect_big(fd);
    TURN_UNTIL(sides[0].drains == 1);
    ck_assert_uint_eq(tcp_pending(sides[0].conn), 0);
    tcp_write(sides[0].conn, SPAN("small again"));
    expect_text(fd, "small again");
    some_turns();
    ck_assert_uint_eq(sides[0].drains, 1); /* it never was pending */
    close(fd);
    end();
}
END_TEST

/* Wherever the kernel stops: in the first part, between them, in the second. */
START_TEST(two_parts_arrive_as_one)
{
    static const size_t cuts[] = {0, 1, BIG / 2, BIG - 1, BIG};

    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        struct span all;
        int fd;

        make_big();
        all = span_of(big, BIG);
        begin("127.0.0.1:0");
        fd = client();
        tcp_write_two(sides[0].conn, span_sub(all, 0, cuts[i]), span_sub(all, cuts[i], BIG));
        tcp_write_two(sides[0].conn, SPAN("and "), SPAN("more"));
        some_turns();
        expect_big(fd);
        expect_text(fd, "and more");
        close(fd);
        end();
    }
}
END_TEST

START_TEST(pending_counts_what_the_kernel_has_not)
{
    size_t pending;
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    tcp_write(sides[0].conn, span_of(big, BIG));
    some_turns();
    pending = tcp_pending(sides[0].conn);
    ck_assert_uint_gt(pending, 0);
    tcp_write(sides[0].conn, SPAN("12345"));
    ck_assert_uint_eq(tcp_pending(sides[0].conn), pending + 5);
    expect_big(fd);
    expect_text(fd, "12345");
    close(fd);
    end();
}
END_TEST

/* --- Endings --- */

START_TEST(finish_sends_what_is_pending)
{
    int fd;

    stop_clock();
    make_big();
    begin("127.0.0.1:0");
    fd = client();
    write_big(sides[0].conn);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    tcp_write(sides[0].conn, SPAN("too late"));
    expect_big(fd);
    expect_end(fd);
    ck_assert_uint_eq(sides[0].closes, 0); /* lingers until the client has closed as well */
    close(fd);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_DONE);
    ck_assert_uint_eq(sides[0].drains + sides[0].ends, 0);
    end();
}
END_TEST

START_TEST(finish_sends_to_a_client_that_has_ended)
{
    int fd;

    stop_clock();
    make_big();
    begin("127.0.0.1:0");
    fd = client();
    write_big(sides[0].conn);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    shutdown(fd, SHUT_WR);
    some_turns();
    ck_assert_uint_eq(sides[0].closes, 0);
    expect_big(fd);
    expect_end(fd);
    TURN_UNTIL(sides[0].closes == 1);
    close(fd);
    end();
}
END_TEST

/* A server that closes with bytes unread makes the kernel send a reset, and the client may never
 * see the answer that was sent before. */
START_TEST(finish_drops_what_the_client_still_sends)
{
    static char more[300000];
    int fd;

    stop_clock();
    begin("127.0.0.1:0");
    fd = client();
    sides[0].on_read = pause_side;
    send_text(fd, "head");
    TURN_UNTIL(sides[0].reads == 1);
    ck_assert_int_gt(send(fd, more, sizeof(more), MSG_DONTWAIT), 0);
    tcp_write(sides[0].conn, SPAN("413"));
    tcp_finish(sides[0].conn, TCP_CLOSE_BAD_REQUEST);
    tcp_pause(sides[0].conn); /* too late as well */
    some_turns();
    ck_assert_int_gt(send(fd, more, sizeof(more), MSG_DONTWAIT | MSG_NOSIGNAL), 0);
    some_turns();
    expect_text(fd, "413");
    expect_end(fd);
    ck_assert_uint_eq(sides[0].reads, 1);
    close(fd);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_BAD_REQUEST);
    end();
}
END_TEST

START_TEST(finish_waits_a_second_at_most)
{
    int fd;

    stop_clock();
    begin("127.0.0.1:0");
    fd = client();
    tcp_finish(sides[0].conn, TCP_CLOSE_IDLE);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    expect_end(fd);
    clock_advance(999 * MS);
    some_turns();
    ck_assert_uint_eq(sides[0].closes, 0);
    clock_advance(1 * MS);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_IDLE);
    close(fd);
    end();
}
END_TEST

START_TEST(close_after_finish_is_at_once)
{
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    write_big(sides[0].conn);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    tcp_close(sides[0].conn, TCP_CLOSE_NOT_READ);
    ck_assert_uint_eq(sides[0].closes, 0); /* never inside the call */
    turn();
    ck_assert_uint_eq(sides[0].closes, 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_NOT_READ); /* it is not done */
    close(fd);
    end();
}
END_TEST

START_TEST(close_after_all_is_sent_keeps_the_reason)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    tcp_write(sides[0].conn, SPAN("bye"));
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    tcp_close(sides[0].conn, TCP_CLOSE_SHUTDOWN);
    turn();
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_DONE);
    close(fd);
    end();
}
END_TEST

START_TEST(close_drops_what_is_pending)
{
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    write_big(sides[0].conn);
    tcp_close(sides[0].conn, TCP_CLOSE_NOT_READ);
    tcp_close(sides[0].conn, TCP_CLOSE_IDLE);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    tcp_write(sides[0].conn, SPAN("too late"));
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_NOT_READ);
    ck_assert_uint_eq(sides[0].drains, 0);
    close(fd);
    end();
}
END_TEST

static void close_side(struct side *side)
{
    tcp_close(side->conn, TCP_CLOSE_BAD_REQUEST);
    ck_assert_ptr_nonnull(side->conn);
}

START_TEST(close_inside_on_read)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    sides[0].on_read = close_side;
    send_text(fd, "x");
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_BAD_REQUEST);
    expect_end(fd);
    close(fd);
    end();
}
END_TEST

static void hand_over(struct side *side)
{
    struct in6_addr ip;

    ck_assert(ip_parse(SPAN("2001:db8::7"), &ip));
    tcp_set_peer(side->conn, &ip);
    sides[1].conn = TAKE(side->conn);
    tcp_start(sides[1].conn, &callbacks, &sides[1]);
}

START_TEST(another_takes_over_inside_on_read)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    sides[0].on_read = hand_over;
    send_text(fd, "first");
    TURN_UNTIL(sides[1].conn != NULL);
    ck_assert_str_eq(tcp_peer(sides[1].conn), "2001:db8::7");
    send_text(fd, "second");
    TURN_UNTIL(sides[1].reads == 1);
    ck_span_eq(buf_span(&sides[0].got), "first");
    ck_span_eq(buf_span(&sides[1].got), "second");
    tcp_close(sides[1].conn, TCP_CLOSE_DONE);
    TURN_UNTIL(sides[1].closes == 1);
    ck_assert_uint_eq(sides[0].closes, 0);
    sides[0].closes = sides[1].closes; /* it is one connection */
    close(fd);
    buf_done(&sides[1].got);
    end();
}
END_TEST

START_TEST(reset_while_reading)
{
    begin("127.0.0.1:0");
    reset(client());
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_RESET);
    end();
}
END_TEST

START_TEST(reset_while_paused_shows_on_write)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    tcp_pause(sides[0].conn);
    reset(fd);
    some_turns();
    ck_assert_uint_eq(sides[0].closes, 0);
    tcp_write(sides[0].conn, SPAN("anybody?"));
    ck_assert_uint_eq(sides[0].closes, 0);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_RESET);
    end();
}
END_TEST

START_TEST(write_to_a_client_that_has_left)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    close(fd);
    TURN_UNTIL(sides[0].ends == 1);
    tcp_write(sides[0].conn, SPAN("anybody?")); /* is answered with a reset */
    some_turns();
    tcp_write(sides[0].conn, SPAN("nobody"));
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_RESET);
    end();
}
END_TEST

START_TEST(reset_while_pending)
{
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    tcp_pause(sides[0].conn);
    write_big(sides[0].conn);
    reset(fd);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_RESET);
    ck_assert_uint_eq(sides[0].drains, 0);
    end();
}
END_TEST

START_TEST(reset_while_finishing)
{
    int fd;

    make_big();
    begin("127.0.0.1:0");
    fd = client();
    write_big(sides[0].conn);
    tcp_finish(sides[0].conn, TCP_CLOSE_DONE);
    reset(fd);
    TURN_UNTIL(sides[0].closes == 1);
    ck_assert_int_eq(sides[0].reason, TCP_CLOSE_RESET);
    end();
}
END_TEST

START_TEST(loop_ends_when_all_is_closed)
{
    int fd;

    begin("127.0.0.1:0");
    fd = client();
    tcp_close(sides[0].conn, TCP_CLOSE_SHUTDOWN);
    tcp_listener_close(TAKE(listener));
    loop_run(&loop);
    ck_assert_uint_eq(sides[0].closes, 1);
    close(fd);
    end();
}
END_TEST

static void listening_cases(TCase *tc)
{
    tcase_add_loop_test(tc, echo_over_each_family, 0, 2);
    tcase_add_test(tc, localhost_is_both_families_on_one_port);
    tcase_add_test(tc, v6_any_takes_no_v4);
    tcase_add_test(tc, a_port_in_use_is_an_error);
    tcase_add_test(tc, localhost_fails_when_one_family_is_taken);
    tcase_add_test(tc, a_foreign_address_is_an_error);
    tcase_add_test(tc, a_crowd_is_accepted);
    tcase_add_test(tc, accept_may_close_the_connection);
    tcase_add_test(tc, accept_may_close_the_listener);
    tcase_add_test(tc, closed_listener_refuses_at_once);
    tcase_add_test(tc, accepted_sockets_have_no_delay);
    tcase_add_test(tc, rests_without_descriptors_and_loses_nobody);
    tcase_add_test(tc, complains_once_a_minute);
    tcase_add_test(tc, closes_while_it_rests);
    tcase_add_test(tc, unix_socket_echo_mode_and_removal);
    tcase_add_test(tc, stale_unix_socket_is_replaced);
    tcase_add_test(tc, living_unix_socket_is_not_replaced);
    tcase_add_test(tc, another_file_is_not_replaced);
    tcase_add_test(tc, a_path_that_cannot_be_is_an_error);
    tcase_add_test(tc, the_socket_of_a_successor_is_left_alone);
}

void testing_cases(TCase *tc)
{
    listening_cases(tc);
    tcase_add_test(tc, pause_holds_reads_back);
    tcase_add_test(tc, those_who_asked_first_are_served_first);
    tcase_add_test(tc, an_end_behind_the_last_bytes_is_seen);
    tcase_add_test(tc, pause_holds_back_what_comes_later);
    tcase_add_test(tc, half_closed_client_still_gets_its_answer);
    tcase_add_loop_test(tc, much_arrives_whole, 0, 2);
    tcase_add_test(tc, slow_client_gets_all_in_order);
    tcase_add_test(tc, two_parts_arrive_as_one);
    tcase_add_test(tc, pending_counts_what_the_kernel_has_not);
    tcase_add_test(tc, finish_sends_what_is_pending);
    tcase_add_test(tc, finish_sends_to_a_client_that_has_ended);
    tcase_add_test(tc, finish_drops_what_the_client_still_sends);
    tcase_add_test(tc, finish_waits_a_second_at_most);
    tcase_add_test(tc, close_after_finish_is_at_once);
    tcase_add_test(tc, close_after_all_is_sent_keeps_the_reason);
    tcase_add_test(tc, close_drops_what_is_pending);
    tcase_add_test(tc, close_inside_on_read);
    tcase_add_test(tc, another_takes_over_inside_on_read);
    tcase_add_test(tc, reset_while_reading);
    tcase_add_test(tc, reset_while_paused_shows_on_write);
    tcase_add_test(tc, write_to_a_client_that_has_left);
    tcase_add_test(tc, reset_while_pending);
    tcase_add_test(tc, reset_while_finishing);
    tcase_add_test(tc, loop_ends_when_all_is_closed);
}
