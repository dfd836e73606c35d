/* Room ahead. While the last segment is in use, the next one is prepared: its blocks are allocated,
 * so that a full disk shows before anything depends on it, and then filled with zeros, because a
 * write to a block that never held anything has to change the file's metadata with it, which costs
 * a sync half as much again. It has a temporary name until its first commit (journal.c,
 * "begin_segment").
 *
 * What a change has to leave (journal.h, "struct journal_left") may need a second segment ahead:
 * the first is then used, and the second is what is kept for cleaning. docs/design/journal.md, "A
 * full disk", tells why that is enough.
 *
 * Zeros go one step at a time, while no commit is under way, or when they have fallen behind what
 * the commits use up. */
#include "journal_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/fault.h"

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
    return ERR(ERR_STORAGE_FAILURE, "the disk has no room for %" PRIu64 " bytes: %s", size,
               strerror(error));
}

/* Clients read it, and need not know where on the disk the journal is. */
static struct err *without_directory(const struct journal *j, struct err *e)
{
    struct span message = err_message(e), directory = span_str(j->directory);
    size_t at = span_find(message, directory);
    struct err *shown;

    if (at == SIZE_MAX)
        return e;
    shown = ERR(err_code(e), "%.*s%.*s", (int)at, message.p,
                SPAN_FMT(span_sub(message, at + directory.n + 1, message.n)));
    err_free(e);
    return shown;
}

static struct err *create_ahead(struct journal *j, unsigned i, uint64_t size)
{
    struct journal_segment *segment = NEW(struct journal_segment);
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;

    snprintf(segment->name, sizeof(segment->name), "journal-%016" PRIx64 ".tmp", ++j->prepared);
    segment->end = segment->filled = SEGMENT_HEADER_BYTES;
    e = disk_create(j->disk, journal_path(j, segment->name, &path), &segment->file);
    buf_done(&path);
    if (e != NULL)
        e = without_directory(j, e);
    else
        e = journal_room_allocate(j, segment, size);
    if (e == NULL) {
        j->ahead[i] = segment;
        return NULL;
    }
    journal_unlink(j, segment->name);
    journal_segment_free(segment);
    return e;
}

static bool was_refused(const struct journal *j, uint64_t size)
{
    return j->no_room_for != 0 && size >= j->no_room_for;
}

/* Makes ahead[i] ready; ahead[i - 1] is. */
static struct err *prepare(struct journal *j, unsigned i, uint64_t size)
{
    struct journal_segment *segment = j->ahead[i];
    struct err *e;

    if (segment != NULL && segment->size >= size)
        return NULL;
    if (list_count(&j->batches) > JOURNAL_QUEUE_MAX)
        return ERR(ERR_OVERLOADED, "the disk does not keep up with the changes");
    if (was_refused(j, size))
        return ERR(ERR_STORAGE_FAILURE, "the disk has no room for %" PRIu64 " bytes", size);
    e = segment == NULL ? create_ahead(j, i, size) : journal_room_allocate(j, segment, size);
    if (e != NULL) {
        j->no_room_for = size;
        journal_wait_second(j);
    }
    return e;
}

/* ---- what fits ---- */

/* What records of a segment of that size may take: so little that they, moved, fit into another. */
static uint64_t most_in(uint64_t size)
{
    uint64_t bytes = size - SEGMENT_HEADER_BYTES;

    return bytes - (bytes / JOURNAL_MOVE_BYTES + 2) * DISK_BLOCK_BYTES;
}

static bool is_of_older_format(const struct journal_segment *segment)
{
    return segment->named && segment->header.version < SEGMENT_FORMAT_VERSION;
}

/* The reverse: of a segment that takes a change of so many bytes. */
static uint64_t size_for_change(const struct journal *j, uint64_t bytes)
{
    uint64_t commits = bytes / (JOURNAL_MOVE_BYTES - DISK_BLOCK_BYTES) + 3;

    return MAX(j->segment_bytes,
               disk_blocks(SEGMENT_HEADER_BYTES + bytes + commits * DISK_BLOCK_BYTES));
}

/* What an ordinary segment held fits into another; that of a larger one gets some more. */
static uint64_t size_for_moves(const struct journal *j, uint64_t moved_bytes)
{
    return moved_bytes <= j->segment_bytes - SEGMENT_HEADER_BYTES ? j->segment_bytes
                                                                  : size_for_change(j, moved_bytes);
}

/* One of an older format takes nothing more. */
uint64_t journal_records_left(const struct journal_segment *segment)
{
    uint64_t most = is_of_older_format(segment) ? 0 : most_in(segment->size);

    return most - MIN(most, segment->records);
}

uint64_t journal_room_left(const struct journal_segment *segment)
{
    return MIN(segment->size - segment->end, journal_records_left(segment));
}

/* What is left after a change: in all, and in the segment that has most of it. */
struct rest {
    uint64_t sum, most;
};

