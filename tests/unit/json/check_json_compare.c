#include "json_testing.h"

#include "testing.h"

#include "base/budget.h"
#include "base/hash.h"
#include "base/rng.h"

/* ---- double names ---- */

static const struct {
    const char *text;
    const char *exact, *folded; /* the message, NULL: unique */
} unique_cases[] = {
    {"{}", NULL, NULL},
    {"1", NULL, NULL},
    {"{\"a\":1,\"b\":1}", NULL, NULL},
    {"[{\"a\":1},{\"a\":1}]", NULL, NULL},
    {"{\"a\":{\"a\":{\"a\":1}}}", NULL, NULL},
    {"{\"a\":\"b\",\"b\":\"a\"}", NULL, NULL},
    {"{\"a\":1,\"aa\":1,\"\":1}", NULL, NULL},
    {"{\"a\":1,\"a\":2}", "line 1, column 8: member \"a\" repeats \"a\"", "repeats"},
    {"{\"\":1,\"\":2}", "member \"\" repeats \"\"", "repeats"},
    {"{\"a\":1,\"A\":2}", NULL, "column 8: member \"A\" repeats \"a\""},
    {"{\"\xc3\xa9\":1,\"\xc3\x89\":2}", NULL, NULL},
    {"{\"\\u0061\":1,\n\"a\":2}", "line 2, column 1: member \"a\" repeats \"\\u0061\"", "repeats"},
    {"{\"\\u0041\":1,\"\\u0061\":2}", NULL, "member \"\\u0061\" repeats \"\\u0041\""},
    {"{\"a\\/b\":1,\"a/b\":2}", "member \"a/b\" repeats \"a\\/b\"", "repeats"},
    {"[1,{\"x\":[{\"b\":1,\"c\":{},\"b\":2}]}]", "column 24: member \"b\" repeats \"b\"",
     "repeats"},
    {"{\"a\":{\"b\":1},\"c\":{\"b\":1,\"B\":2}}", NULL, "member \"B\" repeats \"b\""},
};

static void ck_unique(struct json_value v, bool fold, const char *message)
{
    if (message == NULL)
        ck_ok(json_check_unique(v, fold, &arena));
    else
        ck_fails(json_check_unique(v, fold, &arena), ERR_FAILED_JSON, message);
}

START_TEST(double_names_are_found)
{
    for (size_t i = 0; i < ARRAY_LEN(unique_cases); i++) {
        struct json_value v = value_of(unique_cases[i].text);

        ck_unique(v, false, unique_cases[i].exact);
        ck_unique(v, true, unique_cases[i].folded);
    }
    ck_ok(json_check_unique((struct json_value){0}, false, &arena));
}
END_TEST

/* Only what is inside of the value counts. */
START_TEST(doubles_outside_do_not_matter)
{
    struct json_value v = value_of("{\"a\":{\"x\":1},\"a\":[{}],\"b\":{\"y\":1,\"y\":2}}");

    ck_unique(json_member(v, SPAN("a")), false, NULL);
    ck_unique(json_member(v, SPAN("b")), false, "\"y\" repeats \"y\"");
}
END_TEST

static void add_numbered(struct buf *b, unsigned count, const char *last)
{
    buf_clear(b);
    buf_add_char(b, '{');
    for (unsigned i = 0; i < count; i++)
        buf_printf(b, "\"Name%u\":%u,", i, i);
    buf_printf(b, "\"%s\":0}", last);
}

/* On both sides of where the way of comparing changes, and far beyond it. */
START_TEST(double_names_are_found_among_many)
{
    static const unsigned counts[] = {14, 15, 16, 17, 18, 100, 100000};
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        add_numbered(&b, counts[i], "Name");
        ck_unique(parsed(buf_span(&b)), false, NULL);
        ck_unique(parsed(buf_span(&b)), true, NULL);
        add_numbered(&b, counts[i], "Nam\\u00653");
        ck_unique(parsed(buf_span(&b)), false, "member \"Nam\\u00653\" repeats \"Name3\"");
        ck_unique(parsed(buf_span(&b)), true, "member \"Nam\\u00653\" repeats \"Name3\"");
        add_numbered(&b, counts[i], "nAME13");
        ck_unique(parsed(buf_span(&b)), false, NULL);
        ck_unique(parsed(buf_span(&b)), true, "member \"nAME13\" repeats \"Name13\"");
        arena_reset(&arena);
    }
    buf_done(&b);
}
END_TEST

/* ---- equality ---- */

