/* What requests wait for on a node of a cluster, over sockets: the leader, which is a receiver that
 * answers as a test says, or this server itself, and records that are yet to come. Requests that
 * give way to others: check_conn.c. */
#include "http_testing.h"

#include "testing.h"

#include "access/access.h"
#include "access/clients.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/text.h"
#include "dispatch/handover.h"
#include "dispatch/passage.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/receiver.h"
#include "io/ip.h"
#include "protocol/node_headers.h"
#include "rest/cluster_view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define JSON "Content-Type: application/json\r\n"
#define POST "POST /Shop.Message HTTP/1.1\r\nHost: a\r\n" JSON
#define INSERT POST "Content-Length: 8\r\n\r\n{\"N\":12}"
#define ASK "GET /Svc.Echo/N=1 HTTP/1.1\r\nHost: a\r\n\r\n"
#define SECRET "0123456789abcdef0123456789abcdef"
#define ANSWER                                                                                     \
    "HTTP/1.1 201 Created\r\nSvc-info: done\r\nSvc-serial: 77\r\nLocation: /x\r\n"                 \
    "Svc-applied: 80\r\nDate: then\r\nSvc-version: 9.9\r\nX-Content-Type-Options: nosniff\r\n"     \
    "Content-Type: application/json\r\nContent-Length: 5\r\n\r\n[{}]\n"

static struct cluster_view view;
static struct receiver leader;
static struct egress_rules rules;

static struct span url_of(uint16_t port)
{
    return arena_printf(&arena, "http://127.0.0.1:%u", port);
}

/* The server is a follower of `leader`. */
static void serve_following(void)
{
    serve();
    egress_init(&rules);
    receiver_listen(&leader, &loop, "127.0.0.1", 0);
    leader.script.bytes = ANSWER;
    view = (struct cluster_view){
        .name = SPAN("prod"),
        .node = SPAN("b"),
        .secret = SPAN(SECRET),
        .commit_ms = 1000,
        .leader_url = url_of(leader.port),
    };
    ck_ok(fetcher_new(&loop, service->resolver, &rules, &(struct fetch_options){0}, &view.fetcher));
    service->rest.cluster = &view;
}

static void end_following(void)
{
    struct in6_addr loopback;

    ck_assert_uint_eq(passages_under_way(service->rest.passages), 0);
    ck_assert_uint_eq(passages_in_line(service->rest.passages), 0);
    ck_assert_uint_eq(fetch_active(view.fetcher), 0);
    ck_assert(ip_parse(SPAN("127.0.0.1"), &loopback));
    limits()->requests_per_address = limits()->requests = 1;
    ck_assert_int_eq(clients_may_request(service->rest.clients, &loopback), CLIENTS_WELCOME);
    fetcher_free(view.fetcher);
    receiver_close(&leader);
    end_serving();
    egress_done(&rules);
}

static void say(struct peer *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct peer *p, const char *fmt, ...)
{
    char text[4096];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    peer_send(p, text);
}

static void expect_info(const struct answer *a, int status, const char *text)
{
    struct span info = answer_field(a, SPAN("Svc-info"));

    ck_assert_msg(a->status == status, "%d: %.*s", a->status, SPAN_FMT(a->head));
    ck_assert_msg(span_find(info, span_str(text)) != SIZE_MAX, "'%.*s' lacks '%s'", SPAN_FMT(info),
                  text);
}

static void expect_503(struct peer *p, const char *text)
{
    struct answer a = peer_answer(p);

    expect_info(&a, 503, text);
    ck_span_eq(answer_field(&a, SPAN("Retry-After")), "1");
    ck_assert(span_find(a.body, SPAN("NoLeader")) != SIZE_MAX);
}

/* ---- what the leader is sent, and answers ---- */

static bool leader_got(const char *text)
{
    return span_find(buf_span(&leader.last), span_str(text)) != SIZE_MAX;
}

static struct span field_of(struct span head, struct span name)
{
    const struct answer a = {.head = head};

