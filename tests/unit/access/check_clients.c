#include "testing.h"

#include "access/clients.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/rng.h"
#include "io/ip.h"
#include "io/loop.h"

#include <string.h>

#define MS 1000000u
#define MINUTE_MS 60000u

static struct loop loop;
static struct limits limits;
static struct clients *clients;

/* With a clock that stands still. */
static void begin(void)
{
    clock_fake(0, 1000 * MS);
    ck_ok(loop_init(&loop));
    limits_init(&limits);
    clients = clients_new(&loop, &limits);
}

static void end(void)
{
    clients_free(clients);
    loop_done(&loop);
    clock_real();
}

static void pass_ms(uint64_t ms)
{
    clock_advance(ms * MS);
    loop_wake(&loop); /* it is not to wait for the real time */
    loop_run_once(&loop);
}

static struct in6_addr ip(const char *text)
{
    struct in6_addr a;

    ck_assert_msg(ip_parse(span_str(text), &a), "'%s' is no address", text);
    return a;
}

/* One of many, each of another network. */
static struct in6_addr nth(uint32_t n)
{
    return ip_of_v4(&n);
}

static bool same_client(const char *a, const char *b)
{
    struct in6_addr first = ip(a), second = ip(b);
    struct client *one = clients_connect(clients, &first);
    struct client *other = clients_connect(clients, &second);
    bool same = one == other;

    clients_disconnect(clients, one);
    clients_disconnect(clients, other);
    return same;
}

START_TEST(a_client_is_an_address_or_a_network)
{
    begin();
    ck_assert(same_client("192.0.2.1", "192.0.2.1"));
    ck_assert(!same_client("192.0.2.1", "192.0.2.2"));
    ck_assert(same_client("2001:db8:0:1::1", "2001:db8:0:1:ffff::"));
    ck_assert(!same_client("2001:db8:0:1::1", "2001:db8:0:2::1"));
    ck_assert(same_client("::ffff:192.0.2.1", "192.0.2.1"));
    ck_assert_uint_eq(clients_count(clients), 0);
    end();
}
END_TEST

START_TEST(connections_per_address)
{
    struct in6_addr one = ip("192.0.2.1"), other = ip("192.0.2.2");
    struct client *first, *second, *unlike;

    begin();
    limits.connections_per_address = 2;
    first = clients_connect(clients, &one);
    second = clients_connect(clients, &one);
    ck_assert_ptr_eq(first, second);
    ck_assert_mem_eq(client_address(first), &one, sizeof(one));
    ck_assert_ptr_null(clients_connect(clients, &one));
    unlike = clients_connect(clients, &other);
    ck_assert_ptr_nonnull(unlike);
    clients_disconnect(clients, first);
    ck_assert_ptr_eq(clients_connect(clients, &one), first);
    limits.connections_per_address = 0;
    for (unsigned i = 0; i < 5000; i++)
        ck_assert_ptr_eq(clients_connect(clients, &one), first);
    for (unsigned i = 0; i < 5002; i++)
        clients_disconnect(clients, first);
    clients_disconnect(clients, unlike);
    ck_assert_uint_eq(clients_count(clients), 0);
    end();
}
END_TEST

START_TEST(requests_in_all_and_per_address)
{
    struct in6_addr one = ip("192.0.2.1"), other = ip("192.0.2.2");
    struct client *under_way[5];

    begin();
    limits.requests = 5;
    limits.requests_per_address = 3;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(clients_may_request(clients, &one), CLIENTS_WELCOME);
        under_way[i] = clients_begin(clients, &one);
    }
    ck_assert_int_eq(clients_may_request(clients, &one), CLIENTS_TOO_MANY_OF_ONE);
    ck_assert_int_eq(clients_may_request(clients, &other), CLIENTS_WELCOME);
    ck_assert_int_eq(clients_may_request(clients, NULL), CLIENTS_WELCOME);
    ck_assert_ptr_null(under_way[3] = clients_begin(clients, NULL));
    under_way[4] = clients_begin(clients, &other);
    ck_assert_int_eq(clients_may_request(clients, &one), CLIENTS_TOO_MANY);
    ck_assert_int_eq(clients_may_request(clients, NULL), CLIENTS_TOO_MANY);
    clients_end(clients, under_way[0]);
    ck_assert_int_eq(clients_may_request(clients, &one), CLIENTS_WELCOME);
    for (unsigned i = 1; i < 5; i++)
        clients_end(clients, under_way[i]);
    ck_assert_uint_eq(clients_count(clients), 0);
    end();
}
END_TEST

static void fail_times(const struct in6_addr *address, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        clients_sign_in_failed(clients, address);
}

START_TEST(failed_sign_ins)
{
    struct in6_addr one = ip("192.0.2.1"), other = ip("192.0.2.2");

    begin();
    limits.failed_sign_ins_per_minute = 6; /* one in ten seconds */
    fail_times(&one, 5);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
    fail_times(&one, 1);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 10);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &other), 0);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, NULL), 0);
    pass_ms(9001);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 1);
    pass_ms(999);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
    fail_times(&one, 1);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 10);
    pass_ms(MINUTE_MS);
    ck_assert_uint_eq(clients_count(clients), 0);
    fail_times(&one, 5);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
    end();
}
END_TEST

START_TEST(no_limit_of_failures)
{
    struct in6_addr one = ip("192.0.2.1");

    begin();
    limits.failed_sign_ins_per_minute = 0;
    fail_times(&one, 1000);
    fail_times(NULL, 1000);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
    ck_assert_uint_eq(clients_count(clients), 0);
    end();
}
END_TEST

