/* restore: a backup file becomes a data directory, or nothing at all. The file is read twice: first
 * its digest is looked at, then it is unpacked beside the target, walked as a start would, and only
 * then gets its name. So nothing that is cut off or damaged is ever where a server looks. */
#include "tool.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "journal/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

struct restoring {
    const char *file;
    int fd;
    struct backup_head head;
    char *piece;       /* PIECE_BYTES */
    char *target;      /* without slashes at its end */
    char *beside;      /* where it is unpacked */
    int beside_fd;     /* -1: not made */
    uint32_t unpacked; /* files made there */
};

static struct err *failed(const char *name)
{
    return ERR(ERR_STORAGE_FAILURE, "%s: %s", name, strerror(errno));
}

static struct err *damaged(const struct restoring *r, const char *why)
{
    return ERR(ERR_CONFLICT, "%s: %s", r->file, why);
}

/* ---- the file ---- */

static struct err *read_bytes(const struct restoring *r, char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = read(r->fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(r->file);
        if (got == 0)
            return damaged(r, "it became shorter while it was read");
        p += got;
        n -= (size_t)got;
    }
    return NULL;
}

static struct err *read_head(struct restoring *r, uint64_t size)
{
    char bytes[BACKUP_HEAD_BYTES];
    size_t n = (size_t)MIN(size, (uint64_t)sizeof(bytes));
    struct err *e;

    TRY(read_bytes(r, bytes, n));
    e = backup_file_read_head(span_of(bytes, n), &r->head);
    return e == NULL ? NULL : err_prefix(e, "%s: ", r->file);
}

static struct err *check_size(const struct restoring *r, uint64_t size)
{
    if (size == r->head.bytes)
        return NULL;
    return ERR(ERR_CONFLICT, "%s: %s: it has %llu bytes of %llu", r->file,
               size < r->head.bytes ? "it was cut off" : "it is damaged", (unsigned long long)size,
               (unsigned long long)r->head.bytes);
}

static struct err *check_digest(const struct restoring *r, uint64_t size)
{
    struct digest *digest = digest_new();
    uint8_t found[DIGEST_BYTES];
    char end[BACKUP_END_BYTES];
    uint64_t left = size - BACKUP_END_BYTES;
    struct err *e = NULL;

    if (lseek(r->fd, 0, SEEK_SET) != 0)
        e = failed(r->file);
    while (left > 0 && e == NULL) {
        size_t n = (size_t)MIN(left, (uint64_t)PIECE_BYTES);

        e = read_bytes(r, r->piece, n);
        digest_add(digest, span_of(r->piece, n));
        left -= n;
    }
    digest_end(digest, found);
    digest_free(digest);
    if (e != NULL)
        return e;
    TRY(read_bytes(r, end, sizeof(end)));
    return backup_file_is_end(span_of(end, sizeof(end)), found)
               ? NULL
               : damaged(r, "it is damaged: its SHA-256 is not the one at its end");
}

static struct err *check_file(struct restoring *r)
{
    struct stat status;
    uint64_t size;

    r->fd = open(r->file, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &status) != 0)
        return failed(r->file);
    if (!S_ISREG(status.st_mode))
        return ERR(ERR_STORAGE_FAILURE, "%s: it is no file", r->file);
    size = (uint64_t)status.st_size;
    TRY(read_head(r, size));
    TRY(check_size(r, size));
    if (size < backup_file_bytes(r->head.segments, 0))
        return damaged(r, "it is damaged: its head and its size do not fit");
    r->piece = mem_alloc(PIECE_BYTES);
    return check_digest(r, size);
}

/* ---- the directory ---- */

/* An empty directory may be there: rename takes its place. It would say the same of another, but
 * after all the work. */
static struct err *check_target(const struct restoring *r)
{
    const struct dirent *entry;
    DIR *names = opendir(r->target);
    bool is_empty = true;

    if (names == NULL)
        return errno == ENOENT ? NULL : failed(r->target);
    while (is_empty && (entry = readdir(names)) != NULL)
        is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(names);
    return is_empty
               ? NULL
               : ERR(ERR_STORAGE_FAILURE, "%s: it is not empty; nothing was changed", r->target);
}

