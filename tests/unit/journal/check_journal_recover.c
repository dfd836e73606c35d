#include "journal_testing.h"

#include "testing.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "journal/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK DISK_BLOCK_BYTES

/* With sanitizers a helper, which is a copy of this process, takes ten times as much of a processor
 * as kernel AIO, whose end is waited for. */
static void set_up(struct fixture *f)
{
    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    fx_init_fast(f, JOURNAL_ALWAYS, DISK_AIO);
}

/* Three commits; the last one has three records of 40 bytes: a single one, then two of a change. */
static void write_three_commits(struct fixture *f)
{
    set_up(f);
    fx_open(f);
    fx_append(f, 2, 300);
    fx_commit(f);
    fx_append(f, 3, 2000);
    fx_commit(f);
    fx_append(f, 1, 40);
    fx_append(f, 2, 40);
    fx_commit(f);
    fx_close(f);
}

/* Opens what is there after something happened to it, checks it, and goes on with it. */
static void check_and_go_on(struct fixture *f, size_t least, const char *what, size_t at)
{
    struct err *e = fx_try_open(f);

    if (e != NULL)
        ck_abort_msg("%s at %zu: %.*s", what, at, SPAN_FMT(err_message(e)));
    fx_check_replayed(f, 0, 0);
    if (f->replayed.count < least)
        ck_abort_msg("%s at %zu: only %zu records", what, at, f->replayed.count);
    fx_forget_lost(f);
    fx_append(f, 2, 100);
    fx_commit(f);
    fx_reopen_whole(f);
    fx_close(f);
}

/* The last commit was written up to some byte: the rest of its block is still zero, or the file
 * ends there. What was committed before is there, the change that is torn is not. */
