/* Connections over sockets: what is answered and in which order, when a connection ends and why,
 * and what becomes of clients that are slow, silent or gone. */
#include "http_testing.h"

#include "testing.h"

#include <stdio.h>
#include <string.h>

#define ASK(number) "GET /Svc.Echo/N=" #number " HTTP/1.1\r\nHost: a\r\n\r\n"
#define TOLD(number) "[{\"N\":" #number "}]"
#define JSON "Content-Type: application/json\r\n"
#define POST "POST /Shop.Message HTTP/1.1\r\nHost: a\r\n" JSON
#define INSERT POST "Content-Length: 8\r\n\r\n{\"N\":12}"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"N\r\n5\r\n\":12}\r\n0\r\n\r\n"
#define LIST "GET /Shop.Message HTTP/1.1\r\nHost: a\r\n\r\n"
#define X10 "xxxxxxxxxx"
#define X80 X10 X10 X10 X10 X10 X10 X10 X10

enum { SECOND_MS = 1000 };

/* ---- answers ---- */

static const struct exchange {
    const char *what, *sent;
    int statuses[4];            /* of the answers, up to 0 */
    enum tcp_close_reason ends; /* TCP_CLOSE_NONE: another request is answered */
} exchanges[] = {
    {"one request", ASK(1), {200}, TCP_CLOSE_NONE},
    {"three requests", ASK(1) ASK(2) ASK(3), {200, 200, 200}, TCP_CLOSE_NONE},
    {"an empty line in front", "\r\n" ASK(1) "\r\n" ASK(2), {200, 200}, TCP_CLOSE_NONE},
    {"no such resource", "GET /No.Such HTTP/1.1\r\nHost: a\r\n\r\n" ASK(1), {404, 200}},
    {"a body", INSERT ASK(1), {201, 200}},
    {"a body in chunks", CHUNKED ASK(1), {201, 200}},
    {"no body where one is needed", POST "Content-Length: 0\r\n\r\n" ASK(1), {400, 200}},
    {"close",
     "GET /Svc.Echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" ASK(1),
     {200},
     TCP_CLOSE_DONE},
    {"close behind others",
     ASK(1) "GET /No.Such HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
     {200, 404},
     TCP_CLOSE_DONE},
    {"close with a change",
     "POST /Shop.Message HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" JSON
     "Content-Length: 2\r\n\r\n{}" ASK(1),
     {201},
     TCP_CLOSE_DONE},
    {"HTTP/1.0", "GET /Svc.Echo HTTP/1.0\r\n\r\n" ASK(1), {200}, TCP_CLOSE_DONE},
    {"HTTP/1.0 that stays",
     "GET /Svc.Echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" ASK(1),
     {200, 200}},
    {"nonsense", "nonsense\r\n\r\n" ASK(1), {400}, TCP_CLOSE_BAD_REQUEST},
    {"nonsense behind a request", ASK(1) "nonsense\r\n\r\n", {200, 400}, TCP_CLOSE_BAD_REQUEST},
    {"nonsense behind a change", INSERT "nonsense\r\n\r\n", {201, 400}, TCP_CLOSE_BAD_REQUEST},
    {"no host", "GET /Svc.Echo HTTP/1.1\r\n\r\n", {400}, TCP_CLOSE_BAD_REQUEST},
    {"too long a body", POST "Content-Length: 65\r\n\r\n" X80, {413}, TCP_CLOSE_BAD_REQUEST},
    {"too long a body in chunks",
     POST "Transfer-Encoding: chunked\r\n\r\n50\r\n" X80 "\r\n0\r\n\r\n",
     {413},
     TCP_CLOSE_BAD_REQUEST},
    {"too long a target", "GET /" X80 " HTTP/1.1\r\nHost: a\r\n\r\n", {414}, TCP_CLOSE_BAD_REQUEST},
    {"too long a head",
     "GET / HTTP/1.1\r\nHost: a\r\nX: " X80 X80 X80 X80 "\r\n\r\n",
     {431},
     TCP_CLOSE_BAD_REQUEST},
    {"an expectation",
     "GET / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n",
     {417},
     TCP_CLOSE_BAD_REQUEST},
    {"a transfer coding",
     POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     {501},
     TCP_CLOSE_BAD_REQUEST},
    {"another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", {505}, TCP_CLOSE_BAD_REQUEST},
};

static void set_small_limits(void)
{
    limits()->uri_bytes = 64;
    limits()->header_bytes = 256;
    limits()->body_bytes = 64;
}

