#include "testing.h"

#include "cli/target.h"

#define ID "01a20566-eb9d-7d66-882b-12a399fc333b"

static struct arena arena;
static struct buf out;

static void set_up(void)
{
    arena_init(&arena);
    buf_init(&out, BUF_NO_CAP);
}

static void tear_down(void)
{
    buf_done(&out);
    arena_done(&arena);
}

START_TEST(no_value_becomes_a_condition)
{
    target_add_value(&out, SPAN("a&b=c/d '\xc3\xa9' 2026-01-31T12:00:00Z"));
    ck_span_eq(buf_span(&out), "a%26b%3Dc%2Fd%20%27%C3%A9%27%202026-01-31T12:00:00Z");
}
END_TEST

static const struct {
    const char *typed, *target;
} typed[] = {
    {"Shop.Person", "/Shop.Person"},
    {"/Shop.Person/Name=Ada Lovelace", "/Shop.Person/Name=Ada%20Lovelace"},
    {"/A/Age>=40&B!='x'/limit=5", "/A/Age>=40&B!='x'/limit=5"},
    {"/A/B=%2F#x\"", "/A/B=%2F%23x%22"},
    {"/?/A/B=\xc3\xa9", "/?/A/B=%C3%A9"},
    {"", "/"},
};

START_TEST(targets_are_sent_as_they_are_typed)
{
    target_add_typed(&out, span_str(typed[_i].typed));
    ck_span_is(buf_span(&out), span_str(typed[_i].target));
}
END_TEST

START_TEST(entities_are_asked_for_by_id_or_name)
{
    ck_span_eq(target_named(&arena, "R", "Label", SPAN(ID)), "/R/Id=" ID);
    ck_span_eq(target_named(&arena, "R", "Label", SPAN("it's 1")), "/R/Label='it%27s%201'");
    ck_assert(target_is_id(SPAN(ID)));
    ck_assert(!target_is_id(SPAN("01a20566-eb9d-7d66-882b-12a399fc333")));
    ck_assert(!target_is_id(SPAN("01a20566-eb9d-7d66-882b-12a399fc333g")));
    ck_assert(!target_is_id(SPAN("01a20566xeb9d-7d66-882b-12a399fc333b")));
}
END_TEST

START_TEST(selectors_have_two_parts)
{
    struct span resource, conditions;

    target_split_selector(SPAN("/Shop.X/a=1&b=2"), &resource, &conditions);
    ck_span_eq(resource, "Shop.X");
    ck_span_eq(conditions, "a=1&b=2");
    target_split_selector(SPAN("Shop.*"), &resource, &conditions);
    ck_span_eq(resource, "Shop.*");
    ck_assert_ptr_null(conditions.p);
    target_split_selector(SPAN("/X/_"), &resource, &conditions);
    ck_assert_ptr_null(conditions.p);
}
END_TEST

static const struct {
    const char *typed, *name;
    bool means;
} meanings[] = {
    {"Shop.Person", "Shop.Person", true}, {"person", "Shop.Person", true},
    {"erson", "Shop.Person", false},      {"", "Shop.Person", false},
    {"Shop", "Shop.Person", false},       {"X.Shop.Person", "Shop.Person", false},
    {"*", "Shop.Person", true},           {"Shop.*", "Shop.Person", true},
    {"shop.*", "Shop.Person", true},      {"Shop.*", "Shop.Inner.Person", false},
    {"Sho.*", "Shop.Person", false},      {"Inner.Person", "Shop.Inner.Person", true},
};

START_TEST(names_mean_resources)
{
    ck_assert_int_eq(target_means(span_str(meanings[_i].typed), span_str(meanings[_i].name)),
                     meanings[_i].means);
}
END_TEST

static const struct {
    const char *text;
    bool ahead;
    const char *time; /* NULL: refused */
} times[] = {
    {"2026-01-31", false, "2026-01-31"},
    {"2026-01-31T12:00:00Z", true, "2026-01-31T12:00:00Z"},
    {"90s", false, "2001-09-09T01:45:10.0000000Z"},
    {"1h", false, "2001-09-09T00:46:40.0000000Z"},
    {"2d", true, "2001-09-11T01:46:40.0000000Z"},
    {"5m", true, "2001-09-09T01:51:40.0000000Z"},
    {"5", false, NULL},
    {"h", false, NULL},
    {"", false, NULL},
    {"99999d", false, NULL},
    {"yesterday", false, NULL},
};

START_TEST(times_are_read)
{
    int64_t now = INT64_C(1000000000) * 1000000000;
    struct span text = span_str(times[_i].text);

    if (times[_i].time == NULL) {
        ck_fails(target_add_time(&out, "--since", text, now, false), ERR_UNKNOWN, "--since");
        return;
    }
    ck_ok(target_add_time(&out, "--since", text, now, times[_i].ahead));
    ck_span_is(buf_span(&out), span_str(times[_i].time));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, no_value_becomes_a_condition);
    tcase_add_loop_test(tc, targets_are_sent_as_they_are_typed, 0, ARRAY_LEN(typed));
    tcase_add_test(tc, entities_are_asked_for_by_id_or_name);
    tcase_add_test(tc, selectors_have_two_parts);
    tcase_add_loop_test(tc, names_mean_resources, 0, ARRAY_LEN(meanings));
    tcase_add_loop_test(tc, times_are_read, 0, ARRAY_LEN(times));
}