START_TEST(torn_at_every_byte)
{
    struct fixture f;
    char *whole;
    size_t n, end, start;
    struct fx_record kept[16];

    write_three_commits(&f);
    whole = fx_read_file(&f, 1, &n);
    start = f.appended.records[5].place.offset;
    end = start + fx_bytes(3, 40);
    memcpy(kept, f.appended.records, f.appended.count * sizeof(kept[0]));
    for (size_t at = start; at < end; at++) {
        char *torn = mem_zero(n);

        memcpy(torn, whole, at);
        fx_write_file(&f, 1, torn, _i == 0 ? n : at);
        mem_free(torn);
        check_and_go_on(&f, at < start + fx_bytes(1, 40) ? 5 : 6, "torn", at);
        f.appended.count = 0;
        for (size_t i = 0; i < 8; i++)
            fx_add(&f.appended, &kept[i]);
    }
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* One that was handed over in pieces, written up to some byte: all of it or nothing. */
START_TEST(a_torn_draft)
{
    struct fixture f;
    char *whole, *torn;
    size_t n, end, start;

    set_up(&f);
    fx_open(&f);
    fx_append(&f, 2, 300);
    fx_commit(&f);
    f.drafts = true;
    fx_append(&f, 12, 900);
    fx_commit(&f);
    fx_close(&f);
    whole = fx_read_file(&f, 1, &n);
    start = f.appended.records[2].place.offset;
    end = start + fx_bytes(12, 900);
    for (size_t at = start; at <= end; at += at + 100 > end || at % 512 < 3 ? 1 : 61) {
        struct err *e;

        torn = mem_zero(n);
        memcpy(torn, whole, at);
        fx_write_file(&f, 1, torn, _i == 0 ? n : MAX(at, (size_t)BLOCK));
        mem_free(torn);
        e = fx_try_open(&f);
        if (e != NULL)
            ck_abort_msg("torn at %zu: %.*s", at, SPAN_FMT(err_message(e)));
        fx_check_replayed(&f, 0, 0);
        ck_assert(f.replayed.count == 2 || (f.replayed.count == 14 && at >= end - 8));
        fx_close(&f);
    }
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* Any bit of the last commit flips: the records before are there, or the journal refuses, naming
 * the file. */
START_TEST(every_bit_of_the_last_commit)
{
    struct fixture f;
    char *whole;
    size_t n, end, start;

    write_three_commits(&f);
    whole = fx_read_file(&f, 1, &n);
    start = f.appended.records[5].place.offset;
    end = start + fx_bytes(3, 40) + 8;
    for (size_t bit = 8 * start + (size_t)_i; bit < 8 * end; bit += 8) {
        struct err *e;

        whole[bit / 8] ^= (char)(1 << bit % 8);
        fx_write_file(&f, 1, whole, n);
        whole[bit / 8] ^= (char)(1 << bit % 8);
        e = fx_try_open(&f);
        if (e != NULL) {
            if (span_find(err_message(e), SPAN("journal-0000000000000001.seg is damaged at")) ==
                SIZE_MAX)
                ck_abort_msg("bit %zu: %.*s", bit, SPAN_FMT(err_message(e)));
            err_free(e);
            continue;
        }
        fx_check_replayed(&f, 0, 0);
        if (f.replayed.count < 5 || (f.replayed.count == 8 && bit < 8 * (end - 8)))
            ck_abort_msg("bit %zu: %zu records", bit, f.replayed.count);
        fx_close(&f);
    }
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* Anything that changes before the last commit is damage: refused, with file and offset, and the
 * file stays as it is. */
START_TEST(damage_before_the_last_commit)
{
    struct fixture f;
    char *whole, *after;
    char advice[100];
    const char *const told[] = {advice, "seg is damaged at offset ",
                                "there are later commits (offset "};
    size_t n, start;

    write_three_commits(&f);
    snprintf(advice, sizeof(advice), "`svc-journal repair %s`", f.directory);
    whole = fx_read_file(&f, 1, &n);
    start = f.appended.records[5].place.offset;
    for (size_t at = SEGMENT_HEADER_BYTES; at < start; at += 61) {
        struct err *e;

        whole[at] ^= 0x20;
        fx_write_file(&f, 1, whole, n);
        e = fx_try_open(&f);
        ck_assert_ptr_nonnull(e);
        ck_assert_int_eq(err_code(e), ERR_STORAGE_FAILURE);
        for (size_t i = 0; i < ARRAY_LEN(told); i++)
            if (span_find(err_message(e), span_str(told[i])) == SIZE_MAX)
                ck_abort_msg("at %zu: '%.*s' lacks '%s'", at, SPAN_FMT(err_message(e)), told[i]);
        err_free(e);
        after = fx_read_file(&f, 1, &n);
        ck_assert_mem_eq(after, whole, n);
        mem_free(after);
        whole[at] ^= 0x20;
    }
    mem_free(whole);
    fx_done(&f);
}
END_TEST

START_TEST(damage_names_the_offset)
{
    struct fixture f;

    write_three_commits(&f);
    fx_flip(&f, 1, f.appended.records[2].place.offset + 30);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "journal-0000000000000001.seg is damaged at offset 8192: the checksum does not match");
    fx_done(&f);
}
END_TEST

START_TEST(damaged_headers)
{
    struct segment_header h = {.version = 4, .number = 1, .first_serial = 1};
    struct fixture f;
    struct buf b;
    size_t n;
    char *whole;

    write_three_commits(&f);
    whole = fx_read_file(&f, 1, &n);
    fx_flip(&f, 1, 40);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "journal-0000000000000001.seg: the header is damaged");
    buf_init(&b, 2 * BLOCK);
    segment_add_header(&b, &h);
    fx_patch(&f, 1, 0, b.p, b.n);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "journal-0000000000000001.seg: the segment has format version 4, this program knows "
             "versions 1 to 3");
    h.version = 3;
    h.first_serial = 0;
    buf_clear(&b);
    segment_add_header(&b, &h);
    fx_patch(&f, 1, 0, b.p, b.n);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "damaged at offset 0: no serial is 0");
    fx_write_file(&f, 2, whole, n);
    fx_write_file(&f, 1, whole, n);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "000002.seg is damaged at offset 0: the name and the header");
    fx_write_file(&f, 2, "text", 4);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "000002.seg: this is no journal segment");
    buf_done(&b);
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* Several segments, the last one with something in it. */
static uint64_t write_segments(struct fixture *f)
{
    struct journal_stats stats;

    set_up(f);
    fx_open(f);
    fx_commit_many(f, 100);
    journal_stats(f->j, &stats);
    ck_assert_uint_ge(stats.segments, 4);
    fx_close(f);
    return stats.segments;
}

