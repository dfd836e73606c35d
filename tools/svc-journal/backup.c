/* backup: a copy that holds together, also of a running server's journal.
 *
 * All segments are opened first, so that cleaning may delete them meanwhile. The last one is walked
 * to the end of its last whole change, and copied up to there: what stands before that is never
 * written again, and a file may be cut short after its last record. The copy therefore is the
 * journal as it was at one moment, everything acknowledged before the command began included. */
#include "tool.h"

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 20, PAUSE_NS = 50000000, PIECE_BYTES = 1 << 20 };

struct copying {
    struct tool source;
    const char *target;
    int target_fd;
    int *files; /* of the segments */
    uint64_t last_bytes;
    uint64_t bytes;
    uint64_t serial;
};

static struct err *failed(const char *what, const char *name)
{
    return ERR(ERR_STORAGE_FAILURE, "%s%s%s: %s", what, name[0] == '\0' ? "" : "/", name,
               strerror(errno));
}

static void close_files(struct copying *c)
{
    for (size_t i = 0; c->files != NULL && i < c->source.count; i++)
        if (c->files[i] >= 0)
            close(c->files[i]);
    mem_free(c->files);
    c->files = NULL;
}

/* False with errno: one was deleted since the directory was read. */
static bool open_files(struct copying *c)
{
    char name[JOURNAL_NAME_BYTES];

    c->files = mem_alloc(c->source.count * sizeof(int));
    memset(c->files, -1, c->source.count * sizeof(int));
    for (size_t i = 0; i < c->source.count; i++) {
        segment_file_name(c->source.numbers[i], name);
        c->files[i] = openat(c->source.directory_fd, name, O_RDONLY | O_CLOEXEC);
        if (c->files[i] < 0)
            return false;
    }
    return true;
}

static struct err *open_source(struct copying *c, const char *directory)
{
    TRY(tool_open(&c->source, directory));
    for (int tries = 1; !open_files(c); tries++) {
        struct err *e = failed(directory, "");

        close_files(c);
        if (errno != ENOENT || tries == TRIES)
            return e;
        err_free(e);
        TRY(tool_list(&c->source));
    }
    return NULL;
}

/* Where the last segment's last whole change ends. */
static struct err *find_end(struct copying *c)
{
    uint64_t number = c->source.numbers[c->source.count - 1];
    struct journal_walk walk;
    struct journal_walk_end end = {0, NULL};
    struct err *e;

    journal_walk_init(&walk, c->source.directory, c->source.directory_fd);
    e = journal_walk_segment(&walk, number, true, &end);
    c->last_bytes = end.offset;
    c->serial = walk.next_serial - 1;
    journal_walk_done(&walk);
    return e;
}

/* A tail in motion may look damaged; what is damaged looks so again. */
static struct err *find_end_quietly(struct copying *c)
{
    struct err *e = find_end(c);

    for (int tries = 1; e != NULL && tries < TRIES; tries++) {
        err_free(e);
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        e = find_end(c);
    }
    return e;
}

static struct err *open_target(struct copying *c)
{
    struct tool there;
    struct err *e;

    if (mkdir(c->target, 0700) != 0 && errno != EEXIST)
        return failed(c->target, "");
    e = tool_open(&there, c->target);
    c->target_fd = there.directory_fd < 0 ? -1 : dup(there.directory_fd);
    if (e == NULL)
        e = ERR(ERR_CONFLICT, "%s: there is a journal already", c->target);
    else if (c->target_fd >= 0) {
        err_free(e); /* there is none, as it should be */
        e = NULL;
    }
    tool_close(&there);
    return e;
}

static bool copy_bytes(int from, int to, uint64_t bytes)
{
    off_t at = 0;

    while ((uint64_t)at < bytes) {
        size_t left = (size_t)MIN(bytes - (uint64_t)at, (uint64_t)PIECE_BYTES);
        ssize_t n = copy_file_range(from, &at, to, NULL, left, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO; /* it is shorter than it was */
        if (n <= 0)
            return false;
    }
    return fsync(to) == 0;
}

static struct err *copy_segment(struct copying *c, size_t place)
{
    bool is_last = place + 1 == c->source.count;
    char name[JOURNAL_NAME_BYTES];
    struct stat status;
    struct err *e = NULL;
    uint64_t bytes;
    int to;

    segment_file_name(c->source.numbers[place], name);
    if (fstat(c->files[place], &status) != 0)
        return failed(c->source.directory, name);
    bytes = is_last ? c->last_bytes : (uint64_t)status.st_size;
    to = openat(c->target_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0 || !copy_bytes(c->files[place], to, bytes))
        e = failed(c->target, name);
    if (to >= 0 && close(to) != 0 && e == NULL)
        e = failed(c->target, name);
    c->bytes += bytes;
    return e;
}

static struct err *verify_copy(const struct copying *c)
{
    struct tool_walk w = {.place = 0};
    struct tool t;
    struct err *e = tool_open(&t, c->target);

    if (e == NULL)
        e = tool_walk(&t, &w);
    if (e == NULL && w.walk.next_serial - 1 != c->serial)
        e = ERR(ERR_STORAGE_FAILURE, "%s: the copy ends with serial %llu instead of %llu",
                c->target, (unsigned long long)w.walk.next_serial - 1,
                (unsigned long long)c->serial);
    journal_walk_done(&w.walk);
    tool_close(&t);
    return e;
}

static struct err *backup(struct copying *c, const char *directory)
{
    TRY(open_source(c, directory));
    TRY(find_end_quietly(c));
    TRY(open_target(c));
    for (size_t i = 0; i < c->source.count; i++)
        TRY(copy_segment(c, i));
    if (fsync(c->target_fd) != 0)
        return failed(c->target, "");
    return verify_copy(c);
}

int tool_backup(const char *directory, const char *target)
{
    struct copying c = {.target = target, .target_fd = -1};
    struct err *e;

    c.source.directory_fd = -1;
    e = backup(&c, directory);
    if (e == NULL)
        printf("ok: %zu segments, %llu bytes, up to serial %llu\n", c.source.count,
               (unsigned long long)c.bytes, (unsigned long long)c.serial);
    close_files(&c);
    if (c.target_fd >= 0)
        close(c.target_fd);
    tool_close(&c.source);
    return tool_say(e, TOOL_FAILED);
}
