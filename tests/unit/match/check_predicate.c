#include "testing.h"

#include "base/rng.h"
#include "base/span.h"
#include "match/predicate.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "query/shape.h"
#include "query/uri.h"
#include "json/decimal.h"
#include "json/json.h"

#include <stdio.h>

static const struct shape dynamic = {.dynamic = true};
static struct arena arena;
static struct predicates *set;

static void begin(void)
{
    arena_init(&arena);
    set = predicates_new();
}

static void end(void)
{
    predicates_free(set);
    arena_done(&arena);
}

static struct condition condition(const char *key, enum uri_op op, struct span value)
{
    struct uri_condition source = {span_str(key), op, value};
    struct conditions conditions;

    ck_ok(conditions_parse(&source, 1, &dynamic, &arena, &conditions));
    return conditions.items[0];
}

static struct predicate_test test_of(const char *key, enum uri_op op, const char *value)
{
    struct condition item = condition(key, op, arena_copy(&arena, span_str(value)));
    struct conditions conditions = {&item, 1};
    struct predicate_test test;
    size_t count;

    ck_assert(predicates_add(set, &conditions, &test, &count));
    ck_assert_uint_eq(count, 1);
    return test;
}

static void start(struct span json)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(json, NULL, &arena, doc));
    predicates_start(set, json_root(doc), &arena);
}

static struct predicates_stats stats(void)
{
    struct predicates_stats now;

    predicates_stats(set, &now);
    return now;
}

/* ---- sharing ---- */

/* Tests of the first and of the second are of one predicate, or of two. */
static const struct {
    enum uri_op op[2];
    const char *value[2];
    size_t predicates;
} pairs[] = {
    {{URI_EQ, URI_EQ}, {"1", "1"}, 1},
    {{URI_EQ, URI_NE}, {"1", "1"}, 1},
    {{URI_EQ, URI_EQ}, {"1", "2"}, 2},
    {{URI_EQ, URI_EQ}, {"1", "1.0"}, 2}, /* the text may be compared */
    {{URI_EQ, URI_EQ}, {"1", "'1'"}, 2},
    {{URI_EQ, URI_EQ}, {"a", "'a'"}, 1},
    {{URI_EQ, URI_EQ}, {"null", "'null'"}, 2},
    {{URI_GT, URI_GT}, {"1", "1.0"}, 1},
    {{URI_GT, URI_GT}, {"1", "10e-1"}, 1},
    {{URI_GT, URI_GE}, {"1", "1"}, 2},
    {{URI_GT, URI_LT}, {"1", "1"}, 2},
    {{URI_GT, URI_EQ}, {"1", "1"}, 2},
    {{URI_GT, URI_GT}, {"1", "'1'"}, 2},
    {{URI_LT, URI_LT}, {"2026-01-01", "2026-01-01T01:00:00+01:00"}, 1},
};

START_TEST(equal_conditions_share_a_predicate)
{
    begin();
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct predicate_test a = test_of("A", pairs[i].op[0], pairs[i].value[0]);
        struct predicate_test b = test_of("A", pairs[i].op[1], pairs[i].value[1]);

        ck_assert_msg(stats().count == pairs[i].predicates, "%s, %s", pairs[i].value[0],
                      pairs[i].value[1]);
        predicates_release(set, a);
        ck_assert_uint_ge(stats().count, 1);
        predicates_release(set, b);
        ck_assert_uint_eq(stats().count, 0);
    }
    end();
}
END_TEST

START_TEST(paths_differ_by_case)
{
    struct predicate_test a, b;

    begin();
    a = test_of("Name", URI_EQ, "x");
    b = test_of("name", URI_EQ, "x");
    start(SPAN("{\"Name\":\"x\",\"name\":\"y\"}"));
    ck_assert(predicates_hold(set, a));
    ck_assert(!predicates_hold(set, b));
    predicates_release(set, a);
    predicates_release(set, b);
    end();
}
END_TEST

