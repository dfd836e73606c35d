#include "journal_testing.h"

#include "testing.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/rng.h"
#include "io/fault.h"
#include "journal/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every policy with both engines. */
static const struct combination {
    enum journal_fsync fsync;
    enum disk_engine engine;
} combinations[] = {
    {JOURNAL_ALWAYS, DISK_AIO},    {JOURNAL_EVERYSEC, DISK_AIO},    {JOURNAL_NO, DISK_AIO},
    {JOURNAL_ALWAYS, DISK_HELPER}, {JOURNAL_EVERYSEC, DISK_HELPER}, {JOURNAL_NO, DISK_HELPER},
};

static void set_up(struct fixture *f, int i)
{
    fx_init(f, combinations[i].fsync, combinations[i].engine);
}

static void set_up_fast(struct fixture *f, int i)
{
    fx_init_fast(f, combinations[i].fsync, combinations[i].engine);
}

static void be_quiet(void)
{
    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

START_TEST(a_new_journal)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    ck_assert_uint_eq(journal_next_serial(f.j), 1);
    ck_assert_uint_eq(journal_committed_serial(f.j), 0);
    ck_assert_uint_eq(journal_second_first_serial(f.j), 0);
    ck_assert(journal_idle(f.j));
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

START_TEST(everything_comes_back)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    for (int round = 0; round < 6; round++) {
        fx_commit_many(&f, 40);
        ck_assert_uint_eq(journal_committed_serial(f.j), journal_next_serial(f.j) - 1);
        ck_assert_uint_eq(f.committed, journal_committed_serial(f.j));
        fx_reopen_whole(&f);
    }
    fx_done(&f);
}
END_TEST

/* Changes that take no serials are as much on disk as others, and a commit of nothing else is told.
 */
START_TEST(what_takes_no_serial_comes_back)
{
    struct fixture f;

    set_up(&f, _i);
    f.moves = true;
    fx_open(&f);
    for (int round = 0; round < 6; round++) {
        uint64_t sequence = journal_sequence(f.j);

        fx_commit_many(&f, 40);
        ck_assert_uint_eq(f.commits, 40);
        ck_assert_uint_eq(journal_sequence(f.j), sequence + 40);
        ck_assert_uint_eq(journal_committed_sequence(f.j), sequence + 40);
        ck_assert_uint_eq(f.committed, journal_next_serial(f.j) - 1);
        f.drafts = round % 2 == 0;
        fx_reopen_whole(&f);
    }
    fx_done(&f);
}
END_TEST

static void append_copy(struct fixture *f, const char *body, struct journal_place *out_place)
{
    const struct journal_record copy = {.kind = 1, .serials = 0, .body = span_str(body)};
    size_t n = fx_bytes(1, copy.body.n);

    ck_assert_uint_eq(journal_append(f->j, &copy, 1, n, out_place), journal_next_serial(f->j));
}

/* Each is committed when it is asked for, and one that was appended later is not. */
START_TEST(a_batch_without_serials_is_committed_by_itself)
{
    struct fixture f;
    struct journal_place first, second;
    uint64_t serial;

    set_up(&f, _i);
    f.moves = true;
    fx_open(&f);
    fx_commit_many(&f, 1);
    serial = journal_next_serial(f.j);
    append_copy(&f, "one", &first);
    ck_assert_uint_eq(journal_next_serial(f.j), serial);
    ck_assert_uint_eq(journal_sequence(f.j), 2);
    ck_assert_uint_eq(journal_committed_sequence(f.j), 1);
    ck_assert(!journal_has_committed(f.j, first));
    ck_assert(journal_has_committed(f.j, f.appended.records[0].place));
    journal_commit(f.j);
    append_copy(&f, "two", &second);
    for (int i = 0; i < 1000 && journal_committed_sequence(f.j) < 2; i++)
        loop_run_once(&f.loop);
    ck_assert_uint_eq(journal_committed_sequence(f.j), 2);
    ck_assert_uint_eq(journal_committed_serial(f.j), serial - 1);
    ck_assert_uint_eq(f.commits, 2);
    ck_assert(journal_has_committed(f.j, first));
    ck_assert(!journal_has_committed(f.j, second));
    ck_assert(!journal_idle(f.j));
    fx_commit(&f);
    ck_assert(journal_has_committed(f.j, second));
    ck_assert_uint_eq(journal_next_serial(f.j), serial);
    fx_close(&f);
    fx_open(&f);
    ck_assert_uint_eq(journal_next_serial(f.j), serial);
    fx_done(&f);
}
END_TEST

START_TEST(appended_is_not_committed)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    fx_commit_many(&f, 3);
    fx_append(&f, 2, 100);
    fx_turns(&f, 5);
    ck_assert(!journal_idle(f.j));
    ck_assert_uint_eq(f.commits, 3);
    fx_reopen(&f);
    ck_assert_uint_eq(f.replayed.count, f.appended.count - 2);
    fx_done(&f);
}
END_TEST

