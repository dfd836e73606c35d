/* Room ahead. While the last segment is in use, the next one is prepared: its blocks are allocated,
 * so that a full disk shows before anything depends on it, and then filled with zeros, because a
 * write to a block that never held anything has to change the file's metadata with it, which costs
 * a sync half as much again. It has a temporary name until its first commit (journal.c,
 * "begin_segment").
 *
 * Zeros go one step at a time, while no commit is under way, or when they have fallen behind what
 * the commits use up. */
#include "journal_private.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILL_AHEAD (1u << 20) /* zeros wanted before the end of what is written */

void journal_segment_free(struct journal_segment *segment)
{
    if (segment == NULL)
        return;
    disk_close(segment->file);
    mem_free(segment);
}

void journal_segment_seal(struct journal *j, struct journal_segment *segment)
{
    segment->sealed = true;
    if (j->fill.segment == segment)
        return; /* on_filled comes back to it */
    disk_close(segment->file);
    segment->file = NULL;
}

struct err *journal_room_allocate(struct journal *j, struct journal_segment *segment, uint64_t size)
{
    int fd = disk_fd(segment->file);
    int error = fault_hit("disk.allocate") ? ENOSPC : posix_fallocate(fd, 0, (off_t)size);

    if (error == 0) {
        j->stats.bytes += size - segment->size;
        segment->size = size;
        return NULL;
    }
    /* What was allocated before it failed goes back; when that fails too, it is merely unused. */
    if (ftruncate(fd, (off_t)segment->size) != 0)
        log_debug("journal", "ftruncate of %s: %s", segment->name, strerror(errno));
    return ERR(ERR_STORAGE_FAILURE, "no room for %" PRIu64 " bytes in %s: %s", size, j->directory,
               strerror(error));
}

static struct err *create_next(struct journal *j, uint64_t size)
{
    struct journal_segment *segment = NEW(struct journal_segment);
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;

    snprintf(segment->name, sizeof(segment->name), "journal-%016" PRIx64 ".tmp", ++j->prepared);
    segment->filled = SEGMENT_HEADER_BYTES;
    e = disk_create(j->disk, journal_path(j, segment->name, &path), &segment->file);
    buf_done(&path);
    if (e == NULL)
        e = journal_room_allocate(j, segment, size);
    if (e == NULL) {
        j->next = segment;
        return NULL;
    }
    journal_unlink(j, segment->name);
    journal_segment_free(segment);
    return e;
}

static uint64_t segment_size_for(const struct journal *j, uint64_t bytes)
{
    return MAX(j->segment_bytes, disk_blocks(SEGMENT_HEADER_BYTES + bytes));
}

static bool was_refused(const struct journal *j, uint64_t size)
{
    return j->no_room_for != 0 && size >= j->no_room_for;
}

/* Full is a disk that has no room for an ordinary segment. */
static void note_full(struct journal *j, const struct err *e)
{
    if (j->stats.full == (e != NULL))
        return;
    j->stats.full = e != NULL;
    if (e != NULL)
        log_warn("journal", "%.*s", SPAN_FMT(err_message(e)));
    else
        log_info("journal", "there is room in %s again", j->directory);
}

struct err *journal_room_prepare(struct journal *j, uint64_t bytes)
{
    uint64_t size = segment_size_for(j, bytes);
    struct err *e;

    if (j->next != NULL && j->next->size >= size)
        return NULL;
    if (list_count(&j->batches) > JOURNAL_QUEUE_MAX)
        return ERR(ERR_OVERLOADED, "the disk of %s does not keep up with the changes",
                   j->directory);
    if (was_refused(j, size))
        return ERR(ERR_STORAGE_FAILURE, "no room for %" PRIu64 " bytes in %s", size, j->directory);
    e = j->next == NULL ? create_next(j, size) : journal_room_allocate(j, j->next, size);
    if (e != NULL) {
        j->no_room_for = size;
        journal_wait_second(j);
    }
    if (e == NULL || size == j->segment_bytes)
        note_full(j, e);
    return e;
}

struct journal_segment *journal_room_take(struct journal *j)
{
    struct journal_segment *segment = TAKE(j->next);
    const struct journal_segment *last = journal_last_segment(j);
    uint64_t number = last == NULL ? 1 : last->header.number + 1;

    MUST(number <= UINT32_MAX);
    segment->header = (struct segment_header){
        .version = SEGMENT_FORMAT_VERSION,
        .journal = j->id,
        .number = number,
        .first_serial = j->next_serial,
        .created_unix_ns = clock_unix_ns(),
    };
    segment->end = SEGMENT_HEADER_BYTES;
    list_push_back(&j->segments, &segment->link);
    return segment;
}

static bool needs_zeros(const struct journal_segment *segment)
{
    return segment != NULL && segment->filled < segment->size;
}

/* Are the commits about to use what is not filled? `next` should be filled in the proportion in
 * which the last segment is used. */
static bool behind(const struct journal_segment *segment, const struct journal_segment *last)
{
    if (segment == last)
        return segment->filled < segment->end + FILL_AHEAD;
    return segment->filled * last->size < last->end * segment->size;
}

static void on_filled(void *context, int result)
{
    struct journal *j = context;
    struct journal_segment *segment = TAKE(j->fill.segment);

    segment->filled = j->fill.to;
    if (result != 0) {
        /* Nothing depends on it; if the disk is broken, a commit will show that. */
        log_warn("journal", "cannot fill %s with zeros: %s", segment->name, strerror(-result));
        segment->filled = segment->size;
    }
    if (segment->sealed)
        journal_segment_seal(j, segment);
    journal_advance(j);
}

static void fill(struct journal *j, struct journal_segment *segment)
{
    struct journal_fill *step = &j->fill;

    step->from = MAX(segment->filled, segment->end);
    step->to = MIN(step->from + JOURNAL_FILL_BYTES, segment->size);
    if (step->from >= segment->size) {
        segment->filled = segment->size;
        return;
    }
    if (step->zeros == NULL)
        step->zeros = disk_memory(j->disk, JOURNAL_FILL_BYTES);
    step->segment = segment;
    step->job.on_done = on_filled;
    step->job.context = j;
    disk_write(segment->file, &step->job, step->zeros, step->to - step->from, step->from, true);
}

/* A successor is made not long before it is needed: until then cleaning can drop the oldest
 * segment, so that a journal that holds little is two segments and not three. */
static bool is_nearly_used(const struct journal_segment *segment)
{
    return segment->end >= segment->size / 8 * 7;
}

void journal_room_keep(struct journal *j)
{
    struct journal_segment *last = journal_last_segment(j);
    struct journal_segment *segment = needs_zeros(last) ? last : j->next;

    if (j->next == NULL && !was_refused(j, j->segment_bytes) && is_nearly_used(last))
        err_free(journal_room_prepare(j, 0));
    if (j->fill.segment == NULL && needs_zeros(segment) &&
        (list_empty(&j->batches) || behind(segment, last)))
        fill(j, segment);
}

bool journal_room_fills(const struct journal *j, const struct journal_batch *batch)
{
    return j->fill.segment == batch->segment && batch->offset < j->fill.to &&
           batch->offset + batch->n > j->fill.from;
}