static struct err *make_beside(struct restoring *r)
{
    if (mkdir(r->beside, 0700) != 0)
        return errno != EEXIST ? failed(r->beside)
                               : ERR(ERR_STORAGE_FAILURE,
                                     "%s: is there already, left by a restore that was "
                                     "interrupted, or at work: remove it if there is none",
                                     r->beside);
    r->beside_fd = open(r->beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->beside_fd < 0 ? failed(r->beside) : NULL;
}

static struct err *write_bytes(int to, const char *p, size_t n, const char *name)
{
    while (n > 0) {
        ssize_t put = write(to, p, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return failed(name);
        p += put;
        n -= (size_t)put;
    }
    return NULL;
}

static struct err *copy_bytes(const struct restoring *r, int to, uint64_t bytes, const char *name)
{
    while (bytes > 0) {
        size_t n = (size_t)MIN(bytes, (uint64_t)PIECE_BYTES);

        TRY(read_bytes(r, r->piece, n));
        TRY(write_bytes(to, r->piece, n, name));
        bytes -= n;
    }
    return fsync(to) == 0 ? NULL : failed(name);
}

static struct err *unpack_segment(struct restoring *r, uint64_t number)
{
    struct backup_segment_head head;
    char bytes[BACKUP_SEGMENT_HEAD_BYTES], name[JOURNAL_NAME_BYTES];
    struct err *e;
    int to;

    TRY(read_bytes(r, bytes, sizeof(bytes)));
    backup_file_read_segment_head(span_of(bytes, sizeof(bytes)), &head);
    if (head.number != number)
        return damaged(r, "its segments are not in order");
    segment_file_name(number, name);
    to = openat(r->beside_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return failed(name);
    r->unpacked++;
    e = copy_bytes(r, to, head.bytes, name);
    if (close(to) != 0 && e == NULL)
        e = failed(name);
    return e;
}

static struct err *unpack(struct restoring *r)
{
    if (lseek(r->fd, BACKUP_HEAD_BYTES, SEEK_SET) != BACKUP_HEAD_BYTES)
        return failed(r->file);
    for (uint32_t i = 0; i < r->head.segments; i++)
        TRY(unpack_segment(r, r->head.first_number + i));
    return fsync(r->beside_fd) == 0 ? NULL : failed(r->beside);
}

static struct err *walk(const struct restoring *r)
{
    struct tool_walk w = {.place = 0};
    struct tool t;
    struct err *e;

    if (r->head.segments == 0)
        return NULL; /* of a server that has never stored anything */
    e = tool_open(&t, r->beside);
    if (e == NULL)
        e = tool_walk(&t, &w);
    if (e == NULL && w.walk.next_serial - 1 != r->head.serial)
        e = damaged(r, "its records end before the serial that it says");
    journal_walk_done(&w.walk);
    tool_close(&t);
    return e;
}

static struct err *name_it(struct restoring *r)
{
    char *copy = mem_string(span_str(r->target));
    int parent = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err *e = NULL;

    if (parent < 0 || rename(r->beside, r->target) != 0) {
        e = failed(r->target);
    } else {
        r->unpacked = 0; /* it is not to be taken back any more */
        if (fsync(parent) != 0)
            e = failed(r->target);
    }
    if (parent >= 0)
        close(parent);
    mem_free(copy);
    return e;
}

/* What was made beside the target goes again. */
static void take_back(struct restoring *r)
{
    char name[JOURNAL_NAME_BYTES];

    for (uint32_t i = 0; i < r->unpacked; i++) {
        segment_file_name(r->head.first_number + i, name);
        unlinkat(r->beside_fd, name, 0);
    }
    if (r->beside_fd >= 0)
        rmdir(r->beside);
}

static struct err *restore(struct restoring *r)
{
    TRY(check_file(r));
    TRY(check_target(r));
    TRY(make_beside(r));
    TRY(unpack(r));
    TRY(walk(r));
    return name_it(r);
}

static void set_names(struct restoring *r, const char *target)
{
    struct span name = span_str(target);
    struct buf beside;

    while (name.n > 1 && name.p[name.n - 1] == '/')
        name.n--;
    buf_init(&beside, BUF_NO_CAP);
    buf_add(&beside, name);
    buf_add_str(&beside, ".restoring");
    r->target = mem_string(name);
    r->beside = mem_string(buf_span(&beside));
    buf_done(&beside);
}

static int finish(struct restoring *r, struct err *e)
{
    enum tool_status status = e != NULL && err_code(e) == ERR_CONFLICT ? TOOL_DAMAGED : TOOL_FAILED;

    if (e == NULL)
        printf("ok: %u segments, %llu bytes, up to serial %llu\n", (unsigned)r->head.segments,
               (unsigned long long)r->head.bytes, (unsigned long long)r->head.serial);
    if (r->fd >= 0)
        close(r->fd);
    if (r->beside_fd >= 0)
        close(r->beside_fd);
    mem_free(r->piece);
    mem_free(r->target);
    mem_free(r->beside);
    return tool_say(e, status);
}

int tool_restore(const char *file, const char *target)
{
    struct restoring r = {.file = file, .fd = -1, .beside_fd = -1};
    struct err *e;

    set_names(&r, target);
    e = restore(&r);
    if (e != NULL)
        take_back(&r);
    return finish(&r, e);
}

int tool_verify_file(const char *file)
{
    struct restoring r = {.file = file, .fd = -1, .beside_fd = -1};

    return finish(&r, check_file(&r));
}
