#include "testing.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

START_TEST(zeroed_with_a_cap_is_empty)
{
    struct buf b = {.max = 10};

    ck_assert_ptr_null(buf_span(&b).p);
    ck_assert_uint_eq(buf_span(&b).n, 0);
    ck_assert_str_eq(buf_text(&b), "");
    buf_add(&b, span_of(NULL, 0));
    ck_assert_ptr_null(b.p);
    buf_done(&b);
    buf_done(NULL);
}
END_TEST

START_TEST(appends_of_all_kinds)
{
    struct buf b;

    buf_init(&b, 1000);
    buf_add(&b, SPAN("a\0b"));
    buf_add_char(&b, 'c');
    buf_add_str(&b, "de");
    buf_add_str(&b, NULL);
    buf_printf(&b, "[%d %s]", 42, "x");
    ck_span_eq(buf_span(&b), "a\0bcde[42 x]");
    ck_assert_uint_eq(strlen(buf_text(&b) + 2), b.n - 2);
    buf_done(&b);
    ck_assert_uint_eq(b.max, 1000);
    ck_assert_ptr_null(b.p);
}
END_TEST

START_TEST(integers_are_decimal)
{
    static const int64_t values[] = {0, 1, -1, 9, 10, -10, 123456789, INT64_MAX, INT64_MIN};
    struct buf b = {.max = 100};
    char expected[32];

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        buf_clear(&b);
        buf_add_i64(&b, values[i]);
        snprintf(expected, sizeof(expected), "%" PRId64, values[i]);
        ck_assert_str_eq(buf_text(&b), expected);
        buf_clear(&b);
        buf_add_u64(&b, (uint64_t)values[i]);
        snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)values[i]);
        ck_assert_str_eq(buf_text(&b), expected);
    }
    buf_done(&b);
}
END_TEST

START_TEST(past_the_cap_the_append_is_dropped)
{
    struct buf b = {.max = 5};

    buf_add_str(&b, "abc");
    buf_add_str(&b, "def");
    ck_assert(buf_over(&b));
    ck_span_eq(buf_span(&b), "abc");
    buf_printf(&b, "%d", 123);
    ck_assert_ptr_null(buf_reserve(&b, 3));
    ck_assert_ptr_null(buf_reserve(&b, SIZE_MAX));
    ck_span_eq(buf_span(&b), "abc");
    buf_clear(&b);
    ck_assert(!buf_over(&b));
    buf_printf(&b, "%d", 12345);
    ck_span_eq(buf_span(&b), "12345");
    ck_assert_str_eq(buf_text(&b), "12345");
    ck_assert(!buf_over(&b));
    ck_assert_uint_le(b.size, b.max);
    buf_done(&b);
}
END_TEST

START_TEST(a_cap_of_nothing_takes_nothing)
{
    struct buf b = {.max = 0};

    buf_add(&b, SPAN(""));
    buf_printf(&b, "%s", "");
    ck_assert(!buf_over(&b));
    ck_assert_ptr_nonnull(buf_reserve(&b, 0));
    ck_assert_str_eq(buf_text(&b), "");
    buf_add_char(&b, 'x');
    ck_assert(buf_over(&b));
    buf_done(&b);
}
END_TEST

START_TEST(printf_at_every_fill)
{
    for (size_t fill = 0; fill < 130; fill++) {
        struct buf b = {.max = BUF_NO_CAP};

        for (size_t i = 0; i < fill; i++)
            buf_add_char(&b, '.');
        buf_printf(&b, "%s|%70s", "ab", "");
        ck_assert_uint_eq(b.n, fill + 73);
        ck_span_eq(span_sub(buf_span(&b), fill, fill + 3), "ab|");
        buf_done(&b);
    }
}
END_TEST

START_TEST(reserve_and_commit)
{
    struct buf b = {.max = 1000};
    char *to = buf_reserve(&b, 500);

    ck_assert_uint_ge(b.size, 500);
    memset(to, 'x', 500);
    buf_commit(&b, 3);
    ck_span_eq(buf_span(&b), "xxx");
    ck_assert_ptr_eq(buf_reserve(&b, 1), b.p + 3);
    ck_assert_ptr_eq(buf_reserve(&b, 0), b.p + 3);
    buf_done(&b);
}
END_TEST

