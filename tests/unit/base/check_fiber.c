#include "testing.h"

#include "base/arena.h"
#include "base/fiber.h"

#include <signal.h>
#include <string.h>

enum { DEEP = 200, ROUNDS = 3 };

static char order[64];

static void note(char c)
{
    size_t n = strlen(order);

    order[n] = c;
    order[n + 1] = '\0';
}

static void stop_twice(void *arg)
{
    const char *name = arg;

    for (int i = 0; i < 2; i++) {
        ck_assert(fiber_is_inside());
        note(name[0]);
        fiber_yield();
    }
    note((char)(name[0] - 'a' + 'A'));
}

START_TEST(fibers_go_on_where_they_stopped)
{
    char first[] = "a", second[] = "b";
    struct fiber *a = fiber_new(stop_twice, first), *b = fiber_new(stop_twice, second);

    order[0] = '\0';
    ck_assert(!fiber_is_inside());
    ck_assert(fiber_resume(a));
    ck_assert(fiber_resume(b));
    ck_assert(fiber_resume(a));
    ck_assert(!fiber_resume(a));
    ck_assert(fiber_resume(b));
    ck_assert(!fiber_resume(b));
    ck_assert(!fiber_is_inside());
    ck_assert_str_eq(order, "abaAbB");
    fiber_forget_stacks();
}
END_TEST

static unsigned sum_of(unsigned depth)
{
    volatile unsigned own = depth;

    if (depth > 0)
        own += sum_of(depth - 1);
    if (depth % 50 == 0)
        fiber_yield();
    return own;
}

static void go_deep(void *arg)
{
    *(unsigned *)arg = sum_of(DEEP);
}

START_TEST(they_stop_however_deep)
{
    for (unsigned round = 0; round < ROUNDS; round++) { /* on one stack */
        unsigned sum = 0, stops = 0;
        struct fiber *f = fiber_new(go_deep, &sum);

        while (fiber_resume(f))
            stops++;
        ck_assert_uint_eq(stops, DEEP / 50 + 1);
        ck_assert_uint_eq(sum, DEEP * (DEEP + 1) / 2);
    }
    fiber_forget_stacks();
}
END_TEST

static void stop_once(void *arg)
{
    (void)arg;
    fiber_yield();
}

static void count(void *what)
{
    ++*(unsigned *)what;
}

START_TEST(what_is_retired_waits_for_older_fibers)
{
    unsigned first = 0, second = 0, third = 0;
    struct fiber *a, *b;

    fiber_retire(count, &first);
    ck_assert_uint_eq(first, 1);
    a = fiber_new(stop_once, NULL);
    fiber_retire(count, &second);
    b = fiber_new(stop_once, NULL);
    fiber_retire(count, &third);
    ck_assert(fiber_resume(a));
    ck_assert(fiber_resume(b));
    ck_assert(!fiber_resume(a));
    ck_assert_uint_eq(second, 1);
    ck_assert_uint_eq(third, 0);
    ck_assert(!fiber_resume(b));
    ck_assert_uint_eq(third, 1);
    fiber_forget_stacks();
}
END_TEST

START_TEST(nobody_yields_from_the_loop)
{
    fiber_yield();
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, fibers_go_on_where_they_stopped);
    tcase_add_test(tc, they_stop_however_deep);
    tcase_add_test(tc, what_is_retired_waits_for_older_fibers);
    tcase_add_test_raise_signal(tc, nobody_yields_from_the_loop, SIGABRT);
}
