#include "testing.h"

#include "cli/width.h"

static const struct {
    const char *text;
    size_t width;
    size_t columns; /* to cut to */
    const char *cut;
} cases[] = {
    {"", 0, 3, ""},
    {"abc", 3, 2, "ab"},
    {"abc", 3, 3, "abc"},
    {"na\xc3\xafve", 5, 3, "na\xc3\xaf"},
    {"e\xcc\x81x", 2, 1, "e\xcc\x81"},                  /* a mark that combines */
    {"\xe6\x97\xa5\xe6\x9c\xac", 4, 3, "\xe6\x97\xa5"}, /* two wide ones */
    {"\xe6\x97\xa5\xe6\x9c\xac", 4, 1, ""},             /* half of one is none */
    {"\xf0\x9f\x8e\x89!", 3, 2, "\xf0\x9f\x8e\x89"},    /* an emoji */
    {"a\xff"
     "b",
     3, 2, "a\xff"}, /* what is no UTF-8 */
};

START_TEST(columns_are_counted_and_cut)
{
    struct span text = span_str(cases[_i].text);

    ck_assert_uint_eq(width_of(text), cases[_i].width);
    ck_span_is(width_cut(text, cases[_i].columns), span_str(cases[_i].cut));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, columns_are_counted_and_cut, 0, ARRAY_LEN(cases));
}