/* While one commit is under way the next gathers. */
START_TEST(one_commit_at_a_time)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    for (int i = 0; i < 20; i++) {
        fx_append(&f, 1, 50);
        journal_commit(f.j);
    }
    ck_assert_uint_eq(f.commits, 0); /* never from the call itself */
    fx_commit(&f);
    /* The first began a segment, which took steps: all that was there was written then. */
    ck_assert_uint_eq(f.commits, 1);
    for (int i = 0; i < 20; i++) {
        fx_append(&f, 1, 50);
        journal_commit(f.j);
    }
    fx_commit(&f);
    ck_assert_uint_eq(f.commits, 3);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

static void append_more(struct fixture *f)
{
    if (f->commits % 50 == 0)
        return;
    fx_append(f, 1 + f->commits % 3, 300);
    journal_commit(f->j);
}

START_TEST(appending_in_the_callback)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    f.then = append_more;
    fx_append(&f, 1, 10);
    fx_commit(&f);
    ck_assert_uint_eq(f.commits, 50);
    f.then = NULL;
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* Gathered before a commit, or committed one by one: no change lies in two segments. */
START_TEST(changes_do_not_cross_segments)
{
    struct fixture f;
    struct journal_stats stats;

    set_up(&f, _i);
    fx_open(&f);
    for (int i = 0; i < 90; i++) {
        fx_append(&f, 5, 700);
        if (i % 30 < 10)
            fx_commit(&f);
    }
    fx_commit(&f);
    for (size_t i = 0; i + 1 < f.appended.count; i++) {
        const struct fx_record *r = &f.appended.records[i];

        if (r->more && r->place.segment != (r + 1)->place.segment)
            ck_abort_msg("a change lies in two segments");
    }
    journal_stats(f.j, &stats);
    ck_assert_uint_ge(stats.segments, 5);
    ck_assert_uint_eq(stats.sealed_bytes, (stats.segments - 1) * FX_SEGMENT_BYTES);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

START_TEST(large_changes_get_large_segments)
{
    static const size_t sizes[] = {FX_SEGMENT_BYTES, 300000, 5u << 20, 60000};
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        fx_append(&f, 1, 10);
        fx_append(&f, 1, sizes[i]);
        fx_append(&f, 3, sizes[i] / 2);
        if (i % 2 == 0)
            fx_commit(&f);
    }
    fx_commit(&f);
    fx_reopen_whole(&f);
    fx_commit_many(&f, 5);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* In pieces, between others, while a commit is under way, and where each needs a segment of its
 * own. */
START_TEST(drafts_are_changes)
{
    static const size_t sizes[] = {10, 700, 2000, 9000};
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    for (unsigned i = 0; i < 120; i++) {
        f.drafts = i % 3 != 0;
        fx_append(&f, 1 + i % 7, sizes[i % 11 == 0 ? 3 : i % 3]);
        if (i % 6 == 0)
            fx_commit(&f);
        else if (i % 2 == 0)
            journal_commit(f.j); /* is waited for by nobody */
    }
    fx_commit(&f);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* Nothing of it is there, and its room is others'. */
START_TEST(a_draft_is_dropped)
{
    struct fixture f;
    uint64_t next;

    set_up(&f, _i);
    fx_open(&f);
    for (unsigned i = 0; i < 40; i++) {
        const struct journal_record record = {1, 3, SPAN("of one that is given up")};
        size_t bytes = 10 * segment_record_bytes(record.body.n);

        fx_append(&f, 2, 900);
        next = journal_next_serial(f.j);
        ck_ok(journal_reserve(f.j, bytes, NULL));
        journal_draft_begin(f.j, bytes);
        for (unsigned k = 0; k < i % 11; k++)
            journal_draft_add(f.j, &record, k < 9);
        if (i % 2 == 0)
            fx_commit(&f);
        journal_draft_drop(f.j);
        journal_draft_drop(f.j);
        ck_assert_uint_eq(journal_next_serial(f.j), next);
    }
    fx_commit(&f);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* It had taken a segment: what gathers before that one does not grow any more, or the new segment
 * would not begin with the serial where the one before ends. */
START_TEST(a_draft_of_another_segment_is_dropped)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    for (unsigned i = 0; i < 8; i++) {
        const size_t bytes = fx_bytes(1, FX_SEGMENT_BYTES / 2 * (1 + i % 2));

        fx_append(&f, 2, 900);
        fx_append(&f, 1, FX_SEGMENT_BYTES / 2); /* so the draft has no room behind it */
        ck_ok(journal_reserve(f.j, bytes, NULL));
        journal_draft_begin(f.j, bytes);
        if (i % 3 == 0)
            journal_commit(f.j);
        journal_draft_drop(f.j);
        fx_append(&f, 2, 900);
        if (i % 4 == 0)
            fx_commit(&f);
    }
    fx_commit(&f);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

START_TEST(too_large)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    ck_fails(journal_reserve(f.j, (size_t)1 << 31, NULL), ERR_STORAGE_FAILURE, "too large");
    ck_fails(journal_reserve(f.j, 100, &(struct journal_left){SIZE_MAX - 10, 0}),
             ERR_STORAGE_FAILURE, "too large");
    ck_fails(journal_reserve(f.j, 100, &(struct journal_left){0, SIZE_MAX - 10}),
             ERR_STORAGE_FAILURE, "too large");
    ck_fails(journal_reserve(f.j, SIZE_MAX, NULL), ERR_STORAGE_FAILURE, "too large");
    fx_done(&f);
}
END_TEST

static struct err *read_back(struct fixture *f, struct journal_place place, struct buf *body)
{
    bool is_there = false;
    struct err *e = journal_read(f->j, place, true, body, &is_there);

    ck_assert(e != NULL || is_there);
    return e;
}

START_TEST(reading_back)
{
    struct fixture f;
    struct buf body;

    set_up(&f, _i);
    buf_init(&body, 1000);
    fx_open(&f);
    fx_append(&f, 1, 0);
    fx_commit_many(&f, 150);
    for (int i = 0; i < 600; i++) {
        const struct fx_record *r = &f.appended.records[rng_below(f.appended.count)];

        ck_ok(read_back(&f, r->place, &body));
        if (body.n != r->n || !fx_body_holds(buf_span(&body), r->serial))
            ck_abort_msg("a record was not read back");
        if (i == 300)
            fx_reopen_whole(&f);
    }
    buf_done(&body);
    fx_done(&f);
}
END_TEST

/* Without waiting it is there at once, or soon after the disk was asked for it. */
START_TEST(reading_without_waiting)
{
    struct fixture f;
    struct buf body;
    bool is_there = false;

    set_up(&f, _i);
    buf_init(&body, 1000);
    fx_open(&f);
    fx_append(&f, 1, 99);
    fx_commit(&f);
    for (int i = 0; i < 5000 && !is_there; i++) {
        ck_ok(journal_read(f.j, f.appended.records[0].place, false, &body, &is_there));
        if (!is_there)
            usleep(1000);
    }
    ck_assert(is_there);
    ck_assert(fx_body_holds(buf_span(&body), f.appended.records[0].serial));
    buf_done(&body);
    fx_done(&f);
}
END_TEST

START_TEST(reading_what_is_not_there)
{
    struct journal_place place;
    struct fixture f;
    struct buf body;

    set_up(&f, _i);
    buf_init(&body, 100);
    fx_open(&f);
    fx_append(&f, 1, 99);
    fx_append(&f, 1, 101);
    fx_commit(&f);
    place = f.appended.records[0].place;
    ck_ok(read_back(&f, place, &body));
    ck_fails(read_back(&f, f.appended.records[1].place, &body), ERR_STORAGE_FAILURE,
             "longer than expected");
    place.offset += 8;
    ck_fails(read_back(&f, place, &body), ERR_STORAGE_FAILURE, "offset 4104 of");
    place.offset = FX_SEGMENT_BYTES;
    ck_fails(read_back(&f, place, &body), ERR_STORAGE_FAILURE, "Input/output error");
    place.segment = 9;
    ck_fails(read_back(&f, place, &body), ERR_STORAGE_FAILURE, "journal-0000000000000009.seg");
    fx_flip(&f, 1, SEGMENT_HEADER_BYTES + 50);
    ck_fails(read_back(&f, f.appended.records[0].place, &body), ERR_STORAGE_FAILURE,
             "it is damaged");
    buf_done(&body);
    fx_done(&f);
}
END_TEST

/* Drops until one segment is left; with each reopening there is less. */
START_TEST(cleaning)
{
    struct fixture f;
    struct journal_stats stats;
    uint64_t number = 1, second;
    size_t from = 0;

    set_up_fast(&f, _i);
    fx_open(&f);
    fx_commit_many(&f, 150);
    f.moves = true;
    fx_commit_many(&f, 150); /* without serials, most of them */
    while ((second = journal_second_first_serial(f.j)) != 0) {
        ck_assert_uint_eq(journal_oldest_number(f.j), number);
        journal_drop_oldest(f.j);
        ck_assert_uint_ge(journal_second_first_serial(f.j) - 1, second - 1);
        fx_commit_many(&f, 1); /* the sync and the deletion come before it */
        for (int i = 0; i < 100 && fx_exists(&f, number); i++)
            loop_run_once(&f.loop);
        ck_assert(!fx_exists(&f, number));
        ck_assert(fx_exists(&f, number + 1));
        while (f.appended.records[from].place.segment <= number)
            from++;
        fx_close(&f);
        fx_open(&f);
        fx_check_replayed(&f, from, 0);
        ck_assert_uint_eq(f.replayed.count, f.appended.count - from);
        number++;
    }
    journal_stats(f.j, &stats);
    ck_assert_uint_ge(number, 3);
    ck_assert_uint_eq(stats.segments, 1);
    ck_assert_uint_eq(stats.sealed_bytes, 0);
    ck_assert_uint_le(stats.bytes, 2 * FX_SEGMENT_BYTES);
    fx_done(&f);
}
END_TEST

/* What was appended, but not committed, may be what made the segment needless. */
START_TEST(cleaning_waits_for_the_commit)
{
    struct journal_place place;
    struct fixture f;

    set_up_fast(&f, _i);
    fx_open(&f);
    while (journal_second_first_serial(f.j) == 0)
        fx_commit_many(&f, 1);
    if (_i % 2 == 0)
        fx_append(&f, 1, 100);
    else
        append_copy(&f, "moved", &place);
    f.moves = true;
    journal_drop_oldest(f.j);
    fx_turns(&f, 5);
    ck_assert(fx_exists(&f, 1));
    fx_commit(&f);
    for (int i = 0; i < 100 && fx_exists(&f, 1); i++)
        loop_run_once(&f.loop);
    ck_assert(!fx_exists(&f, 1) || f.options.fsync != JOURNAL_ALWAYS);
    fx_done(&f);
}
END_TEST

/* All at once; deletions wait for each other. */
START_TEST(cleaning_at_once)
{
    struct fixture f;
    struct journal_stats stats;
    size_t dropped = 0;

    set_up(&f, _i);
    fx_open(&f);
    fx_commit_many(&f, 150);
    while (journal_second_first_serial(f.j) != 0) {
        journal_drop_oldest(f.j);
        dropped++;
    }
    for (int i = 0; i < 1000 && fx_exists(&f, dropped); i++)
        loop_run_once(&f.loop);
    for (size_t number = 1; number <= dropped; number++)
        ck_assert(!fx_exists(&f, number));
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.segments, 1);
    fx_close(&f);
    fx_open(&f);
    fx_check_replayed(&f, f.appended.count - f.replayed.count, 0);
    fx_done(&f);
}
END_TEST

/* The second segment exists on paper only: nothing may go. */
START_TEST(no_cleaning_before_the_successor_is_there)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    fx_commit_many(&f, 1);
    fx_append(&f, 1, 50000);
    fx_append(&f, 1, 50000);
    ck_assert_uint_eq(journal_second_first_serial(f.j), 0);
    fx_commit(&f);
    ck_assert_uint_ne(journal_second_first_serial(f.j), 0);
    fx_done(&f);
}
END_TEST