static void check_exchange(const struct exchange *e, struct peer *p)
{
    for (size_t i = 0; e->statuses[i] != 0; i++) {
        struct answer a = peer_answer(p);
        bool is_last = e->ends != TCP_CLOSE_NONE && e->statuses[i + 1] == 0;

        ck_assert_msg(a.status == e->statuses[i], "%s: %d, should be %d: %.*s", e->what, a.status,
                      e->statuses[i], SPAN_FMT(a.body));
        ck_assert_msg(span_eq(answer_field(&a, SPAN("Connection")), SPAN("close")) == is_last,
                      "%s: %.*s", e->what, SPAN_FMT(a.head));
    }
    if (e->ends != TCP_CLOSE_NONE) {
        peer_expect_closed(p, e->ends);
        return;
    }
    peer_send(p, ASK(77));
    ck_span_eq(peer_answer(p).body, TOLD(77));
    peer_close(p);
    expect_gone(TCP_CLOSE_PEER);
}

static void exchange(const struct exchange *e, size_t first, size_t then)
{
    struct span bytes = span_str(e->sent);
    struct peer *p = peer_open();

    peer_send_bytes(p, span_sub(bytes, 0, first));
    settle();
    peer_send_pieces(p, span_sub(bytes, first, bytes.n), then);
    check_exchange(e, p);
}

/* In one, cut in two at every tenth place, and byte by byte, on a connection each. */
START_TEST(bytes_in_pieces)
{
    const struct exchange *e = &exchanges[_i];
    size_t n = strlen(e->sent);

    serve();
    set_small_limits();
    for (size_t first = 0; first < n; first += 10)
        exchange(e, first, n);
    exchange(e, 0, 1);
    end_serving();
}
END_TEST

static void counted(enum metric_limit limit, int status, const char *sent)
{
    struct peer *p = peer_open();
    uint64_t before = metrics()->limit_hits[limit];

    peer_send(p, sent);
    peer_expect(p, status);
    peer_expect_closed(p, TCP_CLOSE_BAD_REQUEST);
    ck_assert_uint_eq(metrics()->limit_hits[limit], before + 1);
}

START_TEST(refusals_are_counted)
{
    serve();
    set_small_limits();
    counted(METRIC_BODY_BYTES, 413, POST "Content-Length: 65\r\n\r\n");
    counted(METRIC_URI_BYTES, 414, "GET /" X80 " HTTP/1.1\r\nHost: a\r\n\r\n");
    counted(METRIC_HEADER_BYTES, 431, "GET / HTTP/1.1\r\nX: " X80 X80 X80 X80);
    end_serving();
}
END_TEST

/* Each is told from the others by what it echoes. */
START_TEST(many_in_one_piece)
{
    enum { MANY = 1000 };
    struct peer *p;
    struct buf sent;

    serve();
    buf_init(&sent, BUF_NO_CAP);
    for (int i = 0; i < MANY; i++)
        buf_printf(&sent, "GET /Svc.Echo/N=%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    p = peer_open();
    peer_send_bytes(p, buf_span(&sent));
    buf_done(&sent);
    for (int i = 0; i < MANY; i++)
        ck_span_is(peer_answer(p).body, arena_printf(&arena, "[{\"N\":%d}]", i));
    peer_expect_silence(p);
    end_serving();
}
END_TEST

START_TEST(head_has_the_length_but_not_the_body)
{
    struct peer *p;
    struct answer head, get;

    serve();
    p = peer_open();
    peer_send(p, "HEAD /Svc.Echo/N=1 HTTP/1.1\r\nHost: a\r\n\r\n" ASK(1));
    head = peer_answer_to_head(p);
    get = peer_answer(p);
    ck_assert_int_eq(head.status, 200);
    ck_span_eq(get.body, TOLD(1));
    ck_span_is(answer_field(&head, SPAN("Content-Length")),
               answer_field(&get, SPAN("Content-Length")));
    peer_send(p, "HEAD /No.Such HTTP/1.1\r\nHost: a\r\n\r\n");
    head = peer_answer_to_head(p);
    ck_assert_int_eq(head.status, 404);
    peer_expect_silence(p);
    end_serving();
}
END_TEST

START_TEST(http10_is_told_that_the_connection_stays)
{
    struct peer *p;
    struct answer a;

    serve();
    p = peer_open();
    peer_send(p, "GET /Svc.Echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    a = peer_answer(p);
    ck_span_eq(answer_field(&a, SPAN("Connection")), "keep-alive");
    peer_send(p, ASK(1));
    a = peer_answer(p);
    ck_assert_ptr_null(answer_field(&a, SPAN("Connection")).p);
    end_serving();
}
END_TEST

/* ---- Expect ---- */

#define EXPECTING(length) POST "Expect: 100-continue\r\nContent-Length: " #length "\r\n\r\n"

START_TEST(a_body_that_is_held_back_is_asked_for)
{
    struct peer *p;

    serve();
    p = peer_open();
    for (int i = 0; i < 2; i++) {
        peer_send(p, EXPECTING(2));
        peer_expect(p, 100);
        peer_expect_silence(p);
        peer_send(p, "{");
        peer_expect_silence(p);
        peer_send(p, "}");
        peer_expect(p, 201);
    }
    end_serving();
}
END_TEST

START_TEST(a_body_that_is_there_is_not_asked_for)
{
    struct peer *p;

    serve();
    p = peer_open();
    peer_send(p, EXPECTING(2) "{}" ASK(1));
    peer_expect(p, 201);
    peer_expect(p, 200);
    end_serving();
}
END_TEST

START_TEST(too_long_a_body_is_refused_before_it_is_sent)
{
    struct peer *p;

    serve();
    limits()->body_bytes = 64;
    p = peer_open();
    peer_send(p, EXPECTING(65));
    peer_expect(p, 413);
    peer_expect_closed(p, TCP_CLOSE_BAD_REQUEST);
    end_serving();
}
END_TEST

/* An interim answer in front of another request's answer would be taken for that one's. */
START_TEST(no_interim_answer_overtakes_another_answer)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT EXPECTING(2));
    peer_expect_silence(p);
    release_disk();
    peer_expect(p, 201);
    peer_send(p, "{}");
    peer_expect(p, 201);
    end_serving();
}
END_TEST

