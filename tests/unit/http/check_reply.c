#include "testing.h"

#include "base/buf.h"
#include "http/reply.h"
#include "rest/request.h"
#include "rest/response.h"

#define COMMON "Date: now\r\nSvc-version: 1\r\n"
#define TYPE "Content-Type: text/plain\r\nX-Content-Type-Options: nosniff\r\n"
#define HEAD .is_head = true
#define CLOSE .close = true
#define HTTP10 .is_http10 = true

static const struct {
    int status;
    const char *type, *header, *body; /* NULL: none */
    struct reply_options options;
    const char *text;
} rows[] = {
    {200,
     "text/plain",
     NULL,
     "abc",
     {0},
     "HTTP/1.1 200 OK\r\n" COMMON TYPE "Content-Length: 3\r\n\r\nabc"},
    {200,
     "text/plain",
     NULL,
     "abc",
     {HEAD},
     "HTTP/1.1 200 OK\r\n" COMMON TYPE "Content-Length: 3\r\n\r\n"},
    {201,
     "text/plain",
     "/A.B/Id=1",
     "{}",
     {0},
     "HTTP/1.1 201 Created\r\n" COMMON "Location: /A.B/Id=1\r\n" TYPE
     "Content-Length: 2\r\n\r\n{}"},
    {404, NULL, NULL, "", {0}, "HTTP/1.1 404 Not Found\r\n" COMMON "Content-Length: 0\r\n\r\n"},
    {204, NULL, NULL, "", {0}, "HTTP/1.1 204 No Content\r\n" COMMON "\r\n"},
    {304, "text/plain", NULL, "abc", {0}, "HTTP/1.1 304 Not Modified\r\n" COMMON "\r\n"},
    {204,
     NULL,
     NULL,
     "",
     {CLOSE},
     "HTTP/1.1 204 No Content\r\n" COMMON "Connection: close\r\n\r\n"},
    {204,
     NULL,
     NULL,
     "",
     {HTTP10},
     "HTTP/1.1 204 No Content\r\n" COMMON "Connection: keep-alive\r\n\r\n"},
    {204,
     NULL,
     NULL,
     "",
     {HTTP10, CLOSE},
     "HTTP/1.1 204 No Content\r\n" COMMON "Connection: close\r\n\r\n"},
    {503,
     NULL,
     NULL,
     "",
     {0},
     "HTTP/1.1 503 Service Unavailable\r\n" COMMON "Content-Length: 0\r\n\r\n"},
};

START_TEST(whole_answers)
{
    struct reply_options options = rows[_i].options;
    struct response response;
    struct buf whole, parts;

    response_init(&response, 1000);
    buf_init(&whole, BUF_NO_CAP);
    buf_init(&parts, BUF_NO_CAP);
    response_reset(&response);
    response.status = rows[_i].status;
    response.content_type = span_str(rows[_i].type);
    buf_add_str(&response.body, rows[_i].body);
    if (rows[_i].header != NULL)
        response_add_header(&response, SPAN("Location"), span_str(rows[_i].header));
    options.common = SPAN(COMMON);
    reply_add(&whole, &response, &options);
    ck_span_is(buf_span(&whole), span_str(rows[_i].text));
    reply_add_head(&parts, &response, &options);
    buf_add(&parts, reply_body(&response, &options));
    ck_span_is(buf_span(&parts), buf_span(&whole));
    buf_done(&parts);
    buf_done(&whole);
    response_done(&response);
}
END_TEST