static void close_journal(struct fixture *f)
{
    journal_close(TAKE(f->j));
}

START_TEST(closed_in_the_callback)
{
    struct fixture f;

    set_up(&f, _i);
    fx_open(&f);
    f.then = close_journal;
    fx_append(&f, 1, 100);
    journal_commit(f.j);
    while (f.j != NULL)
        loop_run_once(&f.loop);
    f.then = NULL;
    fx_open(&f);
    fx_check_replayed(&f, 0, 1);
    fx_done(&f);
}
END_TEST

/* Close waits for what was submitted; it may be there afterwards, in whole changes. */
START_TEST(closed_while_committing)
{
    struct fixture f;

    set_up_fast(&f, _i);
    fx_open(&f);
    for (int i = 0; i < 10; i++) {
        fx_append(&f, 3, 2000);
        fx_append(&f, 3, 2000);
        journal_commit(f.j);
        fx_turns(&f, i);
        fx_reopen(&f);
        fx_forget_lost(&f);
    }
    fx_done(&f);
}
END_TEST

START_TEST(statistics)
{
    struct journal_stats stats;
    struct fixture f;
    struct histogram times = {.sum_ns = 0};
    uint64_t timings = 0;

    set_up(&f, _i);
    fx_open(&f);
    journal_time_commits(f.j, &times);
    fx_append(&f, 1, 100);
    fx_commit(&f);
    fx_append(&f, 1, 5000);
    fx_commit(&f);
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.commits, 2);
    for (size_t i = 0; i < ARRAY_LEN(times.counts); i++)
        timings += times.counts[i];
    ck_assert_uint_eq(timings, 2);
    ck_assert_uint_gt(times.sum_ns, 0);
    ck_assert_uint_eq(stats.appended_bytes, 4096 + 8192);
    ck_assert_uint_eq(stats.segments, 1);
    ck_assert_uint_eq(stats.bytes, FX_SEGMENT_BYTES);
    ck_assert_uint_eq(stats.sealed_bytes, 0);
    ck_assert(!stats.full && !stats.failed);
    fx_reopen_whole(&f);
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.replayed_records, 2);
    ck_assert_uint_eq(stats.cut_bytes, 0);
    fx_done(&f);
}
END_TEST