/* ---- order, and the disk ---- */

START_TEST(an_answer_waits_for_the_disk_and_those_behind_it_too)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, ASK(1));
    peer_expect(p, 200);
    peer_send(p, INSERT ASK(2) LIST);
    peer_expect_silence(p);
    ck_assert_uint_eq(count_messages(), 1);
    release_disk();
    peer_expect(p, 201);
    ck_span_eq(peer_answer(p).body, TOLD(2));
    ck_assert(span_find(peer_answer(p).body, SPAN("\"N\":12")) != SIZE_MAX);
    end_serving();
}
END_TEST

/* What was changed must not be seen before it is safe, whoever looks. */
START_TEST(who_sees_a_change_waits_for_it)
{
    struct peer *writer, *reader, *other;

    serve();
    writer = peer_open();
    reader = peer_open();
    other = peer_open();
    hold_disk();
    peer_send(writer, INSERT);
    settle();
    peer_send(reader, LIST);
    peer_send(other, ASK(1));
    peer_expect(other, 200);
    peer_expect_silence(reader);
    peer_expect_silence(writer);
    release_disk();
    peer_expect(reader, 200);
    peer_expect(writer, 201);
    end_serving();
}
END_TEST

/* Each commit lets one go, while the next request has come already. */
START_TEST(answers_leave_as_far_as_they_are_committed)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT);
    settle();
    for (int i = 0; i < 3; i++) {
        release_disk();
        peer_send(p, INSERT ASK(1));
        loop_run_once(&loop); /* the commit begins, then these are read */
        hold_disk();
        peer_expect(p, 201);
        if (i > 0)
            peer_expect(p, 200);
        peer_expect_silence(p);
    }
    release_disk();
    peer_expect(p, 201);
    peer_expect(p, 200);
    end_serving();
}
END_TEST

START_TEST(no_more_is_evaluated_than_may_be_owed)
{
    struct peer *p;

    serve();
    limits()->pipelined_requests = 3;
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT INSERT INSERT INSERT INSERT);
    peer_expect_silence(p);
    ck_assert_uint_eq(count_messages(), 3);
    release_disk();
    for (int i = 0; i < 5; i++)
        peer_expect(p, 201);
    ck_assert_uint_eq(count_messages(), 5);
    end_serving();
}
END_TEST

/* An answer that is written without being copied, and waits for nothing, keeps its place too. */
START_TEST(a_large_answer_keeps_its_place)
{
    struct peer *p;
    struct span large;

    serve();
    limits()->uri_bytes = 40000;
    p = peer_open();
    large = arena_printf(&arena, "GET /Svc.Echo/T='%030000d' HTTP/1.1\r\nHost: a\r\n\r\n", 7);
    hold_disk();
    peer_send_bytes(p, large);
    ck_assert_uint_gt(peer_answer(p).body.n, 30000);
    peer_send(p, INSERT);
    peer_send_bytes(p, large);
    peer_send(p, ASK(1));
    peer_expect_silence(p);
    release_disk();
    peer_expect(p, 201);
    ck_assert_uint_gt(peer_answer(p).body.n, 30000);
    ck_span_eq(peer_answer(p).body, TOLD(1));
    end_serving();
}
END_TEST

/* Nor read: what it sends besides stays with the kernel, which takes so much and no more. */
START_TEST(who_is_owed_enough_is_not_read)
{
    enum { PIECE = 65536, MOST = 1024 * PIECE };
    static char piece[PIECE];
    struct peer *p;
    size_t sent = 0;

    serve();
    limits()->pipelined_requests = 1;
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT INSERT);
    settle();
    for (size_t n = PIECE; n == PIECE; sent += n) {
        ck_assert_uint_lt(sent, MOST);
        n = peer_try_to_send(p, span_of(piece, PIECE));
        settle();
    }
    peer_reset(p);
    release_disk();
    expect_gone(TCP_CLOSE_RESET);
    end_serving();
}
END_TEST