    return answer_field(&a, name);
}

static struct passed_on read_claims(const char *method, const char *target, const char *body)
{
    const struct passed_request request = {span_str(method), span_str(target), span_str(body)};
    struct passed_on who;

    ck_ok(passed_on_read(field_of(buf_span(&leader.last), SPAN("Svc-cluster")), view.secret,
                         &request, clock_unix_ns() / 1000000, &arena, &who));
    return who;
}

START_TEST(a_change_is_the_leaders)
{
    struct passed_on who;
    struct answer a;
    struct peer *p;

    serve_following();
    p = peer_open();
    peer_send(p, "PATCH /Shop.Message/N=%31/unsafe=true HTTP/1.1\r\nHost: shop:80\r\n" JSON
                 "Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nX-Yours: 2\r\nExpect: "
                 "100-continue\r\nIf-Match: \"7\"\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer_expect(p, 100);
    peer_send(p, "7\r\n{\"N\":2}\r\n0\r\n\r\n");
    a = peer_answer(p);
    expect_info(&a, 201, "done");
    ck_span_eq(a.body, "[{}]\n");
    ck_span_eq(answer_field(&a, SPAN("Svc-serial")), "77");
    ck_span_eq(answer_field(&a, SPAN("Location")), "/x");
    ck_span_eq(answer_field(&a, SPAN("Content-Type")), "application/json");
    ck_assert(!span_eq(answer_field(&a, SPAN("Svc-applied")), SPAN("80")));
    ck_assert(answer_field(&a, SPAN("Svc-applied")).n > 0);
    ck_assert(!span_eq(answer_field(&a, SPAN("Svc-version")), SPAN("9.9")));
    ck_assert(span_starts(buf_span(&leader.last),
                          SPAN("PATCH /Shop.Message/N=%31/unsafe=true HTTP/1.1\r\n")));
    ck_assert(leader_got("\r\nHost: shop:80\r\n") && leader_got("\r\nX-Yours: 2\r\n"));
    ck_assert(leader_got("\r\nIf-Match: \"7\"\r\n") && leader_got("\r\n\r\n{\"N\":2}"));
    ck_assert(!leader_got("X-Mine") && !leader_got("Expect") && !leader_got("chunked"));
    who = read_claims("PATCH", "/Shop.Message/N=%31/unsafe=true", "{\"N\":2}");
    ck_span_eq(who.node, "b");
    ck_span_eq(who.client, "127.0.0.1");
    ck_assert_ptr_null(who.key.p);
    ck_assert_uint_eq(count_messages(), 0);
    end_following();
}
END_TEST

/* Whatever it is: the follower does not read it. */
START_TEST(an_answer_is_passed_back_as_it_is)
{
    struct answer a;
    struct peer *p;

    serve_following();
    p = peer_open();
    leader.script.bytes = "HTTP/1.1 409 Conflict\r\nSvc-info: taken\r\nErrorInfo: /e\r\n"
                          "Content-Type: application/problem+json\r\nTransfer-Encoding: chunked\r\n"
                          "\r\n3\r\n{ }\r\n0\r\n\r\n";
    peer_send(p, INSERT ASK);
    a = peer_answer(p);
    expect_info(&a, 409, "taken");
    ck_span_eq(a.body, "{ }");
    ck_span_eq(answer_field(&a, SPAN("ErrorInfo")), "/e");
    ck_span_eq(answer_field(&a, SPAN("Content-Length")), "3");
    peer_expect(p, 200); /* what came behind it, in its order */
    leader.script.bytes = "HTTP/1.1 204 No Content\r\n\r\n";
    peer_send(p, "DELETE /Shop.Message/N=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    peer_expect(p, 204);
    ck_assert(!leader_got("Content-Length"));
    end_following();
}
END_TEST

START_TEST(what_changes_nothing_stays)
{
    static const char *const requests[] = {
        "GET /Shop.Message", "HEAD /Shop.Message", "REPORT /Shop.Message", "OPTIONS /Shop.Event",
        "GET /livez",        "POST /Svc.Echo",     "POST /Svc.Explain",    "POST /Svc.Aggregator"};
    struct peer *p;

    serve_following();
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        p = peer_open();
        say(p, "%s HTTP/1.1\r\nHost: a\r\n" JSON "Content-Length: 2\r\n\r\n{}", requests[i]);
        ck_assert_int_ne(i == 1 ? peer_answer_to_head(p).status : peer_answer(p).status, 201);
    }
    ck_assert_uint_eq(leader.requests, 0);
    p = peer_open();
    peer_send(p, "POST /No.Such HTTP/1.1\r\nHost: a\r\n" JSON "Content-Length: 2\r\n\r\n{}");
    peer_expect(p, 201); /* it may have been declared a moment ago */
    ck_assert_uint_eq(leader.requests, 1);
    end_following();
}
END_TEST

/* ---- keys ---- */

static struct span digest_of(const char *key)
{
    uint8_t digest[32];
    struct buf hex;

    digest_sha256(span_str(key), digest);
    buf_init_arena(&hex, &arena);
    text_add_hex(&hex, span_of((const char *)digest, sizeof(digest)));
    return buf_span(&hex);
}

static void add_key(const char *key)
{
    struct access *access = service->rest.access;
    struct json_doc doc;
    struct span json;

    access->required = true;
    json = arena_printf(&arena,
                        "{\"Name\":\"%s\",\"KeySha256\":\"%.*s\",\"AllowAccess\":[{"
                        "\"Resources\":[\"Shop.Message\"],\"Methods\":[\"*\"]}]}",
                        key, SPAN_FMT(digest_of(key)));
    ck_ok(json_parse(json, NULL, &arena, &doc));
    ck_ok(access_add(access, json_root(&doc), &arena));
}

START_TEST(the_key_is_looked_at_here_and_does_not_travel)
{
    struct passed_on who;
    struct peer *p;

    serve_following();
    add_key("alice");
    p = peer_open();
    peer_send(p, INSERT);
    peer_expect(p, 401);
    p = peer_open();
    peer_send(p, POST "Authorization: Bearer nobody\r\nContent-Length: 2\r\n\r\n{}");
    peer_expect(p, 401);
    ck_assert_uint_eq(leader.requests, 0);
    p = peer_open();
    peer_send(p, POST "Authorization: Bearer alice\r\nContent-Length: 2\r\n\r\n{}");
    peer_expect(p, 201);
    ck_assert(!leader_got("Bearer") && leader_got("\r\nAuthorization: apikey *******\r\n"));
    who = read_claims("POST", "/Shop.Message", "{}");
    ck_assert_ptr_nonnull(access_find_identical(service->rest.access, who.key));
    end_following();
}
END_TEST

static const char *claims(const char *client, const char *key, const char *body, int64_t at_ms)
{
    const struct passed_request request = {SPAN("POST"), SPAN("/Shop.Message"), span_str(body)};
    const struct access_key *named =
        access_find(service->rest.access, span_of(NULL, 0), span_str(key));
    struct passed_on who = {SPAN("c"), span_str(client), span_str(key), at_ms};
    struct buf identity, b;

    buf_init_arena(&identity, &arena);
    if (named != NULL) {
        access_add_identity(&identity, named);
        who.key = buf_span(&identity);
    }
    buf_init_arena(&b, &arena);
    passed_on_add(&b, view.secret, &who, &request);
    buf_add_char(&b, '\0');
    return b.p;
}

static void pass_on(struct peer *p, const char *value, const char *body)
{
    say(p, POST "Svc-cluster: %s\r\nContent-Length: %zu\r\n\r\n", value, strlen(body));
    settle(); /* the head alone */
    peer_send(p, body);
}

static int64_t now_ms(void)
{
    return clock_unix_ns() / 1000000;
}

/* The key's rights are those that it has at the leader. */
START_TEST(the_leader_believes_a_node)
{
    struct answer a;
    struct peer *p;

    serve_following();
    view.leads = true;
    add_key("alice");
    p = peer_open();
    pass_on(p, claims("10.1.2.3", "alice", "{\"N\":1}", now_ms()), "{\"N\":1}");
    a = peer_answer(p);
    ck_assert_int_eq(a.status, 201);
    ck_assert(answer_field(&a, SPAN("Svc-serial")).n > 0);
    ck_assert_uint_eq(count_messages(), 1);
    pass_on(p, claims("10.1.2.3", "gone", "{}", now_ms()), "{}");
    peer_expect(p, 401);
    pass_on(p, claims("10.1.2.3", NULL, "{}", now_ms()), "{}");
    peer_expect(p, 401);
    ck_assert_uint_eq(count_messages(), 1);
    end_following();
}
END_TEST

START_TEST(what_is_not_believed)
{
    struct answer a;
    struct peer *p;

    serve_following();
    view.leads = true;
    add_key("alice");
    limits()->failed_sign_ins_per_minute = 4;
    p = peer_open();
    pass_on(p, claims("10.1.2.3", "alice", "{\"N\":2}", now_ms()), "{\"N\":1}");
    a = peer_answer(p);
    expect_info(&a, 403, "Svc-cluster: it was not made by a node");
    pass_on(p, claims("10.1.2.3", "alice", "{}", now_ms() - 60000), "{}");
    a = peer_answer(p);
    expect_info(&a, 403, "Svc-cluster: it was made at another time");
    pass_on(p, "nonsense", "{}");
    a = peer_answer(p);
    expect_info(&a, 403, "Svc-cluster");
    pass_on(p, "", "{}");
    peer_expect(p, 403);
    pass_on(p, claims("10.1.2.3", "alice", "{}", now_ms()), "{}");
    a = peer_answer(p);
    expect_info(&a, 429, "FailedSignInsPerMinute");
    ck_assert_uint_eq(count_messages(), 0);
    end_following();
}
END_TEST

/* Its requests count for the client's address, not for the node's. */
START_TEST(limits_are_the_clients)
{
    struct peer *first, *second;

    serve_following();
    view.leads = true;
    limits()->requests_per_address = 1;
    first = peer_open();
    second = peer_open();
    hold_disk();
    pass_on(first, claims("10.1.2.3", NULL, "{\"N\":1}", now_ms()), "{\"N\":1}");
    pass_on(second, claims("10.1.2.4", NULL, "{\"N\":2}", now_ms()), "{\"N\":2}");
    await(count_messages() == 2);
    release_disk();
    peer_expect(first, 201);
    peer_expect(second, 201);
    hold_disk();
    pass_on(first, claims("10.1.2.3", NULL, "{\"N\":3}", now_ms()), "{\"N\":3}");
    await(count_messages() == 3);
    pass_on(second, claims("10.1.2.3", NULL, "{\"N\":4}", now_ms()), "{\"N\":4}");
    peer_expect(second, 429);
    release_disk();
    peer_expect(first, 201);
    end_following();
}
END_TEST

/* ---- no second hop ---- */

START_TEST(nothing_is_passed_on_twice)
{
    struct peer *p;

    serve_following();
    view.leader_url = url_of(server_port); /* which does not lead */
    p = peer_open();
    peer_send(p, INSERT);
    expect_503(p, "what 'b' has passed on is not passed on again; nothing was done");
    ck_assert_uint_eq(metrics()->requests[METHOD_POST][METRIC_STATUS_503], 2);
    expect_another_connection();
    fetcher_free(view.fetcher); /* closes its connection */
    expect_gone(TCP_CLOSE_PEER);
    ck_ok(fetcher_new(&loop, service->resolver, &rules, &(struct fetch_options){0}, &view.fetcher));
    end_following();
}
END_TEST

START_TEST(no_leader)
{
    struct peer *p;

    serve_following();
    view.leader_url = span_of(NULL, 0);
    p = peer_open();
    peer_send(p, INSERT);
    expect_503(p, "no leader of the cluster is known");
    peer_send(p, ASK);
    peer_expect(p, 200);
    ck_assert_uint_eq(count_messages(), 0);
    end_following();
}
END_TEST

START_TEST(a_redirection)
{
    struct answer a;
    struct peer *p;

    serve_following();
    view.redirects = true;
    view.leader_url = SPAN("http://a:8080");
    p = peer_open();
    peer_send(p, "DELETE /Shop.Message/N=%31?x=y HTTP/1.1\r\nHost: b\r\n\r\n");
    a = peer_answer(p);
    expect_info(&a, 307, "leader");
    ck_span_eq(answer_field(&a, SPAN("Location")), "http://a:8080/Shop.Message/N=%31?x=y");
    ck_assert_uint_eq(leader.requests, 0);
    end_following();
}
END_TEST

/* ---- what goes wrong ---- */

START_TEST(nobody_there)
{
    struct peer *p;

    serve_following();
    receiver_close(&leader);
    settle();
    p = peer_open();
    peer_send(p, INSERT);
    expect_503(p, "nothing was done");
    receiver_listen(&leader, &loop, "127.0.0.1", 0);
    end_following();
}
END_TEST

static const struct lost {
    const char *bytes;
    enum receiver_then then;
    bool is_kept; /* the connection has been used before */
} losses[] = {
    {"", THEN_CLOSE, false},
    {"", THEN_RESET, false},
    {"", THEN_CLOSE, true},
    {"", THEN_HANG, true},
    {"HTTP/1.1 201 Cre", THEN_CLOSE, false},
    {"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n[", THEN_CLOSE, true},
    {"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n[", THEN_HANG, false},
    {"nonsense\r\n\r\n", THEN_CLOSE, false},
};

/* It is sent once. */
START_TEST(a_lost_answer)
{
    const struct lost *lost = &losses[_i];
    struct peer *p;

    serve_following();
    p = peer_open();
    if (lost->is_kept) {
        peer_send(p, INSERT);
        peer_expect(p, 201);
    }
    leader.script.bytes = lost->bytes;
    leader.script.then = lost->then;
    leader.requests = 0;
    peer_send(p, INSERT);
    await(leader.requests == 1);
    settle();
    if (lost->then == THEN_HANG) {
        pass_ms(1000 + PASSAGE_MORE_MS - 1);
        peer_expect_silence(p);
        pass_ms(1);
    }
    expect_503(p, "the change may have been done");
    ck_assert_uint_eq(leader.requests, 1);
    end_following();
}
END_TEST

START_TEST(too_large_an_answer)
{
    struct peer *p;

    serve_following();
    limits()->answer_bytes = 1024;
    leader.script.bytes =
        arena_printf(&arena, "HTTP/1.1 201 Created\r\nContent-Length: 1025\r\n\r\n%01025d", 1).p;
    p = peer_open();
    peer_send(p, INSERT);
    expect_503(p, "AnswerBytes");
    end_following();
}
END_TEST

START_TEST(a_client_may_leave_meanwhile)
{
    struct peer *p;

    serve_following();
    leader.delay_ms = 1000;
    p = peer_open();
    peer_send(p, INSERT);
    await(leader.requests == 1);
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 1);
    peer_reset(p);
    expect_gone(TCP_CLOSE_RESET);
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 0);
    pass_ms(1000);
    end_following();
}
END_TEST