START_TEST(sizes_of_segments)
{
    static const uint64_t bad[] = {1, 4096, 60u << 10, (64u << 10) + 1, (uint64_t)1 << 40};
    struct journal_stats stats;
    struct fixture f;

    set_up(&f, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        f.options.segment_bytes = bad[i];
        ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, "a segment cannot have");
    }
    f.options.segment_bytes = 0;
    fx_open(&f);
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.bytes, JOURNAL_SEGMENT_BYTES);
    fx_done(&f);
}
END_TEST

START_TEST(the_directory_is_locked)
{
    struct fixture f;
    struct journal *first;
    char pid[16];

    set_up(&f, _i);
    fx_open(&f);
    first = TAKE(f.j);
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, f.directory);
    snprintf(pid, sizeof(pid), "number %d", (int)getpid());
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, pid);
    f.j = first;
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

START_TEST(the_directory_is_made)
{
    struct fixture f;
    char below[100], deeper[120];
    struct stat status;

    set_up(&f, 0);
    snprintf(below, sizeof(below), "%s/journal", f.directory);
    snprintf(deeper, sizeof(deeper), "%s/a/b", below);
    f.options.directory = deeper;
    ck_fails(fx_try_open(&f), ERR_STORAGE_FAILURE, deeper);
    f.options.directory = below;
    fx_open(&f);
    ck_assert_int_eq(stat(below, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    fx_close(&f);
    snprintf(deeper, sizeof(deeper), "%s/lock", below);
    unlink(deeper);
    ck_assert_int_eq(rmdir(below), 0); /* a journal without records leaves nothing else */
    f.options.directory = f.directory;
    fx_done(&f);
}
END_TEST

/* When no room can be had for more than the segment at hand, that one can still be used up. */
START_TEST(no_room_for_a_large_change)
{
    struct rlimit limit = {FX_SEGMENT_BYTES, RLIM_INFINITY}, before;
    struct fixture f;

    be_quiet();
    signal(SIGXFSZ, SIG_IGN);
    set_up(&f, 0);
    fx_open(&f);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &limit);
    ck_fails(journal_reserve(f.j, 100000, NULL), ERR_STORAGE_FAILURE, "no room for");
    ck_ok(journal_reserve(f.j, 20000, NULL));
    ck_ok(journal_reserve(f.j, 20000, &(struct journal_left){80000, 0}));
    ck_fails(journal_reserve(f.j, 20000, &(struct journal_left){200000, 0}), ERR_STORAGE_FAILURE,
             "no room for");
    fx_commit_many(&f, 10);
    setrlimit(RLIMIT_FSIZE, &before);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

static uint64_t records_in(const struct fixture *f, uint64_t number)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < f->appended.count; i++)
        if (f->appended.records[i].place.segment == number)
            bytes += segment_record_bytes(f->appended.records[i].n);
    return bytes;
}