static const struct {
    const char *key;
    enum uri_op op;
    const char *value;
} orderings[] = {
    {"A", URI_GT, "1"}, {"A", URI_GE, "3"},   {"A", URI_LT, "9"},
    {"A", URI_LE, "9"}, {"A", URI_GT, "'x'"}, {"B", URI_LT, "5"},
};

START_TEST(orderings_of_a_path_are_one_range)
{
    struct condition items[ARRAY_LEN(orderings)];
    struct conditions conditions = {items, ARRAY_LEN(items)};
    struct predicate_test tests[ARRAY_LEN(items)];
    size_t count;

    begin();
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        items[i] = condition(orderings[i].key, orderings[i].op, span_str(orderings[i].value));
    ck_assert(predicates_add(set, &conditions, tests, &count));
    ck_assert_uint_eq(count, 3); /* numbers of A, strings of A, numbers of B */
    for (size_t i = 0; i < count; i++)
        predicates_release(set, tests[i]);
    end();
}
END_TEST

START_TEST(what_can_never_hold_has_no_tests)
{
    struct condition items[2];
    struct conditions conditions = {items, ARRAY_LEN(items)};
    struct predicate_test tests[ARRAY_LEN(items)];
    size_t count;

    begin();
    items[0] = condition("A", URI_EQ, SPAN("1"));
    items[1] = condition("B", URI_LT, SPAN("null"));
    ck_assert(!predicates_add(set, &conditions, tests, &count));
    ck_assert_uint_eq(stats().count, 0);
    end();
}
END_TEST

START_TEST(each_is_worked_out_once)
{
    struct predicate_test equal, unequal, greater;

    begin();
    equal = test_of("A", URI_EQ, "5");
    unequal = test_of("A", URI_NE, "5");
    greater = test_of("A", URI_GT, "4");
    start(SPAN("{\"A\":5}"));
    for (size_t i = 0; i < 10; i++) {
        ck_assert(predicates_hold(set, equal));
        ck_assert(!predicates_hold(set, unequal));
        ck_assert(predicates_hold(set, greater));
    }
    ck_assert_uint_eq(stats().evaluated, 2);
    start(SPAN("{\"A\":3}"));
    ck_assert(!predicates_hold(set, equal));
    ck_assert(predicates_hold(set, unequal));
    ck_assert(!predicates_hold(set, greater));
    predicates_release(set, equal);
    predicates_release(set, unequal);
    predicates_release(set, greater);
    end();
}
END_TEST

/* ---- waiting ---- */

static void note(void *context, void *first)
{
    unsigned *seen = context;

    *seen |= *(const unsigned *)first;
}

static unsigned came_true(const char *json)
{
    unsigned seen = 0;

    start(span_str(json));
    predicates_each(set, note, &seen);
    return seen;
}

START_TEST(only_what_is_waited_for_is_found)
{
    static unsigned bits[] = {1, 2, 4, 8};
    struct predicate_test tests[4];

    begin();
    tests[0] = test_of("A", URI_EQ, "5");
    tests[1] = test_of("A", URI_NE, "5");
    tests[2] = test_of("A", URI_GT, "4");
    tests[3] = test_of("B", URI_EQ, "null");
    ck_assert_uint_eq(came_true("{\"A\":5}"), 0);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
        ck_assert_ptr_null(predicates_waiting(tests[i]));
        predicates_wait(set, tests[i], &bits[i]);
        ck_assert_ptr_eq(predicates_waiting(tests[i]), &bits[i]);
    }
    ck_assert_uint_eq(came_true("{\"A\":5,\"B\":1}"), 1 | 4);
    ck_assert_uint_eq(came_true("{\"A\":6}"), 2 | 4 | 8);
    ck_assert_uint_eq(came_true("{}"), 2 | 8);
    predicates_wait(set, tests[1], &bits[0]); /* another one in its place */
    ck_assert_uint_eq(came_true("{\"A\":1,\"B\":1}"), 1);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        predicates_wait(set, tests[i], NULL);
    ck_assert_uint_eq(came_true("{\"A\":5}"), 0);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        predicates_release(set, tests[i]);
    end();
}
END_TEST

