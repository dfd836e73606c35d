#include "json_testing.h"

#include "testing.h"

#include <string.h>

/* ---- values ---- */

START_TEST(types_and_texts_are_told)
{
    struct json_value v = value_of(" [null, true, false, -1.50, \"a\\nb\", [1, 2], {\"a\": 1}]");
    static const struct {
        enum json_type type;
        const char *text;
        uint32_t count;
    } expected[] = {
        {JSON_NULL, "null", 0},         {JSON_BOOLEAN, "true", 0},     {JSON_BOOLEAN, "false", 0},
        {JSON_NUMBER, "-1.50", 0},      {JSON_STRING, "\"a\\nb\"", 0}, {JSON_ARRAY, "[1, 2]", 2},
        {JSON_OBJECT, "{\"a\": 1}", 1},
    };

    ck_assert_int_eq(json_type(v), JSON_ARRAY);
    ck_assert_uint_eq(json_count(v), 7);
    for (uint32_t i = 0; i < ARRAY_LEN(expected); i++) {
        ck_assert_int_eq(json_type(json_at(v, i)), expected[i].type);
        ck_span_is(json_text(json_at(v, i)), span_str(expected[i].text));
        ck_assert_uint_eq(json_count(json_at(v, i)), expected[i].count);
        ck_assert(json_exists(json_at(v, i)));
    }
    ck_assert(json_is_true(json_at(v, 1)));
    ck_assert(!json_is_true(json_at(v, 2)));
    ck_assert(!json_is_true(json_at(v, 3)));
}
END_TEST

START_TEST(absent_values_are_null_and_empty)
{
    struct json_value absent = json_member(value_of("{}"), SPAN("a"));

    ck_assert(!json_exists(absent));
    ck_assert_int_eq(json_type(absent), JSON_NULL);
    ck_assert_uint_eq(json_count(absent), 0);
    ck_assert_ptr_null(json_text(absent).p);
    ck_assert_ptr_null(json_string(absent, &arena).p);
    ck_assert(!json_is_true(absent));
    ck_assert(!json_exists(json_member(absent, SPAN("a"))));
    ck_assert(!json_exists(json_member_fold(absent, SPAN("a"))));
    ck_assert(!json_exists(json_first_member(absent).name));
    ck_assert(!json_exists(json_first(absent)));
    ck_assert(!json_exists(json_at(absent, 0)));
}
END_TEST

/* ---- strings ---- */

static const struct {
    struct span text;
    struct span characters;
} string_cases[] = {
    {SPAN_INIT("\"\""), SPAN_INIT("")},
    {SPAN_INIT("\"plain\""), SPAN_INIT("plain")},
    {SPAN_INIT("\"caf\xc3\xa9\""), SPAN_INIT("caf\xc3\xa9")},
    {SPAN_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), SPAN_INIT("\"\\/\b\f\n\r\t")},
    {SPAN_INIT("\"a\\nb\""), SPAN_INIT("a\nb")},
    {SPAN_INIT("\"\\\\n\""), SPAN_INIT("\\n")},
    {SPAN_INIT("\"\\u0041\\u00e9\\u20AC\\uFFFF\""), SPAN_INIT("A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf")},
    {SPAN_INIT("\"\\u0000\""), SPAN_INIT("\0")},
    {SPAN_INIT("\"a\\u0000b\""), SPAN_INIT("a\0b")},
    {SPAN_INIT("\"\\ud83d\\ude00\""), SPAN_INIT("\xf0\x9f\x98\x80")},
    {SPAN_INIT("\"\\uD800\\uDC00\\udbff\\udfff\""), SPAN_INIT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
    /* lone surrogates */
    {SPAN_INIT("\"\\ud800\""), SPAN_INIT("\xef\xbf\xbd")},
    {SPAN_INIT("\"\\udc00\""), SPAN_INIT("\xef\xbf\xbd")},
    {SPAN_INIT("\"a\\ud800z\""), SPAN_INIT("a\xef\xbf\xbdz")},
    {SPAN_INIT("\"\\ud800\\n\""), SPAN_INIT("\xef\xbf\xbd\n")},
    {SPAN_INIT("\"\\ud800\\u0041\""), SPAN_INIT("\xef\xbf\xbd"
                                                "A")},
    {SPAN_INIT("\"\\ud800\\ud800\\udc00\""), SPAN_INIT("\xef\xbf\xbd\xf0\x90\x80\x80")},
    {SPAN_INIT("\"\\udc00\\ud800\""), SPAN_INIT("\xef\xbf\xbd\xef\xbf\xbd")},
    {SPAN_INIT("\"\\udc00\\udc00\""), SPAN_INIT("\xef\xbf\xbd\xef\xbf\xbd")},
    {SPAN_INIT("\"\\ud800\\ue000\""), SPAN_INIT("\xef\xbf\xbd\xee\x80\x80")},
    {SPAN_INIT("\"\\ue000\\ud7ff\""), SPAN_INIT("\xee\x80\x80\xed\x9f\xbf")},
};