/* However densely a segment was written: what it holds, moved, fits into one of the same size. */
START_TEST(what_a_segment_holds_fits_into_another)
{
    static const size_t sizes[] = {1, 100, 4072, 4073, 9000, 30000, 52000};
    struct fixture f;
    uint64_t number;

    set_up_fast(&f, 0);
    fx_open(&f);
    for (int i = 0; i < 200; i++) {
        fx_append(&f, 1, sizes[_i]);
        if (f.appended.count % MAX(1, MIN(40, 100000 / sizes[_i])) == 0)
            fx_commit(&f);
    }
    fx_commit(&f);
    number = f.appended.records[f.appended.count - 1].place.segment;
    while (number > 0)
        ck_assert_uint_le(journal_moved_bytes(records_in(&f, number--)),
                          FX_SEGMENT_BYTES - SEGMENT_HEADER_BYTES);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* A segment that was made to take what a large one holds is as large as others when it is used, and
 * another is kept ready as long as the large one is there. */
START_TEST(room_for_what_a_large_segment_holds)
{
    const struct journal_left large = {0, journal_moved_bytes(300000)};
    struct journal_stats stats;
    struct fixture f;
    uint64_t number;

    set_up_fast(&f, 0);
    fx_open(&f);
    fx_commit_many(&f, 1);
    ck_assert_uint_eq(journal_largest(f.j), 0);
    fx_append(&f, 1, 290000);
    fx_commit(&f);
    number = f.appended.records[f.appended.count - 1].place.segment;
    ck_assert_uint_gt(journal_largest(f.j), 290000);
    ck_ok(journal_reserve(f.j, 100, &large));
    ck_assert(journal_can_move(f.j, large.moves));
    journal_stats(f.j, &stats);
    ck_assert_uint_gt(stats.bytes, FX_SEGMENT_BYTES + 2 * 290000);
    while (f.appended.records[f.appended.count - 1].place.segment == number)
        fx_commit_many(&f, 1);
    ck_assert(!journal_can_move(f.j, large.moves));
    ck_ok(journal_reserve(f.j, 100, &large));
    ck_assert(journal_can_move(f.j, large.moves));
    while (journal_oldest_number(f.j) <= number)
        journal_drop_oldest(f.j);
    ck_assert(journal_is_dropping(f.j));
    ck_assert_uint_eq(journal_largest(f.j), 0);
    fx_commit_many(&f, 1);
    for (int i = 0; i < 100 && journal_is_dropping(f.j); i++)
        loop_run_once(&f.loop);
    ck_assert(!journal_is_dropping(f.j));
    fx_done(&f);
}
END_TEST

/* The helper dies: everything that waits fails, once. */
START_TEST(losing_the_helper)
{
    struct fixture f;
    struct buf body;
    char path[64];
    FILE *children;
    int pid = 0;

    be_quiet();
    fx_init(&f, combinations[_i].fsync, DISK_HELPER);
    fx_open(&f);
    fx_commit_many(&f, 3);
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    children = fopen(path, "r");
    ck_assert_int_eq(fscanf(children, "%d", &pid), 1);
    fclose(children);
    kill(pid, SIGKILL);
    fx_append(&f, 2, 100);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 1);
    ck_assert_int_eq(f.error_number, EPIPE);
    ck_assert_uint_eq(f.commits, 3);
    buf_init(&body, 1000);
    ck_ok(read_back(&f, f.appended.records[0].place, &body)); /* reading goes on */
    buf_done(&body);
    fx_reopen(&f);
    ck_assert_uint_ge(f.replayed.count + 2, f.appended.count);
    fx_done(&f);
}
END_TEST

