/* A backup file in pieces: the same steps however it is cut, and no whole one of what is damaged.
 */
#include "journal/backup_stream.h"

#include "testing.h"

#include "base/buf.h"
#include "base/digest.h"

#include <string.h>

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
    tcase_add_loop_test(tc, a_file_in_pieces_of_any_size, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, each_damaged_byte_is_found, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, one_that_is_cut_off_is_not_whole, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, more_behind_the_end, 0, ARRAY_LEN(files));
    tcase_add_loop_test(tc, sizes_that_cannot_be, 0, 4);
}
