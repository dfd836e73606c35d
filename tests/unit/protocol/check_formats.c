#include "testing.h"

#include "base/budget.h"
#include "base/mem.h"
#include "protocol/formats.h"
#include "json/json.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct json_value parse(const char *text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(span_str(text), NULL, &arena, doc));
    return json_root(doc);
}

START_TEST(payloads_are_arrays)
{
    static const struct {
        const char *in, *out; /* out NULL: refused */
    } cases[] = {
        {"{}", "[{}]"},
        {"{\"a\": 1.10}", "[{\"a\": 1.10}]"},
        {"[ {\"a\":1},\n{} ]", "[ {\"a\":1},\n{} ]"},
        {"[]", "[]"},
        {"5", NULL},
        {"\"x\"", NULL},
        {"null", NULL},
        {"[{},[]]", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span array;
        struct json_value value = parse(cases[i].in);

        if (cases[i].out == NULL) {
            ck_fails(formats_from_json(value, &arena, &array), ERR_INVALID_ENTITY, "payload");
            continue;
        }
        ck_ok(formats_from_json(value, &arena, &array));
        ck_span_is(array, span_str(cases[i].out));
    }
}
END_TEST

START_TEST(the_bad_entity_is_named)
{
    struct span array;

    ck_fails(formats_from_json(parse("[{},{},7]"), &arena, &array), ERR_INVALID_ENTITY, "entity 2");
}
END_TEST

static const struct span items[] = {
    SPAN_INIT("{\"a\":1,\"b\":\"x,y\"}"),
    SPAN_INIT("{\"b\":null,\"c\":{\"d\":[1,2]},\"a\":\"q\\\"\\n\"}"),
};

START_TEST(lists_in_every_format)
{
    static const struct {
        enum format format;
        unsigned indent;
        const char *text;
    } cases[] = {
        {FORMAT_JSON, 0,
         "[{\"a\":1,\"b\":\"x,y\"},{\"b\":null,\"c\":{\"d\":[1,2]},\"a\":\"q\\\"\\n\"}]"},
        {FORMAT_NDJSON, 0,
         "{\"a\":1,\"b\":\"x,y\"}\n{\"b\":null,\"c\":{\"d\":[1,2]},\"a\":\"q\\\"\\n\"}\n"},
        {FORMAT_CSV, 0, "a,b,c\r\n1,\"x,y\",\r\n\"q\"\"\n\",,\"{\"\"d\"\":[1,2]}\"\r\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;

        buf_init(&b, 4096);
        formats_add_list(&b, items, ARRAY_LEN(items), cases[i].format, cases[i].indent, &arena);
        ck_span_is(buf_span(&b), span_str(cases[i].text));
        buf_done(&b);
    }
}
END_TEST

START_TEST(a_list_for_people)
{
    struct buf b;

    buf_init(&b, 4096);
    formats_add_list(&b, items, 1, FORMAT_JSON, 2, &arena);
    ck_span_eq(buf_span(&b), "[\n  {\n    \"a\": 1,\n    \"b\": \"x,y\"\n  }\n]");
    buf_done(&b);
}
END_TEST

START_TEST(a_list_beyond_the_cap_is_noticed)
{
    struct buf b;

    buf_init(&b, 20);
    formats_add_list(&b, items, ARRAY_LEN(items), FORMAT_JSON, 0, &arena);
    ck_assert(buf_over(&b));
    buf_done(&b);
}
END_TEST

/* As many columns as rows, each with one value: there are 25 million fields of which nearly all are
 * empty, in a list that may be a megabyte long. */
START_TEST(a_sparse_list_costs_what_it_may_be_long)
{
    enum { ROWS = 5000, CAP = 1 << 20, MEMORY_MOST = 16 << 20 };
    struct span *rows = ARENA_ARRAY(&arena, struct span, ROWS);
    size_t before = mem_bytes();
    struct buf b;

    for (int i = 0; i < ROWS; i++)
        rows[i] = arena_printf(&arena, "{\"a%d\":1}", i);
    buf_init(&b, CAP);
    formats_add_list(&b, rows, ROWS, FORMAT_CSV, 0, &arena);
    ck_assert(buf_over(&b));
    ck_assert_uint_lt(mem_bytes() - before, MEMORY_MOST);
    buf_done(&b);
}
END_TEST

START_TEST(payloads_in_other_formats)
{
    struct buf b;

    buf_init(&b, 4096);
    formats_add_array(&b, SPAN("[ {\"a\": 1,\n \"b\":2} ]"), FORMAT_NDJSON, &arena);
    ck_span_eq(buf_span(&b), "{\"a\":1,\"b\":2}\n");
    buf_clear(&b);
    formats_add_array(&b, SPAN("[ {\"a\": 1} ]"), FORMAT_JSON, &arena);
    ck_span_eq(buf_span(&b), "[ {\"a\": 1} ]");
    buf_done(&b);
}
END_TEST

/* Then all that was made is thrown away: the rest is not copied first. */
START_TEST(what_is_told_to_stop_copies_no_more)
{
    static const enum format formats[] = {FORMAT_JSON, FORMAT_NDJSON, FORMAT_CSV};
    struct span lines[4];
    struct budget budget;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char *text = arena_alloc(&arena, BUDGET_STEP * 8);

        memset(text, ' ', BUDGET_STEP * 8);
        memcpy(text, "{\"a\":1", 6);
        text[BUDGET_STEP * 8 - 1] = '}';
        lines[i] = span_of(text, BUDGET_STEP * 8);
    }
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct buf b;

        buf_init(&b, BUF_NO_CAP);
        budget_init(&budget, 0);
        budget.state = BUDGET_NO_ROOM;
        budget_enter(&budget);
        formats_add_list(&b, lines, ARRAY_LEN(lines), formats[i], 0, &arena);
        budget_leave(&budget);
        ck_assert_uint_lt(b.n, lines[0].n);
        buf_done(&b);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, payloads_are_arrays);
    tcase_add_test(tc, the_bad_entity_is_named);
    tcase_add_test(tc, lists_in_every_format);
    tcase_add_test(tc, a_list_for_people);
    tcase_add_test(tc, a_list_beyond_the_cap_is_noticed);
    tcase_add_test(tc, a_sparse_list_costs_what_it_may_be_long);
    tcase_add_test(tc, payloads_in_other_formats);
    tcase_add_test(tc, what_is_told_to_stop_copies_no_more);
}
