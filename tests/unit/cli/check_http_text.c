#include "testing.h"

#include "cli/http_text.h"

static struct http_text request;

START_TEST(a_request_is_read)
{
    uint64_t length;

    ck_ok(http_text_parse(SPAN("POST /hook HTTP/1.1\r\nHost: x\r\nwebhook-id:  a b \r\n"
                               "Content-Length: 4\r\n\r\nbody"),
                          &request));
    ck_span_eq(request.method, "POST");
    ck_span_eq(request.path, "/hook");
    ck_span_eq(http_text_field(&request, SPAN("Webhook-Id")), "a b");
    ck_assert_ptr_null(http_text_field(&request, SPAN("none")).p);
    ck_assert(http_text_length(&request, &length));
    ck_assert_uint_eq(length, 4);
    ck_span_eq(request.body, "body");
}
END_TEST

/* Kept in a file, with header fields alone. */
START_TEST(the_request_line_may_be_missing)
{
    uint64_t length;

    ck_ok(http_text_parse(SPAN("webhook-id: 1\n\n{}\n"), &request));
    ck_assert_ptr_null(request.method.p);
    ck_span_eq(request.body, "{}\n");
    ck_assert(http_text_length(&request, &length));
    ck_assert_uint_eq(length, 0);
    ck_ok(http_text_parse(SPAN("\nA: b\n\n"), &request));
    ck_span_eq(http_text_field(&request, SPAN("A")), "b");
    ck_span_eq(request.body, "");
}
END_TEST

static const struct {
    const char *text;
    enum err_code code;
    const char *why;
} bad[] = {
    {"", ERR_NO_DATA_SOURCE, "no empty line"},
    {"POST / HTTP/1.1\r\nA: b\r\n", ERR_NO_DATA_SOURCE, "no empty line"},
    {"POST / HTTP/1.1\r\nA: b", ERR_NO_DATA_SOURCE, "no empty line"},
    {"POST /\n\n", ERR_UNKNOWN, "line 1"},
    {"POST / HTTP/1.1\n{}\n\n", ERR_UNKNOWN, "line 2"},
    {"A B: c\n\n", ERR_UNKNOWN, "line 1"},
};

START_TEST(what_is_no_request_is_named)
{
    ck_fails(http_text_parse(span_str(bad[_i].text), &request), bad[_i].code, bad[_i].why);
}
END_TEST

START_TEST(a_bad_length_is_noticed)
{
    uint64_t length;

    ck_ok(http_text_parse(SPAN("Content-Length: x\n\n"), &request));
    ck_assert(!http_text_length(&request, &length));
}
END_TEST

START_TEST(there_is_an_end_to_fields)
{
    struct buf text;

    buf_init(&text, BUF_NO_CAP);
    for (int i = 0; i <= HTTP_TEXT_FIELDS; i++)
        buf_add_str(&text, "A: b\n");
    buf_add_str(&text, "\n");
    ck_fails(http_text_parse(buf_span(&text), &request), ERR_UNKNOWN, "more than");
    buf_done(&text);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_request_is_read);
    tcase_add_test(tc, the_request_line_may_be_missing);
    tcase_add_loop_test(tc, what_is_no_request_is_named, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, a_bad_length_is_noticed);
    tcase_add_test(tc, there_is_an_end_to_fields);
}
