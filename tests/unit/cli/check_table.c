#include "testing.h"

#include "cli/table.h"
#include "cli/width.h"

static struct arena arena;
static struct buf out;

static void set_up(void)
{
    arena_init(&arena);
    buf_init(&out, BUF_NO_CAP);
}

static void tear_down(void)
{
    arena_done(&arena);
    buf_done(&out);
}

static struct table *sample(void)
{
    static const char *const headings[] = {"Id!", "State*", "Text", "Count"};
    static const char *const cells[] = {
        "0123456789", "Active", "a long text about it", "7", "01", "Dead", "short", "12345"};
    struct table *table = table_new(&arena, headings, ARRAY_LEN(headings));

    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        table_add(table, span_str(cells[i]));
    ck_assert_uint_eq(table_rows(table), 2);
    return table;
}

START_TEST(a_pipe_gets_everything)
{
    table_print(sample(), (struct look){0, false}, &out);
    ck_span_eq(buf_span(&out), "Id          State   Text                  Count\n"
                               "0123456789  Active  a long text about it      7\n"
                               "01          Dead    short                 12345\n");
}
END_TEST

START_TEST(a_terminal_gets_lines_that_fit)
{
    table_print(sample(), (struct look){37, false}, &out);
    ck_span_eq(buf_span(&out), "Id          State   Text        Count\n"
                               "0123456789  Active  a long te\xe2\x80\xa6      7\n"
                               "01          Dead    short       12345\n");
}
END_TEST

/* However narrow it is, an Id is whole. */
START_TEST(no_line_is_wider_than_the_terminal)
{
    struct table *table = sample();

    for (size_t columns = 12; columns < 60; columns++) {
        struct span rest;

        buf_clear(&out);
        table_print(table, (struct look){columns, false}, &out);
        rest = buf_span(&out);
        ck_assert(span_find(rest, SPAN("0123456789")) != SIZE_MAX);
        while (rest.n > 0)
            ck_assert_uint_le(width_of(span_split(&rest, '\n')), columns);
    }
}
END_TEST

START_TEST(the_last_columns_go_first)
{
    table_print(sample(), (struct look){30, false}, &out);
    ck_span_eq(buf_span(&out), "Id          State   Text\n"
                               "0123456789  Active  a long te\xe2\x80\xa6\n"
                               "01          Dead    short\n");
}
END_TEST

START_TEST(states_are_painted)
{
    table_print(sample(), (struct look){0, true}, &out);
    ck_assert(span_find(buf_span(&out), SPAN("\x1b[32mActive\x1b[0m")) != SIZE_MAX);
    ck_assert(span_find(buf_span(&out), SPAN("\x1b[31mDead\x1b[0m")) != SIZE_MAX);
    ck_assert(span_find(buf_span(&out), SPAN("short  ")) != SIZE_MAX);
}
END_TEST

START_TEST(wide_characters_keep_columns_straight)
{
    static const char *const headings[] = {"Name", "X"};
    struct table *table = table_new(&arena, headings, 2);

    table_add(table, SPAN("\xe6\x97\xa5\xe6\x9c\xac"));
    table_add(table, SPAN("a"));
    table_add(table, SPAN("abc"));
    table_add(table, SPAN("b"));
    table_print(table, (struct look){0, false}, &out);
    ck_span_eq(buf_span(&out), "Name  X\n\xe6\x97\xa5\xe6\x9c\xac  a\nabc   b\n");
}
END_TEST

/* What others wrote moves no cursor, and breaks no line. */
START_TEST(controls_are_shown)
{
    static const char *const headings[] = {"A"};
    struct table *table = table_new(&arena, headings, 1);

    table_add(table, SPAN("a\nb\x1b[31m"));
    table_print(table, (struct look){0, false}, &out);
    ck_span_eq(buf_span(&out), "A\na b\\u001b[31m\n");
}
END_TEST

/* Half of one says nothing. */
START_TEST(times_are_not_cut)
{
    static const char *const headings[] = {"Name", "Time", "Success", "Error"};
    static const char *const cells[] = {"a name that is long", "2026-11-23 12:03:37", "100%",
                                        "nobody listens there"};
    struct table *table = table_new(&arena, headings, ARRAY_LEN(headings));

    for (size_t i = 0; i < 2 * ARRAY_LEN(cells); i++)
        table_add(table, i == 5 ? SPAN("") : i == 6 ? SPAN("7%") : span_str(cells[i % 4]));
    table_print(table, (struct look){52, false}, &out);
    ck_span_eq(buf_span(&out),
               "Name        Time                 Success  Error\n"
               "a name th\xe2\x80\xa6  2026-11-23 12:03:37     100%  nobody li\xe2\x80\xa6\n"
               "a name th\xe2\x80\xa6                            7%  nobody li\xe2\x80\xa6\n");
}
END_TEST

START_TEST(without_rows_there_is_nothing)
{
    static const char *const headings[] = {"A"};

    table_print(table_new(&arena, headings, 1), (struct look){0, false}, &out);
    ck_assert_uint_eq(out.n, 0);
}
END_TEST

START_TEST(a_long_value_goes_on_below_itself)
{
    table_print_pair(&out, (struct look){18, false}, 4, SPAN("N"), SPAN("0123456789abcdef"));
    table_print_pair(&out, (struct look){18, false}, 4, SPAN("W"), SPAN("some words it has"));
    table_print_pair(&out, (struct look){18, false}, 4, SPAN("F"), SPAN("a full line  a blank"));
    table_print_pair(&out, (struct look){0, false}, 4, SPAN("Name"), SPAN("0123456789abcdef"));
    table_print_pair(&out, (struct look){0, false}, 4, SPAN("None"), SPAN(""));
    ck_span_eq(buf_span(&out), "N     0123456789ab\n"
                               "      cdef\n"
                               "W     some words\n"
                               "      it has\n"
                               "F     a full line\n"
                               "      a blank\n"
                               "Name  0123456789abcdef\n"
                               "None\n");
}
END_TEST

START_TEST(colours_say_what_is_good)
{
    ck_assert_int_eq(table_paint_of(SPAN("Active")), PAINT_GOOD);
    ck_assert_int_eq(table_paint_of(SPAN("204")), PAINT_GOOD);
    ck_assert_int_eq(table_paint_of(SPAN("404")), PAINT_BAD);
    ck_assert_int_eq(table_paint_of(SPAN("Paused")), PAINT_WARN);
    ck_assert_int_eq(table_paint_of(SPAN("anything")), PAINT_NONE);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_pipe_gets_everything);
    tcase_add_test(tc, a_terminal_gets_lines_that_fit);
    tcase_add_test(tc, no_line_is_wider_than_the_terminal);
    tcase_add_test(tc, the_last_columns_go_first);
    tcase_add_test(tc, states_are_painted);
    tcase_add_test(tc, wide_characters_keep_columns_straight);
    tcase_add_test(tc, controls_are_shown);
    tcase_add_test(tc, times_are_not_cut);
    tcase_add_test(tc, without_rows_there_is_nothing);
    tcase_add_test(tc, a_long_value_goes_on_below_itself);
    tcase_add_test(tc, colours_say_what_is_good);
}
