#include "testing.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

static const struct span absent = {NULL, 0};

START_TEST(constructors)
{
    ck_assert_uint_eq(SPAN("a\0b").n, 3);
    ck_span_eq(span_str("abc"), "abc");
    ck_assert_ptr_null(span_str(NULL).p);
    ck_assert_uint_eq(span_str(NULL).n, 0);
    ck_span_eq(span_of("abcdef", 2), "ab");
}
END_TEST

START_TEST(fold_changes_capitals_only)
{
    for (int c = 0; c < 256; c++) {
        bool capital = c >= 'A' && c <= 'Z';

        ck_assert_int_eq(span_fold_char((char)c), (char)(capital ? c + 32 : c));
    }
}
END_TEST

static const struct comparison {
    struct span a, b;
    int order; /* -1, 0, 1 */
    bool folded_eq;
} comparisons[] = {
    {SPAN_INIT(""), SPAN_INIT(""), 0, true},
    {{NULL, 0}, SPAN_INIT(""), 0, true},
    {{NULL, 0}, {NULL, 0}, 0, true},
    {{NULL, 0}, SPAN_INIT("a"), -1, false},
    {SPAN_INIT("a"), SPAN_INIT("ab"), -1, false},
    {SPAN_INIT("ab"), SPAN_INIT("b"), -1, false},
    {SPAN_INIT("abc"), SPAN_INIT("abc"), 0, true},
    {SPAN_INIT("aBc"), SPAN_INIT("AbC"), 1, true},
    {SPAN_INIT("z"), SPAN_INIT("\x80"), -1, false},
    {SPAN_INIT("a\0b"), SPAN_INIT("a\0c"), -1, false},
    {SPAN_INIT("\xc4"), SPAN_INIT("\xe4"), -1, false},
    {SPAN_INIT("@["), SPAN_INIT("`{"), -1, false},
};

START_TEST(order_and_equality)
{
    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
        const struct comparison *c = &comparisons[i];
        int there = span_cmp(c->a, c->b), back = span_cmp(c->b, c->a);

        ck_assert_int_eq((there > 0) - (there < 0), c->order);
        ck_assert_int_eq((back > 0) - (back < 0), -c->order);
        ck_assert_int_eq(span_eq(c->a, c->b), c->order == 0);
        ck_assert_int_eq(span_ieq(c->a, c->b), c->folded_eq);
        ck_assert_int_eq(span_icmp(c->a, c->b) == 0, c->folded_eq);
        ck_assert_int_eq(span_icmp(c->a, c->b), -span_icmp(c->b, c->a));
    }
}
END_TEST

START_TEST(order_without_case)
{
    ck_assert_int_eq(span_icmp(SPAN("GET"), SPAN("get")), 0);
    ck_assert_int_eq(span_icmp(SPAN("get"), SPAN("POST")), -1);
    ck_assert_int_eq(span_icmp(SPAN("PUT"), SPAN("post")), 1);
    ck_assert_int_eq(span_icmp(SPAN("ge"), SPAN("GET")), -1);
    ck_assert_int_eq(span_icmp(SPAN("\xc3"), SPAN("z")), 1);
}
END_TEST

START_TEST(starts_and_ends)
{
    struct span s = SPAN("Content-Type");

    ck_assert(span_starts(s, SPAN("Content")));
    ck_assert(span_starts(s, s));
    ck_assert(span_starts(s, absent));
    ck_assert(span_starts(absent, absent));
    ck_assert(!span_starts(s, SPAN("content")));
    ck_assert(!span_starts(s, SPAN("Content-Type:")));
    ck_assert(span_istarts(s, SPAN("cONTENT-")));
    ck_assert(!span_istarts(s, SPAN("contens")));
    ck_assert(!span_istarts(absent, SPAN("c")));
    ck_assert(span_ends(s, SPAN("Type")));
    ck_assert(span_ends(s, absent));
    ck_assert(span_ends(absent, absent));
    ck_assert(!span_ends(s, SPAN("type")));
    ck_assert(!span_ends(SPAN("e"), SPAN("pe")));
}
END_TEST