/* Who sends much at once does not keep others waiting. */
START_TEST(others_have_their_turn)
{
    enum { MANY = 1000 };
    struct peer *p, *other;
    struct buf sent;

    serve();
    p = peer_open();
    other = peer_open();
    settle();
    buf_init(&sent, BUF_NO_CAP);
    for (int i = 0; i < MANY; i++)
        buf_add_str(&sent, ASK(1));
    peer_send_bytes(p, buf_span(&sent));
    buf_done(&sent);
    peer_send(other, ASK(2));
    peer_expect(other, 200);
    ck_assert_uint_lt(metrics()->requests[METHOD_GET][METRIC_STATUS_200], MANY / 4);
    for (int i = 0; i < MANY; i++)
        peer_expect(p, 200);
    end_serving();
}
END_TEST

/* ---- requests that give way ---- */

enum { SLICE = 4, SCANNED = 40 };

#define SCAN "GET /Shop.Message/N=39 HTTP/1.1\r\nHost: a\r\n\r\n"

static struct peer *with_many_messages(void)
{
    struct peer *p = peer_open();

    for (int i = 0; i < SCANNED; i++) {
        char text[256];

        snprintf(text, sizeof(text), POST "Content-Length: 8\r\n\r\n{\"N\":%2d}", i);
        peer_send(p, text);
        peer_expect(p, 201);
    }
    limits()->scan_entities = SLICE;
    return p;
}

START_TEST(those_behind_a_scan_wait_for_it)
{
    struct peer *p, *other;

    serve();
    p = with_many_messages();
    other = peer_open();
    peer_send(p, SCAN ASK(1) SCAN ASK(2));
    peer_send(other, ASK(3));
    peer_expect(other, 200);
    for (int i = 1; i <= 2; i++) {
        struct answer a = peer_answer(p);

        ck_assert(span_find(a.body, SPAN("\"N\":39")) != SIZE_MAX);
        ck_span_is(peer_answer(p).body, arena_printf(&arena, "[{\"N\":%d}]", i));
    }
    end_serving();
}
END_TEST

/* What is held counts as what waits for the disk does, until it is answered. */
static void check_nothing_is_held(struct peer *p)
{
    ck_assert_uint_eq(count_scans(), 0);
    limits()->unread_bytes = 0;
    peer_send(p, ASK(1));
    peer_expect(p, 200);
}

/* Requests that are held are whole, though others are read where they came in. */
static void ask_for_change(struct peer *p, size_t number)
{
    peer_send_bytes(p, arena_printf(&arena,
                                    "PATCH /Shop.Message/N=3%zu HTTP/1.1\r\nHost: a\r\n" JSON
                                    "Accept: application/x-ndjson\r\n"
                                    "Content-Length: 7\r\n\r\n{\"M\":%zu}",
                                    number, number));
}

static void check_change(struct peer *p, size_t number)
{
    struct answer a = peer_answer(p);
    struct span changed = arena_printf(&arena, "\"N\":3%zu,\"M\":%zu", number, number);

    ck_assert_int_eq(a.status, 200);
    ck_span_eq(answer_field(&a, SPAN("Content-Type")), "application/x-ndjson");
    peer_send_bytes(
        p, arena_printf(&arena, "GET /Shop.Message/M=%zu HTTP/1.1\r\nHost: a\r\n\r\n", number));
    ck_assert(span_find(peer_answer(p).body, changed) != SIZE_MAX);
}

START_TEST(held_requests_keep_what_they_said)
{
    struct peer *all[4], *other;

    serve();
    all[0] = with_many_messages();
    for (size_t i = 1; i < ARRAY_LEN(all); i++)
        all[i] = peer_open();
    other = peer_open();
    settle();
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        ask_for_change(all[i], i);
    peer_send_bytes(other, arena_printf(&arena, "GET /Svc.Echo/N=%0400d HTTP/1.1\r\n\r\n", 0));
    await(count_scans() > 0);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        check_change(all[i], i);
    peer_expect(other, 400);
    peer_expect_closed(other, TCP_CLOSE_BAD_REQUEST);
    check_nothing_is_held(all[0]);
    end_serving();
}
END_TEST

/* A turn is for a slice of one scan, so that of several clients one waits for longest. */
START_TEST(a_client_may_leave_during_a_scan)
{
    struct peer *all[4];

    serve();
    all[0] = with_many_messages();
    for (size_t i = 1; i < ARRAY_LEN(all); i++)
        all[i] = peer_open();
    settle();
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        peer_send(all[i], i == 3 ? SCAN : SCAN ASK(1)); /* behind which it would not be read */
    await(count_scans() > 0);
    peer_reset(all[3]);
    expect_gone(TCP_CLOSE_RESET);
    for (size_t i = 0; i < 3; i++) {
        peer_expect(all[i], 200);
        ck_span_eq(peer_answer(all[i]).body, TOLD(1));
    }
    check_nothing_is_held(all[0]);
    end_serving();
}
END_TEST

