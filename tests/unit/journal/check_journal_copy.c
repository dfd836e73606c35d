#include "journal_testing.h"

#include "testing.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/fault.h"
#include "journal/backup.h"
#include "journal/journal_copy.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct combination {
    enum journal_fsync fsync;
    enum disk_engine engine;
} combinations[] = {
    {JOURNAL_ALWAYS, DISK_AIO},
    {JOURNAL_EVERYSEC, DISK_AIO},
    {JOURNAL_ALWAYS, DISK_HELPER},
};

/* A journal of several segments, and a copy of it. */
struct copied {
    struct fixture f;
    struct journal_copy *copy;
    unsigned lost;
    enum journal_copy_loss loss;
};

static void on_lost(void *context, enum journal_copy_loss loss)
{
    struct copied *c = context;

    c->lost++;
    c->loss = loss;
}

static void open_copy(struct copied *c, uint64_t held_bytes)
{
    ck_ok(journal_copy_open(c->f.j, &(struct journal_copy_options){held_bytes, on_lost, c},
                            &c->copy));
}

static void set_up(struct copied *c, int i, size_t commits)
{
    *c = (struct copied){.lost = 0};
    fx_init(&c->f, combinations[i].fsync, combinations[i].engine);
    fx_open(&c->f);
    fx_commit_many(&c->f, commits);
}

static void tear_down(struct copied *c)
{
    journal_copy_close(c->copy);
    fx_done(&c->f);
}

/* One part; false: that was all. */
static bool read_part(struct copied *c, struct buf *to)
{
    struct buf part;
    bool is_there = false;
    size_t n;

    buf_init(&part, JOURNAL_COPY_PART_BYTES);
    while (!is_there) {
        ck_ok(journal_copy_read(c->copy, &part, &is_there));
        if (!is_there)
            usleep(1000);
    }
    n = part.n;
    buf_add(to, buf_span(&part));
    buf_done(&part);
    return n > 0;
}

static void read_rest(struct copied *c, struct buf *to)
{
    while (read_part(c, to))
        continue;
}

/* The segments in it are what the files hold. Returns how many there are. */
static uint32_t check_file(const struct copied *c, struct span file)
{
    uint8_t digest[DIGEST_BYTES];
    struct backup_head head;
    size_t at = BACKUP_HEAD_BYTES;

    ck_ok(backup_file_read_head(file, &head));
    ck_assert_uint_eq(head.bytes, file.n);
    ck_assert_uint_eq(journal_copy_bytes(c->copy), file.n);
    ck_assert_uint_eq(journal_copy_serial(c->copy), head.serial);
    for (uint32_t i = 0; i < head.segments; i++) {
        struct backup_segment_head segment;
        char *there;
        size_t n;

        backup_file_read_segment_head(span_sub(file, at, file.n), &segment);
        at += BACKUP_SEGMENT_HEAD_BYTES;
        ck_assert_uint_eq(segment.number, head.first_number + i);
        there = fx_read_file(&c->f, segment.number, &n);
        ck_assert_uint_le(segment.bytes, n);
        ck_assert_mem_eq(file.p + at, there, segment.bytes);
        mem_free(there);
        at += segment.bytes;
    }
    digest_sha256(span_sub(file, 0, at), digest);
    ck_assert(backup_file_is_end(span_sub(file, at, file.n), digest));
    return head.segments;
}

START_TEST(what_is_committed_is_in_it)
{
    struct copied c;
    struct buf file;
    uint64_t serial;

    set_up(&c, _i, 150);
    buf_init(&file, BUF_NO_CAP);
    serial = journal_committed_serial(c.f.j);
    fx_append(&c.f, 2, 1000); /* not committed */
    open_copy(&c, 0);
    ck_assert_uint_eq(journal_copy_serial(c.copy), serial);
    fx_commit_many(&c.f, 50);
    read_rest(&c, &file);
    ck_assert_uint_ge(check_file(&c, buf_span(&file)), 3);
    ck_assert_uint_eq(c.lost, 0);
    ck_assert(!read_part(&c, &file)); /* as often as one asks */

    /* It opens as a journal that ends there. */
    journal_copy_close(TAKE(c.copy));
    fx_close(&c.f);
    {
        struct backup_head head;
        size_t at = BACKUP_HEAD_BYTES;

        ck_ok(backup_file_read_head(buf_span(&file), &head));
        for (uint64_t number = head.first_number + head.segments; fx_exists(&c.f, number);
             number++) {
            char path[128];

            unlink(fx_path(&c.f, number, path));
        }
        for (uint32_t i = 0; i < head.segments; i++) {
            struct backup_segment_head segment;

            backup_file_read_segment_head(span_sub(buf_span(&file), at, file.n), &segment);
            fx_write_file(&c.f, segment.number, file.p + at + BACKUP_SEGMENT_HEAD_BYTES,
                          (size_t)segment.bytes);
            at += BACKUP_SEGMENT_HEAD_BYTES + (size_t)segment.bytes;
        }
    }
    fx_open(&c.f);
    ck_assert_uint_eq(journal_committed_serial(c.f.j), serial);
    fx_check_replayed(&c.f, 0, serial);
    buf_done(&file);
    fx_forget_lost(&c.f);
    tear_down(&c);
}
END_TEST

START_TEST(of_a_journal_without_records)
{
    struct copied c;
    struct buf file;

    set_up(&c, _i, 0);
    buf_init(&file, BUF_NO_CAP);
    open_copy(&c, 0);
    read_rest(&c, &file);
    ck_assert_uint_eq(check_file(&c, buf_span(&file)), 0);
    buf_done(&file);
    tear_down(&c);
}
END_TEST