/* ---- places ---- */

START_TEST(places_are_bounded)
{
    struct peer *peers[4];

    serve_following();
    limits()->passed_on_requests = 4; /* half of them for one account */
    leader.delay_ms = 10;
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        peers[i] = peer_open();
        peer_send(peers[i], INSERT);
        await(passages_under_way(service->rest.passages) +
                  passages_in_line(service->rest.passages) ==
              i + 1);
    }
    await(leader.waiting == 2);
    ck_assert_uint_eq(passages_under_way(service->rest.passages), 2);
    ck_assert_uint_eq(passages_in_line(service->rest.passages), 2);
    peer_reset(peers[3]);
    expect_gone(TCP_CLOSE_RESET);
    ck_assert_uint_eq(passages_in_line(service->rest.passages), 1);
    pass_ms(10);
    peer_expect(peers[0], 201);
    peer_expect(peers[1], 201);
    await(leader.waiting == 1);
    pass_ms(10);
    peer_expect(peers[2], 201);
    ck_assert_uint_eq(leader.requests, 3);
    end_following();
}
END_TEST

/* Who leads is looked at when there is a place; who waits too long for one is told so. */
START_TEST(in_line)
{
    struct peer *first, *second;

    serve_following();
    limits()->passed_on_requests = 1;
    leader.delay_ms = 100000;
    first = peer_open();
    second = peer_open();
    peer_send(first, INSERT);
    await(leader.waiting == 1);
    peer_send(second, INSERT);
    await(passages_in_line(service->rest.passages) == 1);
    view.leads = true;
    peer_reset(first);
    expect_gone(TCP_CLOSE_RESET);
    peer_expect(second, 201); /* here */
    ck_assert_uint_eq(count_messages(), 1);
    end_following();
}
END_TEST