/* ---- time ---- */

/* What a client does not do in time. */
static const struct {
    const char *what, *sent;
    int64_t seconds;
    int status; /* of the last answer; 0: none */
    enum tcp_close_reason ends;
    int limit; /* that is hit; -1: none */
} times[] = {
    {"send anything", "", 75, 0, TCP_CLOSE_IDLE, -1},
    {"send more than an empty line", "\r\n", 75, 0, TCP_CLOSE_IDLE, -1},
    {"end a head", "GET / HT", 10, 408, TCP_CLOSE_HEADER_TIME, METRIC_HEADER_SECONDS},
    {"end another head", ASK(1) "GET", 10, 408, TCP_CLOSE_HEADER_TIME, METRIC_HEADER_SECONDS},
    {"end a body", POST "Content-Length: 9\r\n\r\n", 5, 408, TCP_CLOSE_BODY_RATE, METRIC_BODY_RATE},
    {"end a chunk", POST "Transfer-Encoding: chunked\r\n\r\n9\r\nabc", 5, 408, TCP_CLOSE_BODY_RATE,
     METRIC_BODY_RATE},
    {"send another request", ASK(1), 75, 200, TCP_CLOSE_IDLE, -1},
};

START_TEST(each_part_has_its_time)
{
    struct peer *p;
    struct answer a = {0};

    serve();
    p = peer_open();
    peer_send(p, times[_i].sent);
    settle();
    if (span_starts(span_str(times[_i].sent), SPAN(ASK(1))))
        a = peer_answer(p);
    pass_ms((uint64_t)times[_i].seconds * SECOND_MS - 1);
    peer_expect_silence(p);
    pass_ms(1);
    if (times[_i].status == 408)
        a = peer_answer(p);
    ck_assert_msg(a.status == times[_i].status, "%s: %d", times[_i].what, a.status);
    peer_expect_closed(p, times[_i].ends);
    for (int limit = 0; limit < METRIC_LIMIT_COUNT; limit++)
        ck_assert_uint_eq(metrics()->limit_hits[limit], limit == times[_i].limit);
    end_serving();
}
END_TEST

START_TEST(a_head_earns_no_time)
{
    struct peer *p;

    serve();
    p = peer_open();
    peer_send(p, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    for (int second = 0; second < 10; second++) {
        peer_expect_silence(p);
        peer_send(p, "x");
        pass_ms(SECOND_MS);
    }
    peer_expect(p, 408);
    peer_expect_closed(p, TCP_CLOSE_HEADER_TIME);
    end_serving();
}
END_TEST

static const struct {
    int first, each; /* bytes, at once and each second */
    int length;
    int seconds; /* until it is refused; 0: it is answered */
    enum tcp_close_reason ends;
} rates[] = {
    {0, 241, 4820, 0, TCP_CLOSE_NONE},        {0, 1000, 29000, 0, TCP_CLOSE_NONE},
    {0, 241, 9000, 30, TCP_CLOSE_BODY_TIME},  {0, 1000, 40000, 30, TCP_CLOSE_BODY_TIME},
    {0, 239, 7000, 5, TCP_CLOSE_BODY_RATE},   {0, 1, 7000, 5, TCP_CLOSE_BODY_RATE},
    {4800, 1, 7000, 21, TCP_CLOSE_BODY_RATE}, /* the first 20 seconds are earned at once */
    {4800, 20, 4900, 0, TCP_CLOSE_NONE},
};

static void send_some(struct peer *p, int bytes)
{
    static const char piece[5000];

    peer_send_bytes(p, span_of(piece, (size_t)bytes));
    settle();
}

/* The seconds until an answer comes, or 0 when the body came whole before. */
static int seconds_until_refused(struct peer *p, int first, int each, int length)
{
    int second = 0;

    send_some(p, first);
    for (int left = length - first; left > 0; left -= each, second++) {
        peer_read(p);
        if (peer_got(p).n > 0)
            return second;
        send_some(p, MIN(each, left));
        pass_ms(SECOND_MS);
    }
    return 0;
}

START_TEST(a_body_earns_its_time)
{
    struct peer *p;

    serve();
    p = peer_open();
    peer_send_bytes(p, arena_printf(&arena, POST "Content-Length: %d\r\n\r\n", rates[_i].length));
    ck_assert_int_eq(seconds_until_refused(p, rates[_i].first, rates[_i].each, rates[_i].length),
                     rates[_i].seconds);
    if (rates[_i].seconds == 0) {
        peer_expect(p, 400); /* it is no JSON */
    } else {
        peer_expect(p, 408);
        peer_expect_closed(p, rates[_i].ends);
    }
    end_serving();
}
END_TEST

START_TEST(a_rate_of_none_leaves_the_whole_time)
{
    struct peer *p;

    serve();
    limits()->body_bytes_per_second = 0;
    p = peer_open();
    peer_send(p, POST "Content-Length: 9\r\n\r\n");
    settle();
    pass_ms(29999);
    peer_expect_silence(p);
    pass_ms(1);
    peer_expect(p, 408);
    peer_expect_closed(p, TCP_CLOSE_BODY_TIME);
    end_serving();
}
END_TEST

START_TEST(each_answer_begins_the_time_anew)
{
    struct peer *p;

    serve();
    p = peer_open();
    for (int i = 0; i < 4; i++) {
        settle();
        pass_ms(74999);
        peer_expect_silence(p);
        peer_send(p, ASK(1));
        peer_expect(p, 200);
    }
    pass_ms(75000);
    peer_expect_closed(p, TCP_CLOSE_IDLE);
    end_serving();
}
END_TEST

/* A head's time begins with its first byte, however long nothing came before. */
START_TEST(a_head_has_its_own_time)
{
    struct peer *p;

    serve();
    p = peer_open();
    settle();
    pass_ms(74000);
    peer_send(p, "G");
    settle();
    pass_ms(9999);
    peer_expect_silence(p);
    peer_send(p, "ET /Svc.Echo HTTP/1.1\r\nHost: a\r\n\r\n");
    peer_expect(p, 200);
    end_serving();
}
END_TEST

START_TEST(waiting_for_us_takes_none_of_its_time)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT);
    settle();
    for (int i = 0; i < 5; i++)
        pass_ms(74000);
    peer_expect_silence(p);
    release_disk();
    peer_expect(p, 201);
    pass_ms(74999);
    peer_expect_silence(p);
    pass_ms(1);
    peer_expect_closed(p, TCP_CLOSE_IDLE);
    end_serving();
}
END_TEST

