#include "testing.h"

#include "base/room.h"

enum { MEMORY = 1 << 20, LEAST = 65536 };

static struct limits limits;
static void *others; /* what fills the heap */

static void set_up(void)
{
    limits_init(&limits);
    limits.memory_bytes = (int64_t)mem_bytes() + MEMORY;
    others = NULL;
}

static void tear_down(void)
{
    mem_free(others);
}

/* Exactly so many bytes of the heap are taken. */
static void take(size_t bytes)
{
    size_t before = mem_bytes();

    others = mem_alloc(bytes);
    limits.memory_bytes += (int64_t)(mem_bytes() - before - bytes); /* what malloc rounds up */
}

START_TEST(without_a_bound_everybody_has_his_own)
{
    limits.memory_bytes = 0;
    ck_assert_uint_eq(room_most(&limits, 0, 1000), 1000);
    ck_assert_uint_eq(room_most(&limits, 5000, 1000), 1000);
    ck_assert_uint_eq(room_short(&limits), 0);
    ck_assert_uint_eq(room_lacking(&limits), 0);
}
END_TEST

START_TEST(others_leave_what_they_do_not_hold)
{
    take(MEMORY / 2);
    ck_assert_uint_eq(room_most(&limits, 0, INT64_MAX), MEMORY / 2);
    ck_assert_uint_eq(room_most(&limits, MEMORY / 4, INT64_MAX), MEMORY / 2 + MEMORY / 4);
    ck_assert_uint_eq(room_most(&limits, 0, 1000), 1000);
}
END_TEST

START_TEST(a_little_is_always_left)
{
    take(2 * MEMORY);
    ck_assert_uint_eq(room_most(&limits, 0, INT64_MAX), LEAST);
    ck_assert_uint_eq(room_most(&limits, 0, 1000), 1000);
    limits.memory_bytes = 1000;
    ck_assert_uint_eq(room_most(&limits, 0, INT64_MAX), LEAST);
}
END_TEST

START_TEST(the_little_that_is_left_is_bounded)
{
    limits.memory_bytes = INT64_MAX;
    ck_assert_uint_eq(room_most(&limits, 0, INT64_MAX), (uint64_t)INT64_MAX - mem_bytes());
    ck_assert_uint_le(ROOM_MOST_LEAST_BYTES, 32 << 20);
}
END_TEST

START_TEST(logs_make_room_before_the_end)
{
    uint64_t all = (uint64_t)limits.memory_bytes;

    take((size_t)(all - all / 16 - mem_bytes()));
    all = (uint64_t)limits.memory_bytes;
    ck_assert_uint_eq(room_lacking(&limits), 0);
    ck_assert_uint_eq(room_short(&limits), mem_bytes() - (all - all / 8));
}
END_TEST

START_TEST(past_the_bound_it_says_by_how_much)
{
    take(MEMORY + 12345);
    ck_assert_uint_eq(room_lacking(&limits), 12345);
    ck_assert_uint_gt(room_short(&limits), 12345);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, without_a_bound_everybody_has_his_own);
    tcase_add_test(tc, others_leave_what_they_do_not_hold);
    tcase_add_test(tc, a_little_is_always_left);
    tcase_add_test(tc, the_little_that_is_left_is_bounded);
    tcase_add_test(tc, logs_make_room_before_the_end);
    tcase_add_test(tc, past_the_bound_it_says_by_how_much);
}
