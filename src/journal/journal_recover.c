/* Recovery, as the opening comment of segment.c describes it: a walk over the segments hands on
 * what is whole, a torn end is cut, and the last segment is made ready to be written. */
#include "journal_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/fault.h"
#include "journal/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define ZEROS_BYTES (64u << 10)

struct recovery {
    struct journal *j;
    struct journal_walk walk;
};

static struct err *replay(void *context, const struct segment_record *record)
{
    struct recovery *r = context;
    struct journal *j = r->j;
    struct journal_place place = {(uint32_t)r->walk.number, (uint32_t)record->offset};

    return j->callbacks.on_replay(j->callbacks.context, record, place);
}

/* Overwrites from `cut` on; false with errno. */
static bool write_zeros(int fd, uint64_t cut, uint64_t end)
{
    static const char zeros[ZEROS_BYTES];

    errno = EIO; /* for the faults */
    while (cut < end) {
        ssize_t n = fault_hit("disk.write")
                        ? -1
                        : pwrite(fd, zeros, MIN(end - cut, sizeof(zeros)), (off_t)cut);

        if (n <= 0)
            return false;
        cut += (uint64_t)n;
    }
    return !fault_hit("disk.sync") && fdatasync(fd) == 0;
}

static int cut_file(const struct recovery *r, uint64_t from, uint64_t to)
{
    int fd = openat(r->j->directory_fd, r->walk.name, O_RDWR | O_CLOEXEC);
    int error = fd < 0 || !write_zeros(fd, from, to) ? errno : 0;

    journal_close_file(&fd);
    return error;
}

static struct err *cut_tail(struct recovery *r, const struct journal_walk_end *at)
{
    struct journal *j = r->j;
    uint64_t end = r->walk.file.n;
    int error;

    while (end > at->offset && r->walk.file.p[end - 1] == 0)
        end--;
    log_warn("journal",
             "%s/%s: cut %" PRIu64 " bytes at offset %" PRIu64
             ", left by an interrupted write (%s)",
             j->directory, r->walk.name, end - at->offset, at->offset, at->why);
    error = cut_file(r, at->offset, end);
    if (error != 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot cut %s/%s: %s", j->directory, r->walk.name,
                   strerror(error));
    j->stats.cut_bytes = end - at->offset;
    return NULL;
}

static void add_segment(const struct recovery *r, bool is_last, uint64_t end)
{
    struct journal_segment *segment = NEW(struct journal_segment);

    segment->header = r->walk.scan.header;
    segment->named = true;
    segment->sealed = !is_last;
    segment->size = r->walk.file.n;
    segment->end = disk_blocks(end);
    segment->records = r->walk.record_bytes;
    segment_file_name(r->walk.number, segment->name);
    list_push_back(&r->j->segments, &segment->link);
    r->j->stats.bytes += segment->size;
    r->j->largest = MAX(r->j->largest, segment->size);
}

static struct err *recover_segment(struct recovery *r, uint64_t number, bool is_last)
{
    struct journal_walk_end end;

    TRY(journal_walk_segment(&r->walk, number, is_last, &end));
    if (end.why != NULL)
        TRY(cut_tail(r, &end));
    add_segment(r, is_last, end.offset);
    return NULL;
}

/* A name without content: the file was made, and nothing of it reached the disk. */
static struct err *drop_empty_file(struct recovery *r, const uint64_t *numbers, size_t *count)
{
    bool is_blank;

    if (*count == 0 || (*count == 1 && numbers[0] != 1))
        return NULL;
    TRY(journal_walk_is_blank(&r->walk, numbers[*count - 1], &is_blank));
    if (!is_blank)
        return NULL;
    log_warn("journal", "%s/%s is empty, left by an interrupted start of a segment: removed",
             r->j->directory, r->walk.name);
    journal_unlink(r->j, r->walk.name);
    --*count;
    return NULL;
}

/* A file that is shorter than it should be, a restored copy for instance, gets its full size; on a
 * full disk it is used as it is. */
static void extend_last(struct journal *j, struct journal_segment *segment)
{
    uint64_t usable = MAX(segment->end, segment->size / DISK_BLOCK_BYTES * DISK_BLOCK_BYTES);
    struct err *e;

    if (segment->size >= j->segment_bytes && segment->size % DISK_BLOCK_BYTES == 0)
        return;
    e = journal_room_allocate(j, segment, MAX(j->segment_bytes, disk_blocks(segment->size)));
    if (e == NULL)
        return;
    log_warn("journal", "%s: %.*s", j->directory, SPAN_FMT(err_message(e)));
    err_free(e);
    j->stats.bytes += usable - segment->size;
    segment->size = usable;
}

/* How far the file has blocks that were written before: a hole, or blocks that are only allocated,
 * begin there. */
static uint64_t filled_until(const struct journal_segment *segment)
{
    off_t hole = lseek(disk_fd(segment->file), (off_t)segment->end, SEEK_HOLE);

    if (hole < 0)
        return segment->size;
    return MIN((uint64_t)hole / DISK_BLOCK_BYTES * DISK_BLOCK_BYTES, segment->size);
}

/* What was replayed will be shown, so it is made durable first: the process before may have been
 * killed between a write and the sync. */
static struct err *open_last(struct journal *j)
{
    struct journal_segment *segment = journal_last_segment(j);
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e = disk_open(j->disk, journal_path(j, segment->name, &path), &segment->file);

    buf_done(&path);
    if (e != NULL)
        return e;
    extend_last(j, segment);
    errno = EIO; /* for the fault */
    if (fault_hit("disk.sync") || fdatasync(disk_fd(segment->file)) != 0 ||
        fsync(j->directory_fd) != 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot sync %s/%s: %s", j->directory, segment->name,
                   strerror(errno));
    segment->filled = filled_until(segment);
    /* Direct writes beside pages in the cache have to invalidate them. */
    posix_fadvise(disk_fd(segment->file), 0, 0, POSIX_FADV_DONTNEED);
    j->written = segment;
    return NULL;
}

static struct err *recover_all(struct recovery *r, const uint64_t *numbers, size_t count)
{
    size_t place;

    TRY(journal_check_numbers(r->j->directory, numbers, count, &place));
    TRY(drop_empty_file(r, numbers, &count));
    for (size_t i = 0; i < count; i++)
        TRY(recover_segment(r, numbers[i], i + 1 == count));
    return NULL;
}

/* What the walk has found is the journal's. */
static void take_over(struct recovery *r)
{
    struct journal *j = r->j;

    j->stats.replayed_records = r->walk.records;
    if (!r->walk.has_begun)
        return;
    j->id = r->walk.id;
    j->next_serial = r->walk.next_serial;
    j->committed_serial = j->next_serial - 1;
}

static struct err *recover_listed(struct journal *j, const uint64_t *numbers, size_t count)
{
    struct recovery r = {.j = j};
    struct err *e;

    journal_walk_init(&r.walk, j->directory, j->directory_fd);
    r.walk.on_record = replay;
    r.walk.context = &r;
    e = recover_all(&r, numbers, count);
    if (e == NULL)
        take_over(&r);
    journal_walk_done(&r.walk);
    return e;
}

struct err *journal_recover(struct journal *j)
{
    uint64_t *numbers;
    size_t count;
    struct err *e;

    TRY(journal_directory_tidy(j));
    TRY(journal_list(j->directory, j->directory_fd, &numbers, &count));
    e = recover_listed(j, numbers, count);
    mem_free(numbers);
    if (e != NULL)
        return e;
    return list_empty(&j->segments) ? NULL : open_last(j);
}
