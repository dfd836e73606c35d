/* Work without end: it ends when it is told to, however it asks. Limits are small, so that it does
 * soon; how long anything takes is not looked at. */
#include "testing.h"

#include "base/budget.h"
#include "base/fiber.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST_MS = 30 };

static struct budget budget;
static bool has_ended;
static int stands_still; /* so many times yet, after the alarm was set */

/* Others have the processor until the alarm has gone off: what follows comes too late for it. */
int setitimer(__itimer_which_t which, const struct itimerval *restrict at,
              struct itimerval *restrict before)
{
    const struct timespec long_enough = {.tv_nsec = 50000000};
    long status = syscall(SYS_setitimer, which, at, before);

    if ((at->it_value.tv_sec > 0 || at->it_value.tv_usec > 0) && stands_still > 0) {
        stands_still--;
        nanosleep(&long_enough, NULL); /* the alarm ends it */
    }
    return (int)status;
}

static void begin(void)
{
    stands_still = 0;
    budget_init(&budget, MOST_MS * UINT64_C(1000000));
    has_ended = false;
}

static void end(void)
{
    fiber_forget_stacks();
}

static void ask_on(void)
{
    while (budget_ask(64))
        continue;
    has_ended = true;
}

static void spin(void *arg)
{
    volatile bool *for_ever = arg;

    while (*for_ever)
        continue;
}

static void spin_on(void)
{
    bool for_ever = true;

    ck_assert(!budget_run_pure(spin, &for_ever));
    ck_assert(!budget_ask(1));
    has_ended = true;
}

static void (*const works[])(void) = {ask_on, spin_on};

START_TEST(who_has_no_budget_goes_on)
{
    bool for_ever = false;

    for (int i = 0; i < 1000000; i++)
        ck_assert(budget_ask(1000));
    ck_assert(budget_give_way());
    ck_assert(budget_run_pure(spin, &for_ever));
    ck_ok(budget_check());
    ck_assert_uint_eq(budget_turns(), 0);
}
END_TEST

START_TEST(it_ends_when_all_is_spent)
{
    budget_enter(&budget);
    works[_i]();
    ck_assert_int_eq(budget.state, BUDGET_SPENT);
    ck_fails(budget_check(), ERR_REQUEST_TOO_COSTLY, "RequestCpuMs (30 ms");
    budget_leave(&budget);
    ck_assert_uint_ge(budget.longest_ns, MOST_MS * UINT64_C(1000000));
}
END_TEST

START_TEST(what_can_begin_anew_is_told_to)
{
    budget.may_begin_anew = true;
    budget_enter(&budget);
    works[_i]();
    ck_assert_int_eq(budget.state, BUDGET_NEEDS_FIBER);
    ck_fails(budget_check(), ERR_GIVES_WAY, "");
    budget_leave(&budget);
    ck_assert(has_ended);
}
END_TEST

START_TEST(what_is_held_does_not_begin_anew)
{
    budget.may_begin_anew = true;
    budget_enter(&budget);
    budget_hold();
    works[_i]();
    ck_assert_int_eq(budget.state, BUDGET_SPENT);
    budget_release();
    budget_leave(&budget);
}
END_TEST

static void run_work(void *arg)
{
    works[*(int *)arg]();
}

static bool resume(struct fiber *f)
{
    bool goes_on;

    budget_enter(&budget);
    goes_on = fiber_resume(f);
    budget_leave(&budget);
    return goes_on;
}

START_TEST(on_a_fiber_it_gives_way)
{
    struct fiber *f = fiber_new(run_work, &_i);
    unsigned turns = 0;

    budget.is_on_fiber = true;
    while (resume(f)) {
        ck_assert_uint_eq(budget.turns, ++turns);
        ck_assert_uint_lt(turns, 1000);
    }
    ck_assert(has_ended);
    ck_assert_uint_gt(turns, 1);
    ck_assert_int_eq(budget.state, BUDGET_SPENT);
}
END_TEST