/* Who got its last answer and does not close has a second. */
START_TEST(who_does_not_close_is_closed)
{
    struct peer *p;

    serve();
    p = peer_open();
    peer_send(p, "nonsense\r\n\r\n");
    peer_expect(p, 400);
    ck_assert_uint_eq(metrics()->connections, 1);
    pass_ms(999);
    ck_assert_uint_eq(metrics()->connections, 1);
    pass_ms(2);
    ck_assert_uint_eq(metrics()->connections, 0);
    peer_expect_closed(p, TCP_CLOSE_BAD_REQUEST);
    end_serving();
}
END_TEST

/* ---- clients that leave ---- */

static const char *const cut_off[] = {
    "",
    "G",
    "GET / HTTP/1.1\r\nHo",
    POST "Content-Length: 9\r\n\r\n",
    POST "Content-Length: 9\r\n\r\nabcd",
    POST "Transfer-Encoding: chunked\r\n\r\n5\r\nab",
};

START_TEST(half_a_request_is_not_answered)
{
    struct peer *p;

    serve();
    p = peer_open();
    peer_send(p, cut_off[_i]);
    settle();
    peer_finish(p);
    peer_expect_closed(p, TCP_CLOSE_PEER);
    p = peer_open();
    peer_send(p, cut_off[_i]);
    peer_close(p);
    expect_gone(TCP_CLOSE_PEER);
    p = peer_open();
    settle();
    peer_send(p, cut_off[_i]);
    settle();
    peer_reset(p);
    expect_gone(TCP_CLOSE_RESET);
    ck_assert_uint_eq(count_messages(), 0);
    end_serving();
}
END_TEST

START_TEST(who_sends_no_more_is_answered)
{
    struct peer *p;

    serve();
    limits()->pipelined_requests = 2;
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT INSERT INSERT ASK(2));
    peer_finish(p);
    peer_expect_silence(p);
    release_disk();
    for (int i = 0; i < 3; i++)
        peer_expect(p, 201);
    peer_expect(p, 200);
    peer_expect_closed(p, TCP_CLOSE_PEER);
    end_serving();
}
END_TEST

/* What it asked for is done all the same. */
START_TEST(who_is_gone_when_the_disk_has_it)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT ASK(1));
    settle();
    peer_reset(p);
    expect_gone(TCP_CLOSE_RESET);
    release_disk();
    commit();
    ck_assert_uint_eq(count_messages(), 1);
    end_serving();
}
END_TEST

/* ---- clients that do not read ---- */

#define LARGE_BYTES 200000

/* One message, so that a list is about so long. */
static void make_large_answers(void)
{
    struct peer *p = peer_open();
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    buf_printf(&b, POST "Content-Length: %d\r\n\r\n{\"T\":\"", LARGE_BYTES + 8);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        buf_add_char(&b, (char)('a' + i % 23));
    buf_add_str(&b, "\"}");
    peer_send_bytes(p, buf_span(&b));
    buf_done(&b);
    peer_expect(p, 201);
    peer_close(p);
    expect_gone(TCP_CLOSE_PEER);
}