/* Groups: equal within, different from all others. */
static const char *const groups[][5] = {
    {"null", " null "},
    {"true"},
    {"false"},
    {"0", "-0", "0.0", "0e1", "-0.00e-7"},
    {"1", "1.0", "10e-1", "0.1E1", "1e0"},
    {"-1", "-1.0"},
    {"12345678901234567890"},
    {"12345678901234567891"},
    {"1e400", "10e399"},
    {"\"\""},
    {"\"a\"", "\"\\u0061\""},
    {"\"A\""},
    {"\"1\""},
    {"\"null\""},
    {"\"\xc3\xa9\"", "\"\\u00e9\"", "\"\\u00E9\""},
    {"\"e\xcc\x81\""}, /* no normalisation */
    {"\"/\"", "\"\\/\"", "\"\\u002f\""},
    {"\"\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\""},
    {"\"\\u0000\""},
    {"\"a\\u0000\""},
    {"[]", "[ ]"},
    {"[null]"},
    {"[null,null]"},
    {"[[]]"},
    {"[[],[]]"},
    {"[1,2]", "[1.0,2e0]"},
    {"[2,1]"},
    {"[1,2,3]"},
    {"[[1],2]"},
    {"[[1,2]]"},
    {"[1,[2]]"},
    {"{}", "{ }"},
    {"{\"a\":null}"},
    {"{\"a\":1}", "{\"\\u0061\":1.0}"},
    {"{\"A\":1}"},
    {"{\"a\":2}"},
    {"{\"a\":\"1\"}"},
    {"{\"b\":1}"},
    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{ \"\\u0062\" : 2.0, \"a\" : 1 }"},
    {"{\"a\":2,\"b\":1}", "{\"b\":1,\"a\":2}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"a\":1,\"b\":2}"},
    {"{\"a\":1,\"b\":2,\"d\":3}"},
    {"{\"a\":{\"b\":1,\"c\":[2]},\"d\":3}", "{\"d\":3,\"a\":{\"c\":[2],\"b\":1}}"},
    {"{\"a\":{\"b\":1,\"c\":[3]},\"d\":3}"},
    {"{\"a\":{\"b\":1},\"c\":{}}"},
    {"{\"a\":{},\"c\":{\"b\":1}}"},
    {"[{\"a\":1,\"b\":2}]", "[{\"b\":2,\"a\":1}]"},
    {"[\"a\",1]"},
    /* double names pair up in order */
    {"{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}"},
    {"{\"a\":2,\"a\":1}"},
    {"{\"a\":1,\"a\":1}"},
    {"{\"a\":1,\"b\":3,\"a\":2}", "{\"b\":3,\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2,\"b\":3}"},
    {"{\"a\":1,\"b\":3,\"b\":2}"},
};

START_TEST(equality_is_that_of_values)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        for (size_t j = 0; j < ARRAY_LEN(groups); j++)
            for (size_t k = 0; k < 25; k++) {
                const char *a = groups[i][k / 5], *b = groups[j][k % 5];

                if (a != NULL && b != NULL && json_equal(value_of(a), value_of(b)) != (i == j))
                    ck_abort_msg("%s and %s", a, b);
            }
}
END_TEST

START_TEST(equal_values_have_equal_hashes)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        for (size_t k = 1; k < 5 && groups[i][k] != NULL; k++)
            ck_assert_msg(json_hash(value_of(groups[i][0])) == json_hash(value_of(groups[i][k])),
                          "%s and %s", groups[i][0], groups[i][k]);
}
END_TEST

/* Made for the hash without the secret, which once took these values in as they are: all four had
 * two hashes between them then. */
START_TEST(no_collision_is_known_without_the_secret)
{
    static const char *const first = "[[true,false,null,null,[],null,true,null,[],false,true],"
                                     "[false,false,true,null,[],false,null,false,null,false,null]]";
    static const char *const second = "[[true,false,true,[],true,[],true,null,null,[],false],"
                                      "[false,true,true,[],[],null,null,true,false,false,false]]";

    ck_assert_uint_ne(json_hash(value_of(first)), json_hash(value_of(second)));
    hash_set_key(1, 2);
    {
        uint64_t simple[] = {json_hash(value_of("null")), json_hash(value_of("true")),
                             json_hash(value_of("[]")), json_hash(value_of("{}"))};

        hash_set_key(3, 4);
        ck_assert_uint_ne(json_hash(value_of("null")), simple[0]);
        ck_assert_uint_ne(json_hash(value_of("true")), simple[1]);
        ck_assert_uint_ne(json_hash(value_of("[]")), simple[2]);
        ck_assert_uint_ne(json_hash(value_of("{}")), simple[3]);
    }
}
END_TEST

