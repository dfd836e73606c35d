#include "json_testing.h"

#include "testing.h"

#include "base/rng.h"
#include "base/text.h"

static struct buf buf;

static void set_up(void)
{
    json_set_up();
    buf_init(&buf, BUF_NO_CAP);
}

static void tear_down(void)
{
    buf_done(&buf);
    json_tear_down();
}

/* ---- strings and names ---- */

static const struct {
    struct span text;
    struct span json;
} string_cases[] = {
    {SPAN_INIT(""), SPAN_INIT("\"\"")},
    {SPAN_INIT("plain"), SPAN_INIT("\"plain\"")},
    {SPAN_INIT("longer than eight bytes, plain"), SPAN_INIT("\"longer than eight bytes, plain\"")},
    {SPAN_INIT("a\"b\\c/d"), SPAN_INIT("\"a\\\"b\\\\c/d\"")},
    {SPAN_INIT("\b\f\n\r\t"), SPAN_INIT("\"\\b\\f\\n\\r\\t\"")},
    {SPAN_INIT("\0\1\x1f\x7f"), SPAN_INIT("\"\\u0000\\u0001\\u001f\x7f\"")},
    {SPAN_INIT("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
     SPAN_INIT("\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"")},
    {SPAN_INIT("\x80"), SPAN_INIT("\"\xef\xbf\xbd\"")},
    {SPAN_INIT("a\xff\xfe z"), SPAN_INIT("\"a\xef\xbf\xbd\xef\xbf\xbd z\"")},
    {SPAN_INIT("\xc3"), SPAN_INIT("\"\xef\xbf\xbd\"")},
    {SPAN_INIT("\xc3\""), SPAN_INIT("\"\xef\xbf\xbd\\\"\"")},
    {SPAN_INIT("\xed\xa0\x80"), SPAN_INIT("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")},
};

START_TEST(strings_are_escaped)
{
    for (size_t i = 0; i < ARRAY_LEN(string_cases); i++) {
        buf_clear(&buf);
        json_add_string(&buf, string_cases[i].text);
        ck_span_is(buf_span(&buf), string_cases[i].json);
    }
    buf_clear(&buf);
    json_add_string(&buf, span_of(NULL, 0));
    ck_span_eq(buf_span(&buf), "\"\"");
}
END_TEST

/* Any bytes make a string that parses; valid UTF-8 comes back the same. */
START_TEST(strings_come_back)
{
    for (int i = 0; i < 20000; i++) {
        char bytes[24];
        struct span text = span_of(bytes, rng_below(sizeof(bytes))), string;

        for (size_t k = 0; k < text.n; k++)
            bytes[k] = (char)rng_below(rng_below(8) == 0 ? 256 : 128);
        buf_clear(&buf);
        json_add_string(&buf, text);
        string = json_string(parsed(buf_span(&buf)), &arena);
        if (text_is_utf8(text))
            ck_span_is(string, text);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(names_bring_their_commas)
{
    json_add_plain_name(&buf, SPAN("a"));
    ck_span_eq(buf_span(&buf), "\"a\":");
    buf_clear(&buf);
    buf_add_char(&buf, '[');
    json_add_name(&buf, SPAN("a"));
    ck_span_eq(buf_span(&buf), "[\"a\":");
    buf_clear(&buf);
    buf_add_char(&buf, '{');
    json_add_name(&buf, SPAN("a"));
    buf_add_char(&buf, '{');
    json_add_name(&buf, SPAN("{"));
    json_add_string(&buf, SPAN("["));
    json_add_name(&buf, SPAN("c\n"));
    buf_add_str(&buf, "[]");
    json_add_name(&buf, SPAN(""));
    buf_add_str(&buf, "{}}");
    json_add_plain_name(&buf, SPAN("d"));
    buf_add_str(&buf, "1}");
    ck_span_eq(buf_span(&buf), "{\"a\":{\"{\":\"[\",\"c\\n\":[],\"\":{}},\"d\":1}");
    (void)parsed(buf_span(&buf));
}
END_TEST

START_TEST(elements_have_commas_between_them)
{
    buf_add_char(&buf, '[');
    for (int i = 0; i < 3; i++) {
        json_add_comma(&buf);
        json_add_string(&buf, SPAN("["));
    }
    buf_add_char(&buf, ']');
    ck_span_eq(buf_span(&buf), "[\"[\",\"[\",\"[\"]");
}
END_TEST

/* ---- values ---- */

static const struct {
    const char *text;
    const char *compact;
    const char *indented; /* by two */
} value_cases[] = {
    {"1", "1", "1"},
    {" \"a b\\u0020\" ", "\"a b\\u0020\"", "\"a b\\u0020\""},
    {"[ ]", "[]", "[]"},
    {"{\t}", "{}", "{}"},
    {"[1]", "[1]", "[\n  1\n]"},
    {"[ 1 , 2 ]", "[1,2]", "[\n  1,\n  2\n]"},
    {"[[],{}, [ ] ]", "[[],{},[]]", "[\n  [],\n  {},\n  []\n]"},
    {"[[[ 1 ]]]", "[[[1]]]", "[\n  [\n    [\n      1\n    ]\n  ]\n]"},
    {"{ \"a\" : 1.50 }", "{\"a\":1.50}", "{\n  \"a\": 1.50\n}"},
    {"{\"a\":[1,{\"b\":null}],\n\"c\":{}}", "{\"a\":[1,{\"b\":null}],\"c\":{}}",
     "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {}\n}"},
    {"{\"a b\":\" , : [ ] \",\"c\":1E+2}", "{\"a b\":\" , : [ ] \",\"c\":1E+2}",
     "{\n  \"a b\": \" , : [ ] \",\n  \"c\": 1E+2\n}"},
    {"[12345678901234567890, 1.10 ,\"\\/\\ud800\"]", "[12345678901234567890,1.10,\"\\/\\ud800\"]",
     "[\n  12345678901234567890,\n  1.10,\n  \"\\/\\ud800\"\n]"},
};

START_TEST(values_are_written_compact_and_indented)
{
    for (size_t i = 0; i < ARRAY_LEN(value_cases); i++) {
        buf_clear(&buf);
        json_add_compact(&buf, value_of(value_cases[i].text));
        ck_span_is(buf_span(&buf), span_str(value_cases[i].compact));
        buf_clear(&buf);
        json_add_indented(&buf, value_of(value_cases[i].text), 2);
        ck_span_is(buf_span(&buf), span_str(value_cases[i].indented));
        buf_clear(&buf);
        json_add_compact(&buf, value_of(value_cases[i].indented));
        ck_span_is(buf_span(&buf), span_str(value_cases[i].compact));
    }
}
END_TEST

START_TEST(parts_are_written_alone)
{
    struct json_value v = value_of("{ \"a\" : [ 1 , { } ] , \"b\" : \"x\" , \"c\" : [ [ ] ] }");

    json_add_compact(&buf, json_member(v, SPAN("a")));
    json_add_compact(&buf, json_member(v, SPAN("b")));
    json_add_compact(&buf, json_member(v, SPAN("c")));
    json_add_compact(&buf, json_at(json_member(v, SPAN("a")), 1));
    json_add_indented(&buf, json_member(v, SPAN("c")), 0);
    ck_span_eq(buf_span(&buf), "[1,{}]\"x\"[[]]{}[\n[]\n]");
}
END_TEST

START_TEST(indents_of_all_widths)
{
    json_add_indented(&buf, value_of("[[1]]"), 8);
    ck_span_eq(buf_span(&buf), "[\n        [\n                1\n        ]\n]");
    buf_clear(&buf);
    json_add_indented(&buf, value_of("[[1]]"), 1);
    ck_span_eq(buf_span(&buf), "[\n [\n  1\n ]\n]");
}
END_TEST

START_TEST(absent_values_are_written_as_null)
{
    struct json_value absent = {0};

    json_add_compact(&buf, absent);
    json_add_indented(&buf, absent, 2);
    json_add_merged(&buf, value_of("{}"), absent, false, &arena);
    ck_span_eq(buf_span(&buf), "nullnullnull");
}
END_TEST

START_TEST(the_cap_holds)
{
    struct json_value v = value_of("[[[[[[[[[[1,2,3,4,5,6,7,8,9]]]]]]]]]]");
    struct buf small;

    buf_init(&small, 20);
    json_add_indented(&small, v, 8);
    ck_assert(buf_over(&small));
    ck_assert_uint_le(small.n, 20);
    buf_clear(&small);
    json_add_compact(&small, v);
    ck_assert(buf_over(&small));
    buf_clear(&small);
    json_add_string(&small, SPAN("\n\n\n\n\n\n\n\n\n\n\n"));
    ck_assert(buf_over(&small));
    buf_done(&small);
}
END_TEST

/* ---- merging ---- */

static const struct {
    const char *target, *patch;
    const char *exact, *folded; /* NULL: the same */
} merge_cases[] = {
    {"{}", "{}", "{}", NULL},
    {"{\"a\":1}", "{}", "{\"a\":1}", NULL},
    {"{}", "{\"a\":1}", "{\"a\":1}", NULL},
    {"{ \"a\" : 1 }", "{ \"b\" : [ 1 , 2 ] }", "{\"a\":1,\"b\":[1,2]}", NULL},
    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":4}", "{\"a\":1,\"b\":4,\"c\":3}", NULL},
    {"{\"a\":1,\"b\":2}", "{\"x\":0,\"b\":3,\"y\":0,\"a\":4}", "{\"a\":4,\"b\":3,\"x\":0,\"y\":0}",
     NULL},
    {"{\"a\":1}", "{\"a\":null}", "{\"a\":null}", NULL},
    {"{\"a\":null}", "{\"a\":{\"b\":null}}", "{\"a\":{\"b\":null}}", NULL},
    {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":3,\"d\":4}}", "{\"a\":{\"b\":1,\"c\":3,\"d\":4}}",
     NULL},
    {"{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"c\":{}}}}",
     "{\"a\":{\"b\":{\"c\":{},\"d\":2}}}", NULL},
    {"{\"a\":{\"b\":1}}", "{\"a\":[1]}", "{\"a\":[1]}", NULL},
    {"{\"a\":[1,2]}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}", NULL},
    {"{\"a\":[1,2]}", "{\"a\":[3]}", "{\"a\":[3]}", NULL},
    {"{\"a\":1}", "[ 1 ]", "[1]", NULL},
    {"[1]", "{\"a\":1}", "{\"a\":1}", NULL},
    {"{\"a\":1}", "null", "null", NULL},
    {"{\"Name\":1,\"b\":2}", "{\"NAME\":3}", "{\"Name\":1,\"b\":2,\"NAME\":3}",
     "{\"Name\":3,\"b\":2}"},
    {"{\"A\":{\"B\":1}}", "{\"a\":{\"b\":2,\"c\":3}}", "{\"A\":{\"B\":1},\"a\":{\"b\":2,\"c\":3}}",
     "{\"A\":{\"B\":2,\"c\":3}}"},
    {"{\"\xc3\xa9\":1}", "{\"\\u00E9\":2}", "{\"\xc3\xa9\":2}", NULL},
    {"{\"\\u0061\":1.0}", "{\"a\":2.00}", "{\"\\u0061\":2.00}", NULL},
    {"{\"a\":1.10}", "{\"b\":\"\\/\"}", "{\"a\":1.10,\"b\":\"\\/\"}", NULL},
};

static void ck_merged(size_t i, bool fold, const char *expected)
{
    buf_clear(&buf);
    json_add_merged(&buf, value_of(merge_cases[i].target), value_of(merge_cases[i].patch), fold,
                    &arena);
    ck_span_is(buf_span(&buf), span_str(expected));
}

START_TEST(objects_are_merged)
{
    for (size_t i = 0; i < ARRAY_LEN(merge_cases); i++) {
        const char *exact = merge_cases[i].exact, *folded = merge_cases[i].folded;

        ck_merged(i, false, exact);
        ck_merged(i, true, folded != NULL ? folded : exact);
    }
}
END_TEST

/* A patch of every other member, in reverse. */
START_TEST(large_objects_are_merged)
{
    enum { COUNT = 40000 };
    struct json_value merged, m;
    struct buf target, patch;

    buf_init(&target, BUF_NO_CAP);
    buf_init(&patch, BUF_NO_CAP);
    buf_add_char(&target, '{');
    buf_add_char(&patch, '{');
    for (int i = 0; i < COUNT; i++)
        buf_printf(&target, "%s\"Key%d\":%d", i > 0 ? "," : "", i, i);
    for (int i = COUNT; i >= 0; i -= 2)
        buf_printf(&patch, "%s\"KEY%d\":-%d", i < COUNT ? "," : "", i, i);
    buf_add_char(&target, '}');
    buf_add_char(&patch, '}');
    json_add_merged(&buf, parsed(buf_span(&target)), parsed(buf_span(&patch)), true, &arena);
    merged = parsed(buf_span(&buf));
    ck_assert_uint_eq(json_count(merged), COUNT + 1);
    ck_ok(json_check_unique(merged, true, &arena));
    m = json_first_member(merged).name;
    for (int i = 0; i < COUNT; i++, m.node += 2)
        if (!span_eq(json_text((struct json_value){m.doc, m.node + 1}),
                     arena_printf(&arena, i % 2 == 0 ? "-%d" : "%d", i)))
            ck_abort_msg("member %d", i);
    ck_span_eq(json_text(m), "\"KEY40000\"");
    buf_done(&target);
    buf_done(&patch);
}
END_TEST

/* Text, the most bytes, what is left of it, in how many bytes it is written. */
static const struct {
    const char *text;
    size_t most;
    const char *kept;
    size_t bytes;
} cuts[] = {
    {"", 0, "", 0},
    {"abc", 3, "abc", 3},
    {"abc", 2, "ab", 2},
    {"abc", 0, "", 0},
    {"a\"b", 3, "a\"", 3},
    {"a\"b", 2, "a", 1},
    {"\x01\x01", 12, "\x01\x01", 12},
    {"\x01\x01", 11, "\x01", 6},
    {"\x01\x01", 5, "", 0},
    {"\n\t", 3, "\n", 2},
    {"\xe2\x82\xac\xe2\x82\xac", 5, "\xe2\x82\xac", 3},
    {"\xe2\x82\xac", 2, "", 0},
    {"\xff\xff", 3, "\xff", 3},
    {"\xff\xff", 2, "", 0},
    {"abcdefghijklmnopqrstuvwxyz0123456789\x01", 41, "abcdefghijklmnopqrstuvwxyz0123456789", 36},
};

START_TEST(a_text_is_cut_by_what_it_is_written_in)
{
    size_t bytes = 99;
    struct span kept = json_cut_string(span_str(cuts[_i].text), cuts[_i].most, &bytes);

    ck_span_is(kept, span_str(cuts[_i].kept));
    ck_assert_uint_eq(bytes, cuts[_i].bytes);
    json_add_string(&buf, kept);
    ck_assert_uint_eq(buf.n, bytes + 2);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, strings_are_escaped);
    tcase_add_test(tc, strings_come_back);
    tcase_add_loop_test(tc, a_text_is_cut_by_what_it_is_written_in, 0, ARRAY_LEN(cuts));
    tcase_add_test(tc, names_bring_their_commas);
    tcase_add_test(tc, elements_have_commas_between_them);
    tcase_add_test(tc, values_are_written_compact_and_indented);
    tcase_add_test(tc, parts_are_written_alone);
    tcase_add_test(tc, indents_of_all_widths);
    tcase_add_test(tc, absent_values_are_written_as_null);
    tcase_add_test(tc, the_cap_holds);
    tcase_add_test(tc, objects_are_merged);
    tcase_add_test(tc, large_objects_are_merged);
}