START_TEST(strings_are_unescaped)
{
    for (size_t i = 0; i < ARRAY_LEN(string_cases); i++) {
        struct json_value v = parsed(string_cases[i].text);

        ck_span_is(json_string(v, &arena), string_cases[i].characters);
        ck_span_is(json_text(v), string_cases[i].text);
    }
    ck_assert_ptr_null(json_string(value_of("1"), &arena).p);
    ck_assert_ptr_null(json_string(value_of("[]"), &arena).p);
}
END_TEST

START_TEST(what_is_not_escaped_is_not_copied)
{
    static const char text[] = "\"plain\"";

    ck_assert_ptr_eq(json_string(value_of(text), &arena).p, text + 1);
}
END_TEST

/* ---- members ---- */

START_TEST(members_are_visited_in_order)
{
    struct json_value v =
        value_of("{\"a\":[1,{\"x\":2}],\"b\":{\"a\":3,\"c\":4},\"\":null,\"a\":5}");
    static const char *const names[] = {"\"a\"", "\"b\"", "\"\"", "\"a\""};
    static const char *const values[] = {"[1,{\"x\":2}]", "{\"a\":3,\"c\":4}", "null", "5"};
    size_t i = 0;

    for (struct json_member m = json_first_member(v); json_exists(m.name);
         m = json_next_member(v, m), i++) {
        ck_assert_uint_lt(i, ARRAY_LEN(names));
        ck_span_is(json_text(m.name), span_str(names[i]));
        ck_span_is(json_text(m.value), span_str(values[i]));
    }
    ck_assert_uint_eq(i, ARRAY_LEN(names));
    ck_assert(!json_exists(json_first_member(value_of("{}")).name));
    ck_assert(!json_exists(json_first_member(value_of("[1]")).name));
    ck_assert(!json_exists(json_first_member(value_of("1")).name));
}
END_TEST

static const char members[] = "{\"Name\":1,\"name\":2,\"NAME\":3,\"\\u0041ge\":4,\"tab\\t\":5,"
                              "\"\":6,\"caf\\u00e9\":7,\"CAF\xc3\x89\":8,\"Inner\":{\"Deep\":9}}";