/* ---- what it is to have seen ---- */

static uint64_t next_serial(void)
{
    return journal_next_serial(turn_journal(service->turn));
}

static void ask_for(struct peer *p, uint64_t serial)
{
    say(p, "GET /Shop.Message HTTP/1.1\r\nHost: a\r\nSvc-min-serial: %llu\r\n\r\n",
        (unsigned long long)serial);
}

START_TEST(a_record_is_waited_for)
{
    struct peer *p, *other;
    struct answer a;

    serve_following();
    view.leads = true;
    p = peer_open();
    other = peer_open();
    ask_for(p, next_serial() - 1);
    peer_expect(p, 204);
    ask_for(p, next_serial());
    peer_expect_silence(p);
    peer_send(other, INSERT);
    a = peer_answer(other);
    ck_assert_int_eq(a.status, 201);
    ck_span_is(answer_field(&a, SPAN("Svc-serial")), arena_u64(&arena, next_serial() - 1));
    ck_span_is(answer_field(&a, SPAN("Svc-applied")), arena_u64(&arena, next_serial() - 1));
    a = peer_answer(p);
    ck_assert_int_eq(a.status, 200);
    ck_assert(span_find(a.body, SPAN("\"N\":12")) != SIZE_MAX);
    ck_span_is(answer_field(&a, SPAN("Svc-applied")), arena_u64(&arena, next_serial() - 1));
    ck_assert_ptr_null(answer_field(&a, SPAN("Svc-serial")).p);
    end_following();
}
END_TEST

