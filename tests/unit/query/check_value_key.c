/* The order of what paths yield: over pairs, and over random values. */
#include "sample.h"
#include "testing.h"

#include "base/rng.h"
#include "query/path.h"
#include "query/value_key.h"

static struct arena arena;

/* Values in ascending order; those of one group are equal. */
struct grouped {
    int group;
    const char *json;
};

static const struct grouped ordered[] = {
    {0, "null"},
    {1, "false"},
    {2, "true"},
    {3, "-1E400"},
    {4, "-12345678901234567891"},
    {5, "-12345678901234567890"},
    {6, "-1.5"},
    {7, "-0"},
    {7, "0"},
    {7, "0.000"},
    {8, "1e-400"},
    {9, "1"},
    {9, "1.0"},
    {9, "10e-1"},
    {10, "2"},
    {11, "10"},
    {11, "1e1"},
    {12, "9007199254740993"},
    {13, "9007199254740994"},
    {14, "1E400"},
    {15, "\"\""},
    {16, "\"10\""},
    {17, "\"2\""},
    {18, "\"A\""},
    {19, "\"a\""},
    {19, "\"\\u0061\""},
    {20, "\"aa\""},
    {21, "\"\xc3\xa9\""},
    {22, "[1]"},
    {23, "[2]"},
    {24, "{\"a\":1}"},
};

/* The same for a declared datetime: what is none comes before what is one. */
static const struct grouped ordered_datetimes[] = {
    {0, "null"},
    {1, "5"},
    {2, "\"\""},
    {3, "\"2026-13-01\""},
    {4, "\"x\""},
    {5, "\"0001-01-01\""},
    {6, "\"1983-04-05T23:30:00-02:00\""},
    {6, "\"1983-04-06T01:30:00Z\""},
    {7, "\"2026-11-01T00:00:00.000000001Z\""},
    {8, "\"2026-11-01T12:00\""},
    {9, "[]"},
};

static struct value value_of(const char *json)
{
    struct path self;

    ck_ok(path_parse(SPAN("0"), NULL, &arena, &self));
    return path_read(&self, sample_json(arena_printf(&arena, "[%s]", json), &arena), &arena);
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static int value_cmp(const struct value *a, const struct value *b, enum value_type type)
{
    struct value_key x = value_key(a, type), y = value_key(b, type);

    return value_key_cmp(&x, &y);
}

static void check_order(const struct grouped *values, size_t count, enum value_type type)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct value a = value_of(values[i].json), b = value_of(values[j].json);

            ck_assert_msg(sign(value_cmp(&a, &b, type)) == sign(values[i].group - values[j].group),
                          "%s and %s", values[i].json, values[j].json);
        }
    }
}

/* Agreement with a ranking, over all pairs, is antisymmetry and transitivity too. */
START_TEST(order_of_values)
{
    check_order(ordered, ARRAY_LEN(ordered), TYPE_ANY);
    check_order(ordered, ARRAY_LEN(ordered), TYPE_NUMBER);
}
END_TEST

START_TEST(order_of_datetimes)
{
    check_order(ordered_datetimes, ARRAY_LEN(ordered_datetimes), TYPE_DATETIME);
}
END_TEST

/* Over random values of every kind, among them strings that are almost datetimes. */
START_TEST(order_is_total)
{
    static const char *const pool[] = {
        "null",
        "true",
        "false",
        "1",
        "1.0",
        "-3",
        "2e2",
        "200",
        "\"\"",
        "\"b\"",
        "\"2020-01-01\"",
        "\"2020-01-01T00:00Z\"",
        "\"2020-01-01 \"",
        "\"2020-01-01T01:00+01:00\"",
        "\"2019\"",
        "\"2020-1-1\"",
        "\"2021-01-01\"",
        "[]",
        "{}",
        "[\"2020-01-01\"]",
    };
    struct value values[ARRAY_LEN(pool)];

    for (size_t i = 0; i < ARRAY_LEN(pool); i++)
        values[i] = value_of(pool[i]);
    for (int round = 0; round < 20000; round++) {
        const struct value *a = &values[rng_below(ARRAY_LEN(pool))];
        const struct value *b = &values[rng_below(ARRAY_LEN(pool))];
        const struct value *c = &values[rng_below(ARRAY_LEN(pool))];
        enum value_type type = (enum value_type)rng_below(TYPE_COUNT);

        ck_assert_int_eq(value_cmp(a, a, type), 0);
        ck_assert_int_eq(sign(value_cmp(a, b, type)), -sign(value_cmp(b, a, type)));
        if (value_cmp(a, b, type) <= 0 && value_cmp(b, c, type) <= 0)
            ck_assert_int_le(value_cmp(a, c, type), 0);
    }
}
END_TEST

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_done(&arena);
}

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, order_of_values);
    tcase_add_test(tc, order_of_datetimes);
    tcase_add_test(tc, order_is_total);
}