/* Sends requests until the kernel takes no more of their answers; returns how many. */
static unsigned fill_up(struct peer *p)
{
    uint64_t before = metrics()->unread_bytes;
    unsigned count = 0;

    while (metrics()->unread_bytes == before) {
        peer_send(p, LIST);
        settle();
        count++;
    }
    return count;
}

static void check_large_answers(struct peer *p, unsigned count)
{
    struct span first = {NULL, 0};

    while (count-- > 0) {
        struct answer a = peer_answer(p);

        ck_assert_int_eq(a.status, 200);
        ck_assert_uint_gt(a.body.n, LARGE_BYTES);
        if (first.p == NULL)
            first = a.body;
        ck_assert(span_eq(a.body, first));
    }
}

static uint64_t lists(void)
{
    return metrics()->requests[METHOD_GET][METRIC_STATUS_200];
}

/* Past ConnectionUnreadBytes no request is evaluated, nor read; when the client reads, all are. */
START_TEST(who_does_not_read_is_not_read_either)
{
    enum { MORE = 20 };
    struct peer *p;
    unsigned count;

    serve();
    make_large_answers();
    limits()->connection_unread_bytes = 2 * LARGE_BYTES;
    p = peer_open();
    count = fill_up(p);
    for (int i = 0; i < MORE; i++)
        peer_send(p, LIST);
    settle();
    ck_assert_uint_le(lists(), count + 2);
    ck_assert_uint_gt(metrics()->unread_bytes, 0);
    ck_assert_uint_lt(metrics()->unread_bytes, 4 * LARGE_BYTES);
    check_large_answers(p, count + MORE);
    peer_expect_silence(p);
    ck_assert_uint_eq(lists(), count + MORE);
    ck_assert_uint_eq(metrics()->unread_bytes, 0);
    end_serving();
}
END_TEST

START_TEST(who_does_not_read_is_closed_in_time)
{
    struct peer *p;

    serve();
    make_large_answers();
    p = peer_open();
    settle();
    pass_ms(60000); /* which does not count */
    fill_up(p);
    pass_ms(74999);
    ck_assert_uint_eq(metrics()->connections, 1);
    pass_ms(1);
    ck_assert_uint_eq(metrics()->connections, 0);
    peer_close(p);
    expect_gone(TCP_CLOSE_NOT_READ);
    end_serving();
}
END_TEST

START_TEST(who_reads_in_time_stays)
{
    struct peer *p;
    unsigned count;

    serve();
    make_large_answers();
    p = peer_open();
    count = fill_up(p);
    pass_ms(74999);
    check_large_answers(p, count);
    pass_ms(74999);
    peer_send(p, ASK(1));
    peer_expect(p, 200);
    end_serving();
}
END_TEST

/* When all clients together leave too much unread, the one goes that has done so for longest. It
 * has two answers unread then, even if the kernel takes as many more of them as it ever does
 * (tcp_wmem). */
START_TEST(who_has_not_read_for_longest_makes_room)
{
    enum { TAKEN_MOST = 4 << 20 };
    struct peer *first, *second;
    unsigned count = 0;

    serve();
    make_large_answers();
    limits()->connection_unread_bytes = 2 * TAKEN_MOST; /* each is read that is sent here */
    first = peer_open();
    fill_up(first);
    while (metrics()->unread_bytes < TAKEN_MOST + 2 * LARGE_BYTES) {
        peer_send(first, LIST);
        settle();
    }
    limits()->unread_bytes = (int64_t)metrics()->unread_bytes + LARGE_BYTES;
    second = peer_open();
    for (; metrics()->limit_hits[METRIC_UNREAD_BYTES] == 0; count++) {
        /* The kernel may take more of the first one's answers meanwhile. */
        limits()->unread_bytes =
            MIN(limits()->unread_bytes, (int64_t)metrics()->unread_bytes + LARGE_BYTES);
        peer_send(second, LIST);
        settle();
    }
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_UNREAD_BYTES], 1);
    peer_close(first);
    expect_gone(TCP_CLOSE_NOT_READ);
    check_large_answers(second, count);
    end_serving();
}
END_TEST

