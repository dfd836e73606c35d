#include "testing.h"

#include "base/arena.h"
#include "base/rng.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

START_TEST(nothing_is_allocated_before_use)
{
    size_t blocks = mem_blocks();
    struct arena a;

    arena_init(&a);
    arena_reset(&a);
    ck_assert_uint_eq(mem_blocks(), blocks);
    arena_done(&a);
    arena_done(&a);
    arena_done(NULL);
}
END_TEST

/* Every piece keeps what was written into it, whatever is allocated around it. */
START_TEST(pieces_do_not_overlap)
{
    enum { PIECES = 2000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = rng_below(50) == 0 ? rng_below(100000) : rng_below(200);
        pieces[i] = arena_alloc(&a, sizes[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
        size_t kept = 0;

        while (kept < sizes[i] && pieces[i][kept] == i % 251)
            kept++;
        ck_assert_uint_eq(kept, sizes[i]);
    }
    arena_done(&a);
}
END_TEST

START_TEST(zero_is_zeroed)
{
    static const char zeros[3000];
    struct arena a;

    arena_init(&a);
    memset(arena_alloc(&a, sizeof(zeros)), 0xaa, sizeof(zeros));
    arena_reset(&a);
    ck_assert_mem_eq(arena_zero(&a, sizeof(zeros)), zeros, sizeof(zeros));
    arena_done(&a);
}
END_TEST

START_TEST(small_requests_stay_in_the_kept_chunk)
{
    size_t blocks = mem_blocks();
    struct arena a;

    arena_init(&a);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 30; i++)
            ck_assert_ptr_nonnull(arena_alloc(&a, 100));
        ck_assert_uint_eq(mem_blocks(), blocks + 1);
        ck_assert_uint_ge(a.used_bytes, 3000);
        arena_reset(&a);
        ck_assert_uint_eq(mem_blocks(), blocks + 1);
        ck_assert_uint_eq(a.used_bytes, 0);
    }
    arena_done(&a);
}
END_TEST

START_TEST(the_kept_chunk_grows_to_what_is_needed_again_and_again)
{
    size_t blocks = mem_blocks(), bytes = mem_bytes();
    struct arena a;

    arena_init(&a);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 300; i++)
            ck_assert_ptr_nonnull(arena_alloc(&a, 100));
        if (round > 5)
            ck_assert_uint_eq(mem_blocks(), blocks + 1);
        arena_reset(&a);
    }
    for (int round = 0; round < 10; round++) {
        ck_assert_ptr_nonnull(arena_alloc(&a, 3000000));
        arena_reset(&a);
    }
    ck_assert_uint_le(mem_bytes() - bytes, 64 * 1024 + 64);
    arena_done(&a);
}
END_TEST

START_TEST(a_big_piece_leaves_the_current_chunk_in_use)
{
    size_t blocks = mem_blocks();
    struct arena a;
    char *before, *after;

    arena_init(&a);
    before = arena_alloc(&a, 16);
    ck_assert_ptr_nonnull(arena_alloc(&a, 1000000));
    after = arena_alloc(&a, 16);
    ck_assert_ptr_eq(after, before + 16);
    ck_assert_uint_eq(mem_blocks(), blocks + 2);
    arena_done(&a);
}
END_TEST

START_TEST(chunks_grow)
{
    size_t blocks = mem_blocks();
    struct arena a;

    arena_init(&a);
    for (int i = 0; i < 100000; i++)
        ck_assert_ptr_nonnull(arena_alloc(&a, 100));
    ck_assert_uint_lt(mem_blocks(), blocks + 25);
    arena_done(&a);
}
END_TEST

START_TEST(the_last_piece_grows_in_place)
{
    struct arena a;
    char *p, *grown;

    arena_init(&a);
    p = arena_alloc(&a, 10);
    memcpy(p, "0123456789", 10);
    ck_assert_ptr_eq(arena_grow(&a, p, 10, 1000), p);
    ck_assert_ptr_eq(arena_grow(&a, p, 1000, 500), p);
    ck_assert_ptr_ne(arena_alloc(&a, 1), p);
    grown = arena_grow(&a, p, 10, 2000);
    ck_assert_ptr_ne(grown, p);
    ck_assert_mem_eq(grown, "0123456789", 10);
    p = arena_grow(&a, grown, 2000, 100000);
    ck_assert_ptr_ne(p, grown);
    ck_assert_mem_eq(p, "0123456789", 10);
    memset(p, 'x', 100000);
    ck_assert_ptr_nonnull(arena_grow(&a, NULL, 0, 5));
    arena_done(&a);
}
END_TEST

START_TEST(copies_are_terminated)
{
    struct arena a;
    struct span copy;

    arena_init(&a);
    copy = arena_copy(&a, SPAN("abc"));
    ck_span_eq(copy, "abc");
    ck_assert_int_eq(copy.p[3], '\0');
    copy = arena_copy(&a, span_of(NULL, 0));
    ck_assert_uint_eq(copy.n, 0);
    ck_assert_int_eq(copy.p[0], '\0');
    arena_done(&a);
}
END_TEST

START_TEST(numbers_in_decimal)
{
    struct arena a;

    arena_init(&a);
    ck_span_eq(arena_u64(&a, 0), "0");
    ck_span_eq(arena_u64(&a, 1020), "1020");
    ck_span_eq(arena_u64(&a, UINT64_MAX), "18446744073709551615");
    arena_done(&a);
}
END_TEST

START_TEST(printf_of_any_length)
{
    struct arena a;

    arena_init(&a);
    ck_span_eq(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    ck_assert_uint_eq(arena_printf(&a, "%s", "").n, 0);
    for (int n = 250; n < 260; n++) {
        struct span text = arena_printf(&a, "%*d", n, 5);

        ck_assert_uint_eq(text.n, (size_t)n);
        ck_assert_str_eq(text.p + n - 2, " 5");
    }
    arena_done(&a);
}
END_TEST

START_TEST(a_size_nobody_checked_aborts)
{
    struct arena a;

    arena_init(&a);
    ck_assert_ptr_nonnull(arena_alloc(&a, SIZE_MAX - 8));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, nothing_is_allocated_before_use);
    tcase_add_test(tc, pieces_do_not_overlap);
    tcase_add_test(tc, zero_is_zeroed);
    tcase_add_test(tc, small_requests_stay_in_the_kept_chunk);
    tcase_add_test(tc, the_kept_chunk_grows_to_what_is_needed_again_and_again);
    tcase_add_test(tc, a_big_piece_leaves_the_current_chunk_in_use);
    tcase_add_test(tc, chunks_grow);
    tcase_add_test(tc, the_last_piece_grows_in_place);
    tcase_add_test(tc, copies_are_terminated);
    tcase_add_test(tc, numbers_in_decimal);
    tcase_add_test(tc, printf_of_any_length);
    tcase_add_test_raise_signal(tc, a_size_nobody_checked_aborts, SIGABRT);
}
