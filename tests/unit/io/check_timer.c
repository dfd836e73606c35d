#include "testing.h"

#include "base/clock.h"
#include "base/rng.h"
#include "io/loop.h"
#include "io/timer.h"

#include <string.h>

#define MS 1000000u

static struct loop loop;

struct shot {
    struct timer timer;
    unsigned id;
    void (*then)(struct shot *shot);
};

static struct shot shots[200];
static unsigned fired[1000]; /* ids in the order they came */
static unsigned fired_count;

static void on_time(struct timer *timer)
{
    struct shot *shot = CONTAINER_OF(timer, struct shot, timer);

    ck_assert(!timer_running(timer));
    ck_assert_uint_lt(fired_count, ARRAY_LEN(fired));
    fired[fired_count++] = shot->id;
    if (shot->then != NULL)
        shot->then(shot);
}

/* With a clock that stands still at 1 s. */
static void begin(void)
{
    clock_fake(0, 1000 * MS);
    ck_ok(loop_init(&loop));
    fired_count = 0;
    memset(shots, 0, sizeof(shots));
    for (unsigned i = 0; i < ARRAY_LEN(shots); i++) {
        shots[i].id = i;
        timer_init(&shots[i].timer, on_time);
    }
}

static void start(unsigned id, uint64_t delay_ms)
{
    timer_start(&loop, &shots[id].timer, delay_ms);
}

static void pass_ms(uint64_t ms)
{
    clock_advance(ms * MS);
    loop_run_once(&loop);
}