#ifdef SVCD_FAULTS
/* A scripted run that begins segments, drops some, and commits in all manners. What fails on the
 * way is left out. */
static void run_script(struct fixture *f)
{
    for (int i = 0; i < 15; i++) {
        struct err *e = journal_reserve(f->j, fx_bytes(3, 5000), NULL);

        if (e == NULL)
            fx_append_blindly(f, 3, 5000);
        err_free(e);
        journal_commit(f->j);
        if (i % 3 == 0)
            fx_commit(f);
        if (i % 5 == 4 && f->failures == 0 && journal_second_first_serial(f->j) != 0)
            journal_drop_oldest(f->j);
    }
    fx_commit(f);
}

/* What is replayed ends with a whole change and holds everything that was committed, from some
 * record on (segments were dropped). */
static void check_survivors(struct fixture *f, uint64_t committed)
{
    size_t from = 0;

    if (f->replayed.count > 0) {
        while (f->appended.records[from].serial < f->replayed.records[0].serial)
            from++;
    }
    fx_check_replayed(f, from, committed);
}

/* Would a pass through that place still fail? */
static bool is_pending(const char *name, int n)
{
    while (n-- > 0) {
        if (fault_hit(name))
            return true;
    }
    return false;
}

static const char *const fault_names[] = {
    "disk.submit", "disk.write",    "disk.sync", "disk.rename", "disk.unlink",
    "disk.open",   "disk.allocate", "disk.map",  "disk.read",
};

/* The Nth pass through each place fails, for every N (not quite every one where there are many):
 * either the journal says so and takes nothing more, or it goes on; what it acknowledged is there
 * afterwards. A second opening passes through the places of recovery. */
START_TEST(every_nth_call_fails)
{
    const char *name = fault_names[_i / (int)ARRAY_LEN(combinations)];
    bool pending = false;

    be_quiet();
    for (int n = 1; !pending; n += 1 + n / 4) {
        struct fixture f;
        char fault[40];
        uint64_t committed = 0;

        set_up_fast(&f, _i % (int)ARRAY_LEN(combinations));
        snprintf(fault, sizeof(fault), "%s:%d", name, n);
        fault_set(fault);
        for (int opening = 0; opening < 2; opening++) {
            err_free(fx_try_open(&f));
            if (f.j == NULL)
                continue;
            check_survivors(&f, committed);
            fx_forget_lost(&f);
            run_script(&f);
            committed = MAX(committed, f.committed);
            ck_assert_uint_le(f.failures, 1);
            fx_close(&f);
        }
        pending = is_pending(name, n);
        fault_set(NULL);
        fx_open(&f);
        check_survivors(&f, committed);
        fx_done(&f);
    }
}
END_TEST

static const struct failure_case {
    const char *fault;
    int combination;
} failure_cases[] = {
    {"disk.write:1+", 0}, {"disk.write:1+", 1},  {"disk.write:1+", 2},
    {"disk.write:1+", 3}, {"disk.submit:1+", 4}, {"disk.submit:1+", 5},
};