START_TEST(committing_what_was_not_reserved_aborts)
{
    struct buf b = {.max = 1000};

    ck_assert_ptr_nonnull(buf_reserve(&b, 10));
    buf_commit(&b, b.size + 1);
}
END_TEST

START_TEST(shrink_gives_memory_back)
{
    struct buf b = {.max = 100000};

    ck_assert_ptr_nonnull(buf_reserve(&b, 50000));
    buf_commit(&b, 50000);
    buf_shrink(&b, 100000);
    ck_assert_uint_ge(b.size, 50000);
    buf_shrink(&b, 1000);
    ck_assert_uint_eq(b.size, 1000);
    ck_assert_uint_eq(b.n, 0);
    buf_shrink(&b, 0);
    ck_assert_ptr_null(b.p);
    ck_assert_uint_eq(b.size, 0);
}
END_TEST

START_TEST(drop_and_truncate)
{
    struct buf b = {.max = 100};

    buf_drop_front(&b, 0);
    buf_truncate(&b, 0);
    buf_add_str(&b, "abcdef");
    buf_drop_front(&b, 2);
    ck_span_eq(buf_span(&b), "cdef");
    buf_truncate(&b, 3);
    ck_span_eq(buf_span(&b), "cde");
    buf_drop_front(&b, 3);
    ck_assert_uint_eq(b.n, 0);
    buf_done(&b);
}
END_TEST

START_TEST(little_endian)
{
    struct buf b = {.max = 100};

    buf_add_le16(&b, 0x0102);
    buf_add_le32(&b, 0xa1a2a3a4);
    buf_add_le64(&b, UINT64_C(0xf1f2f3f4f5f6f7f8));
    ck_span_eq(buf_span(&b), "\x02\x01\xa4\xa3\xa2\xa1\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1");
    buf_done(&b);
}
END_TEST

#define BAD "\xef\xbf\xbd"

