/* A backup file in pieces becomes segment files: whole ones, or an error and nothing to be used. */
#include "journal/copy_in.h"

#include "testing.h"

#include "base/buf.h"
#include "base/digest.h"
#include "io/fault.h"
#include "journal/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static struct loop loop;
static char directory[64], below[80];
static struct copy_in *copy;
static struct buf file;
static size_t given;
static unsigned ended, rooms;
static bool is_whole;
static char why[256];

/* No two blocks are alike. */
static void add_content(uint64_t bytes, uint32_t seed)
{
    char *p = buf_reserve(&file, (size_t)bytes);

    for (uint64_t i = 0; i < bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        p[i] = (char)(seed >> 24);
    }
    buf_commit(&file, (size_t)bytes);
}

static void make(const uint64_t *sizes, uint32_t count)
{
    struct backup_head head = {.segments = count, .first_number = 1, .serial = 99};
    uint8_t digest[DIGEST_BYTES];
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++)
        all += sizes[i];
    head.bytes = backup_file_bytes(count, all);
    buf_clear(&file);
    backup_file_add_head(&file, &head);
    for (uint32_t i = 0; i < count; i++) {
        backup_file_add_segment_head(&file, &(struct backup_segment_head){1 + i, sizes[i]});
        add_content(sizes[i], i);
    }
    digest_sha256(buf_span(&file), digest);
    backup_file_add_end(&file, digest);
}

static void on_room(void *context)
{
    (void)context;
    rooms++;
}

static void on_end(void *context, struct err *e)
{
    (void)context;
    ended++;
    is_whole = e == NULL;
    if (e != NULL)
        snprintf(why, sizeof(why), "%.*s", SPAN_FMT(err_message(e)));
    err_free(e);
}