static void add_rest(struct rest *rest, const struct journal_segment *segment, uint64_t used)
{
    uint64_t left =
        MIN(segment->size - segment->end, journal_moved_bytes(journal_records_left(segment)));

    left -= MIN(left, used);
    rest->sum += left;
    rest->most = MAX(rest->most, left);
}

static struct rest rest_after(const struct journal *j, uint64_t bytes)
{
    const struct journal_segment *last = journal_last_segment(j);
    struct rest rest = {0, 0};
    uint64_t used = disk_blocks(bytes);

    if (bytes <= journal_room_left(last)) {
        add_rest(&rest, last, used);
        used = 0;
    }
    for (unsigned i = 0; i < ARRAY_LEN(j->ahead) && j->ahead[i] != NULL; i++) {
        add_rest(&rest, j->ahead[i], used);
        used = 0;
    }
    return rest;
}

/* Moves stay in one segment at worst, as the end of another is too short for a large record. */
static bool is_enough(const struct rest *rest, const struct journal_left *left)
{
    return rest->most >= left->moves && rest->sum >= left->moves + left->spare;
}

/* Likewise with the segment that is about to be deleted. */
static bool will_be_enough(const struct journal *j, const struct rest *now,
                           const struct journal_left *left)
{
    const struct journal_segment *first = SEGMENT_OF(list_first(&j->dropped));
    struct rest rest = *now;
    uint64_t bytes;

    if (first == NULL || j->drop_failed)
        return false;
    bytes = first->size - SEGMENT_HEADER_BYTES;
    rest.sum += bytes;
    rest.most = MAX(rest.most, bytes);
    return is_enough(&rest, left);
}

bool journal_can_move(const struct journal *j, uint64_t moved_bytes)
{
    return rest_after(j, 0).most >= moved_bytes;
}

/* Size of one more segment that brings what is missing. */
static uint64_t size_missing(const struct journal *j, const struct rest *rest,
                             const struct journal_left *left)
{
    if (rest->most < left->moves)
        return size_for_moves(j, left->moves);
    return size_for_change(j, left->moves + left->spare - rest->sum);
}

/* A change goes into one segment, and when that is not the last one, what is left there is lost. */
static struct err *make_room(struct journal *j, uint64_t bytes, const struct journal_left *left)
{
    unsigned i = 0;

    if (bytes > journal_room_left(journal_last_segment(j)))
        TRY(prepare(j, i++, size_for_change(j, bytes)));
    for (;; i++) {
        struct rest rest = rest_after(j, bytes);

        if (is_enough(&rest, left) || will_be_enough(j, &rest, left))
            return NULL;
        if (i == ARRAY_LEN(j->ahead))
            return prepare(j, i - 1, j->ahead[i - 1]->size + size_missing(j, &rest, left));
        TRY(prepare(j, i, size_missing(j, &rest, left)));
    }
}

static void forget_ahead(struct journal *j, unsigned i)
{
    struct journal_segment *segment = TAKE(j->ahead[i]);

    j->stats.bytes -= segment->size;
    journal_unlink(j, segment->name);
    journal_segment_free(segment);
}

bool journal_has_reserve(const struct journal *j)
{
    return j->ahead[1] != NULL;
}

void journal_release(struct journal *j, const struct journal_left *left)
{
    struct journal_segment *second = j->ahead[1];
    struct rest rest;

    if (second == NULL || j->fill.segment == second || j->stats.full)
        return;
    j->ahead[1] = NULL;
    rest = rest_after(j, j->segment_bytes / 8);
    j->ahead[1] = second;
    if (is_enough(&rest, left))
        forget_ahead(j, 1);
}

/* A full disk is one that has refused what is no longer than an ordinary segment; it is not full
 * any more when there is room for that, and for an eighth of a segment at least. */
static void note_refused(struct journal *j, const struct err *e, uint64_t bytes,
                         const struct journal_left *left)
{
    if (err_code(e) != ERR_STORAGE_FAILURE || bytes > j->segment_bytes)
        return;
    if (!j->stats.full) {
        j->wanted_bytes = j->segment_bytes / 8;
        j->wanted_left = (struct journal_left){0, 0};
        log_warn("journal", "%s: %.*s", j->directory, SPAN_FMT(err_message(e)));
    }
    j->stats.full = true;
    j->wanted_bytes = MAX(j->wanted_bytes, bytes);
    j->wanted_left.spare = MAX(j->wanted_left.spare, left->spare);
    j->wanted_left.moves = left->moves;
}

struct err *journal_reserve(struct journal *j, size_t bytes, const struct journal_left *left)
{
    static const struct journal_left nothing = {0, 0};
    uint64_t limit = JOURNAL_SEGMENT_MAX / 2;
    struct err *e;

    if (left == NULL)
        left = &nothing;
    if (j->stats.failed)
        return ERR(ERR_STORAGE_FAILURE, "the journal has failed");
    if (bytes > limit || left->spare > limit || left->moves > limit)
        return ERR(ERR_STORAGE_FAILURE, "a change of %zu bytes is too large for the journal",
                   bytes);
    e = make_room(j, bytes, left);
    if (e != NULL)
        note_refused(j, e, bytes, left);
    return e;
}

