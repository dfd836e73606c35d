#include "testing.h"

#include "base/macros.h"
#include "base/rng.h"
#include "webhook/pacing.h"

enum { DAY_MS = 86400000 };

/* An outcome a letter: success, failure, aborted, and in capitals those that took a second. */
static void end_all(struct pacing *p, const char *outcomes)
{
    for (const char *at = outcomes; *at != '\0'; at++) {
        const struct pacing_outcome outcome = {
            .is_success = *at == 's' || *at == 'S',
            .is_aborted = *at == 'a' || *at == 'A',
            .took_ms = *at < 'a' ? 1000 : 999,
        };

        pacing_end(p, &outcome);
    }
}

static const struct {
    uint32_t max_in_flight;
    const char *outcomes;
    uint32_t most;
    enum pace pace;
} endings[] = {
    {16, "", 4, PACE_UNPROVED},
    {1, "", 1, PACE_UNPROVED},
    {3, "", 3, PACE_UNPROVED},
    {16, "s", 8, PACE_PROMPT},
    {16, "ss", 16, PACE_PROMPT},
    {16, "sss", 16, PACE_PROMPT},
    {6, "s", 6, PACE_PROMPT},
    {1, "ssss", 1, PACE_PROMPT},
    {16, "f", 2, PACE_PROMPT},
    {16, "ff", 1, PACE_PROMPT},
    {16, "fffff", 1, PACE_PROMPT},
    {16, "fffffs", 2, PACE_PROMPT},
    {16, "fffffsss", 8, PACE_PROMPT},
    {3, "f", 1, PACE_PROMPT}, /* half of what it may have, not of the window */
    {100, "sssssf", 50, PACE_PROMPT},
    {16, "a", 4, PACE_PROMPT},
    {16, "sa", 8, PACE_PROMPT},
    {16, "fa", 2, PACE_PROMPT},
    {16, "S", 8, PACE_SLOW},
    {16, "F", 2, PACE_SLOW},
    {16, "A", 4, PACE_SLOW},
    {16, "Ss", 16, PACE_PROMPT},
    {16, "sF", 4, PACE_SLOW},
    {UINT32_MAX, "ssssssssssssssssssssssssssssssssssss", UINT32_MAX, PACE_PROMPT},
};

START_TEST(what_outcomes_make_of_it)
{
    struct pacing p;

    pacing_init(&p);
    p.max_in_flight = endings[_i].max_in_flight;
    end_all(&p, endings[_i].outcomes);
    ck_assert_uint_eq(pacing_most(&p), endings[_i].most);
    ck_assert_int_eq(p.pace, endings[_i].pace);
}
END_TEST

START_TEST(what_is_prompt_is_the_callers_to_say)
{
    struct pacing p;

    pacing_init(&p);
    p.prompt_ms = 1001;
    end_all(&p, "S");
    ck_assert_int_eq(p.pace, PACE_PROMPT);
    p.prompt_ms = 999;
    end_all(&p, "s");
    ck_assert_int_eq(p.pace, PACE_SLOW);
}
END_TEST

START_TEST(a_limit_that_changes_counts_at_once)
{
    struct pacing p;

    pacing_init(&p);
    p.max_in_flight = 64;
    end_all(&p, "ssss");
    p.max_in_flight = 5;
    ck_assert_uint_eq(pacing_most(&p), 5);
    end_all(&p, "f");
    ck_assert_uint_eq(pacing_most(&p), 2);
    p.max_in_flight = 64;
    ck_assert_uint_eq(pacing_most(&p), 2);
}
END_TEST

static const struct {
    enum pace pace;
    size_t all, slots;
} shares[] = {
    {PACE_PROMPT, 1024, SIZE_MAX}, {PACE_UNPROVED, 1024, 896}, {PACE_SLOW, 1024, 768},
    {PACE_UNPROVED, 8, 7},         {PACE_SLOW, 8, 6},          {PACE_SLOW, 4, 3},
    {PACE_UNPROVED, 7, SIZE_MAX},  {PACE_SLOW, 3, SIZE_MAX},   {PACE_SLOW, 1, SIZE_MAX},
};

START_TEST(what_is_not_for_everybody)
{
    ck_assert_uint_eq(pacing_slots(shares[_i].pace, shares[_i].all), shares[_i].slots);
}
END_TEST