/* Also of a change, which goes to the leader then. */
START_TEST(a_change_waits_before_it_is_passed_on)
{
    struct peer *p, *other;

    serve_following();
    p = peer_open();
    other = peer_open();
    say(p, POST "Svc-min-serial: %llu\r\nContent-Length: 2\r\n\r\n{}",
        (unsigned long long)next_serial());
    peer_expect_silence(p);
    ck_assert_uint_eq(leader.requests, 0);
    view.leads = true;
    hold_disk();
    peer_send(other, INSERT);
    await(count_messages() == 1);
    view.leads = false;
    release_disk();
    peer_expect(other, 201);
    peer_expect(p, 201);
    ck_assert_uint_eq(leader.requests, 1);
    ck_assert_uint_eq(count_messages(), 1);
    end_following();
}
END_TEST

START_TEST(a_record_that_does_not_come)
{
    struct answer a;
    struct peer *p, *gone;

    serve_following();
    p = peer_open();
    gone = peer_open();
    ask_for(gone, UINT64_MAX);
    ask_for(p, next_serial());
    settle();
    peer_reset(gone);
    expect_gone(TCP_CLOSE_RESET);
    pass_ms(999);
    peer_expect_silence(p);
    pass_ms(1);
    a = peer_answer(p);
    expect_info(&a, 503, "Svc-min-serial: this node is at ");
    ck_assert(span_find(a.body, SPAN("Overloaded")) != SIZE_MAX);
    ck_span_eq(answer_field(&a, SPAN("Retry-After")), "1");
    view.leader_url = span_of(NULL, 0);
    ask_for(p, next_serial());
    settle();
    pass_ms(1000);
    expect_503(p, "no leader");
    end_following();
}
END_TEST

