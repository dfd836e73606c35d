#include "testing.h"

#include "base/err.h"
#include "base/text.h"

#include <stdio.h>

START_TEST(codes_as_specified)
{
    static const struct expected {
        enum err_code code;
        const char *name;
        int number, status;
    } some[] = {
        {ERR_NO_ERROR, "NoError", -1, 200},
        {ERR_UNKNOWN, "Unknown", 0, 500},
        {ERR_UNKNOWN_PROPERTY, "UnknownProperty", 110, 404},
        {ERR_UNKNOWN_MEMBER, "UnknownProperty", 110, 400},
        {ERR_INFINITE_LOOP, "InfiniteLoopDetected", 404, 508},
    };

    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        const struct err_info *info = err_info(some[i].code);

        ck_span_is(info->name, span_str(some[i].name));
        ck_assert_int_eq(info->number, some[i].number);
        ck_assert_int_eq(info->status, some[i].status);
    }
}
END_TEST

/* One name has one number, and the other way round. */
START_TEST(names_and_numbers_go_together)
{
    for (int a = 0; a < ERR_CODE_COUNT; a++) {
        for (int b = 0; b < ERR_CODE_COUNT; b++) {
            const struct err_info *x = err_info((enum err_code)a), *y = err_info((enum err_code)b);

            ck_assert_int_eq(span_eq(x->name, y->name), x->number == y->number);
        }
    }
}
END_TEST

START_TEST(a_code_in_another_place_repeats)
{
    ck_assert(!err_repeats(ERR_NO_ERROR));
    ck_assert(!err_repeats(ERR_UNSUPPORTED_CONTENT));
    ck_assert(err_repeats(ERR_UNSUPPORTED_CODING));
}
END_TEST

static struct err *innermost(int value) MUST_USE;
static struct err *innermost(int value)
{
    return value < 0 ? ERR(ERR_CONFLICT, "%d is below %s", value, "zero") : NULL;
}

static struct err *middle(int value) MUST_USE;
static struct err *middle(int value)
{
    TRY(innermost(value));
    return NULL;
}

static struct err *outermost(int value, int *out_cleaned) MUST_USE;
static struct err *outermost(int value, int *out_cleaned)
{
    struct err *e = NULL;

    TRY_GOTO(e, middle(value), done);
    ck_assert_ptr_null(e);
done:
    *out_cleaned = 1;
    return e;
}

/* The lines of the trace without their line numbers. */
static void expect_trace(const struct err *e, const char *const *functions, size_t count)
{
    struct buf b = {.max = 10000};
    struct span rest;

    err_add_trace(e, &b);
    rest = buf_span(&b);
    for (size_t i = 0; i < count; i++) {
        struct span line = span_split(&rest, '\n');
        char start[100];

        snprintf(start, sizeof(start), "at %s (tests/unit/base/check_err.c:", functions[i]);
        ck_assert_msg(span_starts(line, span_str(start)), "'%.*s'", SPAN_FMT(line));
        ck_assert(span_ends(line, SPAN(")")));
    }
    ck_assert_ptr_null(rest.p);
    buf_done(&b);
}

START_TEST(the_way_of_an_error)
{
    static const char *const functions[] = {"innermost", "middle", "outermost"};
    int cleaned = 0;
    struct err *e = outermost(-5, &cleaned);

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(cleaned, 1);
    ck_assert_int_eq(err_code(e), ERR_CONFLICT);
    ck_span_eq(err_message(e), "-5 is below zero");
    expect_trace(e, functions, ARRAY_LEN(functions));
    err_free(e);
    ck_ok(outermost(5, &cleaned));
    ck_fails(middle(-1), ERR_CONFLICT, "below");
}
END_TEST

START_TEST(places_are_bounded)
{
    struct err *e = ERR(ERR_UNKNOWN, "x");
    struct buf b = {.max = 10000};
    size_t lines = 1;

    for (int i = 0; i < 100; i++)
        e = err_pass(e, "f", "tests/x.c", i);
    err_add_trace(e, &b);
    for (size_t i = 0; i < b.n; i++)
        lines += b.p[i] == '\n';
    ck_assert_uint_eq(lines, 32);
    ck_assert(span_ends(buf_span(&b), SPAN("at f (tests/x.c:30)")));
    buf_done(&b);
    err_free(e);
}
END_TEST

START_TEST(message_is_valid_utf8)
{
    struct err *e = ERR(ERR_UNKNOWN, "%s|%s", "\xc3\xa9\xff", "\xe2\x82");

    e = err_prefix(e, "%s: ", "\x80");
    ck_span_eq(err_message(e), "\xef\xbf\xbd: \xc3\xa9\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd");
    err_free(e);
}
END_TEST

/* Characters of every length, more of them than a message may have. */
START_TEST(message_is_cut_on_a_character)
{
    static const char *const chars[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                        "\xff"};

    for (size_t i = 0; i < ARRAY_LEN(chars); i++) {
        struct buf b = {.max = BUF_NO_CAP};
        struct err *e;

        for (int k = 0; k < 30000; k++)
            buf_add_str(&b, chars[i]);
        e = ERR(ERR_UNKNOWN, "%s", buf_text(&b));
        ck_assert(text_is_utf8(err_message(e)));
        ck_assert_uint_eq(text_scalar_count(err_message(e)), 10000);
        e = err_prefix(e, "%s: ", "place");
        ck_assert_uint_eq(text_scalar_count(err_message(e)), 10000);
        ck_assert(span_starts(err_message(e), SPAN("place: ")));
        err_free(e);
        buf_done(&b);
    }
}
END_TEST

START_TEST(message_may_be_empty)
{
    struct err *e = ERR(ERR_UNKNOWN, "%s", "");

    ck_assert_uint_eq(err_message(e).n, 0);
    e = err_prefix(e, "%s", "");
    ck_assert_uint_eq(err_message(e).n, 0);
    e = err_prefix(e, "x");
    ck_span_eq(err_message(e), "x");
    err_free(e);
    err_free(NULL);
}
END_TEST

START_TEST(prefix_keeps_all_else)
{
    static const char *const functions[] = {"innermost"};
    struct err *e = innermost(-1);

    ck_assert_uint_eq(err_retry_after(e), 0);
    ck_assert_ptr_eq(err_set_retry_after(e, 30), e);
    e = err_prefix(e, "%s[%d]: ", "Headers", 2);
    ck_span_eq(err_message(e), "Headers[2]: -1 is below zero");
    ck_assert_int_eq(err_code(e), ERR_CONFLICT);
    ck_assert_uint_eq(err_retry_after(e), 30);
    expect_trace(e, functions, ARRAY_LEN(functions));
    err_free(e);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, codes_as_specified);
    tcase_add_test(tc, names_and_numbers_go_together);
    tcase_add_test(tc, a_code_in_another_place_repeats);
    tcase_add_test(tc, the_way_of_an_error);
    tcase_add_test(tc, places_are_bounded);
    tcase_add_test(tc, message_is_valid_utf8);
    tcase_add_test(tc, message_is_cut_on_a_character);
    tcase_add_test(tc, message_may_be_empty);
    tcase_add_test(tc, prefix_keeps_all_else);
}
