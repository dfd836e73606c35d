#include "naive_match.h"
#include "testing.h"

#include "base/rng.h"
#include "match/matcher.h"
#include "query/shape.h"
#include "query/uri.h"

#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct matcher *matcher;

static void begin(void)
{
    arena_init(&arena);
    matcher = matcher_new();
}

static void end(void)
{
    matcher_free(matcher);
    arena_done(&arena);
}

/* ---- selectors and payloads ---- */

struct selector {
    struct matcher_entry entry;
    struct conditions conditions;
    unsigned found;
};

static const struct shape dynamic = {.dynamic = true};

/* `text` is conditions joined by '&', without escapes. */
static struct conditions parse(const char *text, const struct shape *shape, struct arena *a)
{
    struct uri_condition list[80];
    struct span rest = arena_copy(a, span_str(text));
    struct conditions conditions;
    size_t count = 0;

    while (rest.n > 0) {
        struct span part = span_split(&rest, '&');
        size_t key = 0, sign;

        while (key < part.n && strchr("=!<>", part.p[key]) == NULL)
            key++;
        sign = 1 + (key + 1 < part.n && part.p[key + 1] == '=');
        for (enum uri_op op = URI_EQ; op <= URI_GE; op++)
            if (span_eq(span_sub(part, key, key + sign), span_str(uri_op_text(op))))
                list[count].op = op;
        list[count].key = span_sub(part, 0, key);
        list[count++].value = span_sub(part, key + sign, part.n);
    }
    ck_ok(conditions_parse(list, count, shape, a, &conditions));
    return conditions;
}

static void add(struct selector *s, const char *text)
{
    s->conditions = parse(text, &dynamic, &arena);
    matcher_add(matcher, &s->entry, &s->conditions);
}

static struct json_value payload_of(const char *json, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    ck_ok(json_parse(arena_copy(a, span_str(json)), NULL, a, doc));
    return json_root(doc);
}

static void count_found(void *context, struct matcher_entry *e)
{
    (void)context;
    ++CONTAINER_OF(e, struct selector, entry)->found;
}

static size_t match(struct json_value payload)
{
    struct matcher_stats before, after;

    matcher_stats(matcher, &before);
    matcher_match(matcher, payload, &arena, count_found, NULL);
    matcher_stats(matcher, &after);
    ck_assert_uint_eq(after.events, before.events + 1);
    return after.found - before.found;
}

static size_t match_json(const char *json)
{
    return match(payload_of(json, &arena));
}

/* ---- single cases ---- */