START_TEST(find_char)
{
    struct span s = SPAN("a=b=c");

    ck_assert_uint_eq(span_find_char(s, '=', 0), 1);
    ck_assert_uint_eq(span_find_char(s, '=', 1), 1);
    ck_assert_uint_eq(span_find_char(s, '=', 2), 3);
    ck_assert_uint_eq(span_find_char(s, '=', 4), 5);
    ck_assert_uint_eq(span_find_char(s, 'a', 99), 5);
    ck_assert_uint_eq(span_count_char(s, '='), 2);
    ck_assert_uint_eq(span_count_char(s, 'z'), 0);
    ck_assert_uint_eq(span_count_char(span_of(NULL, 0), '='), 0);
    ck_assert_uint_eq(span_find_char(absent, 'a', 0), 0);
}
END_TEST

static const struct search {
    struct span s, needle;
    size_t found;
} searches[] = {
    {SPAN_INIT("one two"), SPAN_INIT("two"), 4},
    {SPAN_INIT("one Two two"), SPAN_INIT("two"), 8},
    {SPAN_INIT("one two"), SPAN_INIT("TWO"), SIZE_MAX},
    {SPAN_INIT("one two"), SPAN_INIT("one two "), SIZE_MAX},
    {SPAN_INIT("one two"), SPAN_INIT(""), 0},
    {SPAN_INIT("one two"), {NULL, 0}, 0},
    {{NULL, 0}, {NULL, 0}, 0},
    {{NULL, 0}, SPAN_INIT("x"), SIZE_MAX},
    {SPAN_INIT("aab"), SPAN_INIT("ab"), 1},
    {SPAN_INIT("a\0B"), SPAN_INIT("\0b"), SIZE_MAX},
};

START_TEST(find)
{
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) {
        ck_assert_uint_eq(span_find(searches[i].s, searches[i].needle), searches[i].found);
    }
}
END_TEST

static size_t naive_find(struct span s, struct span needle)
{
    for (size_t i = 0; i + needle.n <= s.n; i++) {
        if (span_eq(span_sub(s, i, i + needle.n), needle))
            return i;
    }
    return SIZE_MAX;
}

static struct span random_span(char *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = "abAB"[rng_below(4)];
    return span_of(out, n);
}

START_TEST(find_is_what_trying_every_offset_finds)
{
    char text[64], word[8];

    for (int i = 0; i < 20000; i++) {
        struct span s = random_span(text, rng_below(sizeof(text)));
        struct span needle = random_span(word, rng_below(sizeof(word)));

        ck_assert_uint_eq(span_find(s, needle), naive_find(s, needle));
    }
}
END_TEST

START_TEST(sub_is_cut_to_the_span)
{
    struct span s = SPAN("abcdef");

    ck_span_eq(span_sub(s, 1, 3), "bc");
    ck_span_eq(span_sub(s, 4, SIZE_MAX), "ef");
    ck_span_eq(span_sub(s, 0, 0), "");
    ck_span_eq(span_sub(s, 9, 12), "");
    ck_span_eq(span_sub(s, 3, 1), "");
    ck_assert_ptr_null(span_sub(absent, 0, 5).p);
}
END_TEST

START_TEST(trim_takes_blanks_off_both_ends)
{
    ck_span_eq(span_trim(SPAN(" \ta b\t ")), "a b");
    ck_span_eq(span_trim(SPAN("ab")), "ab");
    ck_span_eq(span_trim(SPAN(" \t ")), "");
    ck_span_eq(span_trim(SPAN("\r\n")), "\r\n");
    ck_assert_ptr_null(span_trim(absent).p);
}
END_TEST

START_TEST(split_walks_all_parts)
{
    struct span rest = SPAN("a,,bc,");

    ck_span_eq(span_split(&rest, ','), "a");
    ck_span_eq(span_split(&rest, ','), "");
    ck_span_eq(span_split(&rest, ','), "bc");
    ck_assert_ptr_nonnull(rest.p);
    ck_span_eq(span_split(&rest, ','), "");
    ck_assert_ptr_null(rest.p);
    ck_assert_uint_eq(rest.n, 0);
    ck_assert_ptr_null(span_split(&rest, ',').p);
}
END_TEST