START_TEST(no_serial)
{
    struct answer a;
    struct peer *p;

    serve_following();
    p = peer_open();
    peer_send(p, "GET /Shop.Message HTTP/1.1\r\nHost: a\r\nSvc-min-serial: 1x\r\n\r\n");
    a = peer_answer(p);
    expect_info(&a, 400, "Svc-min-serial: '1x' is no serial");
    end_following();
}
END_TEST

/* ---- records of its own ---- */

/* One batch at a time; until the leader has taken it, it is sent again. */
START_TEST(records_are_handed_over)
{
    struct passed_on who;
    struct span body;
    struct peer *p;

    serve_following();
    p = peer_open();
    leader.script.bytes = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    peer_send(p, "GET /No.Such HTTP/1.1\r\nHost: a\r\n\r\n");
    peer_expect(p, 404);
    ck_assert_uint_eq(leader.requests, 0);
    clock_advance(UINT64_C(1000000) * HANDOVER_MS);
    await(leader.requests == 1);
    settle();
    leader.script.bytes = "HTTP/1.1 204 No Content\r\n\r\n";
    clock_advance(UINT64_C(1000000) * HANDOVER_MS);
    await(handover_bytes(service->rest.handover) == 0);
    ck_assert_uint_eq(leader.requests, 2);
    body = buf_span(&leader.last);
    body = span_sub(body, span_find(body, SPAN("\r\n\r\n")) + 4, body.n);
    ck_assert(span_starts(body, SPAN("E{\"Id\":\"")) && span_ends(body, SPAN("}\n")));
    who = read_claims("POST", "/Svc.Cluster.Records", arena_copy(&arena, body).p);
    ck_span_eq(who.client, "node");
    end_following();
}
END_TEST