/* Of an answer whose connection ends with it nothing is lost. */
START_TEST(a_last_answer_is_read_to_its_end)
{
    struct peer *p;
    unsigned count;

    serve();
    make_large_answers();
    p = peer_open();
    count = fill_up(p);
    peer_send(p, "GET /Shop.Message HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    settle();
    check_large_answers(p, count + 1);
    peer_expect_closed(p, TCP_CLOSE_DONE);
    end_serving();
}
END_TEST

/* ---- requests that are not whole ---- */

/* When all clients together have begun too much, the one goes that holds most, whoever began first.
 */
START_TEST(who_holds_most_makes_room)
{
    struct peer *first, *second, *third;

    serve();
    limits()->incoming_bytes = 1500;
    first = peer_open();
    second = peer_open();
    third = peer_open();
    peer_send(first, POST "Content-Length: 8\r\n\r\n{");
    settle();
    peer_send_bytes(second,
                    arena_printf(&arena, POST "X: %01000d\r\nContent-Length: 8\r\n\r\n", 0));
    settle();
    peer_expect_silence(second);
    peer_send_bytes(third, arena_printf(&arena, POST "X: %0400d\r\nContent-Length: 8\r\n\r\n", 0));
    peer_expect(second, 503);
    peer_expect_closed(second, TCP_CLOSE_UNFINISHED);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_INCOMING_BYTES], 1);
    peer_send(first, "\"N\":12}");
    peer_expect(first, 201);
    peer_send(third, "{\"N\":12}");
    peer_expect(third, 201);
    end_serving();
}
END_TEST

/* ---- too many requests ---- */

START_TEST(requests_under_way_are_bounded)
{
    struct peer *p, *other;

    serve();
    limits()->requests = 2;
    p = peer_open();
    other = peer_open();
    hold_disk();
    peer_send(p, INSERT INSERT);
    settle();
    peer_send(other, ASK(1));
    peer_expect(other, 503);
    ck_assert_uint_eq(metrics()->limit_hits[METRIC_REQUESTS], 1);
    release_disk();
    peer_expect(p, 201);
    peer_expect(p, 201);
    peer_send(other, ASK(1));
    peer_expect(other, 200);
    end_serving();
}
END_TEST

/* Answers that wait for the disk hold memory: past UnreadBytes no more are made. */
START_TEST(what_waits_for_the_disk_is_bounded)
{
    struct peer *p, *other;

    serve();
    limits()->unread_bytes = 300;
    p = peer_open();
    other = peer_open();
    hold_disk();
    peer_send(p, INSERT);
    settle();
    peer_send(other, ASK(1));
    peer_expect(other, 503);
    release_disk();
    peer_expect(p, 201);
    peer_send(other, ASK(1));
    peer_expect(other, 200);
    end_serving();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, bytes_in_pieces, 0, ARRAY_LEN(exchanges));
    tcase_add_test(tc, refusals_are_counted);
    tcase_add_test(tc, many_in_one_piece);
    tcase_add_test(tc, head_has_the_length_but_not_the_body);
    tcase_add_test(tc, http10_is_told_that_the_connection_stays);
    tcase_add_test(tc, a_body_that_is_held_back_is_asked_for);
    tcase_add_test(tc, a_body_that_is_there_is_not_asked_for);
    tcase_add_test(tc, too_long_a_body_is_refused_before_it_is_sent);
    tcase_add_test(tc, no_interim_answer_overtakes_another_answer);
    tcase_add_test(tc, an_answer_waits_for_the_disk_and_those_behind_it_too);
    tcase_add_test(tc, who_sees_a_change_waits_for_it);
    tcase_add_test(tc, answers_leave_as_far_as_they_are_committed);
    tcase_add_test(tc, no_more_is_evaluated_than_may_be_owed);
    tcase_add_test(tc, a_large_answer_keeps_its_place);
    tcase_add_test(tc, who_is_owed_enough_is_not_read);
    tcase_add_test(tc, others_have_their_turn);
    tcase_add_test(tc, those_behind_a_scan_wait_for_it);
    tcase_add_test(tc, held_requests_keep_what_they_said);
    tcase_add_test(tc, a_client_may_leave_during_a_scan);
    tcase_add_loop_test(tc, each_part_has_its_time, 0, ARRAY_LEN(times));
    tcase_add_test(tc, a_head_earns_no_time);
    tcase_add_loop_test(tc, a_body_earns_its_time, 0, ARRAY_LEN(rates));
    tcase_add_test(tc, a_rate_of_none_leaves_the_whole_time);
    tcase_add_test(tc, each_answer_begins_the_time_anew);
    tcase_add_test(tc, a_head_has_its_own_time);
    tcase_add_test(tc, waiting_for_us_takes_none_of_its_time);
    tcase_add_test(tc, who_does_not_close_is_closed);
    tcase_add_loop_test(tc, half_a_request_is_not_answered, 0, ARRAY_LEN(cut_off));
    tcase_add_test(tc, who_sends_no_more_is_answered);
    tcase_add_test(tc, who_is_gone_when_the_disk_has_it);
    tcase_add_test(tc, who_does_not_read_is_not_read_either);
    tcase_add_test(tc, who_does_not_read_is_closed_in_time);
    tcase_add_test(tc, who_reads_in_time_stays);
    tcase_add_test(tc, who_has_not_read_for_longest_makes_room);
    tcase_add_test(tc, a_last_answer_is_read_to_its_end);
    tcase_add_test(tc, who_holds_most_makes_room);
    tcase_add_test(tc, requests_under_way_are_bounded);
    tcase_add_test(tc, what_waits_for_the_disk_is_bounded);
}