START_TEST(a_missing_segment)
{
    struct fixture f;
    char path[128], missing[128];
    uint64_t last = write_segments(&f);

    unlink(fx_path(&f, 2, missing));
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, missing);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "is missing");
    ck_assert(fx_exists(&f, last));
    /* The beginning may be missing: that is how cleaning works. */
    unlink(fx_path(&f, 1, path));
    fx_open(&f);
    fx_done(&f);
}
END_TEST

/* The tail of a segment that is not the last cannot be torn: it was synced before the next began.
 */
START_TEST(a_torn_tail_in_the_middle)
{
    struct fixture f;
    const struct fx_record *r;
    size_t i = 0, n;
    char *whole;

    write_segments(&f);
    while (f.appended.records[i].place.segment < 3)
        i++;
    r = &f.appended.records[i - 1];
    whole = fx_read_file(&f, 2, &n);
    fx_flip(&f, 2, r->place.offset + 9);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "journal-0000000000000002.seg is damaged at offset ");
    /* Lost without a trace: the next one does not begin where this one ends. */
    memset(whole + r->place.offset / BLOCK * BLOCK, 0, n - r->place.offset / BLOCK * BLOCK);
    fx_write_file(&f, 2, whole, n);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             "000003.seg is damaged at offset 0: it does not begin with the serial");
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* The header of a segment as an older version has written it. */
static void as_version(const struct fixture *f, uint64_t number, uint32_t version)
{
    struct segment_header h;
    struct buf b;
    size_t n;
    char *whole = fx_read_file(f, number, &n);

    ck_ok(segment_read_header(span_of(whole, n), &h));
    h.version = version;
    h.bytes_before = 0;
    buf_init(&b, BLOCK);
    segment_add_header(&b, &h);
    fx_patch(f, number, 0, b.p, b.n);
    buf_done(&b);
    mem_free(whole);
}

/* Commits of two changes, most of which are moves, until a segment has a move as its last record.
 * Returns the place of that record. */
static size_t write_moves(struct fixture *f)
{
    const struct fx_record *r;
    size_t last;

    set_up(f);
    f->moves = true;
    fx_open(f);
    do {
        fx_append(f, 1, 300);
        fx_append(f, 1, 500);
        fx_commit(f);
        last = f->appended.count - 3;
        r = f->appended.records + last;
    } while (f->appended.count < 6 || r->serials > 0 || r->place.segment == r[1].place.segment);
    fx_close(f);
    return last;
}

/* Their serials do not show that they are missing: what the next header says of this segment does.
 */
START_TEST(moves_missing_at_the_end_of_a_segment)
{
    struct fixture f;
    const struct fx_record *r;
    size_t last = write_moves(&f), n;
    uint64_t segment, at;
    char *whole;

    r = &f.appended.records[last];
    segment = r->place.segment;
    at = r->place.offset;
    whole = fx_read_file(&f, segment, &n);
    memset(whole + at, 0, n - at);
    fx_write_file(&f, segment, whole, _i == 0 ? n : at);
    mem_free(whole);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE,
             ".seg is damaged at offset 0: the segment before does not end where it did");
    as_version(&f, segment + 1, 2); /* which says nothing of it */
    fx_open(&f);
    ck_assert_uint_eq(f.replayed.count, f.appended.count - 1);
    fx_done(&f);
}
END_TEST

/* Each segment says of the one before what a walk finds there, also when journals were opened in
 * between, and what was torn was cut. */
START_TEST(headers_tell_of_the_segment_before)
{
    struct fixture f;
    uint64_t last = write_segments(&f), number, sum = 0;
    const struct fx_record *r;
    struct segment_header h;
    char *whole;
    size_t n;

    r = &f.appended.records[f.appended.count - 1];
    fx_flip(&f, last, r->place.offset + 30);
    fx_open(&f);
    fx_check_replayed(&f, 0, r->serial - 1);
    fx_forget_lost(&f);
    fx_commit_many(&f, 60);
    fx_close(&f);
    for (number = 1; fx_exists(&f, number); number++) {
        whole = fx_read_file(&f, number, &n);
        ck_ok(segment_read_header(span_of(whole, n), &h));
        ck_assert_uint_eq(h.bytes_before, sum);
        sum = 0;
        for (size_t i = 0; i < f.appended.count; i++)
            if (f.appended.records[i].place.segment == number)
                sum += segment_record_bytes(f.appended.records[i].n);
        mem_free(whole);
    }
    ck_assert_uint_gt(number, last + 1);
    fx_done(&f);
}
END_TEST

