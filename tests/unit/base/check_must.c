#include "testing.h"

#include "base/must.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIND_A = 0x11111111, KIND_B = 0x22222222 };

struct kind_a {
    unsigned kind;
};

START_TEST(holding_conditions_pass)
{
    struct kind_a object = {KIND_A};
    void *opaque = &object;
    int evaluated = 0;

    MUST(++evaluated == 1);
    ck_assert_int_eq(evaluated, 1);
    ck_assert_ptr_eq(MUST_BE(struct kind_a, KIND_A, opaque), &object);
}
END_TEST

START_TEST(broken_condition_aborts)
{
    MUST(1 + 1 == 3);
}
END_TEST

START_TEST(wrong_kind_aborts)
{
    struct kind_a object = {KIND_A};

    ck_assert_ptr_null(MUST_BE(struct kind_a, KIND_B, (void *)&object));
}
END_TEST

START_TEST(null_object_aborts)
{
    ck_assert_ptr_null(MUST_BE(struct kind_a, KIND_A, NULL));
}
END_TEST

START_TEST(reaching_the_unreachable_aborts)
{
    MUST_NOT_REACH();
}
END_TEST

START_TEST(message_names_place_and_expectation)
{
    char text[200] = "";
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        must_fail("two is three", "sum", "src/sum.c", 12);
    }
    close(ends[1]);
    ck_assert_int_gt((int)read(ends[0], text, sizeof(text) - 1), 0);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_str_eq(text, "svcd: src/sum.c:12: sum: broken expectation: two is three\n");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, holding_conditions_pass);
    tcase_add_test_raise_signal(tc, broken_condition_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, wrong_kind_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, null_object_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, reaching_the_unreachable_aborts, SIGABRT);
    tcase_add_test(tc, message_names_place_and_expectation);
}
