#include "testing.h"

#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* AddressSanitizer is to answer as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

START_TEST(bytes_and_blocks_are_counted)
{
    size_t bytes = mem_bytes(), blocks = mem_blocks();
    char *a = mem_alloc(1000);
    char *b = mem_zero(2000);

    ck_assert_uint_eq(mem_blocks(), blocks + 2);
    ck_assert_uint_ge(mem_bytes(), bytes + 3000);
    ck_assert_uint_lt(mem_bytes(), bytes + 3200);
    a = mem_resize(a, 5000);
    ck_assert_uint_eq(mem_blocks(), blocks + 2);
    ck_assert_uint_ge(mem_bytes(), bytes + 7000);
    a = mem_resize(a, 10);
    ck_assert_uint_lt(mem_bytes(), bytes + 2200);
    mem_free(a);
    mem_free(b);
    ck_assert_uint_eq(mem_blocks(), blocks);
    ck_assert_uint_eq(mem_bytes(), bytes);
}
END_TEST

/* Each block has a word of malloc's beside it. */
START_TEST(many_small_blocks_weigh_what_they_take)
{
    enum { COUNT = 1000 };
    void *all[COUNT];
    size_t bytes = mem_bytes(), usable = 0;

    for (size_t i = 0; i < COUNT; i++) {
        all[i] = mem_alloc(24);
        usable += malloc_usable_size(all[i]);
    }
    ck_assert_uint_eq(mem_bytes() - bytes, usable + COUNT * sizeof(size_t));
    for (size_t i = 0; i < COUNT; i++)
        mem_free(all[i]);
    ck_assert_uint_eq(mem_bytes(), bytes);
}
END_TEST

START_TEST(nothing_is_something)
{
    void *a = mem_alloc(0);
    void *b = mem_zero(0);
    void *c = mem_resize(NULL, 0);

    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_nonnull(c);
    c = mem_resize(c, 0);
    ck_assert_ptr_nonnull(c);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
}
END_TEST

START_TEST(zero_is_zeroed)
{
    static const char zeros[4096];
    char *p;

    /* What was freed is likely to come back. */
    p = mem_alloc(sizeof(zeros));
    memset(p, 0xaa, sizeof(zeros));
    mem_free(p);
    p = mem_zero(sizeof(zeros));
    ck_assert_mem_eq(p, zeros, sizeof(zeros));
    mem_free(p);
}
END_TEST

START_TEST(resize_keeps_the_content)
{
    char *p = mem_resize(NULL, 4);

    memcpy(p, "abcd", 4);
    p = mem_resize(p, 100000);
    ck_assert_mem_eq(p, "abcd", 4);
    p = mem_resize(p, 2);
    ck_assert_mem_eq(p, "ab", 2);
    mem_free(p);
}
END_TEST

START_TEST(string_is_a_terminated_copy)
{
    static const struct span spans[] = {SPAN_INIT("text"), SPAN_INIT(""), {NULL, 0}};

    for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
        char *copy = mem_string(spans[i]);

        ck_assert_uint_eq(strlen(copy), spans[i].n);
        ck_span_is(span_str(copy), spans[i]);
        mem_free(copy);
    }
}
END_TEST

START_TEST(wipe_leaves_zeros)
{
    char secret[] = "secret";

    mem_wipe(secret, 3);
    ck_assert_mem_eq(secret, "\0\0\0ret", 6);
    mem_wipe(NULL, 0);
}
END_TEST

START_TEST(failure_can_be_switched_off)
{
    mem_fail_at(1);
    mem_fail_at(0);
    mem_free(mem_alloc(1));
}
END_TEST

/* What fails to fail leaves these tests without their signal. */
START_TEST(nth_allocation_fails)
{
    void *p;

    mem_fail_at(3);
    p = mem_alloc(1);
    p = mem_resize(p, 2);
    p = mem_zero(1);
    mem_free(p);
}
END_TEST

