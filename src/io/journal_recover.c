/* Recovery, as the opening comment of segment.c describes it. A segment is mapped and scanned; the
 * records of a change are held back until its last one is there. */
#include "journal_private.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZEROS_BYTES (64u << 10)

struct recovery {
    struct journal *j;
    const char *name; /* of the segment */
    uint64_t number;
    bool is_last;
    int fd;
    struct span file; /* mapped */
    struct segment_scan scan;
    struct segment_record *change; /* records of one whose last has not come yet */
    size_t change_count, change_size;
};

/* Reads the pages now: an error of the disk is then an error and no signal. Kernels before 5.14 do
 * not know how; there it stays a signal. */
static int read_ahead(struct span file)
{
    void *p = (void *)(uintptr_t)file.p;

    madvise(p, file.n, MADV_SEQUENTIAL);
    if (fault_hit("disk.read"))
        return EIO;
    return madvise(p, file.n, MADV_POPULATE_READ) == 0 || errno == EINVAL ? 0 : EIO;
}

/* 0 or an errno. An empty file is an empty span. */
static int map_file(struct recovery *r)
{
    struct stat status;
    void *p;

    r->fd = openat(r->j->directory_fd, r->name, O_RDWR | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &status) != 0)
        return errno;
    if (status.st_size > UINT32_MAX)
        return EFBIG;
    if (status.st_size == 0)
        return 0;
    /* After a sync that failed, the page cache may hold what the disk does not. */
    if (r->is_last)
        posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (fault_hit("disk.map"))
        return ENOMEM;
    p = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, r->fd, 0);
    if (p == MAP_FAILED)
        return errno;
    r->file = span_of(p, (size_t)status.st_size);
    return read_ahead(r->file);
}

static void unmap_file(struct recovery *r)
{
    if (r->file.n > 0)
        munmap((void *)(uintptr_t)r->file.p, r->file.n);
    if (r->fd >= 0)
        close(r->fd);
    r->file = (struct span){0};
    r->fd = -1;
}

static struct err *map_segment(struct recovery *r)
{
    int error = map_file(r);

    if (error == 0)
        return NULL;
    return ERR(ERR_STORAGE_FAILURE, "cannot read %s/%s: %s", r->j->directory, r->name,
               strerror(error));
}

static struct err *damaged(const struct recovery *r, uint64_t offset, const char *why)
{
    const char *directory = r->j->directory;

    return ERR(ERR_STORAGE_FAILURE,
               "%s/%s is damaged at offset %" PRIu64 ": %s; restore a backup (`svc-journal verify "
               "%s` tells what can be read)",
               directory, r->name, offset, why, directory);
}

/* The header belongs where it was found. */
static struct err *check_header(const struct recovery *r)
{
    const struct journal *j = r->j;
    const struct segment_header *h = &r->scan.header;
    bool is_first = list_empty(&j->segments);

    if (h->first_serial == 0)
        return damaged(r, 0, "no serial is 0");
    if (h->number != r->number)
        return damaged(r, 0, "the name and the header have different numbers");
    if (!is_first && !uuid_eq(&h->journal, &j->id))
        return damaged(r, 0, "the segment belongs to another journal");
    if (!is_first && h->first_serial != j->next_serial)
        return damaged(r, 0, "it does not begin with the serial where the segment before ends");
    return NULL;
}

static struct err *replay(struct recovery *r, const struct segment_record *record)
{
    struct journal *j = r->j;
    struct journal_place place = {(uint32_t)r->number, (uint32_t)record->offset};
    struct err *e = j->callbacks.on_replay(j->callbacks.context, record, place);

    if (e != NULL)
        return err_prefix(e, "%s/%s, record at offset %" PRIu64 ": ", j->directory, r->name,
                          record->offset);
    j->next_serial = record->serial + record->serials;
    j->stats.replayed_records++;
    return NULL;
}

static void hold_back(struct recovery *r, const struct segment_record *record)
{
    if (r->change_count == r->change_size) {
        r->change_size = MAX(16, 2 * r->change_size);
        r->change = mem_resize(r->change, r->change_size * sizeof(*r->change));
    }
    r->change[r->change_count++] = *record;
}

static struct err *take_record(struct recovery *r, const struct segment_record *record)
{
    if (r->change_count > 0 && record->commit_start)
        return damaged(r, record->offset, "a commit begins within a change");
    if (record->more) {
        hold_back(r, record);
        return NULL;
    }
    for (size_t i = 0; i < r->change_count; i++)
        TRY(replay(r, &r->change[i]));
    r->change_count = 0;
    return replay(r, record);
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

static struct err *cut_tail(struct recovery *r, uint64_t cut, const char *why)
{
    struct journal *j = r->j;
    uint64_t end = r->file.n;