/* One behind the other, and however long the fields are. */
START_TEST(answers_are_appended)
{
    static const char value[] = "a value that is far longer than what others take";
    const struct reply_options options = {.common = SPAN_INIT(COMMON)};
    struct response response;
    struct buf b;
    struct span rest;
    size_t count = 0;

    response_init(&response, 1000);
    response_reset(&response);
    response.status = 200;
    for (size_t i = 0; i < RESPONSE_MAX_HEADERS; i++)
        response_add_header(&response, SPAN("X-Field"), span_str(value));
    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < 3; i++)
        reply_add(&b, &response, &options);
    rest = buf_span(&b);
    while (rest.p != NULL)
        count += span_istarts(span_split(&rest, '\n'), SPAN("X-Field: "));
    ck_assert_uint_eq(count, 3 * RESPONSE_MAX_HEADERS);
    ck_assert(span_ends(buf_span(&b), SPAN("Content-Length: 0\r\n\r\n")));
    buf_done(&b);
    response_done(&response);
}
END_TEST

START_TEST(of_a_stream_the_body_comes_later)
{
    struct reply_options options = {.common = SPAN_INIT(COMMON), .close = true};
    struct response response;
    struct buf b;

    response_init(&response, 1000);
    response_reset(&response);
    response.status = 200;
    response.is_stream = true;
    response.content_type = SPAN("text/plain");
    buf_init(&b, BUF_NO_CAP);
    reply_add(&b, &response, &options);
    reply_add_chunk_head(&b, 26);
    buf_add(&b, reply_last_chunk);
    ck_span_eq(buf_span(&b), "HTTP/1.1 200 OK\r\n" COMMON TYPE "Transfer-Encoding: chunked\r\n"
                             "Connection: close\r\n\r\n1a\r\n0\r\n\r\n");
    buf_clear(&b);
    options.is_http10 = true;
    reply_add(&b, &response, &options);
    ck_span_eq(buf_span(&b), "HTTP/1.1 200 OK\r\n" COMMON TYPE "Connection: close\r\n\r\n");
    buf_done(&b);
    response_done(&response);
}
END_TEST

/* Its length is said beforehand, of HEAD too; the body comes behind. */
START_TEST(a_download)
{
    const struct reply_options options = {.close = true, .common = SPAN(COMMON)};
    struct response response;
    struct buf b;

    response_init(&response, 1000);
    response_reset(&response);
    response.status = 200;
    response.later_bytes = (uint64_t)5 << 32;
    response.content_type = SPAN("text/plain");
    buf_init(&b, BUF_NO_CAP);
    reply_add(&b, &response, &options);
    ck_span_eq(buf_span(&b), "HTTP/1.1 200 OK\r\n" COMMON TYPE "Content-Length: 21474836480\r\n"
                             "Connection: close\r\n\r\n");
    response_reset(&response);
    ck_assert_uint_eq(response.later_bytes, 0);
    buf_done(&b);
    response_done(&response);
}
END_TEST

START_TEST(the_interim_answer)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    reply_add_continue(&b);
    ck_span_eq(buf_span(&b), "HTTP/1.1 100 Continue\r\n\r\n");
    buf_done(&b);
}
END_TEST

static const struct {
    int64_t unix_s;
    const char *text;
} dates[] = {
    {0, "Thu, 01 Jan 1970 00:00:00 GMT"},          {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
    {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},  {1769860800, "Sat, 31 Jan 2026 12:00:00 GMT"},
    {4102444799, "Thu, 31 Dec 2099 23:59:59 GMT"},
};

START_TEST(dates_as_the_rfc_wants_them)
{
    struct buf b, wanted;

    buf_init(&b, BUF_NO_CAP);
    buf_init(&wanted, BUF_NO_CAP);
    buf_printf(&wanted, "Date: %s\r\nSvc-version: " SVCD_VERSION "\r\n", dates[_i].text);
    reply_add_common(&b, dates[_i].unix_s);
    ck_span_is(buf_span(&b), buf_span(&wanted));
    buf_done(&b);
    buf_done(&wanted);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, whole_answers, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, answers_are_appended);
    tcase_add_test(tc, of_a_stream_the_body_comes_later);
    tcase_add_test(tc, a_download);
    tcase_add_test(tc, the_interim_answer);
    tcase_add_loop_test(tc, dates_as_the_rfc_wants_them, 0, ARRAY_LEN(dates));
}