START_TEST(impossible_size_is_out_of_memory)
{
    volatile size_t too_much = SIZE_MAX / 2 - 4096;

    mem_free(mem_alloc(too_much));
}
END_TEST

START_TEST(running_out_is_told_in_one_line)
{
    char text[200] = "";
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        mem_fail_at(1);
        mem_free(mem_alloc(77));
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_gt((int)read(ends[0], text, sizeof(text) - 1), 0);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_str_eq(text, "svcd: out of memory (77 bytes)\n");
}
END_TEST

enum { MIB = 1 << 20 };

START_TEST(large_blocks_go_back_piece_by_piece)
{
    size_t bytes = mem_bytes(), blocks = mem_blocks();
    char *large = mem_alloc(8 * MIB), *other = mem_alloc(2 * MIB), *small = mem_alloc(1000);

    memset(large, 1, 8 * MIB);
    memset(other, 1, 2 * MIB);
    mem_free_large_later(true);
    mem_free(small);
    ck_assert_uint_eq(mem_blocks(), blocks + 2);
    ck_assert(!mem_has_to_give_back());
    mem_free(other);
    mem_free(large);
    ck_assert(mem_has_to_give_back());
    ck_assert_uint_ge(mem_bytes(), bytes + 10 * MIB);
    for (size_t left = 10; left > 0; left--) {
        ck_assert(mem_has_to_give_back());
        ck_assert_uint_gt(mem_bytes(), bytes + (left - 1) * MIB);
        ck_assert_uint_le(mem_bytes(), bytes + left * MIB + 4 * 4096);
        mem_give_back(MIB);
    }
    mem_give_back(MIB); /* what malloc has rounded up */
    ck_assert(!mem_has_to_give_back());
    ck_assert_uint_eq(mem_bytes(), bytes);
    ck_assert_uint_eq(mem_blocks(), blocks);
    mem_free_large_later(false);
}
END_TEST

static size_t resident_bytes(void)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    ck_assert(f != NULL && fscanf(f, "%*u %zu", &pages) == 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

START_TEST(their_pages_have_gone)
{
    char *large = mem_alloc(32 * MIB);
    size_t resident;

    memset(large, 1, 32 * MIB);
    resident = resident_bytes();
    mem_free_large_later(true);
    mem_free(large);
    mem_give_back(24 * MIB);
    ck_assert(mem_has_to_give_back());
    ck_assert_uint_lt(resident_bytes(),
                      resident - 16 * MIB); /* a sanitizer may take some for itself */
    mem_free_large_later(false);
    ck_assert(!mem_has_to_give_back());
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
    size_t bytes = mem_bytes();
    void *p[4];

    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        p[i] = mem_alloc(MEM_KEPT_BYTES / 2 - 4096);
    mem_free_large_later(true);
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        mem_free(p[i]);
    ck_assert_uint_le(mem_bytes(), bytes + MEM_KEPT_BYTES);
    mem_free_large_later(false);
    ck_assert_uint_eq(mem_bytes(), bytes);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, bytes_and_blocks_are_counted);
    tcase_add_test(tc, many_small_blocks_weigh_what_they_take);
    tcase_add_test(tc, nothing_is_something);
    tcase_add_test(tc, zero_is_zeroed);
    tcase_add_test(tc, resize_keeps_the_content);
    tcase_add_test(tc, string_is_a_terminated_copy);
    tcase_add_test(tc, wipe_leaves_zeros);
    tcase_add_test(tc, failure_can_be_switched_off);
    tcase_add_test_raise_signal(tc, nth_allocation_fails, SIGABRT);
    tcase_add_test(tc, running_out_is_told_in_one_line);
    tcase_add_test(tc, large_blocks_go_back_piece_by_piece);
    tcase_add_test(tc, their_pages_have_gone);
    tcase_add_test(tc, what_is_kept_is_bounded);
    tcase_add_test_raise_signal(tc, impossible_size_is_out_of_memory, SIGABRT);
}
