/* A server's life, which connections it takes, and for whom. What becomes of their requests:
 * check_conn.c. */
#include "http_testing.h"

#include "testing.h"

#include "io/tcp_passed.h"

#define JSON "Content-Type: application/json\r\n"
#define ASK "GET /Svc.Echo/N=1 HTTP/1.1\r\nHost: a\r\n\r\n"
#define ASK_FOR(client)                                                                            \
    "GET /Svc.Echo/N=1 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " client "\r\n\r\n"
#define POST "POST /Shop.Message HTTP/1.1\r\nHost: a\r\n" JSON
#define INSERT POST "Content-Length: 8\r\n\r\n{\"N\":12}"
#define INSERT_FOR(client) POST "X-Forwarded-For: " client "\r\nContent-Length: 8\r\n\r\n{\"N\":12}"

enum { REFUSED_MOST = 16 };

static struct ip_ranges trusted;

static void trust(const char *range)
{
    ck_ok(ip_ranges_add(&trusted, span_str(range)));
}

/* ---- addresses ---- */

START_TEST(an_address_is_taken_once)
{
    struct tcp_passed passed = {.count = 0};
    struct tcp_address address;
    struct span text;
    uint16_t port;

    serve();
    text = arena_printf(&arena, "127.0.0.1:%u", server_port);
    ck_ok(tcp_parse_address(text, &address));
    ck_fails(http_server_bind(server, &address, &passed, &port), ERR_UNKNOWN, address.text);
    peer_send(peer_open(), ASK); /* the other goes on */
    await(metrics()->requests[METHOD_GET][METRIC_STATUS_200] == 1);
    end_serving();
}
END_TEST

/* ---- draining ---- */

static unsigned drains;

static void on_drained(void *context)
{
    ck_assert_ptr_eq(context, &drains);
    drains++;
}

static void drain(void)
{
    drains = 0;
    http_server_drain(server, on_drained, &drains);
    ck_assert_uint_eq(drains, 0); /* never from there */
}

START_TEST(nobody_is_there)
{
    serve();
    drain();
    await(drains > 0);
    settle();
    ck_assert_uint_eq(drains, 1);
    end_serving();
}
END_TEST

START_TEST(nobody_new_is_taken)
{
    uint16_t port;

    serve();
    port = server_port;
    drain();
    ck_assert(!peer_may_connect(port));
    settle();
    end_serving();
}
END_TEST

START_TEST(who_is_idle_is_closed)
{
    struct peer *fresh, *served;

    serve();
    fresh = peer_open();
    served = peer_open();
    peer_send(served, ASK);
    peer_expect(served, 200);
    settle();
    drain();
    peer_expect_closed(fresh, TCP_CLOSE_SHUTDOWN);
    ck_assert_uint_eq(drains, 0);
    peer_expect_closed(served, TCP_CLOSE_SHUTDOWN);
    await(drains == 1);
    end_serving();
}
END_TEST

/* Requests that have begun are answered, with word that it is the last answer. */
static const char *const begun[][2] = {
    {"GET /Svc.Ec", "ho/N=1 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {POST "Content-Length: 8\r\n\r\n{\"N\"", ":12}"},
    {POST "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"N\"", ":12}\r\n0\r\n\r\n"},
};

START_TEST(what_has_begun_is_answered)
{
    struct peer *p;
    struct answer a;

    serve();
    p = peer_open();
    peer_send(p, begun[_i][0]);
    settle();
    drain();
    peer_expect_silence(p);
    peer_send(p, begun[_i][1]);
    peer_send(p, ASK);
    a = peer_answer(p);
    ck_assert_int_lt(a.status, 300);
    ck_span_eq(answer_field(&a, SPAN("Connection")), "close");
    peer_expect_closed(p, TCP_CLOSE_SHUTDOWN);
    await(drains == 1);
    end_serving();
}
END_TEST

START_TEST(what_waits_for_the_disk_is_answered)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT ASK);
    settle();
    drain();
    peer_expect_silence(p);
    ck_assert_uint_eq(drains, 0);
    release_disk();
    peer_expect(p, 201);
    peer_expect(p, 200);
    peer_expect_closed(p, TCP_CLOSE_SHUTDOWN);
    await(drains == 1);
    end_serving();
}
END_TEST