static uint32_t version_of(const struct fixture *f, uint64_t number)
{
    struct segment_header h;
    size_t n;
    char *whole = fx_read_file(f, number, &n);

    ck_ok(segment_read_header(span_of(whole, n), &h));
    mem_free(whole);
    return h.version;
}

/* What is appended to a journal of an older version goes to a new segment: nothing of the old one
 * changes. */
START_TEST(a_journal_of_an_older_version)
{
    struct fixture f;
    char *before, *after;
    size_t n;

    write_three_commits(&f);
    as_version(&f, 1, (uint32_t)_i);
    before = fx_read_file(&f, 1, &n);
    fx_open(&f);
    fx_check_replayed(&f, 0, 0);
    ck_assert_uint_eq(f.replayed.count, f.appended.count);
    fx_reopen_whole(&f); /* opened is not changed */
    ck_assert(!fx_exists(&f, 2));
    f.moves = true;
    for (int i = 0; i < 5; i++) {
        fx_append(&f, 2, 300);
        fx_commit(&f);
    }
    ck_assert_uint_eq(f.appended.records[8].place.segment, 2);
    fx_reopen_whole(&f);
    ck_assert_uint_eq(version_of(&f, 1), _i);
    ck_assert_uint_eq(version_of(&f, 2), SEGMENT_FORMAT_VERSION);
    after = fx_read_file(&f, 1, &n);
    ck_assert_mem_eq(before, after, n);
    mem_free(before);
    mem_free(after);
    fx_done(&f);
}
END_TEST

START_TEST(a_segment_of_another_journal)
{
    struct fixture f;
    uint64_t last = write_segments(&f);
    struct segment_header h;
    struct buf b;
    char *whole;
    size_t n;

    whole = fx_read_file(&f, last, &n);
    ck_ok(segment_read_header(span_of(whole, n), &h));
    h.journal.b[3] ^= 1;
    buf_init(&b, BLOCK);
    segment_add_header(&b, &h);
    fx_patch(&f, last, 0, b.p, b.n);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "belongs to another journal");
    buf_done(&b);
    mem_free(whole);
    fx_done(&f);
}
END_TEST

static const size_t blank_sizes[] = {0, 100, BLOCK, FX_SEGMENT_BYTES};

/* Only the name of the next segment reached the disk. */
START_TEST(a_blank_last_segment)
{
    struct fixture f;
    uint64_t last = write_segments(&f);
    char *zeros = mem_zero(FX_SEGMENT_BYTES);

    fx_write_file(&f, last + 1, zeros, blank_sizes[_i]);
    mem_free(zeros);
    fx_open(&f);
    fx_check_replayed(&f, 0, f.appended.records[f.appended.count - 1].serial);
    ck_assert(!fx_exists(&f, last + 1));
    fx_commit_many(&f, 40);
    ck_assert(fx_exists(&f, last + 1));
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* But not if it is all there is, and others must have been before it. */
START_TEST(a_blank_only_segment)
{
    struct fixture f;

    set_up(&f);
    fx_write_file(&f, 1, "", 0);
    fx_open(&f);
    fx_close(&f);
    fx_write_file(&f, 2, "", 0);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "000002.seg: this is no journal segment");
    fx_done(&f);
}
END_TEST