static const struct {
    const char *conditions, *payload;
    bool found;
} cases[] = {
    {"", "{}", true},
    {"", "[]", true},
    {"A=1", "{\"A\":1}", true},
    {"A=1", "{\"a\":1.0}", true},
    {"A=1", "{\"A\":\"1\"}", true},
    {"A=1", "{\"A\":\"1.0\"}", false},
    {"A='1'", "{\"A\":1}", false},
    {"A.*=1", "{\"A\":[2,1]}", true},
    {"A.*=1", "{\"A\":1}", false},
    {"A.*=1", "{\"A\":[]}", false},
    {"A.*!=1", "{\"A\":[]}", true},
    {"A.*!=1", "{\"A\":[2,1]}", false},
    {"A.*!=1", "{}", true},
    {"A.*=null", "{}", true},
    {"A.*=null", "{\"A\":[]}", false},
    {"A.*>3&A.*<2", "{\"A\":[1,4]}", true},
    {"A.*>3&A.*<2", "{\"A\":[3,2]}", false},
    {"A.*>3", "{\"A\":[4,5,6]}", true},
    {"A.*.B=1", "{\"A\":[{\"B\":0},{\"B\":1}]}", true},
    {"A.*.*=1", "{\"A\":[[],[2,1]]}", true},
    {"A=1", "[]", false},
    {"A=1", "[{\"A\":2},{\"A\":1}]", true},
    {"A=1&B=2", "[{\"A\":1,\"B\":1},{\"A\":2,\"B\":2}]", false},
    {"A=1&B=2", "[{\"A\":1,\"B\":1},{\"A\":1,\"B\":2}]", true},
    {"A=null", "{}", true},
    {"A=null", "{\"A\":null}", true},
    {"A=null", "{\"A\":0}", false},
    {"A!=null", "{}", false},
    {"A!=null", "{\"A\":false}", true},
    {"A!=1", "{}", true},
    {"A!=1", "{\"A\":1}", false},
    {"A!=1", "{\"A\":\"1\"}", false},
    {"A!=1", "{\"A\":[1]}", true},
    {"A>5", "{\"A\":5}", false},
    {"A>=5", "{\"A\":5}", true},
    {"A>5", "{\"A\":5.0000000000000000000001}", true},
    {"A>5", "{\"A\":\"6\"}", false},
    {"A>5&A<7", "{\"A\":6}", true},
    {"A>5&A<7", "{\"A\":7}", false},
    {"A>7&A<5", "{\"A\":6}", false},
    {"A>5&A>6&A>=6&A<9&A<=8", "{\"A\":6}", false},
    {"A>5&A>6&A>=6&A<9&A<=8", "{\"A\":8}", true},
    {"A>'b'", "{\"A\":\"c\"}", true},
    {"A>'b'", "{\"A\":3}", false},
    {"A>5&A<'x'", "{\"A\":6}", false},
    {"A>'2025'&A<2026-01-01", "{\"A\":\"2025-12-31T23:59:59Z\"}", true},
    {"A>null", "{\"A\":1}", false},
    {"A<=true", "{\"A\":true}", false},
    {"A=2026-01-01", "{\"A\":\"2026-01-01T01:00+01:00\"}", true},
    {"A=2026-01-01", "{\"A\":\"2026-01-01\"}", true},
    {"A!=2026-01-01", "{\"A\":\"2026-01-01T00:00:00Z\"}", false},
    {"A.Length>2", "{\"A\":\"\xc3\xa4\xc3\xb6\"}", false},
    {"A.Length>2", "{\"A\":[1,2,3]}", true},
    {"A.Length=7", "{\"A\":{\"Length\":7}}", true},
    {"A.B.C='x'", "{\"A\":{\"B\":{\"C\":\"x\"}}}", true},
    {"L.1.X=true", "{\"L\":[{},{\"X\":true}]}", true},
    {"A=true", "{\"A\":\"TRUE\"}", false},
    {"A=TRUE", "{\"A\":\"TRUE\"}", true},
    {"A=TRUE", "{\"A\":true}", true},
    {"A=''", "{\"A\":\"\"}", true},
    {"A=''", "{\"A\":null}", false},
    {"A=1&A=1&A!=2", "{\"A\":1}", true},
    {"A=1&A=2", "{\"A\":1}", false},
    {"A=\xc3\xa4", "{\"A\":\"\\u00e4\"}", true},
    {"Caf\xc3\xa9=1", "{\"caf\\u00e9\":1}", true},
};

START_TEST(cases_one_by_one)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selector s = {0};

        add(&s, cases[i].conditions);
        ck_assert_uint_eq(matcher_count(matcher), 1);
        ck_assert_msg(match_json(cases[i].payload) == cases[i].found, "%s on %s",
                      cases[i].conditions, cases[i].payload);
        ck_assert_uint_eq(s.found, cases[i].found);
        matcher_remove(matcher, &s.entry);
        ck_assert_ptr_null(s.entry.node);
        ck_assert_uint_eq(match_json(cases[i].payload), 0);
    }
    end();
}
END_TEST

/* All in one matcher at a time: neighbours do not matter. */
START_TEST(cases_together)
{
    static struct selector selectors[ARRAY_LEN(cases)];

    begin();
    memset(selectors, 0, sizeof(selectors));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        add(&selectors[i], cases[i].conditions);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        selectors[i].found = 0;
        match_json(cases[i].payload);
        ck_assert_msg(selectors[i].found == cases[i].found, "%s on %s", cases[i].conditions,
                      cases[i].payload);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        matcher_remove(matcher, &selectors[i].entry);
    end();
}
END_TEST

