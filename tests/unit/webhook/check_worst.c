/* The worst are those that a look at all would find, as long as none goes. */
#include "testing.h"

#include "base/rng.h"
#include "base/span.h"
#include "webhook/worst.h"

enum { ALL = 200 };

static struct worst worst;
static struct worst_entry all[ALL];

static void set_up(void)
{
    worst = (struct worst){.count = 0};
    for (size_t i = 0; i < ALL; i++)
        all[i] = (struct worst_entry){.attempts = 0};
}

static void check_places(void)
{
    size_t placed = 0;

    for (size_t i = 0; i < ALL; i++) {
        placed += all[i].place != 0;
        ck_assert(all[i].place == 0 || worst.entries[all[i].place - 1] == &all[i]);
    }
    ck_assert_uint_eq(placed, worst.count);
    ck_assert_uint_le(worst.count, WORST_MOST);
}

/* None that is not among them has failed more often than one that is. */
static void check_worst(void)
{
    uint64_t least = UINT64_MAX, most = 0;

    check_places();
    for (size_t i = 0; i < ALL; i++) {
        if (all[i].place != 0)
            least = MIN(least, all[i].failures);
        else
            most = MAX(most, all[i].failures);
    }
    ck_assert(worst.count < WORST_MOST ? most == 0 : most <= least);
}

START_TEST(those_with_most_failures)
{
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)rng_below(1 + rng_below(ALL));

        worst_note(&worst, &all[at], rng_below(3) != 0);
        if (i % 100 == 0)
            check_worst();
    }
    check_worst();
    ck_assert_uint_eq(worst.count, WORST_MOST);
}
END_TEST

START_TEST(successes_are_attempts)
{
    worst_note(&worst, &all[0], false);
    ck_assert_uint_eq(all[0].attempts, 1);
    ck_assert_uint_eq(worst.count, 0);
    worst_note(&worst, &all[0], true);
    ck_assert_uint_eq(all[0].attempts, 2);
    ck_assert_uint_eq(all[0].failures, 1);
    ck_assert_uint_eq(all[0].place, 1);
}
END_TEST

START_TEST(one_that_goes_leaves_its_place)
{
    for (int i = 0; i < 5000; i++) {
        size_t at = (size_t)rng_below(ALL);

        if (rng_below(5) == 0) {
            worst_forget(&worst, &all[at]);
            all[at] = (struct worst_entry){.attempts = 0};
        } else {
            worst_note(&worst, &all[at], true);
        }
        check_places();
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, those_with_most_failures);
    tcase_add_test(tc, successes_are_attempts);
    tcase_add_test(tc, one_that_goes_leaves_its_place);
}