static void look_whether_still_full(struct journal *j)
{
    struct err *e = make_room(j, j->wanted_bytes, &j->wanted_left);

    if (e == NULL) {
        j->stats.full = false;
        log_info("journal", "there is room in %s again", j->directory);
    }
    err_free(e);
}

/* ---- the order of use ---- */

static void note_size(struct journal *j, const struct journal_segment *segment)
{
    j->largest = MAX(j->largest, segment->size);
}

void journal_room_forget(struct journal *j, const struct journal_segment *segment)
{
    if (segment->size < j->largest || j->largest <= j->segment_bytes)
        return;
    j->largest = 0;
    LIST_EACH(&j->segments, at)
        note_size(j, SEGMENT_OF(at));
}

uint64_t journal_moved_bytes(uint64_t bytes)
{
    return bytes == 0 ? 0 : bytes + (bytes / JOURNAL_MOVE_BYTES + 2) * DISK_BLOCK_BYTES;
}

uint64_t journal_largest(const struct journal *j)
{
    return j->largest <= j->segment_bytes ? 0 : most_in(j->largest);
}

/* When that fails, what is too much is merely unused. */
static void cut_file(struct journal_segment *segment)
{
    segment->is_too_long = false;
    if (ftruncate(disk_fd(segment->file), (off_t)segment->size) != 0)
        log_debug("journal", "ftruncate of %s: %s", segment->name, strerror(errno));
}

/* One that was made to take what a large segment holds, and gets less, gives back the difference,
 * or every segment would be as large from then on. */
static void trim(struct journal *j, struct journal_segment *segment, uint64_t size)
{
    if (segment->size <= size)
        return;
    j->stats.bytes -= segment->size - size;
    segment->size = size;
    segment->filled = MIN(segment->filled, size);
    if (j->fill.segment == segment)
        segment->is_too_long = true; /* on_filled comes back to it */
    else
        cut_file(segment);
}

/* Large enough for the change, and for what is moved from the oldest. */
static uint64_t size_to_take(const struct journal *j, uint64_t bytes)
{
    const struct journal_segment *first = SEGMENT_OF(list_first(&j->segments));
    uint64_t size = size_for_change(j, bytes);

    return first == NULL ? size : MAX(size, first->size);
}

struct journal_segment *journal_room_take(struct journal *j, uint64_t bytes)
{
    struct journal_segment *segment = j->ahead[0];
    const struct journal_segment *last = journal_last_segment(j);
    uint64_t number = last == NULL ? 1 : last->header.number + 1;

    MUST(number <= UINT32_MAX);
    j->ahead[0] = TAKE(j->ahead[1]);
    trim(j, segment, size_to_take(j, bytes));
    segment->header = (struct segment_header){
        .version = SEGMENT_FORMAT_VERSION,
        .journal = j->id,
        .number = number,
        .first_serial = j->next_serial,
        .created_unix_ns = clock_unix_ns(),
        .bytes_before = last == NULL ? 0 : last->records,
    };
    list_push_back(&j->segments, &segment->link);
    note_size(j, segment);
    return segment;
}

struct err *journal_room_prepare(struct journal *j, uint64_t bytes)
{
    return prepare(j, 0, size_for_change(j, bytes));
}

/* ---- zeros ---- */

static bool needs_zeros(const struct journal_segment *segment)
{
    return segment != NULL && segment->filled < segment->size && !is_of_older_format(segment);
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

    segment->filled = MIN(j->fill.to, segment->size);
    if (segment->is_too_long)
        cut_file(segment);
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

static void prepare_successor(struct journal *j)
{
    static const struct journal_left nothing = {0, 0};
    struct err *e;

    if (was_refused(j, j->segment_bytes))
        return;
    e = prepare(j, 0, j->segment_bytes);
    if (e != NULL)
        note_refused(j, e, 0, &nothing);
    err_free(e);
}

/* A successor is made not long before it is needed: until then cleaning can drop the oldest
 * segment, so that a journal that holds little is two segments and not three. */
void journal_room_keep(struct journal *j)
{
    struct journal_segment *last = journal_last_segment(j);
    struct journal_segment *segment = needs_zeros(last) ? last : j->ahead[0];

    if (j->stats.full && j->no_room_for == 0)
        look_whether_still_full(j);
    if (j->ahead[0] == NULL && (is_of_older_format(last) || last->end >= last->size / 8 * 7))
        prepare_successor(j);
    if (j->fill.segment == NULL && needs_zeros(segment) &&
        (list_empty(&j->batches) || behind(segment, last)))
        fill(j, segment);
}

bool journal_room_fills(const struct journal *j, const struct journal_batch *batch)
{
    return j->fill.segment == batch->segment && batch->offset < j->fill.to &&
           batch->offset + batch->n > j->fill.from;
}