START_TEST(a_binary_payload_satisfies_no_condition)
{
    struct selector always = {0}, never = {0}, is_null = {0};

    begin();
    add(&always, "");
    add(&never, "A>null");
    add(&is_null, "A=null");
    ck_assert_uint_eq(match((struct json_value){NULL, NULL}), 1);
    ck_assert_uint_eq(always.found, 1);
    matcher_remove(matcher, &always.entry);
    matcher_remove(matcher, &never.entry);
    matcher_remove(matcher, &is_null.entry);
    end();
}
END_TEST

START_TEST(an_empty_matcher_finds_nothing)
{
    begin();
    ck_assert_uint_eq(match_json("[{\"A\":1}]"), 0);
    ck_assert_uint_eq(matcher_count(matcher), 0);
    matcher_free(NULL);
    end();
}
END_TEST

/* An entry stays where it is in memory, and so do its tests, however many. */
START_TEST(selectors_with_many_conditions)
{
    struct selector s = {0}, t = {0};

    begin();
    add(&s, "A!=1&A!=2&A!=3&A!=4&B=1&C>1&C<9&D.Length=2&E='x'&F=null&G!=null");
    add(&t, "A!=1&B=1&C>5");
    ck_assert_uint_eq(match_json("{\"A\":5,\"B\":1,\"C\":5,\"D\":\"ab\",\"E\":\"x\",\"G\":\"\"}"),
                      1);
    ck_assert_uint_eq(match_json("{\"A\":4,\"B\":1,\"C\":5,\"D\":\"ab\",\"E\":\"x\",\"G\":\"\"}"),
                      0);
    ck_assert_uint_eq(s.found, 1);
    matcher_remove(matcher, &s.entry);
    ck_assert_uint_eq(match_json("{\"B\":1,\"C\":6}"), 1);
    matcher_remove(matcher, &t.entry);
    end();
}
END_TEST

/* ---- against the naive search ---- */

static const char *const keys[] = {
    "A.*",    "B.*",         "B.*.B",   "C.*.*",    "L.*", "D.*.Length", "D.*.Year", "*",
    "M.*.b",  "A",           "a",       "B",        "C",   "A.B",        "A.Length", "B.Length",
    "C.Year", "C.DayOfWeek", "Length",  "L",        "L.0", "L.1",        "L.Length", "D.E.F",
    "D.E",    "D",           "Missing", "A.B.Hour", "M.N", "X.Y",        "L.0.B",
};

static const char *const literals[] = {
    "null",
    "true",
    "false",
    "TRUE",
    "'true'",
    "0",
    "-0",
    "1",
    "1.0",
    "+1",
    "10e-1",
    "'1'",
    "2",
    "2.5",
    "-3",
    "1e400",
    "1e-400",
    "-1e400",
    "9e-9000",
    "12345678901234567890",
    "12345678901234567891",
    "0.1",
    "0.10",
    "100000000000001",
    "100000000000002",
    "1000000000000000000001",
    "''",
    "'a'",
    "a",
    "ab",
    "abcdefgh",
    "abcdefghi",
    "abcdefghj",
    "A",
    "'2026-01-01'",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01T00:00:00.000000001Z",
    "2027-06-05",
    "0001-01-01",
    "1969-12-31T23:59:59.5Z",
    "\xc3\xa4\xc3\xb6",
    "3",
    "4",
    "2026",
};