START_TEST(rarity_is_guessed)
{
    struct predicate_test values[20], unequal, half_open;

    begin();
    unequal = test_of("A", URI_NE, "x");
    half_open = test_of("A", URI_GT, "4");
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char text[8];

        snprintf(text, sizeof(text), "v%zu", i);
        values[i] = test_of("A", URI_EQ, text);
    }
    ck_assert_uint_gt(predicates_rarity(values[0]), predicates_rarity(half_open));
    ck_assert_uint_gt(predicates_rarity(half_open), predicates_rarity(unequal));
    predicates_release(set, unequal);
    predicates_release(set, half_open);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        predicates_release(set, values[i]);
    end();
}
END_TEST

/* ---- the order of numbers ---- */

static struct span draw_number(void)
{
    static const char *const powers[] = {"",
                                         "e0",
                                         "e1",
                                         "e-1",
                                         "e8190",
                                         "e-8190",
                                         "e8205",
                                         "e-8205",
                                         "e99999",
                                         "e-99999",
                                         "e4611686018427387000"};
    const char *power = powers[rng_below(ARRAY_LEN(powers))];
    unsigned long long digits = (rng_u64() >> rng_below(64) >> 1) + 1;

    return arena_printf(&arena, "%s%llu%s%llu%s", rng_below(2) == 0 ? "-" : "", digits,
                        rng_below(2) == 0 ? "." : "", (unsigned long long)rng_below(30), power);
}

/* Numbers close to one another too: the same but for the last digit. */
static struct span draw_neighbour(struct span number)
{
    char *copy;

    if (rng_below(2) == 0)
        return draw_number();
    copy = mem_string(number);
    for (size_t i = number.n; i-- > 0 && number.p[i] != 'e';)
        if (rng_below(3) == 0 && copy[i] >= '0' && copy[i] <= '8' && i > 0) {
            copy[i]++;
            break;
        }
    number = arena_copy(&arena, span_of(copy, number.n));
    mem_free(copy);
    return number;
}

START_TEST(numbers_are_ordered_exactly)
{
    begin();
    for (size_t i = 0; i < 20000; i++) {
        struct span number = draw_number(), other = draw_neighbour(number), json;
        struct condition items[] = {condition("A", URI_LT, other), condition("A", URI_GE, other),
                                    condition("A", URI_EQ, other)};
        int order = decimal_cmp(number, other);
        bool expected[] = {order < 0, order >= 0, order == 0};

        json = arena_printf(&arena, "{\"A\":%.*s}", SPAN_FMT(number));
        for (size_t k = 0; k < ARRAY_LEN(items); k++) {
            struct conditions conditions = {&items[k], 1};
            struct predicate_test test;
            size_t count;

            ck_assert(predicates_add(set, &conditions, &test, &count));
            start(json);
            ck_assert_msg(predicates_hold(set, test) == expected[k], "%.*s against %.*s (%zu)",
                          SPAN_FMT(number), SPAN_FMT(other), k);
            predicates_release(set, test);
        }
        arena_reset(&arena);
    }
    end();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, equal_conditions_share_a_predicate);
    tcase_add_test(tc, paths_differ_by_case);
    tcase_add_test(tc, orderings_of_a_path_are_one_range);
    tcase_add_test(tc, what_can_never_hold_has_no_tests);
    tcase_add_test(tc, each_is_worked_out_once);
    tcase_add_test(tc, only_what_is_waited_for_is_found);
    tcase_add_test(tc, rarity_is_guessed);
    tcase_add_test(tc, numbers_are_ordered_exactly);
}
