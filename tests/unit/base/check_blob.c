#include "testing.h"

#include "base/blob.h"

#include <signal.h>
#include <string.h>

START_TEST(lives_as_long_as_a_reference)
{
    size_t blocks = mem_blocks();
    char source[] = "payload";
    struct blob *b = blob_new(span_str(source));

    source[0] = 'X';
    ck_span_eq(blob_span(b), "payload");
    ck_assert_ptr_eq(blob_ref(b), b);
    blob_unref(b);
    ck_assert_uint_eq(mem_blocks(), blocks + 1);
    ck_span_eq(blob_span(b), "payload");
    blob_unref(b);
    ck_assert_uint_eq(mem_blocks(), blocks);
    blob_unref(NULL);
}
END_TEST

START_TEST(may_be_empty_or_absent)
{
    struct blob *b = blob_new(span_of(NULL, 0));

    ck_assert_uint_eq(blob_span(b).n, 0);
    ck_assert_ptr_nonnull(blob_span(b).p);
    ck_assert_ptr_null(blob_span(NULL).p);
    blob_unref(b);
}
END_TEST

START_TEST(may_be_filled_by_its_maker)
{
    struct blob *b = blob_alloc(4);

    memcpy(b->p, "abcd", 4);
    ck_span_eq(blob_span(b), "abcd");
    blob_unref(b);
}
END_TEST

START_TEST(takes_the_bytes_of_a_buffer)
{
    size_t blocks = mem_blocks();
    struct buf b;
    struct blob *taken;

    buf_init(&b, 1000);
    buf_add(&b, SPAN("payload"));
    taken = blob_take(&b);
    ck_assert_ptr_null(b.p);
    ck_assert_uint_eq(b.n, 0);
    ck_assert_uint_eq(b.max, 1000);
    ck_span_eq(blob_span(taken), "payload");
    blob_unref(blob_ref(taken));
    ck_span_eq(blob_span(taken), "payload");
    blob_unref(taken);
    ck_assert_uint_eq(mem_blocks(), blocks);
}
END_TEST

START_TEST(reference_to_the_dead_aborts)
{
    struct blob *b = blob_new(SPAN("x"));

    b->refs = 0;
    blob_ref(b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, lives_as_long_as_a_reference);
    tcase_add_test(tc, may_be_empty_or_absent);
    tcase_add_test(tc, may_be_filled_by_its_maker);
    tcase_add_test(tc, takes_the_bytes_of_a_buffer);
    tcase_add_test_raise_signal(tc, reference_to_the_dead_aborts, SIGABRT);
}
