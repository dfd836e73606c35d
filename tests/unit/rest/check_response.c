#include "testing.h"

#include "rest/response.h"

enum { MOST_BYTES = 1 << 20 };

static struct response response;

static void begin(void)
{
    response_init(&response, MOST_BYTES);
}

static void end(void)
{
    response_done(&response);
}

START_TEST(a_header_is_found_by_its_name)
{
    response_add_header(&response, SPAN("Svc-info"), SPAN("one"));
    response_add_own_header(&response, SPAN("ETag"), SPAN("\"2\""));
    response_add_header(&response, SPAN("svc-INFO"), SPAN("three"));
    response_add_header(&response, SPAN("Allow"), SPAN(""));
    ck_span_eq(response_header(&response, SPAN("SVC-Info")), "one");
    ck_span_eq(response_header(&response, SPAN("etag")), "\"2\"");
    ck_assert_ptr_nonnull(response_header(&response, SPAN("Allow")).p);
    ck_assert_ptr_null(response_header(&response, SPAN("Svc-inf")).p);
    ck_assert_uint_eq(response.header_count, 4);
}
END_TEST

static const struct {
    struct span value, shown;
} values[] = {
    {SPAN_INIT("a\r\nX: y"), SPAN_INIT("a  X: y")},
    {SPAN_INIT("\0a\x01\x1f\x7f\tb"), SPAN_INIT(" a    b")},
    {SPAN_INIT(" a\x20~"), SPAN_INIT(" a ~")},
    {SPAN_INIT("\xc3\xa4\x80\xff%"), SPAN_INIT("%C3%A4%80%FF%")},
    {SPAN_INIT(""), SPAN_INIT("")},
};

START_TEST(a_value_holds_no_controls)
{
    size_t bytes = values[_i].value.n;
    char copy[32];

    memcpy(copy, values[_i].value.p, bytes);
    response_add_header(&response, SPAN("X"), span_of(copy, bytes));
    memset(copy, 'z', sizeof(copy)); /* it was copied */
    ck_span_is(response_header(&response, SPAN("X")), values[_i].shown);
}
END_TEST

START_TEST(a_problem_takes_the_place_of_a_body)
{
    buf_add_str(&response.body, "something else");
    response_add_header(&response, SPAN("Allow"), SPAN("GET"));
    response_set_problem(&response, 404, ERR_UNKNOWN_RESOURCE, SPAN("\"x\"\n\\\xc3\xa4"),
                         (struct span){NULL, 0});
    ck_span_eq(buf_span(&response.body),
               "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
               "\"detail\":\"\\\"x\\\"\\n\\\\\xc3\xa4\",\"ErrorCode\":\"UnknownResource\"}");
    ck_assert_int_eq(response.status, 404);
    ck_assert_int_eq(response.error, ERR_UNKNOWN_RESOURCE);
    ck_span_eq(response.content_type, "application/problem+json");
    ck_span_eq(response_header(&response, SPAN("Svc-info")), "\"x\" \\%C3%A4");
    ck_span_eq(response_header(&response, SPAN("Allow")), "GET");
}
END_TEST

START_TEST(a_problem_names_its_instance)
{
    response_set_problem(&response, 999, ERR_UNKNOWN, SPAN(""), SPAN("/a/id=\"1\""));
    ck_span_eq(buf_span(&response.body),
               "{\"type\":\"about:blank\",\"title\":\"Unknown\",\"status\":999,\"detail\":\"\","
               "\"instance\":\"/a/id=\\\"1\\\"\",\"ErrorCode\":\"Unknown\"}");
}
END_TEST

START_TEST(a_reset_one_is_empty)
{
    response_set_problem(&response, 404, ERR_UNKNOWN_RESOURCE, SPAN("x"), SPAN("y"));
    response.serial = 5;
    response_reset(&response);
    ck_assert_int_eq(response.status, 0);
    ck_assert_int_eq(response.error, ERR_NO_ERROR);
    ck_assert_uint_eq(response.header_count, 0);
    ck_assert_uint_eq(response.serial, 0);
    ck_assert_ptr_null(response.content_type.p);
    ck_assert_uint_eq(response.body.n, 0);
    ck_assert_uint_eq(response.body.max, MOST_BYTES);
    ck_assert_ptr_null(response_header(&response, SPAN("Svc-info")).p);
}
END_TEST

/* As one connection does, with an answer after the other. */
static void fill(size_t bytes)
{
    response_reset(&response);
    for (size_t i = 0; i < bytes; i++)
        buf_add_char(&response.body, 'x');
    response_add_header(&response, SPAN("A"), SPAN("1"));
}

START_TEST(a_warm_one_does_not_allocate)
{
    size_t blocks, bytes;

    fill(10000);
    fill(10000);
    blocks = mem_blocks();
    bytes = mem_bytes();
    fill(10000);
    fill(100);
    ck_assert_uint_eq(mem_blocks(), blocks);
    ck_assert_uint_eq(mem_bytes(), bytes);
}
END_TEST

START_TEST(a_large_one_is_not_kept)
{
    fill(1000000);
    ck_assert_uint_gt(mem_bytes(), 1000000);
    response_reset(&response);
    ck_assert_uint_lt(mem_bytes(), 500000);
}
END_TEST

START_TEST(a_body_ends_at_its_most)
{
    fill(MOST_BYTES);
    ck_assert(!buf_over(&response.body));
    fill(MOST_BYTES + 1);
    ck_assert(buf_over(&response.body));
    response_reset(&response);
    ck_assert(!buf_over(&response.body));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, a_header_is_found_by_its_name);
    tcase_add_loop_test(tc, a_value_holds_no_controls, 0, ARRAY_LEN(values));
    tcase_add_test(tc, a_problem_takes_the_place_of_a_body);
    tcase_add_test(tc, a_problem_names_its_instance);
    tcase_add_test(tc, a_reset_one_is_empty);
    tcase_add_test(tc, a_warm_one_does_not_allocate);
    tcase_add_test(tc, a_large_one_is_not_kept);
    tcase_add_test(tc, a_body_ends_at_its_most);
}