static const struct {
    struct span name;
    const char *exact; /* NULL: absent */
    const char *folded;
} member_cases[] = {
    {SPAN_INIT("Name"), "1", "1"},
    {SPAN_INIT("name"), "2", "2"},
    {SPAN_INIT("NAME"), "3", "3"},
    {SPAN_INIT("nAME"), NULL, "1"},
    {SPAN_INIT("Age"), "4", "4"},
    {SPAN_INIT("AGE"), NULL, "4"},
    {SPAN_INIT("Ag"), NULL, NULL},
    {SPAN_INIT("Ages"), NULL, NULL},
    {SPAN_INIT("tab\t"), "5", "5"},
    {SPAN_INIT("TAB\t"), NULL, "5"},
    {SPAN_INIT("tab"), NULL, NULL},
    {SPAN_INIT("tab\\t"), NULL, NULL},
    {SPAN_INIT(""), "6", "6"},
    {SPAN_INIT("caf\xc3\xa9"), "7", "7"},
    {SPAN_INIT("CAF\xc3\xa9"), NULL, "7"},
    {SPAN_INIT("caf\xc3\x89"), NULL, "8"},
    {SPAN_INIT("Nam"), NULL, NULL},
    {SPAN_INIT("Names"), NULL, NULL},
    {SPAN_INIT("Deep"), NULL, NULL},
};

static void ck_value(struct json_value v, const char *text)
{
    ck_assert_int_eq(json_exists(v), text != NULL);
    ck_span_is(json_text(v), span_str(text));
}

START_TEST(members_are_found)
{
    struct json_value v = value_of(members);

    for (size_t i = 0; i < ARRAY_LEN(member_cases); i++) {
        ck_value(json_member(v, member_cases[i].name), member_cases[i].exact);
        ck_value(json_member_fold(v, member_cases[i].name), member_cases[i].folded);
    }
    ck_value(json_member(json_member(v, SPAN("Inner")), SPAN("Deep")), "9");
    ck_value(json_member(value_of("[\"a\",1]"), SPAN("a")), NULL);
    ck_value(json_member(value_of("\"a\""), SPAN("a")), NULL);
}
END_TEST

START_TEST(several_members_are_found_as_one_is)
{
    enum { COUNT = ARRAY_LEN(member_cases) };
    struct json_value v = value_of(members), found[COUNT];
    struct span names[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        names[i] = member_cases[i].name;
    for (size_t count = 0; count <= COUNT; count++) {
        json_members_fold(v, names, count, found);
        for (size_t i = 0; i < count; i++)
            ck_value(found[i], member_cases[i].folded);
    }
    json_members_fold(value_of("[\"Name\",1]"), names, 1, found);
    ck_value(found[0], NULL);
    json_members_fold(json_member(v, SPAN("none")), names, 1, found);
    ck_value(found[0], NULL);
}
END_TEST

/* ---- elements ---- */

START_TEST(elements_are_visited_in_order)
{
    static const char *const texts[] = {"[0,\"1\",2,null]", "[[],[0,0,0],{\"a\":0,\"b\":0},3]"};
    static const char *const expected[][4] = {{"0", "\"1\"", "2", "null"},
                                              {"[]", "[0,0,0]", "{\"a\":0,\"b\":0}", "3"}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json_value v = value_of(texts[i]), element = json_first(v);

        for (uint32_t k = 0; k < 4; k++, element = json_next(v, element)) {
            ck_value(element, expected[i][k]);
            ck_value(json_at(v, k), expected[i][k]);
        }
        ck_value(element, NULL);
        ck_value(json_at(v, 4), NULL);
        ck_value(json_at(v, UINT32_MAX), NULL);
    }
    ck_value(json_first(value_of("[]")), NULL);
    ck_value(json_first(value_of("{\"a\":1}")), NULL);
    ck_value(json_at(value_of("{\"a\":1}"), 0), NULL);
    ck_value(json_first(value_of("1")), NULL);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, json_set_up, json_tear_down);
    tcase_add_test(tc, types_and_texts_are_told);
    tcase_add_test(tc, absent_values_are_null_and_empty);
    tcase_add_test(tc, strings_are_unescaped);
    tcase_add_test(tc, what_is_not_escaped_is_not_copied);
    tcase_add_test(tc, members_are_visited_in_order);
    tcase_add_test(tc, members_are_found);
    tcase_add_test(tc, several_members_are_found_as_one_is);
    tcase_add_test(tc, elements_are_visited_in_order);
}
