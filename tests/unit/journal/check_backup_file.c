#include "testing.h"

#include "base/digest.h"
#include "journal/backup_file.h"

#include <string.h>

static const struct backup_head sample = {
    .segments = 3,
    .journal = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
    .first_number = 7,
    .serial = 123456789012345,
    .bytes = 987654321,
    .made_unix_ns = 1760000000123456789,
};

START_TEST(a_head_comes_back)
{
    struct backup_head head;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    backup_file_add_head(&b, &sample);
    ck_assert_uint_eq(b.n, BACKUP_HEAD_BYTES);
    ck_ok(backup_file_read_head(buf_span(&b), &head));
    ck_assert_uint_eq(head.segments, sample.segments);
    ck_assert(uuid_eq(&head.journal, &sample.journal));
    ck_assert_uint_eq(head.first_number, sample.first_number);
    ck_assert_uint_eq(head.serial, sample.serial);
    ck_assert_uint_eq(head.bytes, sample.bytes);
    ck_assert_int_eq(head.made_unix_ns, sample.made_unix_ns);
    for (size_t n = 0; n < b.n; n++)
        ck_fails(backup_file_read_head(span_of(b.p, n), &head), ERR_STORAGE_FAILURE, "it ");
    buf_done(&b);
}
END_TEST

START_TEST(what_is_no_head)
{
    static const struct {
        size_t at;
        const char *says;
    } cases[] = {{0, "no backup file"}, {7, "no backup file"}, {8, "version 3"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct backup_head head;
        struct buf b;

        buf_init(&b, BUF_NO_CAP);
        backup_file_add_head(&b, &sample);
        b.p[cases[i].at] ^= 2;
        ck_fails(backup_file_read_head(buf_span(&b), &head), ERR_STORAGE_FAILURE, cases[i].says);
        buf_done(&b);
    }
}
END_TEST

START_TEST(a_segment_head_comes_back)
{
    const struct backup_segment_head head = {9, (uint64_t)5 << 33};
    struct backup_segment_head read;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    backup_file_add_segment_head(&b, &head);
    ck_assert_uint_eq(b.n, BACKUP_SEGMENT_HEAD_BYTES);
    backup_file_read_segment_head(buf_span(&b), &read);
    ck_assert_uint_eq(read.number, head.number);
    ck_assert_uint_eq(read.bytes, head.bytes);
    buf_done(&b);
}
END_TEST

START_TEST(an_end_is_that_of_one_digest)
{
    uint8_t digest[DIGEST_BYTES], other[DIGEST_BYTES];
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    digest_sha256(SPAN("one"), digest);
    digest_sha256(SPAN("another"), other);
    backup_file_add_end(&b, digest);
    ck_assert_uint_eq(b.n, BACKUP_END_BYTES);
    ck_assert(backup_file_is_end(buf_span(&b), digest));
    ck_assert(!backup_file_is_end(buf_span(&b), other));
    ck_assert(!backup_file_is_end(span_of(b.p, b.n - 1), digest));
    b.p[0] ^= 1;
    ck_assert(!backup_file_is_end(buf_span(&b), digest));
    buf_done(&b);
}
END_TEST

START_TEST(the_size_is_that_of_all_parts)
{
    ck_assert_uint_eq(backup_file_bytes(0, 0), BACKUP_HEAD_BYTES + BACKUP_END_BYTES);
    ck_assert_uint_eq(backup_file_bytes(2, 8192),
                      BACKUP_HEAD_BYTES + BACKUP_END_BYTES + 2 * BACKUP_SEGMENT_HEAD_BYTES + 8192);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_head_comes_back);
    tcase_add_test(tc, what_is_no_head);
    tcase_add_test(tc, a_segment_head_comes_back);
    tcase_add_test(tc, an_end_is_that_of_one_digest);
    tcase_add_test(tc, the_size_is_that_of_all_parts);
}
