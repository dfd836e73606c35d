#include "testing.h"

#include "base/rng.h"

#include <signal.h>
#include <string.h>

/* xoshiro256** from the state that splitmix64 makes of 0. */
START_TEST(seeded_values_as_published)
{
    static const uint64_t values[] = {UINT64_C(0x99ec5f36cb75f2b4), UINT64_C(0xbf6e1f784956452a),
                                      UINT64_C(0x1a5f849d4933e6e0), UINT64_C(0x6aa594f1262d2d2c)};

    rng_seed(0);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        ck_assert_uint_eq(rng_u64(), values[i]);
}
END_TEST

START_TEST(a_seed_repeats_everything)
{
    char a[100], b[100];

    rng_seed(7);
    rng_secret(a, sizeof(a));
    rng_seed(7);
    rng_secret(b, sizeof(b));
    ck_assert_mem_eq(a, b, sizeof(a));
    rng_seed(8);
    rng_secret(b, sizeof(b));
    ck_assert_mem_ne(a, b, sizeof(a));
}
END_TEST

/* Sizes below, at and above the reserve; what lies behind is left alone. */
START_TEST(secrets_fill_exactly_what_was_asked_for)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 16, 255, 256, 257, 1000};
    unsigned char bytes[1001], ored[1001];

    for (int real = 0; real < 2; real++) {
        if (real)
            rng_real();
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            size_t n = sizes[i];

            memset(ored, 0, sizeof(ored));
            for (int k = 0; k < 40; k++) {
                memset(bytes, 0, sizeof(bytes));
                rng_secret(bytes, n);
                for (size_t at = 0; at < sizeof(bytes); at++)
                    ored[at] |= bytes[at];
            }
            for (size_t at = 0; at < sizeof(ored); at++)
                ck_assert_uint_eq(ored[at], at < n ? 0xff : 0);
        }
    }
}
END_TEST

START_TEST(secrets_do_not_repeat)
{
    static uint64_t drawn[300][2];

    rng_real();
    for (size_t i = 0; i < ARRAY_LEN(drawn); i++) {
        rng_secret(drawn[i], sizeof(drawn[i]));
        for (size_t k = 0; k < i; k++)
            ck_assert_mem_ne(drawn[i], drawn[k], sizeof(drawn[i]));
    }
}
END_TEST

START_TEST(unseeded_values_differ)
{
    uint64_t first;

    rng_real();
    first = rng_u64();
    rng_real();
    ck_assert_uint_ne(rng_u64(), first);
}
END_TEST

START_TEST(below_is_uniform)
{
    enum { DRAWS = 70000, BOUND = 7 };
    unsigned counts[BOUND] = {0};

    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = rng_below(BOUND);

        ck_assert_uint_lt(value, BOUND);
        counts[value]++;
    }
    for (int i = 0; i < BOUND; i++) {
        ck_assert_uint_gt(counts[i], DRAWS / BOUND * 95 / 100);
        ck_assert_uint_lt(counts[i], DRAWS / BOUND * 105 / 100);
    }
}
END_TEST

/* A third of all values lies below a third of a bound that does not divide 2^64. */
START_TEST(below_has_no_favourites_at_large_bounds)
{
    const uint64_t bound = UINT64_C(3) << 62;
    unsigned low = 0;

    for (int i = 0; i < 30000; i++)
        low += rng_below(bound) < bound / 3;
    ck_assert_uint_gt(low, 9500);
    ck_assert_uint_lt(low, 10500);
    ck_assert_uint_eq(rng_below(1), 0);
}
END_TEST

START_TEST(unit_is_below_one)
{
    double sum = 0;

    for (int i = 0; i < 10000; i++) {
        double value = rng_unit();

        ck_assert(value >= 0 && value < 1);
        sum += value;
    }
    ck_assert(sum > 4800 && sum < 5200);
}
END_TEST

START_TEST(below_nothing_aborts)
{
    rng_below(0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, seeded_values_as_published);
    tcase_add_test(tc, a_seed_repeats_everything);
    tcase_add_test(tc, secrets_fill_exactly_what_was_asked_for);
    tcase_add_test(tc, secrets_do_not_repeat);
    tcase_add_test(tc, unseeded_values_differ);
    tcase_add_test(tc, below_is_uniform);
    tcase_add_test(tc, below_has_no_favourites_at_large_bounds);
    tcase_add_test(tc, unit_is_below_one);
    tcase_add_test_raise_signal(tc, below_nothing_aborts, SIGABRT);
}