static void expect(const unsigned *ids, unsigned count)
{
    ck_assert_uint_eq(fired_count, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_uint_eq(fired[i], ids[i]);
    fired_count = 0;
}

#define expect_fired(...)                                                                          \
    expect((const unsigned[]){__VA_ARGS__}, ARRAY_LEN(((const unsigned[]){__VA_ARGS__})))

START_TEST(fires_when_due_and_not_before)
{
    begin();
    start(0, 86400000);
    start(1, 50);
    ck_assert(timer_running(&shots[0].timer));
    pass_ms(50);
    expect_fired(1);
    ck_assert(!timer_running(&shots[1].timer));
    pass_ms(86400000 - 50);
    expect_fired(0);
    loop_done(&loop);
}
END_TEST

START_TEST(due_together_fire_in_deadline_order)
{
    begin();
    start(0, 30);
    start(1, 10);
    start(2, 20);
    start(3, 10);
    start(4, 0);
    pass_ms(100);
    expect_fired(4, 1, 3, 2, 0);
    loop_done(&loop);
}
END_TEST

START_TEST(start_moves_a_running_timer)
{
    begin();
    start(0, 10);
    start(1, 20);
    start(0, 30);
    pass_ms(20);
    expect_fired(1);
    start(0, 5);
    pass_ms(5);
    expect_fired(0);
    loop_done(&loop);
}
END_TEST

START_TEST(stopped_timer_does_not_fire)
{
    begin();
    timer_stop(&loop, &shots[0].timer);
    start(0, 10);
    start(1, 10);
    timer_stop(&loop, &shots[0].timer);
    timer_stop(&loop, &shots[0].timer);
    ck_assert(!timer_running(&shots[0].timer));
    pass_ms(10);
    expect_fired(1);
    loop_done(&loop);
}
END_TEST

static void start_itself_now(struct shot *shot)
{
    start(shot->id, 0);
}

static void stop_1(struct shot *shot)
{
    (void)shot;
    timer_stop(&loop, &shots[1].timer);
}

START_TEST(delay_0_waits_for_the_next_turn)
{
    begin();
    shots[0].then = start_itself_now;
    start(0, 0);
    start(1, 0);
    expect(NULL, 0);
    loop_run_once(&loop);
    expect_fired(0, 1);
    loop_run_once(&loop);
    expect_fired(0);
    timer_stop(&loop, &shots[0].timer);
    loop_done(&loop);
}
END_TEST

START_TEST(callback_stops_another_that_is_due)
{
    begin();
    shots[0].then = stop_1;
    start(0, 10);
    start(1, 10);
    start(2, 10);
    pass_ms(10);
    expect_fired(0, 2);
    loop_done(&loop);
}
END_TEST

START_TEST(far_deadline_does_not_overflow)
{
    begin();
    start(0, UINT64_MAX);
    start(1, 1);
    pass_ms(1);
    expect_fired(1);
    timer_stop(&loop, &shots[0].timer);
    loop_done(&loop);
}
END_TEST

START_TEST(real_clock_in_order_never_early)
{
    static const unsigned delays[] = {25, 5, 15, 0, 5};
    uint64_t began;

    begin();
    clock_real();
    began = clock_mono_ms();
    for (unsigned i = 0; i < ARRAY_LEN(delays); i++)
        start(i, delays[i]);
    loop_run(&loop); /* ends because no timer is left */
    expect_fired(3, 1, 4, 2, 0);
    ck_assert_uint_ge(clock_mono_ms() - began, 25);
    loop_done(&loop);
}
END_TEST

START_TEST(later_earliest_still_wakes_in_time)
{
    uint64_t began;

    begin();
    clock_real();
    began = clock_mono_ms();
    start(0, 5); /* the alarm stays at 5 */
    start(0, 20);
    loop_run(&loop);
    expect_fired(0);
    ck_assert_uint_ge(clock_mono_ms() - began, 20);
    ck_assert_uint_lt(clock_mono_ms() - began, 2000);
    loop_done(&loop);
}
END_TEST

START_TEST(earlier_timer_moves_the_alarm)
{
    begin();
    clock_real();
    start(0, 60000);
    start(1, 5);
    while (fired_count == 0)
        loop_run_once(&loop);
    expect_fired(1);
    timer_stop(&loop, &shots[0].timer);
    loop_done(&loop);
}
END_TEST

START_TEST(stopped_timer_keeps_nothing_running)
{
    uint64_t began;

    begin();
    clock_real();
    began = clock_mono_ms();
    start(0, 20000);
    timer_stop(&loop, &shots[0].timer);
    loop_run(&loop);
    ck_assert_uint_lt(clock_mono_ms() - began, 10000);
    loop_done(&loop);
}
END_TEST

/* The model: an array of deadlines. What fires in a step is exactly what is due, in order. */
static void step_against_model(uint64_t now_ms, uint64_t *deadlines)
{
    unsigned due = 0;
    uint64_t last = 0;

    for (unsigned i = 0; i < ARRAY_LEN(shots); i++)
        due += deadlines[i] != 0 && deadlines[i] <= now_ms;
    fired_count = 0;
    loop_run_once(&loop);
    ck_assert_uint_eq(fired_count, due);
    for (unsigned i = 0; i < fired_count; i++) {
        uint64_t deadline = deadlines[fired[i]];

        ck_assert_uint_ne(deadline, 0);
        ck_assert_uint_ge(deadline, last);
        ck_assert_uint_le(deadline, now_ms);
        last = deadline;
        deadlines[fired[i]] = 0;
    }
}

START_TEST(random_starts_and_stops_match_a_model)
{
    uint64_t deadlines[ARRAY_LEN(shots)] = {0};
    uint64_t now_ms = 1000;

    begin();
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = 0; i < 20; i++) {
            unsigned id = (unsigned)rng_below(ARRAY_LEN(shots));
            uint64_t delay = rng_below(50);

            if (rng_below(4) == 0) {
                timer_stop(&loop, &shots[id].timer);
                deadlines[id] = 0;
            } else {
                start(id, delay);
                deadlines[id] = now_ms + delay;
            }
        }
        /* Never a step without something due: the loop would wait for it in real time. */
        start(0, 0);
        deadlines[0] = now_ms;
        now_ms += rng_below(10);
        clock_fake(0, now_ms * MS);
        step_against_model(now_ms, deadlines);
    }
    for (unsigned i = 0; i < ARRAY_LEN(shots); i++)
        timer_stop(&loop, &shots[i].timer);
    loop_done(&loop);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, fires_when_due_and_not_before);
    tcase_add_test(tc, due_together_fire_in_deadline_order);
    tcase_add_test(tc, start_moves_a_running_timer);
    tcase_add_test(tc, stopped_timer_does_not_fire);
    tcase_add_test(tc, delay_0_waits_for_the_next_turn);
    tcase_add_test(tc, callback_stops_another_that_is_due);
    tcase_add_test(tc, far_deadline_does_not_overflow);
    tcase_add_test(tc, real_clock_in_order_never_early);
    tcase_add_test(tc, later_earliest_still_wakes_in_time);
    tcase_add_test(tc, earlier_timer_moves_the_alarm);
    tcase_add_test(tc, stopped_timer_keeps_nothing_running);
    tcase_add_test(tc, random_starts_and_stops_match_a_model);
}