/* Of more requests than may be owed, the first that comes up again is the last. */
START_TEST(what_was_not_evaluated_yet_gets_one_answer_more)
{
    struct peer *p;
    struct answer a;

    serve();
    limits()->pipelined_requests = 2;
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT INSERT ASK ASK ASK);
    settle();
    drain();
    release_disk();
    peer_expect(p, 201);
    peer_expect(p, 201);
    a = peer_answer(p);
    ck_assert_int_eq(a.status, 200);
    ck_span_eq(answer_field(&a, SPAN("Connection")), "close");
    peer_expect_closed(p, TCP_CLOSE_SHUTDOWN);
    await(drains == 1);
    end_serving();
}
END_TEST

/* ---- closing ---- */

static unsigned closings;

static void on_closed(void *context)
{
    ck_assert_ptr_eq(context, &closings);
    closings++;
}

static void close_server(void)
{
    closings = 0;
    http_server_close(TAKE(server), on_closed, &closings);
    ck_assert_uint_eq(closings, 0);
}

/* Whatever they wait for. */
START_TEST(closing_does_not_wait_for_clients)
{
    static const char *const sent[] = {"", ASK, "GET / HT", POST "Content-Length: 8\r\n\r\n{",
                                       INSERT};
    struct peer *all[ARRAY_LEN(sent)];

    serve();
    for (size_t i = 0; i < ARRAY_LEN(sent); i++)
        all[i] = peer_open();
    settle();
    hold_disk();
    for (size_t i = 0; i < ARRAY_LEN(sent); i++)
        peer_send(all[i], sent[i]);
    peer_expect(all[1], 200);
    settle();
    drains = 0;
    if (_i == 1)
        drain();
    close_server();
    release_disk();
    peers_expect_closed(all, ARRAY_LEN(sent), TCP_CLOSE_SHUTDOWN);
    await(closings > 0);
    settle();
    ck_assert_uint_eq(closings, 1);
    ck_assert_uint_eq(drains, _i == 1);
    ck_assert_uint_eq(count_messages(), 1);
    end_serving();
}
END_TEST

/* ---- too many ---- */

static void fill_connections(struct peer **all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        all[i] = peer_open();
        peer_send(all[i], ASK);
        peer_expect(all[i], 200);
    }
    settle();
}

START_TEST(one_connection_too_many_is_told_so)
{
    struct peer *all[3], *p;
    struct answer a;

    serve();
    limits()->connections = 3;
    fill_connections(all, 3);
    p = peer_open();
    a = peer_answer(p);
    ck_assert_int_eq(a.status, 503);
    ck_span_eq(answer_field(&a, SPAN("Connection")), "close");
    ck_span_eq(answer_field(&a, SPAN("Retry-After")), "1");
    peer_expect_closed(p, TCP_CLOSE_TOO_MANY);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_CONNECTIONS], 1);
    peer_close(all[0]);
    expect_gone(TCP_CLOSE_PEER);
    fill_connections(all, 1);
    end_serving();
}
END_TEST

/* The one that has been idle for longest makes room, unless it was busy a second ago. */
START_TEST(who_is_idle_makes_room)
{
    struct peer *all[3], *p;

    serve();
    limits()->connections = 3;
    fill_connections(all, 3);
    pass_ms(100);
    peer_send(all[0], ASK);
    peer_expect(all[0], 200);
    settle();
    pass_ms(899);
    p = peer_open();
    peer_expect(p, 503);
    peer_expect_closed(p, TCP_CLOSE_TOO_MANY);
    pass_ms(1);
    fill_connections(&p, 1);
    peer_expect_closed(all[1], TCP_CLOSE_MADE_ROOM);
    peer_send(all[0], ASK);
    peer_expect(all[0], 200);
    end_serving();
}
END_TEST

