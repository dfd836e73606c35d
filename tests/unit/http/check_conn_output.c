/* Answers that wait, when what they wait for is not confirmed in time. Others: check_conn.c. */
#include "http_testing.h"

#include "testing.h"

#include "access/clients.h"
#include "journal/journal.h"
#include "store/turn.h"

#define JSON "Content-Type: application/json\r\n"
#define INSERT                                                                                     \
    "POST /Shop.Message HTTP/1.1\r\nHost: a\r\n" JSON "Content-Length: 8\r\n\r\n{\"N\":12}"
#define ASK "GET /Svc.Echo/N=1 HTTP/1.1\r\nHost: a\r\n\r\n"
#define LIST "GET /Shop.Message HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD "HEAD /Shop.Message HTTP/1.1\r\nHost: a\r\n\r\n"
#define UNMET "DELETE /Shop.Message/N=12 HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n"
#define STREAM "GET /Shop.Message HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"

enum { MANY = 200 }; /* more than are read at once */

static void expect_late(struct answer a)
{
    ck_assert_int_eq(a.status, 503);
    ck_span_eq(answer_field(&a, SPAN("Connection")), "close");
    ck_span_eq(answer_field(&a, SPAN("Retry-After")), "1");
    ck_assert(span_find(answer_field(&a, SPAN("Svc-info")), SPAN("may have been done")) !=
              SIZE_MAX);
}

static uint64_t answers(void)
{
    uint64_t all = 0;

    for (size_t i = 0; i < METRIC_METHOD_COUNT; i++)
        for (size_t j = 0; j < METRIC_STATUS_COUNT; j++)
            all += metrics()->requests[i][j];
    return all;
}

static void expect_nothing_left(void)
{
    struct in6_addr loopback = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

    limits()->requests_per_address = 1;
    limits()->requests = 1;
    ck_assert_int_eq(clients_may_request(service->rest.clients, &loopback), CLIENTS_WELCOME);
}

/* What is committed leaves, the first one that is not is answered otherwise, others never. */
START_TEST(what_is_late)
{
    struct peer *p, *other;

    serve();
    p = peer_open();
    other = peer_open();
    hold_disk();
    peer_send(p, ASK INSERT ASK LIST);
    peer_send(other, ASK);
    peer_expect(other, 200);
    settle();
    turn_tell_late(service->turn, 0);
    peer_expect(p, 200);
    expect_late(peer_answer(p));
    peer_expect_closed(p, TCP_CLOSE_CUT_OFF);
    ck_assert_uint_eq(metrics()->requests[METHOD_POST][METRIC_STATUS_503], 1);
    ck_assert_uint_eq(metrics()->requests[METHOD_POST][METRIC_STATUS_201], 0);
    ck_assert_uint_eq(metrics()->errors[ERR_NO_LEADER], 1);
    ck_assert_uint_eq(answers(), 3);
    expect_nothing_left();
    release_disk();
    settle();
    peer_send(other, ASK);
    peer_expect(other, 200);
    end_serving();
}
END_TEST

/* All in one write, behind an answer that need not wait. */
START_TEST(behind_one_that_waits_for_nothing)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, ASK ASK INSERT INSERT);
    settle();
    turn_tell_late(service->turn, 0);
    peer_expect(p, 200);
    peer_expect(p, 200);
    expect_late(peer_answer(p));
    peer_expect_closed(p, TCP_CLOSE_CUT_OFF);
    release_disk();
    settle();
    end_serving();
}
END_TEST

static void once(void)
{
    loop_wake(&loop);
    loop_run_once(&loop);
}

/* More requests are read after that, before it has been said: they take several turns. */
START_TEST(behind_one_that_is_about_to_be_told)
{
    struct peer *p;
    struct buf many;
    uint64_t before;

    serve();
    limits()->pipelined_requests = 2 * MANY;
    p = peer_open();
    hold_disk();
    before = journal_next_serial(turn_journal(service->turn));
    buf_init(&many, BUF_NO_CAP);
    for (int i = 0; i < MANY; i++)
        buf_add_str(&many, INSERT);
    peer_send_bytes(p, buf_span(&many));
    buf_done(&many);
    while (journal_next_serial(turn_journal(service->turn)) == before)
        once();
    ck_assert_uint_lt(journal_next_serial(turn_journal(service->turn)), before + MANY);
    turn_tell_late(service->turn, 0);
    expect_late(peer_answer(p));
    peer_expect_closed(p, TCP_CLOSE_CUT_OFF);
    release_disk();
    settle();
    end_serving();
}
END_TEST

/* Whoever reads what is not confirmed waits too, and a HEAD has no body. */
START_TEST(reads_are_late_too)
{
    struct peer *writer, *reader;

    serve();
    writer = peer_open();
    reader = peer_open();
    hold_disk();
    peer_send(writer, INSERT);
    settle();
    peer_send(reader, HEAD);
    settle();
    turn_tell_late(service->turn, 0);
    expect_late(peer_answer_to_head(reader));
    peer_expect_closed(reader, TCP_CLOSE_CUT_OFF);
    expect_late(peer_answer(writer));
    peer_expect_closed(writer, TCP_CLOSE_CUT_OFF);
    release_disk();
    settle();
    end_serving();
}
END_TEST

/* An error that was found by looking at what is not confirmed. */
START_TEST(errors_are_late_too)
{
    struct peer *writer, *other;

    serve();
    writer = peer_open();
    other = peer_open();
    hold_disk();
    peer_send(writer, INSERT);
    settle();
    peer_send(other, UNMET);
    settle();
    peer_expect_silence(other);
    turn_tell_late(service->turn, 0);
    expect_late(peer_answer(other));
    peer_expect_closed(other, TCP_CLOSE_CUT_OFF);
    expect_late(peer_answer(writer));
    peer_expect_closed(writer, TCP_CLOSE_CUT_OFF);
    release_disk();
    settle();
    other = peer_open();
    peer_send(other, UNMET);
    peer_expect(other, 412);
    end_serving();
}
END_TEST

/* It has been evaluated, and nothing of it was sent. */
START_TEST(a_stream_that_has_not_begun)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT STREAM);
    settle();
    turn_tell_late(service->turn, 0);
    expect_late(peer_answer(p));
    peer_expect_closed(p, TCP_CLOSE_CUT_OFF);
    ck_assert_uint_eq(metrics()->streams, 0);
    release_disk();
    settle();
    end_serving();
}
END_TEST

/* Nothing more is expected of who is gone. */
START_TEST(who_is_gone_hears_nothing)
{
    struct peer *p;

    serve();
    p = peer_open();
    hold_disk();
    peer_send(p, INSERT);
    settle();
    peer_reset(p);
    settle();
    turn_tell_late(service->turn, 0);
    expect_gone(TCP_CLOSE_RESET);
    expect_nothing_left();
    release_disk();
    settle();
    end_serving();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, what_is_late);
    tcase_add_test(tc, behind_one_that_waits_for_nothing);
    tcase_add_test(tc, behind_one_that_is_about_to_be_told);
    tcase_add_test(tc, reads_are_late_too);
    tcase_add_test(tc, errors_are_late_too);
    tcase_add_test(tc, a_stream_that_has_not_begun);
    tcase_add_test(tc, who_is_gone_hears_nothing);
}
