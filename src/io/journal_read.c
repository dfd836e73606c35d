/* Single records, read back. The descriptor of the segment last read from is kept: what is read is
 * a backlog, in order. */
#include "journal_private.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void journal_read_forget(struct journal *j, uint64_t number)
{
    if (j->read_fd < 0 || j->read_number != number)
        return;
    close(j->read_fd);
    j->read_fd = -1;
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

/* 0 or an errno; the end of the file is EIO. */
static int read_all(int fd, char *p, size_t n, uint64_t offset)
{
    if (fault_hit("disk.read"))
        return EIO;
    while (n > 0) {
        ssize_t step = pread(fd, p, n, (off_t)offset);

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

struct err *journal_read(struct journal *j, struct journal_place place, struct buf *out_body)
{
    const struct segment_header header = {.journal = j->id};
    char head[SEGMENT_RECORD_HEADER_BYTES];
    uint64_t body_at = place.offset + (uint64_t)sizeof(head);
    size_t n;
    char *p;
    int error;

    TRY(open_segment(j, place));
    error = read_all(j->read_fd, head, sizeof(head), place.offset);
    if (error != 0)
        return cannot_read(j, place, strerror(error));
    n = segment_body_bytes(head);
    if (!lies_within(j->read_fd, body_at, n))
        return cannot_read(j, place, "its length is damaged");
    buf_clear(out_body);
    p = buf_reserve(out_body, MAX(n, 1)); /* NULL means only that the cap is too low */
    if (p == NULL)
        return cannot_read(j, place, "it is longer than expected");
    error = read_all(j->read_fd, p, n, body_at);
    if (error != 0)
        return cannot_read(j, place, strerror(error));
    if (!segment_record_valid(&header, head, span_of(p, n)))
        return cannot_read(j, place, "the checksum does not match");
    buf_commit(out_body, n);
    return NULL;
}
