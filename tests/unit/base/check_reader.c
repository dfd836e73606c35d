#include "testing.h"

#include "base/buf.h"
#include "base/reader.h"

START_TEST(reads_what_buf_wrote)
{
    struct buf b = {.max = 100};
    struct reader r;

    buf_add_char(&b, (char)0xfe);
    buf_add_le16(&b, 0xf1f2);
    buf_add_le32(&b, 0xe1e2e3e4);
    buf_add_le64(&b, UINT64_C(0xd1d2d3d4d5d6d7d8));
    buf_add_str(&b, "tail");
    r = (struct reader){.rest = buf_span(&b)};
    ck_assert_uint_eq(reader_u8(&r), 0xfe);
    ck_assert_uint_eq(reader_le16(&r), 0xf1f2);
    ck_assert_uint_eq(reader_le32(&r), 0xe1e2e3e4);
    ck_assert_uint_eq(reader_le64(&r), UINT64_C(0xd1d2d3d4d5d6d7d8));
    ck_assert_ptr_eq(r.rest.p, b.p + 15);
    ck_span_eq(reader_bytes(&r, 4), "tail");
    ck_assert_uint_eq(r.rest.n, 0);
    ck_span_eq(reader_bytes(&r, 0), "");
    ck_assert(!r.failed);
    buf_done(&b);
}
END_TEST

START_TEST(past_the_end_everything_fails)
{
    struct reader r = {.rest = SPAN("\x01\x02\x03")};

    ck_assert_uint_eq(reader_le32(&r), 0);
    ck_assert(r.failed);
    ck_assert_uint_eq(reader_u8(&r), 0);
    ck_assert_uint_eq(reader_le16(&r), 0);
    ck_assert_uint_eq(reader_le64(&r), 0);
    ck_assert_ptr_null(reader_bytes(&r, 1).p);
    ck_assert_ptr_null(reader_bytes(&r, 0).p);
    ck_assert(r.failed);
}
END_TEST

START_TEST(lengths_from_outside_may_be_absurd)
{
    struct reader r = {.rest = SPAN("abc")};

    ck_assert_uint_eq(reader_u8(&r), 'a');
    ck_assert_ptr_null(reader_bytes(&r, SIZE_MAX).p);
    ck_assert(r.failed);
}
END_TEST

START_TEST(nothing_is_finished_at_once)
{
    struct reader r = {.rest = span_of(NULL, 0)};

    ck_assert(!r.failed);
    ck_assert_uint_eq(reader_u8(&r), 0);
    ck_assert(r.failed);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, reads_what_buf_wrote);
    tcase_add_test(tc, past_the_end_everything_fails);
    tcase_add_test(tc, lengths_from_outside_may_be_absurd);
    tcase_add_test(tc, nothing_is_finished_at_once);
}