static void run_until_gone(struct copied *c, uint64_t number)
{
    for (int i = 0; i < 1000 && fx_exists(&c->f, number); i++)
        fx_commit_many(&c->f, 1);
    ck_assert(!fx_exists(&c->f, number));
}

START_TEST(what_it_has_to_read_stays)
{
    struct copied c;
    struct buf file;

    set_up(&c, _i, 150);
    buf_init(&file, BUF_NO_CAP);
    open_copy(&c, UINT64_MAX);
    journal_drop_oldest(c.f.j);
    journal_drop_oldest(c.f.j);
    fx_commit_many(&c.f, 5);
    fx_turns(&c.f, 20);
    ck_assert(fx_exists(&c.f, 1) && fx_exists(&c.f, 2));
    while (file.n < BACKUP_HEAD_BYTES + 2 * BACKUP_SEGMENT_HEAD_BYTES + FX_SEGMENT_BYTES)
        ck_assert(read_part(&c, &file));
    run_until_gone(&c, 1);
    ck_assert(fx_exists(&c.f, 2));
    read_rest(&c, &file);
    ck_assert_uint_eq(file.n, journal_copy_bytes(c.copy));
    run_until_gone(&c, 2);
    ck_assert_uint_eq(c.lost, 0);
    buf_done(&file);
    tear_down(&c);
}
END_TEST

START_TEST(closing_it_lets_go)
{
    struct copied c;

    set_up(&c, _i, 150);
    open_copy(&c, UINT64_MAX);
    journal_drop_oldest(c.f.j);
    fx_commit_many(&c.f, 5);
    ck_assert(fx_exists(&c.f, 1));
    journal_copy_close(TAKE(c.copy));
    run_until_gone(&c, 1);
    tear_down(&c);
}
END_TEST

START_TEST(it_holds_no_more_than_it_may)
{
    struct journal_copy *other;
    struct copied c, second = {.lost = 0};
    struct buf part;
    bool is_there;

    set_up(&c, _i, 150);
    buf_init(&part, JOURNAL_COPY_PART_BYTES);
    open_copy(&c, FX_SEGMENT_BYTES);
    journal_drop_oldest(c.f.j);
    ck_ok(journal_copy_open(c.f.j,
                            &(struct journal_copy_options){FX_SEGMENT_BYTES, on_lost, &second},
                            &other)); /* of what is left: it needs none of that */
    fx_commit_many(&c.f, 5);
    ck_assert_uint_eq(c.lost, 0);
    ck_assert(fx_exists(&c.f, 1));
    journal_drop_oldest(c.f.j);
    run_until_gone(&c, 1);
    ck_assert_uint_eq(c.lost, 1);
    ck_assert_int_eq(c.loss, JOURNAL_COPY_HELD_TOO_MUCH);
    ck_fails(journal_copy_read(c.copy, &part, &is_there), ERR_STORAGE_FAILURE, "BackupHeldBytes");
    ck_assert_uint_eq(second.lost, 0); /* one segment is within the bound */
    ck_assert(fx_exists(&c.f, 2));
    journal_copy_close(other);
    run_until_gone(&c, 2);
    buf_done(&part);
    tear_down(&c);
}
END_TEST

#ifdef SVCD_FAULTS
START_TEST(it_gives_way_on_a_full_disk)
{
    struct copied c;

    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    set_up(&c, _i, 150);
    open_copy(&c, UINT64_MAX);
    journal_drop_oldest(c.f.j);
    fault_set("disk.allocate:1+");
    for (int i = 0; i < 1000 && c.lost == 0; i++) {
        struct err *e = journal_reserve(c.f.j, 1000, &(struct journal_left){5000, 0});

        if (e == NULL)
            fx_append_blindly(&c.f, 1, 900);
        err_free(e);
        fx_commit(&c.f);
    }
    ck_assert_uint_eq(c.lost, 1);
    ck_assert_int_eq(c.loss, JOURNAL_COPY_DISK_FULL);
    for (unsigned i = 0; c.f.options.fsync == JOURNAL_ALWAYS && fx_exists(&c.f, 1); i++) {
        testing_await(i);
        fx_turns(&c.f, 1);
    }
    fault_set(NULL);
    tear_down(&c);
}
END_TEST

START_TEST(what_cannot_be_read)
{
    struct copied c;
    struct buf file;
    struct buf part;
    bool is_there;

    set_up(&c, _i, 150);
    buf_init(&file, BUF_NO_CAP);
    buf_init(&part, JOURNAL_COPY_PART_BYTES);
    open_copy(&c, 0);
    read_part(&c, &file);
    read_part(&c, &file);
    fault_set("disk.read:1");
    ck_fails(journal_copy_read(c.copy, &part, &is_there), ERR_STORAGE_FAILURE,
             "journal-0000000000000001.seg at offset 0");
    fault_set(NULL);
    buf_done(&file);
    buf_done(&part);
    tear_down(&c);
}
END_TEST
#endif

void testing_cases(TCase *tc)
{
    int count = ARRAY_LEN(combinations);

    tcase_add_loop_test(tc, what_is_committed_is_in_it, 0, count);
    tcase_add_loop_test(tc, of_a_journal_without_records, 0, count);
    tcase_add_loop_test(tc, what_it_has_to_read_stays, 0, count);
    tcase_add_loop_test(tc, closing_it_lets_go, 0, count);
    tcase_add_loop_test(tc, it_holds_no_more_than_it_may, 0, count);
#ifdef SVCD_FAULTS
    tcase_add_loop_test(tc, it_gives_way_on_a_full_disk, 0, count);
    tcase_add_loop_test(tc, what_cannot_be_read, 0, count);
#endif
}
