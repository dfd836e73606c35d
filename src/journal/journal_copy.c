/* What a copy is made of is settled when it is opened: the segments' sizes, and where in the one
 * that is written to the last commit ends. What stands before that place is never written again, so
 * it can be read at any later time.
 *
 * A segment is kept by its number: journal_drop.c asks before it deletes one. A descriptor for each
 * would keep them too, but take as many as the journal has segments, and the room on the disk could
 * not be given back before the client is gone. */
#include "journal/journal_copy.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/mem.h"
#include "io/fault.h"
#include "journal/backup.h"
#include "journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { AHEAD_BYTES = 1 << 20 };

enum copy_phase { COPY_HEAD, COPY_SEGMENT_HEAD, COPY_SEGMENT, COPY_END, COPY_DONE };

struct journal_copy {
    struct list_link link; /* in journal.copies; unlinked: it is lost */
    struct journal *j;
    struct journal_copy_options options;
    struct backup_head head;
    uint64_t *bytes; /* of each segment */
    enum copy_phase phase;
    uint32_t at;     /* the segment that is read */
    uint64_t offset; /* in it */
    int fd;          /* of it; -1: not open */
    struct digest *digest;
    enum journal_copy_loss loss;
};

const char *journal_copy_loss_text(enum journal_copy_loss loss)
{
    static const char *const texts[] = {JOURNAL_COPY_LOSSES(AS_TEXT)};

    return texts[loss];
}

/* Of the segment that writes go to: what waits, or is under way, begins behind it. */
static uint64_t committed_end(const struct journal *j)
{
    LIST_EACH(&j->batches, at) {
        const struct journal_batch *batch = CONTAINER_OF(at, struct journal_batch, link);

        if (batch->segment == j->written)
            return batch->offset;
    }
    return j->written->end;
}

static void note_segments(struct journal_copy *c)
{
    struct journal *j = c->j;
    uint64_t all = 0;

    c->bytes = mem_alloc((list_count(&j->segments) + 1) * sizeof(uint64_t));
    LIST_EACH(&j->segments, at) {
        const struct journal_segment *segment = SEGMENT_OF(at);
        uint64_t n = segment == j->written ? committed_end(j) : segment->size;

        if (j->written == NULL)
            break; /* nothing has ever been committed */
        if (c->head.segments == 0)
            c->head.first_number = segment->header.number;
        c->bytes[c->head.segments++] = n;
        all += n;
        if (segment == j->written)
            break;
    }
    c->head.bytes = backup_file_bytes(c->head.segments, all);
}

struct err *journal_copy_open(struct journal *j, const struct journal_copy_options *options,
                              struct journal_copy **out_copy)
{
    struct journal_copy *c;

    if (j->stats.failed)
        return ERR(ERR_STORAGE_FAILURE, "the journal has failed");
    c = NEW(struct journal_copy);
    c->j = j;
    c->options = *options;
    c->fd = -1;
    c->digest = digest_new();
    c->head.journal = j->id;
    c->head.serial = j->committed_serial;
    c->head.made_unix_ns = clock_unix_ns();
    note_segments(c);
    list_push_back(&j->copies, &c->link);
    *out_copy = c;
    return NULL;
}

/* What it has kept may go. */
static void let_go(struct journal_copy *c)
{
    journal_close_file(&c->fd);
    if (list_linked(&c->link))
        list_remove(&c->j->copies, &c->link);
}

void journal_copy_close(struct journal_copy *c)
{
    struct journal *j;

    if (c == NULL)
        return;
    j = c->j;
    let_go(c);
    digest_free(c->digest);
    mem_free(c->bytes);
    mem_free(c);
    journal_advance(j);
}

uint64_t journal_copy_bytes(const struct journal_copy *c)
{
    return c->head.bytes;
}

uint64_t journal_copy_serial(const struct journal_copy *c)
{
    return c->head.serial;
}

/* ---- what it keeps ---- */

static bool copy_needs(const struct journal_copy *c, uint64_t number)
{
    return number >= c->head.first_number + c->at &&
           number < c->head.first_number + c->head.segments;
}

static enum journal_copy_loss loss_of(const struct journal *j, const struct journal_copy *c)
{
    if (j->stats.full)
        return JOURNAL_COPY_DISK_FULL;
    return j->dropped_bytes > c->options.held_bytes ? JOURNAL_COPY_HELD_TOO_MUCH
                                                    : JOURNAL_COPY_KEPT;
}

bool journal_copies_keep(struct journal *j, uint64_t number)
{
    bool is_kept = false;

    LIST_EACH(&j->copies, at) {
        struct journal_copy *c = CONTAINER_OF(at, struct journal_copy, link);
        enum journal_copy_loss loss = loss_of(j, c);

        if (!copy_needs(c, number))
            continue;
        if (loss == JOURNAL_COPY_KEPT) {
            is_kept = true;
            continue;
        }
        c->loss = loss;
        let_go(c);
        c->options.on_lost(c->options.context, loss);
    }
    return is_kept;
}

