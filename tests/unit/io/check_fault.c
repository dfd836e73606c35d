#include "testing.h"

#include "io/fault.h"

#ifdef SVCD_FAULTS

/* The passes, from the first, that fail: '!' for those, '.' for the others. */
static void expect_passes(const char *name, const char *passes)
{
    for (; *passes != '\0'; passes++)
        ck_assert_int_eq(fault_hit(name), *passes == '!');
}

START_TEST(counts_down_by_name)
{
    ck_assert(fault_set("journal.sync:3,tcp.write:1"));
    expect_passes("other", "...");
    expect_passes("journal.sync", "..!...");
    expect_passes("tcp.write", "!...");
}
END_TEST

START_TEST(may_fail_for_good)
{
    ck_assert(fault_set("disk.write:2+"));
    expect_passes("disk.write", ".!!!!");
}
END_TEST

START_TEST(a_name_may_fail_twice)
{
    ck_assert(fault_set("a:2,a:4"));
    expect_passes("a", ".!.!..");
}
END_TEST

START_TEST(setting_replaces_and_clears)
{
    ck_assert(fault_set("a:1,b:1"));
    ck_assert(fault_set("c:1"));
    expect_passes("a", "..");
    ck_assert(fault_set(""));
    expect_passes("c", "..");
    ck_assert(fault_set("c:1"));
    ck_assert(fault_set(NULL));
    expect_passes("c", "..");
}
END_TEST

START_TEST(malformed_lists_change_nothing)
{
    static const char *const lists[] = {
        "a",
        "a:",
        ":1",
        "a:0",
        "a:x",
        "a:-1",
        "a:1,",
        ",a:1",
        "a:1++",
        "a:+",
        "a:1:2",
        "a:99999999999999999999",
        "a234567890123456789012345678901234567890123456789012345678901234:1",
        "a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1",
    };

    ck_assert(fault_set("kept:1+"));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        ck_assert_msg(!fault_set(lists[i]), "%s", lists[i]);
        ck_assert(fault_hit("kept"));
    }
    ck_assert(fault_set(NULL));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, counts_down_by_name);
    tcase_add_test(tc, may_fail_for_good);
    tcase_add_test(tc, a_name_may_fail_twice);
    tcase_add_test(tc, setting_replaces_and_clears);
    tcase_add_test(tc, malformed_lists_change_nothing);
}

#else

START_TEST(nothing_fails_without_the_option)
{
    for (int i = 0; i < 100; i++)
        ck_assert(!fault_hit("journal.sync"));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, nothing_fails_without_the_option);
}

#endif