static const struct cleaning {
    struct span text, clean;
} cleanings[] = {
    {SPAN_INIT(""), SPAN_INIT("")},
    {{NULL, 0}, SPAN_INIT("")},
    {SPAN_INIT("plain\0text"), SPAN_INIT("plain\0text")},
    {SPAN_INIT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
     SPAN_INIT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")},
    {SPAN_INIT("a\xff"
               "b"),
     SPAN_INIT("a" BAD "b")},
    {SPAN_INIT("\x80\xc3\xa9"), SPAN_INIT(BAD "\xc3\xa9")},
    {SPAN_INIT("\xc3"), SPAN_INIT(BAD)},
    {SPAN_INIT("\xe2\x82"), SPAN_INIT(BAD BAD)},
    {SPAN_INIT("\xe2\x82"
               "a"),
     SPAN_INIT(BAD BAD "a")},
    {SPAN_INIT("\xc0\x80"), SPAN_INIT(BAD BAD)},
    {SPAN_INIT("\xed\xa0\x80"), SPAN_INIT(BAD BAD BAD)},
    {SPAN_INIT("\xf4\x90\x80\x80"), SPAN_INIT(BAD BAD BAD BAD)},
    {SPAN_INIT("\xf8\x88\x80\x80\x80"), SPAN_INIT(BAD BAD BAD BAD BAD)},
};

START_TEST(bad_utf8_is_replaced)
{
    for (size_t i = 0; i < ARRAY_LEN(cleanings); i++) {
        struct buf b = {.max = 100};

        buf_add_utf8(&b, cleanings[i].text);
        ck_span_is(buf_span(&b), cleanings[i].clean);
        buf_done(&b);
    }
}
END_TEST

/* Two buffers grow at once, with other memory of the arena between: none overwrites another, and
 * the bytes outlive buf_done. */
START_TEST(grows_in_an_arena)
{
    enum { PIECES = 2000 };
    struct buf even, odd;
    struct span kept;
    struct arena a;
    size_t blocks = mem_blocks();

    arena_init(&a);
    buf_init_arena(&even, &a);
    buf_init_arena(&odd, &a);
    for (int i = 0; i < PIECES; i++) {
        buf_add_le32(i % 2 == 0 ? &even : &odd, (uint32_t)i);
        if (i % 64 == 0)
            memset(arena_alloc(&a, 32), 0xff, 32);
    }
    kept = buf_span(&even);
    ck_assert_uint_eq(kept.n, PIECES / 2 * sizeof(uint32_t));
    buf_done(&even);
    ck_assert_ptr_null(even.p);
    buf_add(&even, SPAN("again"));
    ck_span_eq(buf_span(&even), "again");
    for (uint32_t i = 0; i < PIECES; i++) {
        const char *at = (i % 2 == 0 ? kept.p : odd.p) + i / 2 * sizeof(i);

        ck_assert_mem_eq(at, (&(uint32_t){htole32(i)}), sizeof(i));
    }
    arena_done(&a);
    ck_assert_uint_eq(mem_blocks(), blocks);
}
END_TEST

/* Random appends and drops, done to a plain array too. */
START_TEST(behaves_like_an_array)
{
    enum { MAX = 5000 };
    static char model[MAX], piece[300];
    struct buf b = {.max = MAX};
    size_t n = 0;

    memset(piece, 'p', sizeof(piece));
    for (int i = 0; i < 20000; i++) {
        size_t part = rng_below(sizeof(piece));

        piece[0] = (char)i;
        if (rng_below(20) == 0) {
            part = rng_below(n + 1);
            buf_drop_front(&b, part);
            n -= part;
            memmove(model, model + part, n);
        } else {
            bool fits = n + part <= MAX;

            buf_add(&b, span_of(piece, part));
            ck_assert_int_eq(b.over, !fits);
            b.over = false;
            memcpy(model + n, piece, fits ? part : 0);
            n += fits ? part : 0;
        }
        ck_assert(span_eq(buf_span(&b), span_of(model, n)));
        ck_assert(b.n <= b.size && b.size <= b.max);
    }
    buf_done(&b);
}
END_TEST

/* As many bytes as there are, one fewer and one more than the cap. */
START_TEST(a_file_is_read_to_its_end)
{
    enum { BYTES = 100000 };

    for (size_t max = BYTES - 1; max <= BYTES + 1; max++) {
        FILE *file = tmpfile();
        struct buf b;

        ck_assert_ptr_nonnull(file);
        for (size_t i = 0; i < BYTES; i++)
            fputc((int)(i % 251), file);
        rewind(file);
        buf_init(&b, max);
        buf_add_char(&b, '\0');
        ck_assert(buf_read_all(&b, fileno(file)));
        ck_assert(buf_over(&b) == (max <= BYTES));
        ck_assert_uint_eq(b.n, MIN(max, BYTES + 1));
        for (size_t i = 1; i < b.n; i++)
            ck_assert_int_eq((unsigned char)b.p[i], (int)((i - 1) % 251));
        fclose(file);
        buf_done(&b);
    }
}
END_TEST

START_TEST(what_cannot_be_read_says_why)
{
    struct buf b;

    buf_init(&b, 10);
    ck_assert(!buf_read_all(&b, -1));
    ck_assert_int_eq(errno, EBADF);
    buf_done(&b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, zeroed_with_a_cap_is_empty);
    tcase_add_test(tc, appends_of_all_kinds);
    tcase_add_test(tc, integers_are_decimal);
    tcase_add_test(tc, past_the_cap_the_append_is_dropped);
    tcase_add_test(tc, a_cap_of_nothing_takes_nothing);
    tcase_add_test(tc, printf_at_every_fill);
    tcase_add_test(tc, reserve_and_commit);
    tcase_add_test_raise_signal(tc, committing_what_was_not_reserved_aborts, SIGABRT);
    tcase_add_test(tc, shrink_gives_memory_back);
    tcase_add_test(tc, drop_and_truncate);
    tcase_add_test(tc, little_endian);
    tcase_add_test(tc, bad_utf8_is_replaced);
    tcase_add_test(tc, grows_in_an_arena);
    tcase_add_test(tc, behaves_like_an_array);
    tcase_add_test(tc, a_file_is_read_to_its_end);
    tcase_add_test(tc, what_cannot_be_read_says_why);
}