/* A server alone says and asks nothing of all this. */
START_TEST(alone)
{
    struct answer a;
    struct peer *p;

    serve();
    p = peer_open();
    peer_send(p, POST "Svc-min-serial: x\r\nSvc-cluster: x\r\nContent-Length: 8\r\n\r\n{\"N\":12}");
    a = peer_answer(p);
    ck_assert_int_eq(a.status, 201);
    ck_assert_ptr_null(answer_field(&a, SPAN("Svc-applied")).p);
    ck_assert_ptr_null(answer_field(&a, SPAN("Svc-serial")).p);
    end_serving();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_change_is_the_leaders);
    tcase_add_test(tc, an_answer_is_passed_back_as_it_is);
    tcase_add_test(tc, what_changes_nothing_stays);
    tcase_add_test(tc, the_key_is_looked_at_here_and_does_not_travel);
    tcase_add_test(tc, the_leader_believes_a_node);
    tcase_add_test(tc, what_is_not_believed);
    tcase_add_test(tc, limits_are_the_clients);
    tcase_add_test(tc, nothing_is_passed_on_twice);
    tcase_add_test(tc, no_leader);
    tcase_add_test(tc, a_redirection);
    tcase_add_test(tc, nobody_there);
    tcase_add_loop_test(tc, a_lost_answer, 0, ARRAY_LEN(losses));
    tcase_add_test(tc, too_large_an_answer);
    tcase_add_test(tc, a_client_may_leave_meanwhile);
    tcase_add_test(tc, places_are_bounded);
    tcase_add_test(tc, in_line);
    tcase_add_test(tc, a_record_is_waited_for);
    tcase_add_test(tc, a_change_waits_before_it_is_passed_on);
    tcase_add_test(tc, a_record_that_does_not_come);
    tcase_add_test(tc, no_serial);
    tcase_add_test(tc, records_are_handed_over);
    tcase_add_test(tc, alone);
}