/* After the first failure nothing is committed, though the disk works again. */
START_TEST(failing_for_good)
{
    const struct failure_case *c = &failure_cases[_i];
    struct journal_stats stats;
    struct fixture f;

    be_quiet();
    set_up(&f, c->combination);
    fx_open(&f);
    fx_commit_many(&f, 5);
    fault_set(c->fault);
    fx_append(&f, 2, 100);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 1);
    fault_set(NULL);
    for (int i = 0; i < 3; i++) {
        fx_append_blindly(&f, 2, 100);
        fx_commit(&f);
    }
    ck_assert_uint_eq(f.failures, 1);
    ck_assert_uint_eq(f.commits, 5);
    ck_fails(journal_reserve(f.j, 10, NULL), ERR_STORAGE_FAILURE, "has failed");
    journal_stats(f.j, &stats);
    ck_assert(stats.failed);
    fx_reopen(&f);
    ck_assert_uint_eq(f.replayed.count, f.appended.count - 8);
    fx_done(&f);
}
END_TEST

START_TEST(closed_when_failing)
{
    struct fixture f;

    be_quiet();
    set_up(&f, _i);
    fx_open(&f);
    fx_commit_many(&f, 1);
    f.then = close_journal;
    fault_set("disk.write:1+");
    fx_append(&f, 1, 100);
    fx_commit(&f);
    ck_assert_ptr_null(f.j);
    fault_set(NULL);
    f.then = NULL;
    fx_open(&f);
    fx_check_replayed(&f, 0, 1);
    fx_done(&f);
}
END_TEST

/* everysec: the sync comes a second after the write, once. The fault shows when it does. */
START_TEST(a_sync_each_second)
{
    struct fixture f;

    be_quiet();
    fx_init(&f, JOURNAL_EVERYSEC, combinations[_i].engine);
    clock_fake(0, (uint64_t)1000000000);
    fx_open(&f);
    fx_commit_many(&f, 3);
    fault_set("disk.sync:2+");
    clock_advance(999000000);
    fx_turns(&f, 3);
    fx_commit_many(&f, 1);
    clock_advance(1000000);
    fx_turns(&f, 5); /* the first sync */
    clock_advance(5000000000);
    fx_turns(&f, 5); /* none: nothing was written */
    fx_append(&f, 1, 100);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 0);
    clock_advance(1000000000);
    fx_turns(&f, 5); /* the second, which fails */
    ck_assert_uint_eq(f.failures, 1);
    ck_assert_int_eq(f.error_number, EIO);
    fault_set(NULL);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* no: within a segment nothing is synced, but a segment is before the next is begun. */
START_TEST(syncs_between_segments_only)
{
    struct fixture f;

    be_quiet();
    fx_init(&f, JOURNAL_NO, combinations[_i].engine);
    fx_open(&f);
    fx_append(&f, 1, 10);
    fx_commit(&f);
    fault_set("disk.sync:1+");
    for (int i = 0; i < 10; i++) {
        fx_append(&f, 1, 1000);
        fx_commit(&f);
    }
    ck_assert_uint_eq(f.failures, 0);
    fx_append(&f, 1, 50000);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 1);
    fault_set(NULL);
    fx_reopen(&f);
    fx_done(&f);
}
END_TEST

/* Uses up all there is, down to the reserve, which a deletion may then use; when there is room
 * again, service returns within a second. */
START_TEST(a_full_disk)
{
    struct journal_stats stats;
    struct fixture f;
    struct err *e;
    size_t count = 0;

    be_quiet();
    set_up(&f, _i);
    clock_fake(0, (uint64_t)1000000000);
    fx_open(&f);
    fault_set("disk.allocate:1+");
    while ((e = journal_reserve(f.j, 1000, &(struct journal_left){5000, 0})) == NULL) {
        fx_append_blindly(&f, 1, 900);
        fx_commit(&f);
        ck_assert_uint_lt(++count, 1000);
    }
    ck_assert_int_eq(err_code(e), ERR_STORAGE_FAILURE);
    err_free(e);
    journal_stats(f.j, &stats);
    ck_assert(stats.full);
    ck_assert_uint_ge(count, 13); /* a block each */
    fx_append(&f, 1, 4000);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 0);

    fault_set(NULL);
    ck_fails(journal_reserve(f.j, 30000, NULL), ERR_STORAGE_FAILURE,
             "no room"); /* not asked again */
    clock_advance(1000000000);
    fx_turns(&f, 2);
    ck_ok(journal_reserve(f.j, 30000, NULL));
    journal_stats(f.j, &stats);
    ck_assert(!stats.full);
    fx_append(&f, 1, 29000);
    fx_commit(&f);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* Room for moves stays, in one piece and beside what is spare, until nothing else is left. */
