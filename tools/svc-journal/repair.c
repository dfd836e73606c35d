/* repair: what is damaged in the middle cannot be mended, but everything before it can be kept. The
 * rest is set aside, never deleted, in an order that leaves a journal to be repaired again when it
 * is cut off: first the segments behind, the last one first, then a copy of the damaged one, and
 * only then is that cut. */
#include "tool.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ZEROS_BYTES 65536u

struct repairing {
    struct tool t;
    int lock_fd;
    struct tool_walk w;
    size_t first_gone; /* place of the first segment of which nothing can be kept */
    bool cuts;         /* the one before it is cut at `cut_at` */
    uint64_t cut_at;
    char aside[64]; /* the directory that takes the rest, in the journal's */
    int aside_fd;
};

static struct err *failed(const struct repairing *r, const char *name)
{
    return ERR(ERR_STORAGE_FAILURE, "%s/%s: %s", r->t.directory, name, strerror(errno));
}

/* A segment that is damaged before its first record cannot be kept at all. */
static void judge(struct repairing *r)
{
    const struct journal_walk *walk = &r->w.walk;

    r->first_gone = r->w.place;
    r->cuts = r->w.place < r->t.count && walk->number == r->t.numbers[r->w.place] &&
              walk->damaged_at > SEGMENT_HEADER_BYTES;
    r->cut_at = walk->damaged_at;
    if (r->cuts)
        r->first_gone++;
}

/* Records that can still be read behind the damage, for the message. */
static uint64_t count_behind(struct repairing *r)
{
    uint64_t records = 0;
    struct journal_walk walk;

    for (size_t i = r->first_gone; i < r->t.count; i++) {
        struct journal_walk_end end;

        journal_walk_init(&walk, r->t.directory, r->t.directory_fd);
        err_free(journal_walk_segment(&walk, r->t.numbers[i], true, &end));
        records += walk.records;
        journal_walk_done(&walk);
    }
    return records;
}

static void say_plan(struct repairing *r)
{
    const struct journal_walk *walk = &r->w.walk;
    char name[JOURNAL_NAME_BYTES];

    printf("can be kept: %llu records, up to serial %llu\n", (unsigned long long)walk->records,
           (unsigned long long)walk->next_serial - 1);
    if (r->cuts) {
        segment_file_name(r->t.numbers[r->first_gone - 1], name);
        printf("would be set aside: %s from offset %llu on\n", name, (unsigned long long)r->cut_at);
    }
    for (size_t i = r->first_gone; i < r->t.count; i++) {
        segment_file_name(r->t.numbers[i], name);
        printf("would be set aside: %s\n", name);
    }
    if (r->first_gone < r->t.count)
        printf("%llu records in these segments are readable, but cannot be kept: the order of "
               "changes would have a gap\n",
               (unsigned long long)count_behind(r));
}

static struct err *make_aside(struct repairing *r)
{
    snprintf(r->aside, sizeof(r->aside), "damaged-%lld", (long long)time(NULL));
    if (mkdirat(r->t.directory_fd, r->aside, 0700) != 0)
        return failed(r, r->aside);
    r->aside_fd = openat(r->t.directory_fd, r->aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->aside_fd < 0 || fsync(r->t.directory_fd) != 0)
        return failed(r, r->aside);
    return NULL;
}

static struct err *move_segments(struct repairing *r)
{
    char name[JOURNAL_NAME_BYTES];

    for (size_t i = r->t.count; i > r->first_gone; i--) {
        segment_file_name(r->t.numbers[i - 1], name);
        if (renameat(r->t.directory_fd, name, r->aside_fd, name) != 0 || fsync(r->aside_fd) != 0 ||
            fsync(r->t.directory_fd) != 0)
            return failed(r, name);
    }
    return NULL;
}

static bool write_all(int fd, const char *p, uint64_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t step = pwrite(fd, p, (size_t)n, (off_t)at);

        if (step <= 0)
            return false;
        p += step;
        n -= (uint64_t)step;
        at += (uint64_t)step;
    }
    return true;
}

static struct err *copy_aside(const struct repairing *r, const char *name)
{
    struct span bytes = r->w.walk.file;
    int fd = openat(r->aside_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct err *e = NULL;

    if (fd < 0 || !write_all(fd, bytes.p, bytes.n, 0) || fsync(fd) != 0 || fsync(r->aside_fd) != 0)
        e = failed(r, name);
    if (fd >= 0)
        close(fd);
    return e;
}

static struct err *write_zeros(const struct repairing *r, const char *name)
{
    static const char zeros[ZEROS_BYTES];
    uint64_t end = r->w.walk.file.n;
    int fd = openat(r->t.directory_fd, name, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0;
    struct err *e = NULL;

    for (uint64_t at = r->cut_at; good && at < end; at += ZEROS_BYTES)
        good = write_all(fd, zeros, MIN(end - at, (uint64_t)ZEROS_BYTES), at);
    if (!good || fdatasync(fd) != 0)
        e = failed(r, name);
    if (fd >= 0)
        close(fd);
    return e;
}

static struct err *cut(struct repairing *r)
{
    char name[JOURNAL_NAME_BYTES];

    TRY(make_aside(r));
    TRY(move_segments(r));
    if (!r->cuts)
        return NULL;
    segment_file_name(r->t.numbers[r->first_gone - 1], name);
    TRY(copy_aside(r, name));
    return write_zeros(r, name);
}

static int check_again(const struct repairing *r)
{
    printf("set aside in %s/%s\n", r->t.directory, r->aside);
    if (r->first_gone == 0) {
        printf("nothing could be kept: a start makes a new journal\n");
        return TOOL_GOOD;
    }
    return tool_verify(r->t.directory);
}

/* `damage` is what the walk ended with. */
static int deal_with(struct repairing *r, struct err *damage, bool may_cut)
{
    struct err *e;

    if (segment_is_of_another_version(r->w.walk.file))
        return tool_say(damage, TOOL_FAILED);
    tool_say(damage, TOOL_DAMAGED);
    judge(r);
    say_plan(r);
    if (!may_cut) {
        printf("nothing was changed; `svc-journal repair --cut %s` does it\n", r->t.directory);
        return TOOL_DAMAGED;
    }
    e = cut(r);
    return e != NULL ? tool_say(e, TOOL_FAILED) : check_again(r);
}

static struct err *open_locked(struct repairing *r, const char *directory)
{
    TRY(tool_open(&r->t, directory));
    return journal_lock(directory, r->t.directory_fd, &r->lock_fd);
}

int tool_repair(const char *directory, bool may_cut)
{
    struct repairing r = {.lock_fd = -1, .aside_fd = -1};
    struct err *e = open_locked(&r, directory);
    int status = TOOL_GOOD;

    if (e != NULL) {
        status = tool_say(e, TOOL_FAILED);
    } else {
        e = tool_walk(&r.t, &r.w);
        if (e != NULL)
            status = deal_with(&r, e, may_cut);
        else
            puts("ok: there is nothing to repair");
        journal_walk_done(&r.w.walk);
    }
    if (r.aside_fd >= 0)
        close(r.aside_fd);
    if (r.lock_fd >= 0)
        close(r.lock_fd);
    tool_close(&r.t);
    return status;
}