static const char *const values[] = {
    "null",
    "true",
    "false",
    "\"true\"",
    "\"TRUE\"",
    "0",
    "-0.0",
    "1",
    "1.00",
    "\"1\"",
    "\"1.0\"",
    "\"+1\"",
    "2",
    "25e-1",
    "-3.0",
    "1e400",
    "1e401",
    "1e-400",
    "-1e400",
    "9e-9000",
    "1e-9001",
    "12345678901234567890",
    "12345678901234567890.0",
    "12345678901234567891",
    "0.1",
    "100000000000001.0",
    "1000000000000000000001",
    "1000000000000000000000",
    "\"\"",
    "\"a\"",
    "\"\\u0061\"",
    "\"ab\"",
    "\"abcdefgh\"",
    "\"abcdefghi\"",
    "\"abcdefgh\\u0000\"",
    "\"A\"",
    "\"2026-01-01\"",
    "\"2026-01-01T00:00:00Z\"",
    "\"2026-01-01 01:00:00+01:00\"",
    "\"2026-01-01T00:00:00.000000001Z\"",
    "\"2027-06-05T12:00:00Z\"",
    "\"0001-01-01\"",
    "\"1969-12-31T23:59:59.5Z\"",
    "\"\xc3\xa4\\u00f6\"",
    "[]",
    "[1]",
    "[\"a\",2,null]",
    "{}",
    "[{\"B\":1},{\"B\":\"x\"}]",
    "{\"B\":1}",
    "{\"b\":\"2026-01-01T05:00\"}",
    "{\"E\":{\"F\":2}}",
    "{\"E\":\"abc\"}",
    "{\"Length\":3}",
    "{\"N\":true,\"Y\":0}",
    "2026",
};

static const char *const members[] = {
    "A", "a", "B", "C", "D", "L", "Length", "M", "X", "Other", "\\u0041", "missing", "Unrelated",
};

#define PICK(list) (list)[rng_below(ARRAY_LEN(list))]

static void draw_conditions(struct buf *b)
{
    size_t count = rng_below(5);

    buf_clear(b);
    for (size_t i = 0; i < count; i++)
        buf_printf(b, "%s%s%s%s", i > 0 ? "&" : "", PICK(keys),
                   uri_op_text((enum uri_op)rng_below(6)), PICK(literals));
}

static void draw_entity(struct buf *b)
{
    size_t count = rng_below(9);

    buf_add_char(b, '{');
    for (size_t i = 0; i < count; i++)
        buf_printf(b, "%s\"%s\":%s", i > 0 ? "," : "", PICK(members), PICK(values));
    buf_add_char(b, '}');
}

static void draw_payload(struct buf *b)
{
    size_t count = rng_below(4);

    buf_clear(b);
    if (rng_below(2) == 0) {
        draw_entity(b);
        return;
    }
    buf_add_char(b, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        draw_entity(b);
    }
    buf_add_char(b, ']');
}

enum { SELECTORS = 300, ROUNDS = 40, PAYLOADS = 100 };

static struct selector crowd[SELECTORS];

/* Which of them are in the matcher changes all the time. */
static void change(size_t i, struct buf *text, struct arena *memory)
{
    if (crowd[i].entry.node != NULL)
        matcher_remove(matcher, &crowd[i].entry);
    crowd[i].conditions.count = SIZE_MAX;
    if (rng_below(8) == 0)
        return;
    draw_conditions(text);
    crowd[i].conditions = parse(buf_text(text), &dynamic, memory);
    matcher_add(matcher, &crowd[i].entry, &crowd[i].conditions);
}

static size_t compare_all(struct json_value payload, struct buf *text)
{
    size_t pairs = 0;

    for (size_t i = 0; i < SELECTORS; i++)
        crowd[i].found = 0;
    matcher_match(matcher, payload, &arena, count_found, NULL);
    for (size_t i = 0; i < SELECTORS; i++) {
        bool expected = false;

        if (crowd[i].entry.node != NULL) {
            expected = naive_match(&crowd[i].conditions, payload, &arena);
            pairs++;
        }
        if (crowd[i].found == expected)
            continue;
        buf_clear(text);
        conditions_add_normal(text, &crowd[i].conditions);
        ck_abort_msg("'%s' on %.*s: found %u times, should be %d", buf_text(text),
                     SPAN_FMT(json_text(payload)), crowd[i].found, expected);
    }
    return pairs;
}