START_TEST(an_absent_value_equals_null)
{
    struct json_value absent = {0};

    ck_assert(json_equal(absent, absent));
    ck_assert(json_equal(absent, value_of("null")));
    ck_assert(json_equal(value_of("null"), absent));
    ck_assert(!json_equal(value_of("false"), absent));
    ck_assert(!json_equal(absent, value_of("[]")));
    ck_assert_uint_eq(json_hash(absent), json_hash(value_of("null")));
}
END_TEST

START_TEST(large_objects_are_compared_in_any_order)
{
    enum { COUNT = 50000 };
    struct json_value x, y;
    struct buf a, b;

    buf_init(&a, BUF_NO_CAP);
    buf_init(&b, BUF_NO_CAP);
    for (unsigned i = 0; i < COUNT; i++) {
        buf_printf(&a, "%c\"k%u\":%u", i == 0 ? '{' : ',', i, i);
        buf_printf(&b, "%c\"k%u\":%u", i == 0 ? '{' : ',', COUNT - 1 - i, COUNT - 1 - i);
    }
    buf_add_char(&a, '}');
    buf_add_char(&b, '}');
    x = parsed(buf_span(&a));
    y = parsed(buf_span(&b));
    ck_assert(json_equal(x, y));
    ck_assert_uint_eq(json_hash(x), json_hash(y));
    b.p[b.n - 2] = '1'; /* of "k0":0 */
    ck_assert(!json_equal(x, y));
    ck_assert_uint_ne(json_hash(x), json_hash(y));
    buf_done(&a);
    buf_done(&b);
}
END_TEST

START_TEST(deep_values_are_compared)
{
    struct json_limits limits = {.depth = JSON_DEPTH_MOST, .members = 10000};
    struct json_doc x, y;
    struct buf a, b;

    buf_init(&a, BUF_NO_CAP);
    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < JSON_DEPTH_MOST; i++) {
        buf_add_str(&a, "{\"a\":1,\"b\":");
        buf_add_str(&b, "{\"b\":");
    }
    buf_add_str(&a, "2");
    buf_add_str(&b, "2");
    for (int i = 0; i < JSON_DEPTH_MOST; i++) {
        buf_add_str(&a, "}");
        buf_add_str(&b, ",\"a\":1}");
    }
    ck_ok(json_parse(buf_span(&a), &limits, &arena, &x));
    ck_ok(json_parse(buf_span(&b), &limits, &arena, &y));
    ck_assert(json_equal(json_root(&x), json_root(&y)));
    ck_assert_uint_eq(json_hash(json_root(&x)), json_hash(json_root(&y)));
    buf_done(&a);
    buf_done(&b);
}
END_TEST

/* ---- against values made from numbers ---- */

/* Which value it is follows from a seed; how it is spelled is chance, or always the same way. */
struct speller {
    struct buf b;
    bool by_chance;
};

static void spell(struct speller *s, uint64_t seed, unsigned depth);

static uint64_t chance(const struct speller *s, uint64_t bound)
{
    return s->by_chance ? rng_below(bound) : bound - 1;
}

static uint64_t part(uint64_t seed, uint64_t place)
{
    uint64_t x = (seed ^ place) * UINT64_C(0x9e3779b97f4a7c15);

    return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 7;
}

static void spell_blanks(struct speller *s)
{
    while (chance(s, 4) == 0)
        buf_add_char(&s->b, " \t\r\n"[rng_below(4)]);
}

static void spell_string(struct speller *s, unsigned number)
{
    buf_add_str(&s->b, chance(s, 2) == 0 ? "\"\xc3\xa9" : "\"\\u00e9");
    buf_add_str(&s->b, chance(s, 2) == 0 ? "k" : "\\u006B");
    buf_printf(&s->b, "%u\"", number);
}

static void spell_number(struct speller *s, unsigned number)
{
    switch (chance(s, 4)) {
    case 0:
        buf_printf(&s->b, "%u.0", number);
        return;
    case 1:
        buf_printf(&s->b, "0.%ue+1", number);
        return;
    case 2:
        buf_printf(&s->b, "0.%03uE+3", number);
        return;
    default:
        buf_printf(&s->b, "%u", number);
    }
}

static void spell_array(struct speller *s, uint64_t seed, unsigned depth)
{
    uint64_t count = part(seed, 1) % 6;

    buf_add_char(&s->b, '[');
    spell_blanks(s);
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(&s->b, ',');
        spell(s, part(seed, 2 + i), depth - 1);
    }
    buf_add_char(&s->b, ']');
}