/* One for each that comes. */
START_TEST(two_make_room_for_two)
{
    struct peer *all[3], *coming[2];

    serve();
    limits()->connections = 3;
    fill_connections(all, 3);
    pass_ms(1000);
    for (size_t i = 0; i < ARRAY_LEN(coming); i++) {
        coming[i] = peer_open();
        peer_send(coming[i], ASK);
    }
    for (size_t i = 0; i < ARRAY_LEN(coming); i++)
        peer_expect(coming[i], 200);
    peers_expect_closed(all, 2, TCP_CLOSE_MADE_ROOM);
    peer_send(all[2], ASK);
    peer_expect(all[2], 200);
    end_serving();
}
END_TEST

/* Who waits for the disk, or is about to end a request, is not idle. */
START_TEST(who_is_busy_makes_no_room)
{
    struct peer *all[2], *p;

    serve();
    limits()->connections = 2;
    fill_connections(all, 2);
    hold_disk();
    peer_send(all[0], INSERT);
    peer_send(all[1], "GET");
    settle();
    pass_ms(5000);
    p = peer_open();
    peer_expect(p, 503);
    peer_expect_closed(p, TCP_CLOSE_TOO_MANY);
    release_disk();
    peer_expect(all[0], 201);
    end_serving();
}
END_TEST

START_TEST(an_address_has_its_share)
{
    struct peer *all[3], *p;

    serve();
    limits()->connections_per_address = 3;
    fill_connections(all, 3);
    p = peer_open();
    peer_expect(p, 429);
    peer_expect_closed(p, TCP_CLOSE_TOO_MANY);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_CONNECTIONS_PER_ADDRESS], 1);
    peer_close(all[1]);
    expect_gone(TCP_CLOSE_PEER);
    fill_connections(&all[1], 1);
    end_serving();
}
END_TEST

/* A flood of them is not worth answers: they would take the place of others. */
START_TEST(many_too_many_are_closed_without_a_word)
{
    struct peer *all[1], *refused[REFUSED_MOST + 4];

    serve();
    limits()->connections = 1;
    fill_connections(all, 1);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        refused[i] = peer_open();
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (i < REFUSED_MOST)
            peer_expect(refused[i], 503);
    peers_expect_closed(refused, ARRAY_LEN(refused), TCP_CLOSE_TOO_MANY);
    refused[0] = peer_open();
    peer_expect(refused[0], 503);
    peer_expect_closed(refused[0], TCP_CLOSE_TOO_MANY);
    end_serving();
}
END_TEST

/* ---- whose requests ---- */

/* One request under way of an address is all that it may have. */
static void expect_to_be_told_apart(const char *insert, const char *ask_again, const char *other)
{
    struct peer *p = peer_open(), *second = peer_open();

    limits()->requests_per_address = 1;
    hold_disk();
    peer_send(p, insert);
    settle();
    peer_send(second, ask_again);
    peer_expect(second, 429);
    peer_send(second, other);
    peer_expect(second, 200);
    release_disk();
    peer_expect(p, 201);
    peer_send(second, ask_again);
    peer_expect(second, 200);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_REQUESTS_PER_ADDRESS], 1);
}

START_TEST(a_trusted_proxy_says_whose_request_it_is)
{
    serve();
    trust("127.0.0.0/8");
    http_server_trust(server, &trusted);
    limits()->connections_per_address = 1; /* which is not for proxies */
    expect_to_be_told_apart(INSERT_FOR("192.0.2.1"), ASK_FOR("192.0.2.1"), ASK_FOR("192.0.2.2"));
    end_serving();
    ip_ranges_done(&trusted);
}
END_TEST

START_TEST(nobody_else_is_believed)
{
    struct peer *p, *second;

    serve();
    limits()->requests_per_address = 1;
    p = peer_open();
    second = peer_open();
    hold_disk();
    peer_send(p, INSERT_FOR("192.0.2.1"));
    settle();
    peer_send(second, ASK_FOR("192.0.2.2"));
    peer_expect(second, 429);
    release_disk();
    peer_expect(p, 201);
    end_serving();
}
END_TEST