    while (end > cut && r->file.p[end - 1] == 0)
        end--;
    log_warn("journal",
             "%s/%s: cut %" PRIu64 " bytes at offset %" PRIu64
             ", left by an interrupted write (%s)",
             j->directory, r->name, end - cut, cut, why);
    if (!write_zeros(r->fd, cut, end))
        return ERR(ERR_STORAGE_FAILURE, "cannot cut %s/%s: %s", j->directory, r->name,
                   strerror(errno));
    j->stats.cut_bytes = end - cut;
    r->scan.offset = cut;
    return NULL;
}

/* Where the records end: as it should be, in a torn tail, or in damage. */
static struct err *judge_end(struct recovery *r, enum segment_next end)
{
    bool open_change = r->change_count > 0;
    const char *why = end == SEGMENT_BROKEN ? r->scan.why : "the rest of a change is missing";
    uint64_t later;

    if (end == SEGMENT_END && !open_change)
        return NULL;
    if (!r->is_last)
        return damaged(r, r->scan.offset, why);
    if (end == SEGMENT_BROKEN && segment_scan_finds_later(&r->scan, &later)) {
        struct err *e = damaged(r, r->scan.offset, why);

        return err_prefix(e, "there are later commits (offset %" PRIu64 "), but ", later);
    }
    return cut_tail(r, open_change ? r->change[0].offset : r->scan.offset, why);
}

static void add_segment(const struct recovery *r)
{
    struct journal_segment *segment = NEW(struct journal_segment);

    segment->header = r->scan.header;
    segment->named = true;
    segment->sealed = !r->is_last;
    segment->size = r->file.n;
    segment->end = disk_blocks(r->scan.offset);
    segment_file_name(r->number, segment->name);
    list_push_back(&r->j->segments, &segment->link);
    r->j->stats.bytes += segment->size;
}

static struct err *recover_segment(struct recovery *r)
{
    struct segment_record record;
    enum segment_next next;
    struct err *e;

    TRY(map_segment(r));
    e = segment_scan_start(&r->scan, r->file);
    if (e != NULL)
        return err_prefix(e, "%s/%s: ", r->j->directory, r->name);
    TRY(check_header(r));
    r->j->id = r->scan.header.journal;
    r->j->next_serial = r->scan.header.first_serial;
    r->change_count = 0;
    while ((next = segment_scan_next(&r->scan, &record)) == SEGMENT_RECORD)
        TRY(take_record(r, &record));
    TRY(judge_end(r, next));
    add_segment(r);
    return NULL;
}

static struct err *recover_number(struct recovery *r, uint64_t number, bool is_last)
{
    char name[JOURNAL_NAME_BYTES];
    struct err *e;

    segment_file_name(number, name);
    r->name = name;
    r->number = number;
    r->is_last = is_last;
    e = recover_segment(r);
    unmap_file(r);
    return e;
}

static struct err *check_numbers(const struct journal *j, const uint64_t *numbers, size_t count)
{
    char name[JOURNAL_NAME_BYTES];

    if (count > 0 && numbers[count - 1] > UINT32_MAX)
        return ERR(ERR_STORAGE_FAILURE,
                   "%s: a segment has the number %" PRIu64 ", which is too high", j->directory,
                   numbers[count - 1]);
    for (size_t i = 1; i < count; i++) {
        if (numbers[i] == numbers[i - 1] + 1)
            continue;
        segment_file_name(numbers[i - 1] + 1, name);
        return ERR(ERR_STORAGE_FAILURE,
                   "%s/%s is missing, though there are segments before and after it; restore a "
                   "backup",
                   j->directory, name);
    }
    return NULL;
}

/* A name without content: the file was made, and nothing of it reached the disk. */
static struct err *drop_empty_file(struct journal *j, const uint64_t *numbers, size_t *count)
{
    char name[JOURNAL_NAME_BYTES];
    struct recovery r = {.j = j, .name = name, .is_last = true, .fd = -1};
    struct err *e = NULL;

    if (*count == 0 || (*count == 1 && numbers[0] != 1))
        return NULL;
    segment_file_name(numbers[*count - 1], name);
    e = map_segment(&r);
    if (e == NULL && segment_blank(r.file)) {
        log_warn("journal", "%s/%s is empty, left by an interrupted start of a segment: removed",
                 j->directory, name);
        journal_unlink(j, name);
        --*count;
    }
    unmap_file(&r);
    return e;
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
    log_warn("journal", "%.*s", SPAN_FMT(err_message(e)));
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

static struct err *recover_all(struct journal *j, const uint64_t *numbers, size_t count)
{
    struct recovery r = {.j = j, .fd = -1};
    struct err *e = check_numbers(j, numbers, count);

    if (e == NULL)
        e = drop_empty_file(j, numbers, &count);
    for (size_t i = 0; e == NULL && i < count; i++)
        e = recover_number(&r, numbers[i], i + 1 == count);
    mem_free(r.change);
    return e;
}

struct err *journal_recover(struct journal *j)
{
    uint64_t started_ns = clock_mono_ns();
    uint64_t *numbers;
    size_t count;
    struct err *e;

    TRY(journal_directory_list(j, &numbers, &count));
    e = recover_all(j, numbers, count);
    mem_free(numbers);
    if (e != NULL)
        return e;
    j->stats.replay_ns = clock_mono_ns() - started_ns;
    j->committed_serial = j->next_serial - 1;
    return list_empty(&j->segments) ? NULL : open_last(j);
}