START_TEST(failures_are_forgotten_in_time)
{
    begin();
    for (unsigned i = 0; i < 1000; i++) {
        struct in6_addr address = nth(i);

        fail_times(&address, 1 + i % 60);
        pass_ms(10);
    }
    ck_assert_uint_gt(clients_count(clients), 0);
    pass_ms(MINUTE_MS + 1000);
    ck_assert_uint_eq(clients_count(clients), 0);
    end();
}
END_TEST

START_TEST(failures_are_bounded)
{
    struct in6_addr oldest = nth(0), kept = nth(1), newest = nth(CLIENTS_FAILED_MOST + 1);
    struct client *connected;

    begin();
    limits.failed_sign_ins_per_minute = 1;
    connected = clients_connect(clients, &oldest);
    for (uint32_t i = 0; i <= CLIENTS_FAILED_MOST + 1; i++) {
        struct in6_addr address = nth(i);

        clients_sign_in_failed(clients, &address);
        if (i == CLIENTS_FAILED_MOST - 1)
            clients_sign_in_failed(clients, &kept);
    }
    ck_assert_uint_eq(clients_count(clients), CLIENTS_FAILED_MOST + 1);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &oldest), 0);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &kept), 120);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &newest), 60);
    clients_disconnect(clients, connected);
    ck_assert_uint_eq(clients_count(clients), CLIENTS_FAILED_MOST);
    end();
}
END_TEST

/* Connections, requests and failures of a few addresses, in any order, against plain counts. */
enum { ADDRESSES = 4, OPEN_MOST = 3 };

struct model {
    struct client *connections[OPEN_MOST], *requests[OPEN_MOST];
    size_t connection_count, request_count;
    uint64_t empty_until_ms; /* of a bucket of one a minute */
};

static void step(struct model *m, const struct in6_addr *address, uint64_t now_ms)
{
    struct client *connection;

    switch (rng_below(5)) {
    case 0:
        connection = clients_connect(clients, address);
        ck_assert((connection != NULL) == (m->connection_count < OPEN_MOST));
        if (connection != NULL)
            m->connections[m->connection_count++] = connection;
        break;
    case 1:
        if (m->connection_count > 0)
            clients_disconnect(clients, m->connections[--m->connection_count]);
        break;
    case 2:
        if (clients_may_request(clients, address) == CLIENTS_WELCOME) {
            ck_assert_uint_lt(m->request_count, OPEN_MOST);
            m->requests[m->request_count++] = clients_begin(clients, address);
        } else {
            ck_assert_uint_eq(m->request_count, OPEN_MOST);
        }
        break;
    case 3:
        if (m->request_count > 0)
            clients_end(clients, m->requests[--m->request_count]);
        break;
    default:
        ck_assert((clients_sign_in_wait_s(clients, address) > 0) == (m->empty_until_ms > now_ms));
        if (m->empty_until_ms <= now_ms) {
            clients_sign_in_failed(clients, address);
            m->empty_until_ms = now_ms + MINUTE_MS;
        }
    }
}

static size_t remembered(const struct model *models, uint64_t now_ms)
{
    size_t count = 0;

    for (size_t i = 0; i < ADDRESSES; i++)
        count += models[i].connection_count > 0 || models[i].request_count > 0 ||
                 models[i].empty_until_ms > now_ms;
    return count;
}

START_TEST(any_order_matches_plain_counts)
{
    struct model models[ADDRESSES] = {{{NULL}, {NULL}, 0, 0, 0}};
    uint64_t now_ms = 0;

    begin();
    limits.connections_per_address = limits.requests_per_address = OPEN_MOST;
    limits.failed_sign_ins_per_minute = 1;
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t n = (uint32_t)rng_below(ADDRESSES);
        struct in6_addr address = nth(n);
        uint64_t ms = rng_below(4) == 0 ? rng_below(20000) : 0;

        pass_ms(ms);
        now_ms += ms;
        step(&models[n], &address, now_ms);
        ck_assert_uint_eq(clients_count(clients), remembered(models, now_ms));
    }
    for (size_t i = 0; i < ADDRESSES; i++) {
        while (models[i].connection_count > 0)
            clients_disconnect(clients, models[i].connections[--models[i].connection_count]);
        while (models[i].request_count > 0)
            clients_end(clients, models[i].requests[--models[i].request_count]);
    }
    end();
}
END_TEST

/* Counted like an address, and beside all of them. */
START_TEST(keys_are_counted_too)
{
    struct in6_addr one = clients_of_key(SPAN("acme"), SPAN("a"));
    const struct in6_addr others[] = {
        clients_of_key(SPAN("acme"), SPAN("b")), clients_of_key(SPAN("acm"), SPAN("ea")),
        clients_of_key(SPAN(""), SPAN("a")), ip("127.0.0.1"), ip("2001:db8::1")};

    begin();
    ck_assert(IN6_IS_ADDR_MULTICAST(&one));
    limits.failed_sign_ins_per_minute = 2;
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
        clients_sign_in_failed(clients, &one);
    }
    one = clients_of_key(SPAN("acme"), SPAN("a"));
    ck_assert_uint_gt(clients_sign_in_wait_s(clients, &one), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        ck_assert_uint_eq(clients_sign_in_wait_s(clients, &others[i]), 0);
    pass_ms(MINUTE_MS);
    ck_assert_uint_eq(clients_sign_in_wait_s(clients, &one), 0);
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_client_is_an_address_or_a_network);
    tcase_add_test(tc, connections_per_address);
    tcase_add_test(tc, requests_in_all_and_per_address);
    tcase_add_test(tc, failed_sign_ins);
    tcase_add_test(tc, no_limit_of_failures);
    tcase_add_test(tc, failures_are_forgotten_in_time);
    tcase_add_test(tc, failures_are_bounded);
    tcase_add_test(tc, any_order_matches_plain_counts);
    tcase_add_test(tc, keys_are_counted_too);
}