/* ---- the PROXY protocol ---- */

#define PROXY(client) "PROXY TCP4 " client " 127.0.0.1 1234 80\r\n"

static void begin_proxied(const char *range)
{
    trust(range);
    serve_proxied(&trusted);
}

static void end_proxied(void)
{
    end_serving();
    ip_ranges_done(&trusted);
}

START_TEST(a_proxy_says_whose_connection_it_is)
{
    struct peer *p, *second, *other;

    begin_proxied("127.0.0.0/8");
    limits()->connections_per_address = 1;
    p = peer_open();
    peer_send(p, PROXY("192.0.2.1") ASK);
    peer_expect(p, 200);
    second = peer_open();
    peer_send(second, PROXY("192.0.2.1") ASK);
    peer_expect(second, 429);
    peer_expect_closed(second, TCP_CLOSE_TOO_MANY);
    other = peer_open();
    peer_send_pieces(other, SPAN(PROXY("192.0.2.2") ASK), 1);
    peer_expect(other, 200);
    end_proxied();
}
END_TEST

START_TEST(who_says_something_else_is_closed)
{
    struct peer *p;

    begin_proxied("127.0.0.0/8");
    p = peer_open();
    peer_send(p, ASK);
    peer_expect_closed(p, TCP_CLOSE_BAD_PROXY);
    end_proxied();
}
END_TEST

START_TEST(who_is_no_proxy_is_closed)
{
    struct peer *p;

    begin_proxied("10.0.0.0/8");
    p = peer_open();
    peer_expect_closed(p, TCP_CLOSE_BAD_PROXY);
    end_proxied();
}
END_TEST

START_TEST(a_proxy_has_the_time_of_a_head)
{
    struct peer *p;

    begin_proxied("127.0.0.0/8");
    p = peer_open();
    peer_send(p, "PROXY ");
    settle();
    pass_ms(9999);
    peer_expect_silence(p);
    pass_ms(1);
    peer_expect_closed(p, TCP_CLOSE_HEADER_TIME);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_HEADER_SECONDS], 1);
    end_proxied();
}
END_TEST

START_TEST(a_proxy_may_leave_before_it_has_said_anything)
{
    struct peer *p;

    begin_proxied("127.0.0.0/8");
    p = peer_open();
    settle();
    peer_finish(p);
    peer_expect_closed(p, TCP_CLOSE_PEER);
    p = peer_open();
    settle();
    drain();
    peer_expect_closed(p, TCP_CLOSE_SHUTDOWN);
    await(drains == 1);
    end_proxied();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, an_address_is_taken_once);
    tcase_add_test(tc, nobody_is_there);
    tcase_add_test(tc, nobody_new_is_taken);
    tcase_add_test(tc, who_is_idle_is_closed);
    tcase_add_loop_test(tc, what_has_begun_is_answered, 0, ARRAY_LEN(begun));
    tcase_add_test(tc, what_waits_for_the_disk_is_answered);
    tcase_add_test(tc, what_was_not_evaluated_yet_gets_one_answer_more);
    tcase_add_loop_test(tc, closing_does_not_wait_for_clients, 0, 2);
    tcase_add_test(tc, one_connection_too_many_is_told_so);
    tcase_add_test(tc, who_is_idle_makes_room);
    tcase_add_test(tc, two_make_room_for_two);
    tcase_add_test(tc, who_is_busy_makes_no_room);
    tcase_add_test(tc, an_address_has_its_share);
    tcase_add_test(tc, many_too_many_are_closed_without_a_word);
    tcase_add_test(tc, a_trusted_proxy_says_whose_request_it_is);
    tcase_add_test(tc, nobody_else_is_believed);
    tcase_add_test(tc, a_proxy_says_whose_connection_it_is);
    tcase_add_test(tc, who_says_something_else_is_closed);
    tcase_add_test(tc, who_is_no_proxy_is_closed);
    tcase_add_test(tc, a_proxy_has_the_time_of_a_head);
    tcase_add_test(tc, a_proxy_may_leave_before_it_has_said_anything);
}