/* A segment was begun, and nothing was written to it yet. */
START_TEST(an_empty_last_segment)
{
    struct fixture f;
    uint64_t last = write_segments(&f);
    size_t n, count = f.appended.count;
    char *whole = fx_read_file(&f, last, &n);

    memset(whole + BLOCK, 0, n - BLOCK);
    fx_write_file(&f, last, whole, n);
    mem_free(whole);
    while (f.appended.records[count - 1].place.segment == last)
        count--;
    fx_open(&f);
    fx_check_replayed(&f, 0, 0);
    ck_assert_uint_eq(f.replayed.count, count);
    fx_forget_lost(&f);
    fx_commit_many(&f, 40);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

START_TEST(leftovers_are_deleted)
{
    static const char *const names[] = {"journal-0000000000000007.tmp", "disk-probe.tmp"};
    struct fixture f;
    char path[128];

    write_segments(&f);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", f.directory, names[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    snprintf(path, sizeof(path), "%s/notes.txt", f.directory);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    fx_open(&f);
    fx_close(&f);
    ck_assert_int_eq(access(path, F_OK), 0); /* not ours */
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", f.directory, names[i]);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
    fx_done(&f);
}
END_TEST

/* A copy without the zeros at its end is a journal too. */
START_TEST(a_shortened_copy)
{
    struct fixture f;
    struct journal_stats stats;
    const struct fx_record *r;
    size_t n, last;
    char *whole;

    write_segments(&f);
    r = &f.appended.records[f.appended.count - 1];
    last = r->place.segment;
    whole = fx_read_file(&f, last, &n);
    n = r->place.offset + segment_record_bytes(r->n);
    fx_write_file(&f, last, whole, _i == 0 ? n : disk_blocks(n));
    mem_free(whole);
    fx_open(&f);
    fx_check_replayed(&f, 0, r->serial);
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.sealed_bytes, (last - 1) * FX_SEGMENT_BYTES);
    ck_assert_uint_eq(stats.cut_bytes, 0);
    fx_commit_many(&f, 40);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* A change whose last record never came, at the end of valid records. */
START_TEST(an_unfinished_change)
{
    struct fixture f;
    struct segment_header h;
    struct journal_stats stats;
    struct buf b;
    size_t n;
    char *whole;

    write_three_commits(&f);
    whole = fx_read_file(&f, 1, &n);
    ck_ok(segment_read_header(span_of(whole, n), &h));
    buf_init(&b, 3 * BLOCK);
    for (uint64_t i = 0; i < 3; i++)
        segment_add_record(
            &b, &h,
            &(struct segment_record){
                .serial = f.appended.records[7].serial + f.appended.records[7].serials + i,
                .serials = 1,
                .commit_start = i == 0,
                .after_sync = i == 0,
                .more = true,
                .body = SPAN("half of it"),
            });
    fx_patch(&f, 1, 5 * BLOCK, b.p, b.n);
    ck_assert_uint_eq(disk_blocks(f.appended.records[7].place.offset), 5 * BLOCK);
    fx_open(&f);
    fx_check_replayed(&f, 0, f.appended.records[7].serial);
    journal_stats(f.j, &stats);
    ck_assert_uint_gt(stats.cut_bytes, b.n - 8);
    ck_assert_uint_le(stats.cut_bytes, b.n);
    fx_append(&f, 1, 50);
    fx_commit(&f);
    ck_assert_uint_eq(f.appended.records[8].place.offset, 5 * BLOCK);
    fx_reopen_whole(&f);
    buf_done(&b);
    mem_free(whole);
    fx_done(&f);
}
END_TEST

/* everysec, no: what no sync covers may be lost in any order. Here a commit in the middle is lost,
 * and later ones are there: cut, since nothing of it was promised. */
START_TEST(unsynced_commits_lost_in_any_order)
{
    struct fixture f;
    struct journal_stats stats;
    char zeros[BLOCK] = {0};

    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    fx_init_fast(&f, _i == 0 ? JOURNAL_EVERYSEC : JOURNAL_NO, DISK_AIO);
    clock_fake(0, 1);
    fx_open(&f);
    for (int i = 0; i < 8; i++) {
        fx_append(&f, 1, 1000);
        fx_commit(&f);
    }
    fx_close(&f);
    fx_patch(&f, 1, f.appended.records[3].place.offset, zeros, BLOCK);
    fx_open(&f);
    fx_check_replayed(&f, 0, f.appended.records[2].serial);
    ck_assert_uint_eq(f.replayed.count, 3);
    journal_stats(f.j, &stats);
    ck_assert_uint_gt(stats.cut_bytes, 3 * BLOCK);
    fx_forget_lost(&f);
    fx_append(&f, 1, 1000); /* this one begins after the sync at start */
    fx_commit(&f);
    fx_close(&f);
    fx_patch(&f, 1, f.appended.records[1].place.offset, zeros, BLOCK);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "damaged at offset 8192");
    fx_done(&f);
}
END_TEST

