/* What becomes of answers, good and hostile. */
#include "fetch_testing.h"

#include "testing.h"

#include "base/clock.h"

#include <stdio.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

struct answer_case {
    const char *what;
    struct receiver_script script;
    enum fetch_error error;
    int status;
    const char *text; /* the body, or what the reason holds: see expect_error */
    bool truncated;
    bool cut_short; /* the status counts, the body is not read */
};

static const struct answer_case cases[] = {
    {"a length",
     {.bytes = OK_HEAD "Content-Length: 5\r\n\r\nhello"},
     .status = 200,
     .text = "hello"},
    {"no content", {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"}, .status = 204, .text = ""},
    {"no reason phrase",
     {.bytes = "HTTP/1.1 202\r\nContent-Length: 0\r\n\r\n"},
     .status = 202,
     .text = ""},
    {"chunks and a trailer",
     {.bytes = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n"
                       "HTTP/1.1 500 X: y\r\n\r\n"},
     .status = 200,
     .text = "hello"},
    {"chunks by several headers",
     {.bytes = OK_HEAD "transfer-encoding: ,Identity ,\r\nTransfer-Encoding:CHUNKED\r\n\r\n"
                       "5\r\nhello\r\n0\r\n\r\n"},
     .status = 200,
     .text = "hello"},
    {"until the end",
     {.bytes = "HTTP/1.0 200 OK\r\n\r\nhello", .then = THEN_CLOSE},
     .status = 200,
     .text = "hello"},
    {"more than its length",
     {.bytes = OK_HEAD "Content-Length: 2\r\n\r\nhello"},
     .status = 200,
     .text = "he"},
    {"packed, and left so",
     {.bytes = OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b!"},
     .status = 200,
     .text = "\x1f\x8b!"},
    {"a long extension of a chunk",
     {.bytes = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5;some=extension\r\nhello\r\n0\r\n\r\n"},
     .status = 200,
     .text = "hello"},
    {"extensions of a chunk, which llhttp 8 does not read",
     {.bytes = OK_HEAD
      "Transfer-Encoding: chunked\r\n\r\n5;some=extension;or=other\r\nhello\r\n0\r\n\r\n"},
     .status = 200,
     .text = "hello",
     .cut_short = true},
    {"interim answers",
     {.bytes = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK_HEAD
               "Content-Length: 2\r\n\r\nok"},
     .status = 200,
     .text = "ok"},
    {"a redirect",
     {.bytes = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"},
     .status = 302,
     .text = ""},
    {"unknown status",
     {.bytes = "HTTP/1.1 299 Well\r\nContent-Length: 0\r\n\r\n"},
     .status = 299,
     .text = ""},
    {"not found",
     {.bytes = "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"},
     .status = 404,
     .text = "no"},
    {"gone",
     {.bytes = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"},
     .status = 410,
     .text = ""},
    {"wants a password",
     {.bytes = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"},
     .status = 401,
     .text = ""},
    {"failed",
     {.bytes = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"},
     .status = 500,
     .text = ""},
    {"endless body",
     {.bytes = OK_HEAD "\r\n", .then = THEN_REPEAT, .again = "0123456789abcdef"},
     .status = 200,
     .text = "0123456789abcdef0123456789abcdef",
     .truncated = true},
    {"a body far too long",
     {.bytes = OK_HEAD "Content-Length: 99999999999\r\n\r\n", .then = THEN_REPEAT, .again = "0123"},
     .status = 200,
     .text = "01230123",
     .truncated = true},

    {"end at once", {.bytes = "", .then = THEN_CLOSE}, FETCH_CLOSED, 0, "Empty reply"},
    {"reset at once", {.bytes = "", .then = THEN_RESET}, FETCH_CLOSED, 0, "reset"},
    {"end after an interim answer",
     {.bytes = "HTTP/1.1 100 Continue\r\n\r\n", .then = THEN_CLOSE},
     FETCH_CLOSED,
     0,
     ""},
    {"another protocol",
     {.bytes = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello", .then = THEN_CLOSE},
     FETCH_CLOSED,
     0,
     ""},
    {"end in the head", {.bytes = OK_HEAD "X: y", .then = THEN_CLOSE}, FETCH_CLOSED, 0, ""},
    {"reset in the head", {.bytes = OK_HEAD "X: y", .then = THEN_RESET}, FETCH_CLOSED, 0, ""},
    {"end in the body",
     {.bytes = OK_HEAD "Content-Length: 9\r\n\r\nhello", .then = THEN_CLOSE},
     FETCH_CLOSED,
     200,
     "4 bytes remaining"},
    {"reset in the body",
     {.bytes = OK_HEAD "Content-Length: 9\r\n\r\nhello", .then = THEN_RESET},
     FETCH_CLOSED,
     200,
     ""},
    {"end in a chunk",
     {.bytes = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", .then = THEN_CLOSE},
     FETCH_CLOSED,
     200,
     ""},
    {"no HTTP", {.bytes = "hello\r\n\r\n"}, FETCH_PROTOCOL, 0, "not HTTP"},
    {"zero byte in the head",
     {.bytes = OK_HEAD "X: a\0b\r\n\r\n", .n = sizeof(OK_HEAD "X: a\0b\r\n\r\n") - 1},
     FETCH_PROTOCOL,
     0,
     "Nul byte"},
    {"no number as length",
     {.bytes = OK_HEAD "Content-Length: many\r\n\r\n"},
     FETCH_PROTOCOL,
     0,
     "Content-Length"},
    {"packed in the transfer",
     {.bytes = OK_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n3\r\n\x1f\x8b!\r\n0\r\n\r\n"},
     FETCH_PROTOCOL,
     0,
     "Transfer-Encoding that was not asked for"},
    {"endless interim answers",
     {.bytes = "HTTP/1.1 100 Continue\r\n\r\n",
      .then = THEN_REPEAT,
      .again = "HTTP/1.1 102 Processing\r\n\r\n"},
     FETCH_PROTOCOL,
     0,
     "more than 16 interim answers"},
    {"endless headers",
     {.bytes = OK_HEAD, .then = THEN_REPEAT, .again = "Some-Header: some value or other\r\n"},
     FETCH_PROTOCOL,
     0,
     "longer than 64 KiB"},
    {"an endless header",
     {.bytes = OK_HEAD "X: ", .then = THEN_REPEAT, .again = "some value or other"},
     FETCH_PROTOCOL,
     0,
     "longer than 64 KiB"},
    {"endless trailers",
     {.bytes = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n",
      .then = THEN_REPEAT,
      .again = "Some-Header: some value or other\r\n"},
     FETCH_PROTOCOL,
     200,
     "longer than 64 KiB"},
    {"silence",
     {.bytes = "", .then = THEN_HANG},
     FETCH_TIMEOUT,
     0,
     "300 ms were over while waiting for the answer"},
    {"silence in the body",
     {.bytes = OK_HEAD "Content-Length: 9\r\n\r\nhello", .then = THEN_HANG},
     FETCH_TIMEOUT,
     200,
     "300 ms were over while reading the answer"},
    {"a byte now and then",
     {.bytes = OK_HEAD "Content-Length: 99999\r\n\r\n", .then = THEN_TRICKLE, .again = "x"},
     FETCH_TIMEOUT,
     200,
     "300 ms were over while reading the answer"},
    {"a byte of the head now and then",
     {.bytes = OK_HEAD, .then = THEN_TRICKLE, .again = "Some-Header: x\r\n"},
     FETCH_TIMEOUT,
     0,
     "300 ms were over while waiting for the answer"},
};

START_TEST(answers)
{
    const struct answer_case *c = &cases[_i];
    struct job job;

    begin_fetching();
    receiver.script = c->script;
    job_init(&job, "http://127.0.0.1:%u/");
    job.fetch.timeout_ms = c->error == FETCH_TIMEOUT ? 300 : 60000;
    job_start(&job);
    job_await(&job);
    ck_assert_uint_lt(job.result.total_ms, 30000);
    ck_assert_msg(job.result.error == c->error, "%s: %d, %s", c->what, (int)job.result.error,
                  job.result.why);
    ck_assert_msg(job.result.status == c->status, "%s: %d", c->what, job.result.status);
    ck_assert_msg(job.result.truncated == (c->truncated || c->cut_short), "%s", c->what);
    if (c->error != FETCH_OK)
        expect_error(&job, c->error, c->text);
    else if (c->cut_short)
        ck_assert_uint_eq(job.body_bytes, 0);
    else if (c->truncated)
        ck_assert(span_starts(span_of(job.body, job.body_bytes), span_str(c->text)));
    else
        ck_span_is(span_of(job.body, job.body_bytes), span_str(c->text));
    ck_assert_uint_eq(receiver.requests, 1);
    ck_assert_uint_le(job.result.body_bytes, 65536 + 16384);
    end_fetching();
}
END_TEST

START_TEST(reset_before_the_answer)
{
    struct job job;

    begin_fetching();
    receiver.reset_at_accept = true;
    job_run(&job, "http://127.0.0.1:%u/");
    if (job.result.error != FETCH_CONNECT) /* the reset may be faster than the connection */
        expect_error(&job, FETCH_CLOSED, "127.0.0.1:");
    ck_assert_int_eq(job.result.status, 0);
    end_fetching();
}
END_TEST

START_TEST(how_much_is_read_and_kept)
{
    static const struct {
        size_t read_bytes, keep_bytes, body_bytes, kept_bytes;
        bool truncated;
    } sizes[] = {
        {0, 0, 65536, 4096, false},      {0, 0, 65537, 4096, true},
        {10, 5, 10, 5, false},           {10, 5, 11, 5, true},
        {10, 20, 15, 15, true},          {100, 8000, 50, 50, false},
        {8000, 8000, 8000, 8000, false}, {1, 1, 0, 0, false},
    };
    struct buf answer = {.max = BUF_NO_CAP};

    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct job job;

        buf_clear(&answer);
        buf_printf(&answer, OK_HEAD "Content-Length: %zu\r\n\r\n", sizes[i].body_bytes);
        for (size_t n = 0; n < sizes[i].body_bytes; n++)
            buf_add_char(&answer, (char)('a' + n % 26));
        receiver.script = (struct receiver_script){.bytes = buf_text(&answer)};
        job_init(&job, "http://127.0.0.1:%u/");
        job.fetch.read_bytes = sizes[i].read_bytes;
        job.fetch.keep_bytes = sizes[i].keep_bytes;
        job_start(&job);
        job_await(&job);
        expect_ok(&job, 200);
        ck_assert_int_eq(job.result.truncated, sizes[i].truncated);
        ck_assert_uint_eq(job.body_bytes, sizes[i].kept_bytes);
        for (size_t n = 0; n < job.body_bytes; n++)
            ck_assert_int_eq(job.body[n], (char)('a' + n % 26));
        ck_assert_uint_eq(job.result.body_bytes, sizes[i].body_bytes);
    }
    buf_done(&answer);
    end_fetching();
}
END_TEST

#define NOW_UNIX_S INT64_C(1794484800) /* Thu, 12 Nov 2026 12:00:00 GMT */

START_TEST(retry_after)
{
    static const struct {
        const char *value;
        int64_t seconds;
    } values[] = {
        {"120", 120},
        {"0", 0},
        {"  7\t", 7},
        {"99999999", 31536000},
        {"99999999999999999999999999", 31536000},
        {"-5", -1},
        {"+5", -1},
        {"5.5", -1},
        {"soon", -1},
        {"", -1},
        {"Thu, 12 Nov 2026 12:00:30 GMT", 30},
        {"Thursday, 12-Nov-26 12:01:00 GMT", 60},
        {"Thu Nov 12 12:00:05 2026", 5},
        {"Thu, 12 Nov 2026 11:00:00 GMT", 0},
        {"Mon, 01 Jan 2035 00:00:00 GMT", 31536000},
        {"Thu, 99 Nov 2026 12:00:30 GMT", -1},
        {"10\r\nRetry-After: 40\r\nretry-after: 20", 40},
        {"10\r\nRetry-Afterwards: 40", 10},
        {"Thu, 12 Nov 2026 12:00:30 GMT and a tail that is much too long for any date", -1},
    };

    clock_fake(NOW_UNIX_S * 1000000000, 1000000000);
    begin_fetching();
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char answer[256];
        struct job job;

        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 100 X\r\nRetry-After: 77\r\n\r\n"
                 "HTTP/1.1 503 X\r\nContent-Length: 0\r\nRetry-After: %s\r\n\r\n",
                 values[i].value);
        receiver.script = (struct receiver_script){.bytes = answer};
        job_run(&job, "http://127.0.0.1:%u/");
        expect_ok(&job, 503);
        ck_assert_msg(job.result.retry_after_s == values[i].seconds, "'%s': %lld", values[i].value,
                      (long long)job.result.retry_after_s);
    }
    end_fetching();
}
END_TEST

START_TEST(no_retry_after)
{
    struct job job;

    begin_fetching();
    job_run(&job, "http://127.0.0.1:%u/");
    ck_assert_int_eq(job.result.retry_after_s, -1);
    end_fetching();
}
END_TEST

START_TEST(phases)
{
    struct job job;

    begin_fetching();
    receiver.delay_ms = 500;
    job_run(&job, "http://name.test:%u/");
    ck_assert(!job.result.reused);
    ck_assert_uint_le(job.result.dns_ms, job.result.connect_ms);
    ck_assert_uint_lt(job.result.connect_ms, 490);
    ck_assert_uint_eq(job.result.tls_ms, 0);
    ck_assert_uint_ge(job.result.first_byte_ms, 499);
    ck_assert_uint_ge(job.result.total_ms, job.result.first_byte_ms);
    ck_assert_uint_lt(job.result.total_ms, 30000);
    job_run(&job, "http://name.test:%u/");
    ck_assert(job.result.reused);
    ck_assert_uint_eq(job.result.connect_ms, 0);
    ck_assert_uint_ge(job.result.first_byte_ms, 499);
    end_fetching();
}
END_TEST

/* A stream. */

static size_t streamed;
static size_t streamed_most;

static bool on_body(struct fetch *f, struct span bytes)
{
    (void)f;
    streamed += bytes.n;
    return streamed < streamed_most;
}

/* What must end well has more time than any machine takes. */
static void stream(struct job *job, const char *bytes, enum receiver_then then, size_t most,
                   unsigned timeout_ms)
{
    streamed = 0;
    streamed_most = most;
    receiver.script = (struct receiver_script){.bytes = bytes, .then = then, .again = "x"};
    job_init(job, "http://name.test:%u/");
    job->fetch.on_body = on_body;
    job->fetch.read_bytes = 1;
    job->fetch.timeout_ms = timeout_ms;
    job_start(job);
    job_await(job);
}

/* For as long as something comes, whatever read_bytes and timeout_ms say of it all. */
START_TEST(a_stream_goes_on)
{
    struct job job;

    begin_fetching();
    stream(&job, "HTTP/1.1 200 OK\r\n\r\nabc", THEN_TRICKLE, 303, 2000);
    expect_ok(&job, 200);
    ck_assert_uint_eq(streamed, 303);
    ck_assert(job.result.truncated);
    ck_assert_uint_eq(job.body_bytes, 0);
    ck_assert_uint_gt(job.result.total_ms, 2000);
    end_fetching();
}
END_TEST

START_TEST(a_stream_ends)
{
    struct job job;

    begin_fetching();
    stream(&job, "HTTP/1.1 200 OK\r\n\r\nabc", THEN_CLOSE, 1000, 60000);
    expect_ok(&job, 200);
    ck_assert_uint_eq(streamed, 3);
    stream(&job, "HTTP/1.1 200 OK\r\n\r\nabc", THEN_HANG, 1000, 1000);
    expect_error(&job, FETCH_TIMEOUT, "1000 ms were over while reading the answer");
    stream(&job, "HTTP/1.1 503 x\r\nContent-Length: 1\r\n\r\na", THEN_KEEP, 1000, 60000);
    expect_ok(&job, 503);
    ck_assert_uint_eq(streamed, 0);
    ck_assert_uint_eq(job.body_bytes, 1);
    end_fetching();
}
END_TEST

static bool pause_at_once(struct fetch *f, struct span bytes)
{
    streamed += bytes.n;
    fetch_pause(f);
    return true;
}

/* More than all that lies on the way holds; nobody reads it, and no time runs out. */
START_TEST(a_stream_pauses)
{
    enum { BYTES = 32 << 20, READ_MOST = 65536 };
    struct job job;
    struct buf answer;
    unsigned pauses = 0;

    begin_fetching();
    buf_init(&answer, BUF_NO_CAP);
    buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BYTES);
    memset(buf_reserve(&answer, BYTES), 'x', BYTES);
    buf_commit(&answer, BYTES);
    streamed = 0;
    receiver.script = (struct receiver_script){.bytes = answer.p, .n = answer.n};
    job_init(&job, "http://name.test:%u/");
    job.fetch.on_body = pause_at_once;
    job.fetch.timeout_ms = 300;
    job_start(&job);
    while (streamed == 0)
        loop_run_once(&loop);
    for (int i = 0; i < 2; i++) {
        size_t before = streamed;

        ck_assert_uint_le(before, (size_t)(i + 1) * READ_MOST);
        pass_ms(400);
        ck_assert_uint_eq(streamed, before);
        ck_assert_uint_eq(job.calls, 0);
        fetch_resume(&job.fetch);
        while (streamed == before)
            loop_run_once(&loop);
    }
    for (; job.calls == 0; pauses++) {
        fetch_resume(&job.fetch);
        loop_run_once(&loop);
    }
    expect_ok(&job, 200);
    ck_assert_uint_eq(streamed, BYTES);
    ck_assert_uint_ge(pauses, BYTES / READ_MOST - 4);
    fetch_pause(&job.fetch); /* it is done */
    fetch_resume(&job.fetch);
    buf_done(&answer);
    end_fetching();
}
END_TEST

START_TEST(a_paused_stream_is_cancelled)
{
    struct job job;

    begin_fetching();
    streamed = 0;
    receiver.script = (struct receiver_script){
        .bytes = "HTTP/1.1 200 OK\r\n\r\nabc", .then = THEN_TRICKLE, .again = "x"};
    job_init(&job, "http://name.test:%u/");
    job.fetch.on_body = pause_at_once;
    job_start(&job);
    while (streamed == 0)
        loop_run_once(&loop);
    fetch_cancel(fetcher, &job.fetch);
    pass_ms(50);
    ck_assert_uint_eq(job.calls, 0);
    ck_assert_uint_eq(fetch_active(fetcher), 0);
    /* The next one is not paused. */
    stream(&job, "HTTP/1.1 200 OK\r\n\r\nabc", THEN_CLOSE, 1000, 60000);
    expect_ok(&job, 200);
    end_fetching();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, answers, 0, ARRAY_LEN(cases));
    tcase_add_test(tc, reset_before_the_answer);
    tcase_add_test(tc, how_much_is_read_and_kept);
    tcase_add_test(tc, retry_after);
    tcase_add_test(tc, no_retry_after);
    tcase_add_test(tc, phases);
    tcase_add_test(tc, a_stream_goes_on);
    tcase_add_test(tc, a_stream_ends);
    tcase_add_test(tc, a_stream_pauses);
    tcase_add_test(tc, a_paused_stream_is_cancelled);
}
