#include "testing.h"

#include "base/log.h"
#include "base/rng.h"
#include "io/disk.h"
#include "io/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK DISK_BLOCK_BYTES

static const enum disk_engine engines[] = {DISK_AIO, DISK_HELPER};

struct fixture {
    struct loop loop;
    struct disk *disk;
    char directory[64];
    char path[80];
    struct disk_file *file;
};

static void make_directory(struct fixture *f)
{
    snprintf(f->directory, sizeof(f->directory), "/tmp/check-disk-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->directory));
    snprintf(f->path, sizeof(f->path), "%s/file", f->directory);
}

static void set_up(struct fixture *f, enum disk_engine engine)
{
    *f = (struct fixture){0};
    make_directory(f);
    ck_ok(loop_init(&f->loop));
    ck_ok(disk_new(&f->loop, engine, f->directory, -1, &f->disk));
    ck_assert_int_eq(disk_engine(f->disk), engine);
    ck_ok(disk_create(f->disk, f->path, &f->file));
}

static void tear_down(struct fixture *f)
{
    disk_close(f->file);
    disk_free(f->disk);
    loop_done(&f->loop);
    unlink(f->path);
    ck_assert_int_eq(rmdir(f->directory), 0); /* nothing else is left in it */
}

struct done {
    struct disk_job job;
    unsigned calls;
    int result;
};

static void on_done(void *context, int result)
{
    struct done *done = context;

    done->calls++;
    done->result = result;
}

static struct disk_job *job_of(struct done *done)
{
    *done = (struct done){.job = {.on_done = on_done, .context = done}};
    return &done->job;
}

/* Runs the loop until the job is done. */
static int finish(struct fixture *f, struct done *done)
{
    for (int i = 0; i < 1000 && done->calls == 0; i++)
        loop_run_once(&f->loop);
    ck_assert_uint_eq(done->calls, 1);
    return done->result;
}

static char *blocks_of(struct fixture *f, size_t n, char c)
{
    char *p = disk_memory(f->disk, n);

    ck_assert_uint_eq((uintptr_t)p % BLOCK, 0);
    memset(p, c, n);
    return p;
}

static void check_bytes(struct fixture *f, uint64_t offset, size_t n, char c)
{
    char *p = mem_alloc(n);

    ck_assert_int_eq(pread(disk_fd(f->file), p, n, (off_t)offset), (ssize_t)n);
    for (size_t i = 0; i < n; i++) {
        if (p[i] != c)
            ck_abort_msg("byte %zu is %d, should be %d", i, p[i], c);
    }
    mem_free(p);
}

START_TEST(writes)
{
    struct fixture f;
    struct done first, second, sync;
    char *a, *b;

    set_up(&f, engines[_i]);
    a = blocks_of(&f, 2 * BLOCK, 'a');
    b = blocks_of(&f, BLOCK, 'b');
    disk_write(f.file, job_of(&first), a, 2 * BLOCK, 0, true);
    disk_write(f.file, job_of(&second), b, BLOCK, 2 * BLOCK, false);
    ck_assert_uint_eq(first.calls + second.calls, 0); /* never from the call itself */
    ck_assert_int_eq(finish(&f, &first), 0);
    ck_assert_int_eq(finish(&f, &second), 0);
    ck_assert_uint_gt(first.job.started_ns, 0);
    disk_sync(f.file, job_of(&sync));
    ck_assert_int_eq(finish(&f, &sync), 0);
    check_bytes(&f, 0, 2 * BLOCK, 'a');
    check_bytes(&f, 2 * BLOCK, BLOCK, 'b');
    disk_memory_free(f.disk, a, 2 * BLOCK);
    disk_memory_free(f.disk, b, BLOCK);
    tear_down(&f);
}
END_TEST

/* From the middle of a piece of memory, from memory made later, over what is there. */
START_TEST(writes_from_anywhere)
{
    struct fixture f;
    struct done done;
    char *a, *b;

    set_up(&f, engines[_i]);
    a = blocks_of(&f, 16 * BLOCK, 'a');
    for (int round = 0; round < 50; round++) {
        size_t n = (size_t)(1 + rng_below(64)) * BLOCK;

        b = blocks_of(&f, n, (char)('b' + round % 20));
        disk_write(f.file, job_of(&done), b + n - BLOCK, BLOCK, 4 * BLOCK, round % 2 == 0);
        ck_assert_int_eq(finish(&f, &done), 0);
        check_bytes(&f, 4 * BLOCK, BLOCK, (char)('b' + round % 20));
        disk_memory_free(f.disk, b, n);
    }
    a[5 * BLOCK] = 'x';
    disk_write(f.file, job_of(&done), a + 6 * BLOCK, BLOCK, 4 * BLOCK, true);
    ck_assert_int_eq(finish(&f, &done), 0);
    check_bytes(&f, 4 * BLOCK, BLOCK, 'a');
    disk_memory_free(f.disk, a, 16 * BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(fresh_memory_is_zero)
{
    struct fixture f;
    char *p;

    set_up(&f, engines[_i]);
    for (int round = 0; round < 3; round++) {
        p = disk_memory(f.disk, 64 * BLOCK);
        for (size_t i = 0; i < 64 * BLOCK; i += 512)
            ck_assert_int_eq(p[i], 0);
        memset(p, 'x', 64 * BLOCK);
        disk_memory_free(f.disk, p, 64 * BLOCK);
    }
    disk_memory_free(f.disk, NULL, BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(many_at_once)
{
    struct fixture f;
    struct done done[24];
    char *p;

    set_up(&f, engines[_i]);
    p = disk_memory(f.disk, ARRAY_LEN(done) * BLOCK);
    for (size_t i = 0; i < ARRAY_LEN(done); i++) {
        memset(p + i * BLOCK, 'a' + (int)i, BLOCK);
        disk_write(f.file, job_of(&done[i]), p + i * BLOCK, BLOCK, i * BLOCK, false);
    }
    for (size_t i = 0; i < ARRAY_LEN(done); i++)
        ck_assert_int_eq(finish(&f, &done[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(done); i++)
        check_bytes(&f, i * BLOCK, BLOCK, (char)('a' + i));
    disk_memory_free(f.disk, p, ARRAY_LEN(done) * BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(directories_are_synced)
{
    struct disk_file *directory;
    struct fixture f;
    struct done done;

    set_up(&f, engines[_i]);
    ck_ok(disk_open_directory(f.disk, f.directory, &directory));
    disk_sync(directory, job_of(&done));
    ck_assert_int_eq(finish(&f, &done), 0);
    disk_close(directory);
    tear_down(&f);
}
END_TEST

START_TEST(files_that_cannot_be_opened)
{
    struct disk_file *file;
    struct fixture f;
    char missing[100];

    set_up(&f, engines[_i]);
    ck_fails(disk_create(f.disk, f.path, &file), ERR_STORAGE_FAILURE, "File exists");
    snprintf(missing, sizeof(missing), "%s/none", f.directory);
    ck_fails(disk_open(f.disk, missing, &file), ERR_STORAGE_FAILURE, missing);
    ck_fails(disk_open_directory(f.disk, f.path, &file), ERR_STORAGE_FAILURE, "Not a directory");
    ck_ok(disk_open(f.disk, f.path, &file));
    disk_close(file);
    disk_close(NULL);
    tear_down(&f);
}
END_TEST

/* More than can ever be open at once, one after the other. */
START_TEST(files_come_and_go)
{
    struct disk_file *file;
    struct fixture f;
    struct done done;
    char *p;

    set_up(&f, engines[_i]);
    p = blocks_of(&f, BLOCK, 'x');
    for (int i = 0; i < 50; i++) {
        ck_ok(disk_open(f.disk, f.path, &file));
        disk_write(file, job_of(&done), p, BLOCK, 0, false);
        ck_assert_int_eq(finish(&f, &done), 0);
        disk_close(file);
    }
    check_bytes(&f, 0, BLOCK, 'x');
    disk_memory_free(f.disk, p, BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(a_write_that_fails)
{
    struct fixture f;
    struct done done;
    char *p;

    set_up(&f, engines[_i]);
    p = blocks_of(&f, BLOCK, 'x');
    disk_write(f.file, job_of(&done), p, BLOCK, (uint64_t)1 << 62, false); /* EFBIG */
    ck_assert_uint_eq(done.calls, 0);
    ck_assert_int_lt(finish(&f, &done), 0);
    disk_write(f.file, job_of(&done), p, BLOCK, 0, false); /* the next one is not affected */
    ck_assert_int_eq(finish(&f, &done), 0);
    disk_memory_free(f.disk, p, BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(waiting_calls_nobody)
{
    struct fixture f;
    struct done done, failed;
    char *p;

    set_up(&f, engines[_i]);
    p = blocks_of(&f, BLOCK, 'x');
    disk_write(f.file, job_of(&done), p, BLOCK, 0, true);
    disk_write(f.file, job_of(&failed), p, BLOCK, (uint64_t)1 << 62, true);
    disk_wait(f.disk);
    check_bytes(&f, 0, BLOCK, 'x'); /* but the bytes are there */
    for (int i = 0; i < 3; i++)
        loop_run_once(&f.loop);
    ck_assert_uint_eq(done.calls + failed.calls, 0);
    disk_memory_free(f.disk, p, BLOCK);
    tear_down(&f);
}
END_TEST

/* The loop ends when no job is under way, though the engine listens. */
START_TEST(an_idle_disk_keeps_no_loop)
{
    struct fixture f;
    struct done done;

    set_up(&f, engines[_i]);
    loop_run(&f.loop);
    disk_sync(f.file, job_of(&done));
    loop_run(&f.loop);
    ck_assert_uint_eq(done.calls, 1);
    tear_down(&f);
}
END_TEST

static unsigned calls_of_all;

static void close_everything(void *context, int result)
{
    struct fixture *f = context;

    ck_assert_int_eq(result, 0);
    calls_of_all++;
    disk_wait(f->disk);
    disk_close(TAKE(f->file));
    disk_free(TAKE(f->disk));
}

/* Whichever callback comes first closes everything: the other does not come. */
START_TEST(closed_in_a_callback)
{
    struct fixture f;
    struct disk_job a = {.on_done = close_everything, .context = &f}, b = a;

    set_up(&f, engines[_i]);
    calls_of_all = 0;
    disk_sync(f.file, &a);
    disk_sync(f.file, &b);
    while (f.disk != NULL)
        loop_run_once(&f.loop);
    for (int i = 0; i < 3; i++)
        loop_run_once(&f.loop);
    ck_assert_uint_eq(calls_of_all, 1);
    tear_down(&f);
}
END_TEST

/* The helper's process id: the only child of this process. */
static pid_t child_of_this(void)
{
    char path[64];
    int pid = 0;
    FILE *children;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    children = fopen(path, "r");
    ck_assert_ptr_nonnull(children);
    ck_assert_int_eq(fscanf(children, "%d", &pid), 1);
    fclose(children);
    return pid;
}

START_TEST(the_helper_is_killed)
{
    struct fixture f;
    struct done done, later;
    char *p;

    log_to(open("/dev/null", O_WRONLY));
    set_up(&f, DISK_HELPER);
    p = blocks_of(&f, BLOCK, 'x');
    kill(child_of_this(), SIGSTOP);
    disk_write(f.file, job_of(&done), p, BLOCK, 0, true);
    kill(child_of_this(), SIGKILL);
    ck_assert_int_eq(finish(&f, &done), -EPIPE);
    disk_sync(f.file, job_of(&later));
    ck_assert_uint_eq(later.calls, 0);
    ck_assert_int_eq(finish(&f, &later), -EPIPE);
    disk_memory_free(f.disk, p, BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(the_helper_ignores_signals_for_the_server)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct fixture f;
    struct done done;

    set_up(&f, DISK_HELPER);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        kill(child_of_this(), numbers[i]);
    disk_sync(f.file, job_of(&done));
    ck_assert_int_eq(finish(&f, &done), 0);
    tear_down(&f);
}
END_TEST

/* Closed at once by the parent, the lock is still held until the helper has ended. */
START_TEST(the_helper_keeps_the_lock)
{
    struct fixture f = {0};
    char lock[80];
    int fd, other;

    make_directory(&f);
    snprintf(lock, sizeof(lock), "%s/lock", f.directory);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    other = open(lock, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_ok(loop_init(&f.loop));
    ck_ok(disk_new(&f.loop, DISK_HELPER, f.directory, fd, &f.disk));
    close(fd);
    ck_assert_int_ne(flock(other, LOCK_EX | LOCK_NB), 0);
    disk_free(f.disk);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    unlink(lock);
    f.disk = NULL;
    tear_down(&f);
}
END_TEST

START_TEST(the_helper_does_not_outlive_its_parent)
{
    struct fixture f = {0};
    int alive[2];
    char byte;
    pid_t parent;

    make_directory(&f);
    ck_assert_int_eq(pipe(alive), 0);
    parent = fork();
    if (parent == 0) {
        /* `alive` is the lock here: a descriptor that the helper keeps open. */
        close(alive[0]);
        if (loop_init(&f.loop) != NULL ||
            disk_new(&f.loop, DISK_HELPER, f.directory, alive[1], &f.disk) != NULL)
            _exit(1);
        raise(SIGKILL);
    }
    close(alive[1]);
    waitpid(parent, NULL, 0);
    ck_assert_int_eq(read(alive[0], &byte, 1), 0); /* its end: all writers are gone */
    close(alive[0]);
    ck_ok(loop_init(&f.loop));
    tear_down(&f);
}
END_TEST

START_TEST(automatic)
{
    struct fixture f = {0};

    make_directory(&f);
    ck_ok(loop_init(&f.loop));
    ck_ok(disk_new(&f.loop, DISK_AUTO, f.directory, -1, &f.disk));
    ck_assert_int_ne(disk_engine(f.disk), DISK_AUTO);
    tear_down(&f);
}
END_TEST

START_TEST(a_directory_that_cannot_be_used)
{
    struct fixture f = {0};

    make_directory(&f);
    ck_ok(loop_init(&f.loop));
    for (int i = 0; i < 3; i++)
        ck_fails(disk_new(&f.loop, (enum disk_engine)i, "/nonexistent/journal", -1, &f.disk),
                 ERR_STORAGE_FAILURE, "/nonexistent/journal");
    tear_down(&f);
}
END_TEST

#ifdef SVCD_FAULTS
static const struct fault_case {
    const char *fault;
    int sync_result;
    int write_result;
} fault_cases[] = {
    {"disk.submit:1", -EAGAIN, 0},
    {"disk.sync:1", -EIO, 0},
    {"disk.write:1", 0, -EIO},
    {"disk.write:2", 0, 0},
};

START_TEST(faults)
{
    const struct fault_case *c = &fault_cases[_i / 2];
    struct fixture f;
    struct done sync, write;
    char *p;

    set_up(&f, engines[_i % 2]);
    p = blocks_of(&f, BLOCK, 'x');
    fault_set(c->fault);
    disk_sync(f.file, job_of(&sync));
    disk_write(f.file, job_of(&write), p, BLOCK, 0, true);
    ck_assert_uint_eq(sync.calls + write.calls, 0);
    ck_assert_int_eq(finish(&f, &sync), c->sync_result);
    ck_assert_int_eq(finish(&f, &write), c->write_result);
    fault_set(NULL);
    disk_memory_free(f.disk, p, BLOCK);
    tear_down(&f);
}
END_TEST

START_TEST(falls_back_to_the_helper)
{
    struct fixture f = {0};

    log_to(open("/dev/null", O_WRONLY));
    make_directory(&f);
    ck_ok(loop_init(&f.loop));
    fault_set("disk.sync:1");
    ck_ok(disk_new(&f.loop, DISK_AUTO, f.directory, -1, &f.disk));
    ck_assert_int_eq(disk_engine(f.disk), DISK_HELPER);
    fault_set("disk.open:1");
    ck_fails(disk_create(f.disk, f.path, &f.file), ERR_STORAGE_FAILURE, "Too many open files");
    fault_set(NULL);
    tear_down(&f);
}
END_TEST

START_TEST(no_fallback_when_asked_for_aio)
{
    struct fixture f = {0};

    make_directory(&f);
    ck_ok(loop_init(&f.loop));
    fault_set("disk.write:1");
    ck_fails(disk_new(&f.loop, DISK_AIO, f.directory, -1, &f.disk), ERR_STORAGE_FAILURE,
             "kernel AIO in ");
    fault_set(NULL);
    tear_down(&f);
}
END_TEST
#endif

void testing_cases(TCase *tc)
{
    const TTest *const both[] = {
        writes,
        writes_from_anywhere,
        fresh_memory_is_zero,
        many_at_once,
        directories_are_synced,
        files_that_cannot_be_opened,
        files_come_and_go,
        a_write_that_fails,
        waiting_calls_nobody,
        an_idle_disk_keeps_no_loop,
        closed_in_a_callback,
    };

    for (size_t i = 0; i < ARRAY_LEN(both); i++)
        tcase_add_loop_test(tc, both[i], 0, ARRAY_LEN(engines));
    tcase_add_test(tc, the_helper_is_killed);
    tcase_add_test(tc, the_helper_ignores_signals_for_the_server);
    tcase_add_test(tc, the_helper_keeps_the_lock);
    tcase_add_test(tc, the_helper_does_not_outlive_its_parent);
    tcase_add_test(tc, automatic);
    tcase_add_test(tc, a_directory_that_cannot_be_used);
#ifdef SVCD_FAULTS
    tcase_add_loop_test(tc, faults, 0, 2 * ARRAY_LEN(fault_cases));
    tcase_add_test(tc, falls_back_to_the_helper);
    tcase_add_test(tc, no_fallback_when_asked_for_aio);
#endif
}