static const struct number {
    const char *text;
    bool is_u64, is_i64;
    uint64_t u64;
    int64_t i64;
} numbers[] = {
    {"0", true, true, 0, 0},
    {"007", true, true, 7, 7},
    {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
    {"9223372036854775808", true, false, UINT64_C(9223372036854775808), 0},
    {"18446744073709551615", true, false, UINT64_MAX, 0},
    {"18446744073709551616", false, false, 0, 0},
    {"99999999999999999999999", false, false, 0, 0},
    {"-9223372036854775808", false, true, 0, INT64_MIN},
    {"-9223372036854775809", false, false, 0, 0},
    {"-1", false, true, 0, -1},
    {"+1", false, true, 0, 1},
    {"-0", false, true, 0, 0},
    {"", false, false, 0, 0},
    {"-", false, false, 0, 0},
    {"+-1", false, false, 0, 0},
    {" 1", false, false, 0, 0},
    {"1 ", false, false, 0, 0},
    {"1a", false, false, 0, 0},
    {"0x1", false, false, 0, 0},
    {"/", false, false, 0, 0},
    {":", false, false, 0, 0},
    {NULL, false, false, 0, 0},
};

START_TEST(numbers_are_read_whole_or_not_at_all)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const struct number *c = &numbers[i];
        uint64_t u64 = 0;
        int64_t i64 = 0;

        ck_assert_msg(span_to_u64(span_str(c->text), &u64) == c->is_u64, "%s", c->text);
        ck_assert_uint_eq(u64, c->u64);
        ck_assert_msg(span_to_i64(span_str(c->text), &i64) == c->is_i64, "%s", c->text);
        ck_assert_int_eq(i64, c->i64);
    }
}
END_TEST

START_TEST(numbers_come_back_from_their_digits)
{
    static const uint64_t samples[] = {0, 1, 9, 10, 99, 100, 4294967296, UINT64_MAX};
    char room[SPAN_U64_BYTES];
    uint64_t back;

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        ck_assert(span_to_u64(span_u64(samples[i], room), &back));
        ck_assert_uint_eq(back, samples[i]);
    }
    ck_span_eq(span_u64(0, room), "0");
    ck_span_eq(span_u64(UINT64_MAX, room), "18446744073709551615");
}
END_TEST

/* Each byte in each place of spans of each length, in a block of its own so that reading past it is
 * seen. */
START_TEST(holds_only_what_it_may)
{
    for (size_t n = 0; n < 50; n++) {
        char *text = mem_alloc(n);

        memset(text, 'a', n);
        ck_assert(span_holds_only(span_of(text, n), '!', '~', '#'));
        for (size_t at = 0; at < n; at++) {
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                ck_assert_int_eq(span_holds_only(span_of(text, n), '!', '~', '#'),
                                 c >= '!' && c <= '~' && c != '#');
                ck_assert_int_eq(span_holds_only(span_of(text, n), 'a', 0xff, 'a'),
                                 n == 1 && c > 'a');
            }
            text[at] = 'a';
        }
        mem_free(text);
    }
    ck_assert(span_holds_only(absent, 'a', 'z', 'b'));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, holds_only_what_it_may);
    tcase_add_test(tc, numbers_come_back_from_their_digits);
    tcase_add_test(tc, constructors);
    tcase_add_test(tc, fold_changes_capitals_only);
    tcase_add_test(tc, order_and_equality);
    tcase_add_test(tc, order_without_case);
    tcase_add_test(tc, starts_and_ends);
    tcase_add_test(tc, find_char);
    tcase_add_test(tc, find);
    tcase_add_test(tc, find_is_what_trying_every_offset_finds);
    tcase_add_test(tc, sub_is_cut_to_the_span);
    tcase_add_test(tc, trim_takes_blanks_off_both_ends);
    tcase_add_test(tc, split_walks_all_parts);
    tcase_add_test(tc, numbers_are_read_whole_or_not_at_all);
}