static const struct {
    size_t all, prompt, others, spare;
} halves[] = {
    {1024, 512, 384, 128}, {16, 8, 6, 2}, {8, 4, 3, 1}, {4, 2, 1, 1},
    {3, 1, 1, 1},          {2, 1, 1, 1},  {1, 1, 1, 1},
};

START_TEST(what_an_account_may_have)
{
    size_t all = halves[_i].all;

    ck_assert_uint_eq(pacing_half(PACE_PROMPT, all), halves[_i].prompt);
    ck_assert_uint_eq(pacing_half(PACE_SLOW, all), halves[_i].others);
    ck_assert_uint_eq(pacing_half(PACE_UNPROVED, all), halves[_i].others);
    ck_assert_uint_eq(pacing_spare(all), halves[_i].spare);
}
END_TEST

/* Starts at some times, then a question. */
static const struct {
    double rate;
    bool is_full;
    uint64_t starts_ms[4]; /* 0: no more */
    uint64_t now_ms, wait_ms;
} waits[] = {
    {0, false, {0}, 1, 0},
    {0, true, {1, 1, 1, 1}, 1, 0},
    {10, true, {0}, 1, 0},
    {10, false, {0}, 1, 102},
    {10, false, {0}, 102, 1},
    {10, false, {0}, 103, 0},
    {10, true, {1}, 1, 102},
    {10, true, {1}, 51, 52},
    {10, true, {1}, 103, 0},
    {10, true, {1, 103}, 103, 101}, /* what the first one left over counts */
    {10, true, {50000}, 50000, 91}, /* no more than a little is saved up */
    {10, true, {50000, 50091}, 50091, 101},
    {0.5, true, {1}, 1, 2021},
    {1e-300, false, {0}, 1, DAY_MS},
    {1e-300, true, {1}, 1, DAY_MS},
    {1000, true, {1}, 1, 2},
    {100000, false, {0}, 1, 1},
};

START_TEST(how_long_the_rate_keeps_back)
{
    struct pacing p;

    pacing_init(&p);
    p.rate_per_second = waits[_i].rate;
    pacing_fill(&p, waits[_i].is_full, 1);
    for (size_t i = 0; i < ARRAY_LEN(waits[_i].starts_ms) && waits[_i].starts_ms[i] != 0; i++)
        pacing_start(&p, waits[_i].starts_ms[i]);
    ck_assert_uint_eq(pacing_wait_ms(&p, waits[_i].now_ms), waits[_i].wait_ms);
}
END_TEST

START_TEST(a_rate_that_is_set_later_finds_the_bucket_full)
{
    struct pacing p;

    pacing_init(&p);
    pacing_fill(&p, false, 1);
    pacing_start(&p, 5000);
    p.rate_per_second = 2;
    ck_assert_uint_eq(pacing_wait_ms(&p, 10000), 0);
}
END_TEST

/* Each start as soon as it may be, by timers that are late now and then. */
START_TEST(no_second_has_more_than_the_rate_says)
{
    static const unsigned rates[] = {1, 3, 10, 50, 333};
    enum { STARTS = 4000 };
    static uint64_t starts[STARTS];
    uint64_t now = 1000;
    unsigned rate = rates[_i];
    struct pacing p;

    pacing_init(&p);
    p.rate_per_second = rate;
    pacing_fill(&p, true, now);
    for (size_t i = 0; i < STARTS; i++) {
        for (uint64_t wait; (wait = pacing_wait_ms(&p, now)) > 0;)
            now += wait + (rng_below(4) == 0 ? rng_below(8) : 0);
        pacing_start(&p, now);
        starts[i] = now;
        if (i >= rate)
            ck_assert_uint_ge(now - starts[i - rate], 1000);
    }
    ck_assert_uint_le(now - 1000, (uint64_t)STARTS * 1000 / rate * 103 / 100 + 10000 / rate);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, what_outcomes_make_of_it, 0, ARRAY_LEN(endings));
    tcase_add_test(tc, what_is_prompt_is_the_callers_to_say);
    tcase_add_test(tc, a_limit_that_changes_counts_at_once);
    tcase_add_loop_test(tc, what_is_not_for_everybody, 0, ARRAY_LEN(shares));
    tcase_add_loop_test(tc, what_an_account_may_have, 0, ARRAY_LEN(halves));
    tcase_add_loop_test(tc, how_long_the_rate_keeps_back, 0, ARRAY_LEN(waits));
    tcase_add_test(tc, a_rate_that_is_set_later_finds_the_bucket_full);
    tcase_add_loop_test(tc, no_second_has_more_than_the_rate_says, 0, 5);
}