/* Members begin with any and go round. */
static void spell_object(struct speller *s, uint64_t seed, unsigned depth)
{
    uint64_t count = part(seed, 1) % 6, first = count > 0 ? chance(s, count) : 0;

    buf_add_char(&s->b, '{');
    spell_blanks(s);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t k = (first + i) % count;

        if (i > 0)
            buf_add_char(&s->b, ',');
        spell_blanks(s);
        spell_string(s, (unsigned)k);
        spell_blanks(s);
        buf_add_char(&s->b, ':');
        spell(s, part(seed, 2 + k), depth - 1);
    }
    buf_add_char(&s->b, '}');
}

static void spell(struct speller *s, uint64_t seed, unsigned depth)
{
    spell_blanks(s);
    switch (part(seed, 0) % (depth > 0 ? 6 : 4)) {
    case 0:
        buf_add_str(&s->b, "null");
        break;
    case 1:
        buf_add_str(&s->b, seed % 2 == 0 ? "true" : "false");
        break;
    case 2:
        spell_number(s, (unsigned)(seed % 3));
        break;
    case 3:
        spell_string(s, (unsigned)(seed % 3));
        break;
    case 4:
        spell_array(s, seed, depth);
        break;
    default:
        spell_object(s, seed, depth);
    }
    spell_blanks(s);
}

static struct span spelled(uint64_t seed, unsigned depth, bool by_chance)
{
    struct speller s = {.b = {.max = BUF_NO_CAP}, .by_chance = by_chance};
    struct span text;

    spell(&s, seed, depth);
    text = arena_copy(&arena, buf_span(&s.b));
    buf_done(&s.b);
    return text;
}

START_TEST(spelling_does_not_matter)
{
    for (int i = 0; i < 3000; i++) {
        uint64_t seed = rng_u64();
        struct span a = spelled(seed, 4, true), b = spelled(seed, 4, true);

        if (!json_equal(parsed(a), parsed(b)) || json_hash(parsed(a)) != json_hash(parsed(b)))
            ck_abort_msg("%.*s and %.*s", SPAN_FMT(a), SPAN_FMT(b));
        arena_reset(&arena);
    }
}
END_TEST

/* Two values are equal when their one plain spelling is. */
START_TEST(everything_else_matters)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t x = rng_u64(), y = rng_u64();
        struct span a = spelled(x, 2, true), b = spelled(y, 2, true);
        bool same = span_eq(spelled(x, 2, false), spelled(y, 2, false));

        if (json_equal(parsed(a), parsed(b)) != same ||
            (json_hash(parsed(a)) == json_hash(parsed(b))) != same)
            ck_abort_msg("%.*s and %.*s", SPAN_FMT(a), SPAN_FMT(b));
        arena_reset(&arena);
    }
}
END_TEST

/* To sort them cannot be left. */
START_TEST(very_many_names_are_not_sorted_on_the_loop)
{
    static const size_t counts[] = {100, 20000};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct json_value object;
        struct budget budget;
        struct buf b;

        buf_init_arena(&b, &arena);
        for (size_t n = 0; n < counts[i]; n++)
            buf_add(&b, arena_printf(&arena, "%s\"m%zu\":1", n == 0 ? "{" : ",", n));
        buf_add_char(&b, '}');
        object = parsed(buf_span(&b));
        budget_init(&budget, 0);
        budget.may_begin_anew = true;
        budget.first_ns = UINT64_MAX; /* whatever the clock says */
        budget_enter(&budget);
        ck_ok(json_check_unique(object, true, &arena));
        budget_leave(&budget);
        ck_assert_int_eq(budget.state, i == 0 ? BUDGET_GOOD : BUDGET_NEEDS_FIBER);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, json_set_up, json_tear_down);
    tcase_add_test(tc, double_names_are_found);
    tcase_add_test(tc, doubles_outside_do_not_matter);
    tcase_add_test(tc, double_names_are_found_among_many);
    tcase_add_test(tc, very_many_names_are_not_sorted_on_the_loop);
    tcase_add_test(tc, equality_is_that_of_values);
    tcase_add_test(tc, equal_values_have_equal_hashes);
    tcase_add_test(tc, no_collision_is_known_without_the_secret);
    tcase_add_test(tc, an_absent_value_equals_null);
    tcase_add_test(tc, large_objects_are_compared_in_any_order);
    tcase_add_test(tc, deep_values_are_compared);
    tcase_add_test(tc, spelling_does_not_matter);
    tcase_add_test(tc, everything_else_matters);
}