START_TEST(who_is_not_wanted_any_more_ends)
{
    struct fiber *f = fiber_new(run_work, &_i);

    budget.is_on_fiber = true;
    budget.most_ns = 0;
    for (int i = 0; i < 3; i++)
        ck_assert(resume(f));
    budget.state = BUDGET_ENDED;
    ck_assert(!resume(f));
    ck_assert(has_ended);
}
END_TEST

START_TEST(what_cannot_be_left_is_not_begun_on_the_loop)
{
    ck_assert(budget_may_begin(SIZE_MAX));
    budget.may_begin_anew = true;
    budget_enter(&budget);
    ck_assert(budget_may_begin(1000));
    budget_hold();
    ck_assert(budget_may_begin(SIZE_MAX));
    budget_release();
    ck_assert(!budget_may_begin(SIZE_MAX));
    ck_assert_int_eq(budget.state, BUDGET_NEEDS_FIBER);
    budget_leave(&budget);
}
END_TEST

static void give_way_thrice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        ck_assert(budget_give_way());
    budget_hold();
    ck_assert(budget_give_way());
    budget_release();
    has_ended = true;
}

START_TEST(it_may_give_way_whenever_it_is_not_held)
{
    struct fiber *f = fiber_new(give_way_thrice, NULL);

    budget.is_on_fiber = true;
    while (resume(f))
        continue;
    ck_assert(has_ended);
    ck_assert_uint_eq(budget.turns, 3);
}
END_TEST

/* Two that were interrupted in the midst of it do not take each other's place. */
START_TEST(several_are_interrupted_at_once)
{
    struct budget budgets[3];
    struct fiber *fibers[3];
    int spins = 1;

    for (int i = 0; i < 3; i++) {
        budget_init(&budgets[i], MOST_MS * UINT64_C(1000000));
        budgets[i].is_on_fiber = true;
        fibers[i] = fiber_new(run_work, &spins);
    }
    for (int left = 3; left > 0;)
        for (int i = 0; i < 3; i++) {
            if (fibers[i] == NULL)
                continue;
            budget_enter(&budgets[i]);
            if (!fiber_resume(fibers[i])) {
                fibers[i] = NULL;
                left--;
            }
            budget_leave(&budgets[i]);
        }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(budgets[i].state, BUDGET_SPENT);
}
END_TEST

/* At the first alarm, and at those which their own handler sets. */
START_TEST(an_alarm_that_goes_off_before_it_can_be_heard_is_not_lost)
{
    int work = 1;
    struct fiber *fiber;

    stands_still = 1;
    budget_enter(&budget);
    spin_on();
    budget_leave(&budget);
    ck_assert_int_eq(budget.state, BUDGET_SPENT);

    begin();
    budget.is_on_fiber = true;
    fiber = fiber_new(run_work, &work);
    do
        stands_still = 2;
    while (resume(fiber));
    ck_assert_int_eq(budget.state, BUDGET_SPENT);
    ck_assert_uint_gt(budget.turns, 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, who_has_no_budget_goes_on);
    tcase_add_loop_test(tc, it_ends_when_all_is_spent, 0, 2);
    tcase_add_loop_test(tc, what_can_begin_anew_is_told_to, 0, 2);
    tcase_add_loop_test(tc, what_is_held_does_not_begin_anew, 0, 2);
    tcase_add_loop_test(tc, on_a_fiber_it_gives_way, 0, 2);
    tcase_add_loop_test(tc, who_is_not_wanted_any_more_ends, 0, 2);
    tcase_add_test(tc, what_cannot_be_left_is_not_begun_on_the_loop);
    tcase_add_test(tc, it_may_give_way_whenever_it_is_not_held);
    tcase_add_test(tc, several_are_interrupted_at_once);
    tcase_add_test(tc, an_alarm_that_goes_off_before_it_can_be_heard_is_not_lost);
}
