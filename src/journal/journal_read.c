/* Single records, read back. The descriptor of the segment last read from is kept: what is read is
 * a backlog, in order. */
#include "journal_private.h"

#include "io/fault.h"
#include "journal/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { AHEAD_BYTES = 1 << 20, DAMAGED = -1, TOO_LONG = -2 };

void journal_read_forget(struct journal *j, uint64_t number)
{
    if (j->read_number == number)
        journal_close_file(&j->read_fd);
}

static struct err *cannot_read(const struct journal *j, struct journal_place place, const char *why)
{
    char name[JOURNAL_NAME_BYTES];

    segment_file_name(place.segment, name);
    return ERR(ERR_STORAGE_FAILURE, "cannot read the record at offset %" PRIu32 " of %s/%s: %s",
               place.offset, j->directory, name, why);
}

static struct err *open_segment(struct journal *j, struct journal_place place)
{
    char name[JOURNAL_NAME_BYTES];

    if (j->read_fd >= 0 && j->read_number == place.segment)
        return NULL;
    journal_read_forget(j, j->read_number);
    segment_file_name(place.segment, name);
    j->read_fd = openat(j->directory_fd, name, O_RDONLY | O_CLOEXEC);
    if (j->read_fd < 0)
        return cannot_read(j, place, strerror(errno));
    j->read_number = place.segment;
    return NULL;
}

/* Not every file system can tell whether a page is cached: then the read waits after all. */
ssize_t journal_read_some(int fd, char *p, size_t n, uint64_t offset, bool may_wait)
{
    struct iovec part = {p, n};
    ssize_t got = preadv2(fd, &part, 1, (off_t)offset, may_wait ? 0 : RWF_NOWAIT);

    if (got < 0 && !may_wait && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
        got = preadv2(fd, &part, 1, (off_t)offset, 0);
    return got;
}

/* 0 or an errno: EAGAIN when it is not cached, EIO at the end of the file. */
static int read_all(int fd, char *p, size_t n, uint64_t offset, bool may_wait)
{
    if (fault_hit("disk.read"))
        return EIO;
    while (n > 0) {
        ssize_t step = journal_read_some(fd, p, n, offset, may_wait);

        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0)
            return step < 0 ? errno : EIO;
        p += step;
        n -= (size_t)step;
        offset += (uint64_t)step;
    }
    return 0;
}

/* A length that was damaged must not make us allocate. */
static bool lies_within(int fd, uint64_t offset, uint64_t n)
{
    struct stat status;

    return fstat(fd, &status) == 0 && offset + n <= (uint64_t)status.st_size;
}

/* Header and body; EAGAIN as in read_all, a negative number when the record is damaged. */
static int read_record(struct journal *j, struct journal_place place, bool may_wait,
                       struct buf *body)
{
    const struct segment_header header = {.journal = j->id};
    char head[SEGMENT_RECORD_HEADER_BYTES];
    uint64_t body_at = place.offset + (uint64_t)sizeof(head);
    int error = read_all(j->read_fd, head, sizeof(head), place.offset, may_wait);
    size_t n = error == 0 ? segment_body_bytes(head) : 0;
    char *p;

    if (error != 0)
        return error;
    if (!lies_within(j->read_fd, body_at, n))
        return DAMAGED;
    buf_clear(body);
    p = buf_reserve(body, MAX(n, 1)); /* NULL means only that the cap is too low */
    if (p == NULL)
        return TOO_LONG;
    error = read_all(j->read_fd, p, n, body_at, may_wait);
    if (error != 0)
        return error;
    if (!segment_record_valid(&header, head, span_of(p, n)))
        return DAMAGED;
    buf_commit(body, n);
    return 0;
}

struct err *journal_read(struct journal *j, struct journal_place place, bool may_wait,
                         struct buf *out_body, bool *out_there)
{
    int error;

    TRY(open_segment(j, place));
    error = read_record(j, place, may_wait, out_body);
    *out_there = error != EAGAIN;
    if (error == 0)
        return NULL;
    if (error == DAMAGED)
        return cannot_read(j, place, "it is damaged");
    if (error == TOO_LONG)
        return cannot_read(j, place, "it is longer than expected");
    if (error != EAGAIN)
        return cannot_read(j, place, strerror(error));
    error = posix_fadvise(j->read_fd, (off_t)place.offset, AHEAD_BYTES, POSIX_FADV_WILLNEED);
    return error == 0 ? NULL : cannot_read(j, place, strerror(error));
}
