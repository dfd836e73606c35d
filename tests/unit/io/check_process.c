#include "testing.h"

#include "base/clock.h"
#include "io/process.h"

#include <string.h>
#include <sys/resource.h>

START_TEST(memory_is_counted)
{
    enum { BYTES = 64 << 20 };
    uint64_t before = process_resident_bytes();
    char *p = mem_alloc(BYTES);

    memset(p, 1, BYTES);
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_ge(process_resident_bytes(), before + BYTES / 2);
    mem_free(p);
}
END_TEST

START_TEST(work_takes_time)
{
    uint64_t before_ns = process_cpu_ns(), began_ns = clock_mono_ns(), used_ns;

    while (clock_mono_ns() - began_ns < 50 * 1000000)
        continue;
    used_ns = process_cpu_ns() - before_ns;
    ck_assert_uint_gt(used_ns, 0);
    ck_assert_uint_le(used_ns, clock_mono_ns() - began_ns + 20 * 1000000);
}
END_TEST

START_TEST(descriptors_are_limited)
{
    struct rlimit before, limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 77;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(process_descriptors_most(), 77);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, memory_is_counted);
    tcase_add_test(tc, work_takes_time);
    tcase_add_test(tc, descriptors_are_limited);
}