START_TEST(the_store_refuses_a_record)
{
    struct fixture f;
    char where[40];

    write_three_commits(&f);
    f.refuse_serial = f.appended.records[3].serial;
    snprintf(where, sizeof(where), "offset %u: the store", f.appended.records[3].place.offset);
    ck_fails(fx_try_open(&f), ERR_INVALID_ENTITY, where);
    f.refuse_serial = 0;
    fx_open(&f);
    fx_check_replayed(&f, 0, f.appended.records[7].serial);
    fx_done(&f);
}
END_TEST

/* A segment that is far too large is refused before it is mapped. */
START_TEST(a_huge_file)
{
    struct fixture f;
    char path[128];

    write_three_commits(&f);
    ck_assert_int_eq(truncate(fx_path(&f, 1, path), (off_t)5 << 30), 0);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "File too large");
    fx_done(&f);
}
END_TEST

START_TEST(a_huge_number)
{
    struct fixture f;

    set_up(&f);
    fx_write_file(&f, (uint64_t)1 << 40, "", 0);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "too high");
    fx_done(&f);
}
END_TEST

/* Killed at any moment by another process's reckoning: the directory is copied while it is used.
 * (Each file is read at once, in the order of the names, so later segments are newer.) */
START_TEST(a_copy_at_any_moment)
{
    struct fixture f, copy;

    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    fx_init_fast(&f, JOURNAL_ALWAYS, DISK_AIO);
    fx_open(&f);
    fx_append(&f, 1, 10);
    fx_commit(&f);
    for (int round = 0; round < 60; round++) {
        size_t n;
        char *bytes;

        fx_init_fast(&copy, JOURNAL_ALWAYS, DISK_AIO);
        fx_append(&f, 1 + (size_t)rng_below(5), (size_t)rng_below(3000));
        journal_commit(f.j);
        fx_turns(&f, (int)rng_below(3));
        for (uint64_t number = 1; fx_exists(&f, number); number++) {
            bytes = fx_read_file(&f, number, &n);
            fx_write_file(&copy, number, bytes, n);
            mem_free(bytes);
        }
        fx_open(&copy);
        for (size_t i = 0; i < f.appended.count; i++)
            fx_add(&copy.appended, &f.appended.records[i]);
        fx_check_replayed(&copy, 0, f.committed);
        fx_done(&copy);
    }
    fx_done(&f);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, a_torn_draft, 0, 2);
    tcase_add_loop_test(tc, torn_at_every_byte, 0, 2);
    tcase_add_loop_test(tc, every_bit_of_the_last_commit, 0, 8);
    tcase_add_test(tc, damage_before_the_last_commit);
    tcase_add_test(tc, damage_names_the_offset);
    tcase_add_test(tc, damaged_headers);
    tcase_add_test(tc, a_missing_segment);
    tcase_add_test(tc, a_torn_tail_in_the_middle);
    tcase_add_test(tc, a_segment_of_another_journal);
    tcase_add_loop_test(tc, moves_missing_at_the_end_of_a_segment, 0, 2);
    tcase_add_test(tc, headers_tell_of_the_segment_before);
    tcase_add_loop_test(tc, a_journal_of_an_older_version, 1, SEGMENT_FORMAT_VERSION);
    tcase_add_loop_test(tc, a_blank_last_segment, 0, ARRAY_LEN(blank_sizes));
    tcase_add_test(tc, a_blank_only_segment);
    tcase_add_test(tc, an_empty_last_segment);
    tcase_add_test(tc, leftovers_are_deleted);
    tcase_add_loop_test(tc, a_shortened_copy, 0, 2);
    tcase_add_test(tc, an_unfinished_change);
    tcase_add_loop_test(tc, unsynced_commits_lost_in_any_order, 0, 2);
    tcase_add_test(tc, the_store_refuses_a_record);
    tcase_add_test(tc, a_huge_file);
    tcase_add_test(tc, a_huge_number);
    tcase_add_test(tc, a_copy_at_any_moment);
}