/* ---- reading ---- */

static struct err *cannot_read(const struct journal_copy *c, const char *why)
{
    char name[JOURNAL_NAME_BYTES];

    segment_file_name(c->head.first_number + c->at, name);
    return ERR(ERR_STORAGE_FAILURE, "cannot read %s at offset %" PRIu64 ": %s", name, c->offset,
               why);
}

static struct err *open_segment(struct journal_copy *c)
{
    char name[JOURNAL_NAME_BYTES];

    if (c->fd >= 0)
        return NULL;
    segment_file_name(c->head.first_number + c->at, name);
    c->fd = openat(c->j->directory_fd, name, O_RDONLY | O_CLOEXEC);
    return c->fd >= 0 ? NULL : cannot_read(c, strerror(errno));
}

/* What was read is not needed in memory any more, and 16 MiB of it would make the file slow to
 * delete. What cannot be done about it costs only that. */
static void uncache(const struct journal_copy *c, uint64_t end)
{
    if (end % AHEAD_BYTES == 0 || end == c->bytes[c->at])
        (void)!posix_fadvise(c->fd, (off_t)((end - 1) / AHEAD_BYTES * AHEAD_BYTES), AHEAD_BYTES,
                             POSIX_FADV_DONTNEED);
}

static struct err *ask_disk(const struct journal_copy *c, uint64_t offset)
{
    int error = posix_fadvise(c->fd, (off_t)offset, AHEAD_BYTES, POSIX_FADV_WILLNEED);

    return error == 0 ? NULL : cannot_read(c, strerror(error));
}

/* While one piece is sent the disk reads the next. */
static struct err *ask_ahead(const struct journal_copy *c)
{
    uint64_t next = c->offset + AHEAD_BYTES;

    return c->offset % AHEAD_BYTES == 0 && next < c->bytes[c->at] ? ask_disk(c, next) : NULL;
}

static struct err *read_segment(struct journal_copy *c, struct buf *b, bool *out_there)
{
    size_t n = (size_t)MIN(c->bytes[c->at] - c->offset, (uint64_t)JOURNAL_COPY_PART_BYTES);
    char *p = buf_reserve(b, n);
    ssize_t got;

    TRY(open_segment(c));
    TRY(ask_ahead(c));
    do {
        got = fault_hit("disk.read") ? 0 : journal_read_some(c->fd, p, n, c->offset, false);
    } while (got < 0 && errno == EINTR);
    *out_there = got >= 0 || errno != EAGAIN;
    if (!*out_there)
        return ask_disk(c, c->offset);
    if (got <= 0)
        return cannot_read(c, got == 0 ? "it is shorter than it was" : strerror(errno));
    buf_commit(b, (size_t)got);
    c->offset += (uint64_t)got;
    uncache(c, c->offset);
    return NULL;
}

/* Cleaning may go on with the one that was read. */
static void end_segment(struct journal_copy *c)
{
    journal_close_file(&c->fd);
    c->at++;
    c->offset = 0;
    c->phase = c->at < c->head.segments ? COPY_SEGMENT_HEAD : COPY_END;
    journal_advance(c->j);
}

static void add_end(struct journal_copy *c, struct buf *b)
{
    uint8_t digest[DIGEST_BYTES];

    digest_end(c->digest, digest);
    backup_file_add_end(b, digest);
    c->phase = COPY_DONE;
}

static struct err *read_part(struct journal_copy *c, struct buf *b, bool *out_there)
{
    switch (c->phase) {
    case COPY_HEAD:
        backup_file_add_head(b, &c->head);
        c->phase = c->head.segments > 0 ? COPY_SEGMENT_HEAD : COPY_END;
        break;
    case COPY_SEGMENT_HEAD:
        backup_file_add_segment_head(
            b, &(struct backup_segment_head){c->head.first_number + c->at, c->bytes[c->at]});
        c->phase = COPY_SEGMENT;
        break;
    case COPY_SEGMENT:
        TRY(read_segment(c, b, out_there));
        break;
    case COPY_END:
    case COPY_DONE:
        break;
    }
    return NULL;
}

struct err *journal_copy_read(struct journal_copy *c, struct buf *b, bool *out_there)
{
    *out_there = true;
    buf_clear(b);
    if (c->loss != JOURNAL_COPY_KEPT)
        return ERR(ERR_STORAGE_FAILURE, "%s", journal_copy_loss_text(c->loss));
    if (c->phase == COPY_END) {
        add_end(c, b);
        return NULL;
    }
    TRY(read_part(c, b, out_there));
    digest_add(c->digest, buf_span(b));
    if (c->phase == COPY_SEGMENT && c->offset == c->bytes[c->at])
        end_segment(c);
    return NULL;
}