START_TEST(a_full_disk_keeps_room_for_moves)
{
    const struct journal_left left = {8192, journal_moved_bytes(50000)};
    struct fixture f;
    struct err *e;
    size_t count = 0;

    be_quiet();
    set_up_fast(&f, _i);
    clock_fake(0, (uint64_t)1000000000);
    fx_open(&f);
    ck_ok(journal_reserve(f.j, 1000, &left)); /* while there is room: a segment ahead */
    fx_append_blindly(&f, 1, 30000);
    ck_ok(journal_reserve(f.j, 1000, &left));
    fault_set("disk.allocate:1+");
    while ((e = journal_reserve(f.j, 1000, &left)) == NULL) {
        fx_append_blindly(&f, 1, 900);
        fx_commit(&f);
        ck_assert_uint_lt(++count, 1000);
    }
    err_free(e);
    ck_assert_uint_ge(count, 4);
    fx_append(&f, 1, 4000);
    fx_commit(&f);
    fx_append(&f, 1, 4000);
    fx_commit(&f);
    ck_assert(journal_can_move(f.j, left.moves));
    for (int i = 0; i < 5; i++)
        fx_append(&f, 1, 10000 - SEGMENT_RECORD_HEADER_BYTES);
    fx_commit(&f);
    ck_assert_uint_eq(f.failures, 0);
    fault_set(NULL);
    fx_reopen_whole(&f);
    fx_done(&f);
}
END_TEST

/* Dropping a segment makes room at once. */
START_TEST(cleaning_makes_room)
{
    struct journal_stats stats;
    struct fixture f;

    be_quiet();
    set_up_fast(&f, _i);
    fx_open(&f);
    while (journal_second_first_serial(f.j) == 0)
        fx_commit_many(&f, 1);
    journal_stats(f.j, &stats);
    ck_assert_uint_eq(stats.sealed_bytes, FX_SEGMENT_BYTES);
    fault_set("disk.allocate:1+");
    for (int i = 0; i < 100 && !stats.full; i++) {
        fx_commit_many(&f, 1);
        journal_stats(f.j, &stats);
    }
    ck_assert(stats.full);
    fault_set(NULL);
    journal_drop_oldest(f.j);
    for (int i = 0; i < 100 && stats.full; i++) {
        loop_run_once(&f.loop);
        journal_stats(f.j, &stats);
    }
    ck_assert(!stats.full);
    fx_done(&f);
}
END_TEST

/* A segment that cannot be deleted stays, and is tried again. */
START_TEST(cleaning_that_fails)
{
    struct fixture f;
    size_t from = 0;
    uint64_t second;

    be_quiet();
    set_up_fast(&f, _i);
    clock_fake(0, (uint64_t)1000000000);
    fx_open(&f);
    while ((second = journal_second_first_serial(f.j)) == 0)
        fx_commit_many(&f, 1);
    fault_set("disk.unlink:1+");
    journal_drop_oldest(f.j);
    fx_turns(&f, 5);
    ck_assert(fx_exists(&f, 1));
    fault_set(NULL);
    clock_advance(1000000000);
    for (int i = 0; i < 100 && fx_exists(&f, 1); i++)
        loop_run_once(&f.loop);
    ck_assert(!fx_exists(&f, 1));
    while (f.appended.records[from].serial < second)
        from++;
    fx_close(&f);
    fx_open(&f);
    fx_check_replayed(&f, from, 0);
    fx_done(&f);
}
END_TEST
#endif

void testing_cases(TCase *tc)
{
    const TTest *const all[] = {
        a_new_journal,
        everything_comes_back,
        what_takes_no_serial_comes_back,
        a_batch_without_serials_is_committed_by_itself,
        appended_is_not_committed,
        one_commit_at_a_time,
        appending_in_the_callback,
        changes_do_not_cross_segments,
        large_changes_get_large_segments,
        drafts_are_changes,
        a_draft_is_dropped,
        a_draft_of_another_segment_is_dropped,
        too_large,
        reading_back,
        reading_without_waiting,
        reading_what_is_not_there,
        cleaning,
        cleaning_waits_for_the_commit,
        cleaning_at_once,
        no_cleaning_before_the_successor_is_there,
        closed_in_the_callback,
        closed_while_committing,
        statistics,
#ifdef SVCD_FAULTS
        closed_when_failing,
        a_full_disk,
        a_full_disk_keeps_room_for_moves,
        cleaning_makes_room,
        cleaning_that_fails,
#endif
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        tcase_add_loop_test(tc, all[i], 0, ARRAY_LEN(combinations));
    tcase_add_test(tc, sizes_of_segments);
    tcase_add_test(tc, the_directory_is_made);
    tcase_add_loop_test(tc, the_directory_is_locked, 2, 4);
    tcase_add_test(tc, no_room_for_a_large_change);
    tcase_add_loop_test(tc, what_a_segment_holds_fits_into_another, 0, 7);
    tcase_add_test(tc, room_for_what_a_large_segment_holds);
    tcase_add_loop_test(tc, losing_the_helper, 0, 3);
#ifdef SVCD_FAULTS
    tcase_add_loop_test(tc, every_nth_call_fails, 0,
                        ARRAY_LEN(fault_names) * ARRAY_LEN(combinations));
    tcase_add_loop_test(tc, failing_for_good, 0, ARRAY_LEN(failure_cases));
    tcase_add_loop_test(tc, a_sync_each_second, 2, 4);
    tcase_add_loop_test(tc, syncs_between_segments_only, 2, 4);
#endif
}
