#include "testing.h"

#include "base/buf.h"
#include "base/digest.h"
#include "journal/backup.h"

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

/* ---- in pieces: the same steps however it is cut, and no whole one of what is damaged ---- */

enum { SEGMENTS_MOST = 4 };

/* A file with segments of these sizes. */
static void make(struct buf *b, const uint64_t *sizes, uint32_t count)
{
    struct backup_head head = {.segments = count, .first_number = 7, .serial = 99};
    uint8_t digest[DIGEST_BYTES];
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++)
        all += sizes[i];
    head.bytes = backup_file_bytes(count, all);
    buf_init(b, BUF_NO_CAP);
    backup_file_add_head(b, &head);
    for (uint32_t i = 0; i < count; i++) {
        backup_file_add_segment_head(b, &(struct backup_segment_head){7 + i, sizes[i]});
        for (uint64_t k = 0; k < sizes[i]; k++)
            buf_add_char(b, (char)('a' + i));
    }
    digest_sha256(buf_span(b), digest);
    backup_file_add_end(b, digest);
}

/* What came out of it: a letter a step, the bytes of segments between. */
struct taking {
    struct backup_stream stream;
    struct buf out;
    bool is_whole;
};

static struct err *take(struct taking *t, struct span bytes)
{
    enum backup_step step = BACKUP_STEP_HEAD;

    while (step != BACKUP_STEP_MORE) {
        struct span taken = {NULL, 0};

        TRY(backup_stream_next(&t->stream, &bytes, &step, &taken));
        if (step == BACKUP_STEP_HEAD)
            buf_add_char(&t->out, 'H');
        if (step == BACKUP_STEP_SEGMENT)
            buf_printf(&t->out, "S%llu:", (unsigned long long)t->stream.segment.number);
        if (step == BACKUP_STEP_SEGMENT_END)
            buf_add_char(&t->out, '.');
        if (step == BACKUP_STEP_WHOLE)
            t->is_whole = true;
        buf_add(&t->out, taken);
    }
    ck_assert_uint_eq(bytes.n, 0);
    return NULL;
}

static void begin(struct taking *t)
{
    *t = (struct taking){.is_whole = false};
    backup_stream_init(&t->stream);
    buf_init(&t->out, BUF_NO_CAP);
}

static void end(struct taking *t)
{
    backup_stream_done(&t->stream);
    buf_done(&t->out);
}

static const struct {
    uint64_t sizes[SEGMENTS_MOST];
    uint32_t count;
    const char *steps;
} files[] = {
    {{0}, 0, "H"},
    {{5}, 1, "HS7:aaaaa."},
    {{0}, 1, "HS7:."},
    {{3, 0, 1, 2}, 4, "HS7:aaa.S8:.S9:c.S10:dd."},
};

START_TEST(a_file_in_pieces_of_any_size)
{
    struct buf file;
    struct taking t;

    make(&file, files[_i].sizes, files[_i].count);
    for (size_t piece = 1; piece <= file.n; piece++) {
        begin(&t);
        for (size_t at = 0; at < file.n; at += piece) {
            ck_assert(!t.is_whole);
            ck_ok(take(&t, span_sub(buf_span(&file), at, at + piece)));
        }
        ck_assert(t.is_whole);
        ck_span_is(buf_span(&t.out), span_str(files[_i].steps));
        ck_assert_uint_eq(t.stream.received, file.n);
        ck_assert_uint_eq(t.stream.head.serial, 99);
        end(&t);
    }
    buf_done(&file);
}
END_TEST

/* Whatever bit is wrong. What only says when the copy was made, and the like, shows at the end. */
START_TEST(each_damaged_byte_is_found)
{
    struct buf file;
    struct taking t;

    make(&file, files[_i].sizes, files[_i].count);
    for (size_t at = 0; at < file.n; at++) {
        struct err *e;

        begin(&t);
        file.p[at] ^= 0x10;
        e = take(&t, buf_span(&file));
        file.p[at] ^= 0x10;
        /* One that is to become longer waits for what does not come. */
        ck_assert_msg(e != NULL || !t.is_whole, "byte %zu", at);
        err_free(e);
        end(&t);
    }
    buf_done(&file);
}
END_TEST

START_TEST(one_that_is_cut_off_is_not_whole)
{
    struct buf file;
    struct taking t;

    make(&file, files[_i].sizes, files[_i].count);
    for (size_t n = 0; n < file.n; n++) {
        begin(&t);
        ck_ok(take(&t, span_of(file.p, n)));
        ck_assert(!t.is_whole);
        end(&t);
    }
    buf_done(&file);
}
END_TEST

START_TEST(more_behind_the_end)
{
    struct buf file;
    struct taking t;

    make(&file, files[_i].sizes, files[_i].count);
    buf_add_char(&file, 'x');
    begin(&t);
    ck_fails(take(&t, buf_span(&file)), ERR_STORAGE_FAILURE, "more comes behind its end");
    end(&t);
    buf_done(&file);
}
END_TEST

/* Refused before a byte of them is taken. */
START_TEST(sizes_that_cannot_be)
{
    static const struct {
        size_t at;
        char value;
        const char *says;
    } cases[] = {
        {12, 9, "its head and its size"},         /* segments */
        {48, 1, "its head and its size"},         /* bytes of the whole */
        {64, 3, "its segments are not in order"}, /* number of the first */
        {64 + 15, 1, "longer than the whole"},    /* bytes of the first */
    };
    struct buf file;
    struct taking t;

    make(&file, files[1].sizes, files[1].count);
    file.p[cases[_i].at] = cases[_i].value;
    begin(&t);
    ck_fails(take(&t, buf_span(&file)), ERR_STORAGE_FAILURE, cases[_i].says);
    ck_assert_uint_le(t.out.n, 1);
    end(&t);
    buf_done(&file);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_head_comes_back);
    tcase_add_test(tc, what_is_no_head);
    tcase_add_test(tc, a_segment_head_comes_back);
    tcase_add_test(tc, an_end_is_that_of_one_digest);
    tcase_add_test(tc, the_size_is_that_of_all_parts);
    tcase_add_loop_test(tc, a_file_in_pieces_of_any_size, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, each_damaged_byte_is_found, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, one_that_is_cut_off_is_not_whole, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, more_behind_the_end, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, sizes_that_cannot_be, 0, 4);
}
