#include "testing.h"

#include "base/clock.h"

#include <signal.h>
#include <time.h>

START_TEST(real_clocks)
{
    int64_t now = (int64_t)time(NULL) * 1000000000;
    uint64_t mono = clock_mono_ns();

    ck_assert_int_ge(clock_unix_ns(), now - 2000000000);
    ck_assert_int_le(clock_unix_ns(), now + 60000000000);
    ck_assert_int_ge(clock_unix_s(), now / 1000000000 - 2);
    ck_assert_int_le(clock_unix_s(), clock_unix_ns() / 1000000000);
    for (int i = 0; i < 1000; i++) {
        uint64_t next = clock_mono_ns();

        ck_assert_uint_ge(next, mono);
        mono = next;
    }
    ck_assert_uint_ge(clock_mono_ms(), mono / 1000000);
}
END_TEST

START_TEST(fake_clocks_stand_still_until_advanced)
{
    clock_fake(-5, 7000000);
    ck_assert_int_eq(clock_unix_ns(), -5);
    ck_assert_int_eq(clock_unix_ns(), -5);
    ck_assert_uint_eq(clock_mono_ns(), 7000000);
    ck_assert_uint_eq(clock_mono_ms(), 7);
    clock_advance(2999999);
    ck_assert_int_eq(clock_unix_ns(), 2999994);
    ck_assert_int_eq(clock_unix_s(), 0);
    ck_assert_uint_eq(clock_mono_ns(), 9999999);
    ck_assert_uint_eq(clock_mono_ms(), 9);
    clock_real();
    ck_assert_int_gt(clock_unix_ns(), INT64_C(1000000000) * 1000000000);
}
END_TEST

START_TEST(advancing_the_real_clock_aborts)
{
    clock_advance(1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, real_clocks);
    tcase_add_test(tc, fake_clocks_stand_still_until_advanced);
    tcase_add_test_raise_signal(tc, advancing_the_real_clock_aborts, SIGABRT);
}