/* More than a million pairs. */
START_TEST(verdicts_are_those_of_the_naive_search)
{
    struct arena memory;
    struct buf text;
    size_t pairs = 0;

    arena_init(&memory);
    buf_init(&text, BUF_NO_CAP);
    matcher = matcher_new();
    memset(crowd, 0, sizeof(crowd));
    arena_init(&arena);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SELECTORS; i++)
            change(i, &text, &memory);
        for (size_t p = 0; p < PAYLOADS; p++) {
            arena_reset(&arena);
            change(rng_below(SELECTORS), &text, &memory);
            draw_payload(&text);
            pairs += compare_all(payload_of(buf_text(&text), &arena), &text);
        }
    }
    ck_assert_uint_ge(pairs, 1000000);
    for (size_t i = 0; i < SELECTORS; i++)
        if (crowd[i].entry.node != NULL)
            matcher_remove(matcher, &crowd[i].entry);
    buf_done(&text);
    arena_done(&memory);
    end();
}
END_TEST

/* ---- declared properties ---- */

static const struct property declared_properties[] = {
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Age"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Price"), .type = TYPE_NUMBER},
    {.name = SPAN_INIT("Born"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Active"), .type = TYPE_BOOLEAN},
};
static const struct shape declared = {.properties = declared_properties, .count = 5};

static const struct {
    const char *conditions;
    bool found;
} declared_cases[] = {
    {"Name=12", true},
    {"name='12'", true},
    {"Name.Length=2", true},
    {"Name.Length>2", false},
    {"Age=12", true},
    {"Age=12.0", true},
    {"Age>=12&Age<13", true},
    {"Price=1.5", true},
    {"Price=15e-1", true},
    {"Price!=1.50", false},
    {"Born=2000-02-29T00:00:00Z", true},
    {"Born>2000-02-29", false},
    {"Born.Year=2000&Born.Month=2", true},
    {"Born.DayOfWeek=2", true},
    {"Active=true", true},
    {"Active!=false", true},
    {"Active=null", false},
};

START_TEST(declared_properties_are_matched)
{
    static struct selector selectors[ARRAY_LEN(declared_cases)];

    begin();
    memset(selectors, 0, sizeof(selectors));
    for (size_t i = 0; i < ARRAY_LEN(declared_cases); i++) {
        selectors[i].conditions = parse(declared_cases[i].conditions, &declared, &arena);
        matcher_add(matcher, &selectors[i].entry, &selectors[i].conditions);
    }
    match_json("{\"Name\":\"12\",\"Age\":12,\"Price\":1.50,\"Born\":\"2000-02-29\","
               "\"Active\":true}");
    for (size_t i = 0; i < ARRAY_LEN(declared_cases); i++) {
        ck_assert_msg(selectors[i].found == declared_cases[i].found, "%s",
                      declared_cases[i].conditions);
        matcher_remove(matcher, &selectors[i].entry);
    }
    end();
}
END_TEST

/* ---- cost, counted ---- */

enum { MANY = 20000 };

static struct selector many[MANY];

static void add_many(void (*write)(struct buf *b, size_t i))
{
    struct arena memory;
    struct buf text;

    begin();
    arena_init(&memory);
    buf_init(&text, BUF_NO_CAP);
    memset(many, 0, sizeof(many));
    for (size_t i = 0; i < MANY; i++) {
        buf_clear(&text);
        write(&text, i);
        many[i].conditions = parse(buf_text(&text), &dynamic, &memory);
        matcher_add(matcher, &many[i].entry, &many[i].conditions);
        arena_reset(&memory);
    }
    buf_done(&text);
    arena_done(&memory);
}

static void remove_many(void)
{
    for (size_t i = 0; i < MANY; i++)
        matcher_remove(matcher, &many[i].entry);
    end();
}

static struct matcher_stats spent_on(const char *json)
{
    struct matcher_stats before, after;

    matcher_stats(matcher, &before);
    match_json(json);
    matcher_stats(matcher, &after);
    after.evaluated -= before.evaluated;
    after.looked_at -= before.looked_at;
    after.found -= before.found;
    return after;
}

/* Each '#' becomes the number, the next '#' the number after it. */
static void write_form(struct buf *b, const char *form, size_t number)
{
    for (; *form != '\0'; form++) {
        if (*form == '#')
            buf_add_u64(b, number++);
        else
            buf_add_char(b, *form);
    }
}

static void write_mix(struct buf *b, size_t i)
{
    static const char *const forms[] = {
        "Id=#&Amount>5",       "Amount>#&Amount<=#", "Name.Length>#",          "Country!='SE'&Id=#",
        "Deleted=null&Id='#'", "At>2026-01-01&Id=#", "Score<-#&Country!=null", "Name='n#'",
    };

    write_form(b, forms[i % ARRAY_LEN(forms)], i + 100);
}

/* Of 20 000 selectors five match, and little more is looked at. */
START_TEST(few_entries_are_looked_at)
{
    struct matcher_stats spent;

    add_many(write_mix);
    spent = spent_on("{\"Id\":108,\"Amount\":2002,\"Name\":\"n115\",\"Country\":\"NO\","
                     "\"At\":\"2026-05-05\",\"Score\":-107}");
    ck_assert_uint_eq(many[8].found, 1);
    ck_assert_uint_eq(many[15].found, 1);
    ck_assert_uint_le(spent.found, 5);
    ck_assert_uint_ge(spent.found, 2);
    ck_assert_uint_le(spent.looked_at, 10);
    ck_assert_uint_le(spent.evaluated, 20);
    remove_many();
}
END_TEST

static void write_shared(struct buf *b, size_t i)
{
    buf_printf(b, "A=%zu&B>%zu&C!='x'", i % 50, i % 40);
}

START_TEST(equal_predicates_are_one)
{
    struct matcher_stats spent;

    add_many(write_shared);
    spent = spent_on("{\"A\":7,\"B\":1000,\"C\":\"y\"}");
    ck_assert_uint_eq(spent.predicates, 50 + 40 + 1);
    ck_assert_uint_eq(spent.found, MANY / 50);
    ck_assert_uint_eq(spent.looked_at, MANY / 50);
    ck_assert_uint_le(spent.evaluated, spent.predicates);
    spent = spent_on("[{\"A\":7,\"B\":1000},{\"A\":7,\"B\":1000},{\"A\":8,\"B\":1000}]");
    ck_assert_uint_eq(spent.found, 2 * MANY / 50);
    ck_assert_uint_eq(spent.looked_at, 2 * MANY / 50);
    remove_many();
}
END_TEST

static void write_unequal(struct buf *b, size_t i)
{
    buf_printf(b, "A!='v%zu'", i % 4);
}

/* Those that must differ from the value are passed over in one step, not one by one. */
START_TEST(what_must_differ_and_does_not_costs_nothing)
{
    struct matcher_stats spent;

    add_many(write_unequal);
    spent = spent_on("{\"A\":\"v1\"}");
    ck_assert_uint_eq(spent.found, MANY / 4 * 3);
    ck_assert_uint_eq(spent.looked_at, spent.found);
    spent = spent_on("{}");
    ck_assert_uint_eq(spent.found, MANY);
    remove_many();
}
END_TEST

static void write_misleading(struct buf *b, size_t i)
{
    buf_printf(b, "Deleted=null&State='s%zu'&Amount>%zu", i % 20, i + 1000);
}

/* Every event has the same state: whatever hung there moves to where it is met less. */
START_TEST(entries_move_away_from_where_they_are_met_in_vain)
{
    uint64_t first, last = 0;

    add_many(write_misleading);
    first = spent_on("{\"State\":\"s3\",\"Amount\":5}").looked_at;
    ck_assert_uint_ge(first, MANY / 20);
    for (size_t i = 0; i < 200; i++) {
        struct matcher_stats spent = spent_on("{\"State\":\"s3\",\"Amount\":5}");

        ck_assert_uint_eq(spent.found, 0);
        last = spent.looked_at;
    }
    ck_assert_uint_lt(last, 20);
    ck_assert_uint_eq(spent_on("{\"State\":\"s3\",\"Amount\":1000000}").found, MANY / 20);
    ck_assert_uint_eq(spent_on("{\"State\":\"s4\",\"Amount\":1000000}").found, MANY / 20);
    ck_assert_uint_eq(spent_on("{\"State\":\"s3\",\"Amount\":1000000,\"Deleted\":true}").found, 0);
    remove_many();
}
END_TEST

static void write_own_path(struct buf *b, size_t i)
{
    static const char *const forms[] = {"p#=1", "p#.x>5", "p#!=null", "p#='1'&q='2'"};

    write_form(b, forms[i % ARRAY_LEN(forms)], i);
}

/* As many paths as selectors: only those are read that the entity has. */
START_TEST(paths_that_the_entity_lacks_cost_nothing)
{
    size_t before;

    add_many(write_own_path);
    arena_reset(&arena);
    match_json("{}");
    before = arena.used_bytes;
    ck_assert_uint_eq(spent_on("{\"P4\":1,\"p5\":{\"X\":6},\"p6\":0,\"p7\":\"1\",\"q\":\"2\","
                               "\"p9\":{\"x\":4}}")
                          .found,
                      4);
    ck_assert_uint_lt(arena.used_bytes - before, 4096);
    ck_assert_uint_eq(many[4].found + many[5].found + many[6].found + many[7].found, 4);
    remove_many();
}
END_TEST

static void write_absent_path(struct buf *b, size_t i)
{
    buf_printf(b, i % 2 == 0 ? "p%zu=null" : "p%zu!=1", i);
}

START_TEST(paths_that_the_entity_lacks_are_null)
{
    add_many(write_absent_path);
    ck_assert_uint_eq(spent_on("{\"p0\":1,\"p1\":1,\"p2\":null,\"p3\":null}").found, MANY - 2);
    ck_assert_uint_eq(many[0].found + many[1].found, 0);
    remove_many();
}
END_TEST

/* One number in a thousand spellings: no two may take the place of one another. */
static void write_spelling(struct buf *b, size_t i)
{
    buf_printf(b, "A=1.%0*d", (int)(i % 1000) + 1, 0);
}

START_TEST(spellings_of_one_number)
{
    struct matcher_stats spent;

    add_many(write_spelling);
    spent = spent_on("{\"A\":1}");
    ck_assert_uint_eq(spent.found, MANY);
    ck_assert_uint_eq(spent.predicates, 1000);
    spent = spent_on("{\"A\":\"1.000\"}");
    ck_assert_uint_eq(spent.found, MANY / 1000);
    ck_assert_uint_eq(spent.evaluated, 1);
    remove_many();
}
END_TEST

START_TEST(memory_is_given_back)
{
    struct matcher_stats empty, full, after;

    begin();
    matcher_stats(matcher, &empty);
    end();
    add_many(write_mix);
    matcher_stats(matcher, &full);
    ck_assert_uint_gt(full.bytes, MANY * 50);
    ck_assert_uint_lt(full.bytes, MANY * 300);
    for (size_t i = 0; i < MANY; i++)
        matcher_remove(matcher, &many[i].entry);
    matcher_stats(matcher, &after);
    ck_assert_uint_eq(after.predicates, 0);
    ck_assert_uint_lt(after.bytes, empty.bytes + 8 * 1024 * 1024);
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, cases_one_by_one);
    tcase_add_test(tc, cases_together);
    tcase_add_test(tc, a_binary_payload_satisfies_no_condition);
    tcase_add_test(tc, an_empty_matcher_finds_nothing);
    tcase_add_test(tc, selectors_with_many_conditions);
    tcase_add_test(tc, verdicts_are_those_of_the_naive_search);
    tcase_add_test(tc, declared_properties_are_matched);
    tcase_add_test(tc, few_entries_are_looked_at);
    tcase_add_test(tc, equal_predicates_are_one);
    tcase_add_test(tc, what_must_differ_and_does_not_costs_nothing);
    tcase_add_test(tc, entries_move_away_from_where_they_are_met_in_vain);
    tcase_add_test(tc, paths_that_the_entity_lacks_cost_nothing);
    tcase_add_test(tc, paths_that_the_entity_lacks_are_null);
    tcase_add_test(tc, spellings_of_one_number);
    tcase_add_test(tc, memory_is_given_back);
}