static void begin(void)
{
    ck_ok(loop_init(&loop));
    buf_init(&file, BUF_NO_CAP);
    strcpy(directory, "check-copy-in-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(below, sizeof(below), "%s/joining", directory);
    given = ended = rooms = 0;
    is_whole = false;
    why[0] = '\0';
}

static void open_copy(void)
{
    ck_ok(copy_in_new(&loop, below, &(struct copy_in_callbacks){on_room, on_end, NULL}, &copy));
}

static void end(void)
{
    char command[128];

    fault_set(NULL);
    copy_in_free(copy);
    copy = NULL;
    buf_done(&file);
    loop_done(&loop);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void turn(void)
{
    loop_wake(&loop);
    loop_run_once(&loop);
}

/* All of the file, a piece at a time, as it is taken. */
static void give_all(size_t piece)
{
    for (unsigned in_vain = 0; given < file.n;) {
        size_t taken = copy_in_take(copy, span_sub(buf_span(&file), given, given + piece));

        given += taken;
        in_vain = taken > 0 ? 0 : in_vain + 1;
        testing_await(in_vain);
        turn();
    }
}

static void await_end(void)
{
    for (unsigned i = 0; ended == 0; i++) {
        testing_await(i);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(ended, 1);
}

/* The segment's file is what stands in the backup at that place. */
static void check_segment(uint64_t number, uint64_t bytes, size_t at)
{
    char name[40], path[160];
    char *p = malloc((size_t)bytes + 1);
    int fd;

    segment_file_name(number, name);
    snprintf(path, sizeof(path), "%s/%s", below, name);
    fd = open(path, O_RDONLY);
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_int_eq(read(fd, p, (size_t)bytes + 1), (ssize_t)bytes);
    ck_assert_int_eq(memcmp(p, file.p + at, (size_t)bytes), 0);
    close(fd);
    free(p);
}

static const struct {
    uint64_t sizes[9];
    uint32_t count;
} files[] = {
    {{0}, 0},
    {{8192}, 1},
    {{5000, 4096, 0, 1}, 4},                                      /* ends within a block; nothing */
    {{4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 12288}, 9}, /* more than are open */
    {{9 * MIB, 4096 + 7, 5 * MIB}, 3},                            /* more than the buffers hold */
};

START_TEST(a_copy_is_written)
{
    static const size_t pieces[] = {SIZE_MAX / 2, 65536, 1001};
    size_t at = BACKUP_HEAD_BYTES;

    begin();
    make(files[_i / 3].sizes, files[_i / 3].count);
    open_copy();
    ck_assert_ptr_null(copy_in_head(copy));
    give_all(pieces[_i % 3]);
    await_end();
    ck_assert_msg(is_whole, "%s", why);
    ck_assert_uint_eq(copy_in_head(copy)->serial, 99);
    ck_assert_uint_eq(copy_in_bytes(copy), file.n);
    for (uint32_t i = 0; i < files[_i / 3].count; i++) {
        at += BACKUP_SEGMENT_HEAD_BYTES;
        check_segment(1 + i, files[_i / 3].sizes[i], at);
        at += (size_t)files[_i / 3].sizes[i];
    }
    end();
}
END_TEST

/* The disk is behind: then nothing more is taken, until it says so. */
START_TEST(it_does_not_run_ahead_of_the_disk)
{
    size_t taken;

    begin();
    make((const uint64_t[]){64 * MIB}, 1);
    open_copy();
    taken = copy_in_take(copy, buf_span(&file));
    ck_assert_uint_lt(taken, 5 * MIB);
    ck_assert_uint_eq(copy_in_take(copy, span_of(file.p + taken, 1)), 0);
    for (unsigned i = 0; rooms == 0; i++) {
        testing_await(i);
        loop_run_once(&loop);
    }
    given = taken;
    give_all(SIZE_MAX / 2);
    await_end();
    ck_assert(is_whole);
    end();
}
END_TEST

START_TEST(what_is_damaged_is_said)
{
    begin();
    make(files[4].sizes, files[4].count);
    file.p[_i == 0 ? 3 : _i == 1 ? file.n - 1 : 10 * MIB] ^= 1;
    open_copy();
    give_all(65536);
    await_end();
    ck_assert(!is_whole);
    ck_assert_ptr_nonnull(strstr(why, _i == 0 ? "no backup file" : "SHA-256"));
    ck_assert_uint_eq(copy_in_take(copy, SPAN("more")), 4); /* which is dropped */
    turn();
    ck_assert_uint_eq(ended, 1);
    end();
}
END_TEST

/* Of a connection that was cut. */
START_TEST(it_is_stopped)
{
    begin();
    make(files[4].sizes, files[4].count);
    open_copy();
    given = copy_in_take(copy, span_of(file.p, 3 * MIB));
    copy_in_stop(copy, ERR(ERR_STORAGE_FAILURE, "it was cut off"));
    ck_assert_uint_eq(ended, 0); /* not from here */
    await_end();
    ck_assert_str_eq(why, "it was cut off");
    end();
}
END_TEST

START_TEST(it_is_freed_while_it_writes)
{
    begin();
    make(files[4].sizes, files[4].count);
    open_copy();
    copy_in_take(copy, span_of(file.p, 3 * MIB));
    end();
    ck_assert_uint_eq(ended, 0);
}
END_TEST

START_TEST(a_directory_that_is_there)
{
    struct copy_in *none;

    begin();
    ck_assert_int_eq(mkdir(below, 0700), 0);
    ck_fails(copy_in_new(&loop, below, &(struct copy_in_callbacks){on_room, on_end, NULL}, &none),
             ERR_STORAGE_FAILURE, "joining: ");
    end();
}
END_TEST

#ifdef SVCD_FAULTS
static const struct {
    const char *fault, *says;
} faults[] = {
    {"copy.room:1", "the disk has room for 0 bytes"},
    {"disk.allocate:2", "No space left"},
    {"disk.open:2", "cannot open"},
    {"disk.submit:3", "Resource temporarily"},
    {"disk.write:1", "error"},
    {"disk.write:20", "error"},
    {"disk.sync:1", "error"},
    {"disk.sync:4", "error"},
};

/* Counted from when the directory is there. */
START_TEST(a_disk_that_fails)
{
    begin();
    make(files[4].sizes, files[4].count);
    open_copy();
    ck_assert(fault_set(faults[_i].fault));
    give_all(65536);
    await_end();
    ck_assert_msg(!is_whole, "%s", faults[_i].fault);
    ck_assert_msg(strstr(why, faults[_i].says) != NULL, "%s: %s", faults[_i].fault, why);
    end();
}
END_TEST
#endif

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, a_copy_is_written, 0, 3 * ARRAY_LEN(files));
    tcase_add_test(tc, it_does_not_run_ahead_of_the_disk);
    tcase_add_loop_test(tc, what_is_damaged_is_said, 0, 3);
    tcase_add_test(tc, it_is_stopped);
    tcase_add_test(tc, it_is_freed_while_it_writes);
    tcase_add_test(tc, a_directory_that_is_there);
#ifdef SVCD_FAULTS
    tcase_add_loop_test(tc, a_disk_that_fails, 0, ARRAY_LEN(faults));
#endif
}
