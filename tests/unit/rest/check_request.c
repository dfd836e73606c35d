#include "base/header_field.h"
#include "testing.h"

#include "base/arena.h"
#include "rest/request.h"

static struct arena arena;

static void begin(void)
{
    arena_init(&arena);
}

static void end(void)
{
    arena_done(&arena);
}

START_TEST(headers_of_one_name_are_joined)
{
    const struct header_field headers[] = {
        {SPAN("A"), SPAN("1")},  {SPAN("b"), SPAN("")},  {SPAN("a"), SPAN("2")},
        {SPAN("AB"), SPAN("x")}, {SPAN("A"), SPAN("3")},
    };
    const struct request request = {.headers = headers, .header_count = ARRAY_LEN(headers)};

    ck_span_eq(request_header_all(&request, SPAN("a"), &arena), "1, 2, 3");
    ck_span_eq(request_header(&request, SPAN("A")), "1");
    ck_span_eq(request_header_all(&request, SPAN("B"), &arena), "");
    ck_assert_ptr_nonnull(request_header_all(&request, SPAN("B"), &arena).p);
    ck_assert_ptr_null(request_header_all(&request, SPAN("c"), &arena).p);
    ck_assert_ptr_null(request_header(&request, SPAN("c")).p);
}
END_TEST

static const struct {
    bool is_local;
    uint8_t own;
    const char *header;
    uint8_t depth;
} depths[] = {
    {false, 0, NULL, 0},
    {false, 0, "3", 3},
    {false, 0, "255", 255},
    {false, 0, "256", 255},
    {false, 0, "99999999999999999999999", 0},
    {false, 0, "-1", 0},
    {false, 0, "", 0},
    {false, 0, "3x", 0},
    {true, 5, NULL, 5},
    {true, 5, "9", 5},
    {true, 0, "9", 0},
};

START_TEST(how_deep_a_request_is)
{
    const struct header_field header = {SPAN("svc-Depth"), span_str(depths[_i].header)};
    const struct request request = {
        .headers = &header,
        .header_count = depths[_i].header != NULL,
        .is_local = depths[_i].is_local,
        .depth = depths[_i].own,
    };

    ck_assert_uint_eq(request_depth(&request), depths[_i].depth);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, headers_of_one_name_are_joined);
    tcase_add_loop_test(tc, how_deep_a_request_is, 0, ARRAY_LEN(depths));
}
