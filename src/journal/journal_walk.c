/* A segment is mapped and scanned; the records of a change are held back until its last one is
 * there. What is a torn end and what is damage is told in the opening comment of segment.c. */
#include "journal/journal_files.h"

#include "base/err.h"
#include "base/mem.h"
#include "io/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOKS = 3 };

void journal_walk_init(struct journal_walk *w, const char *directory, int directory_fd)
{
    *w = (struct journal_walk){.directory = directory, .directory_fd = directory_fd};
}

static void unmap(struct journal_walk *w)
{
    if (w->file.n > 0)
        munmap((void *)(uintptr_t)w->file.p, w->file.n);
    w->file = (struct span){NULL, 0};
}

void journal_walk_done(struct journal_walk *w)
{
    unmap(w);
    mem_free(w->change);
    w->change = NULL;
}

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

/* After a sync that failed, the page cache may hold what the disk does not. */
static void read_from_disk(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* 0 or an errno. An empty file is an empty span. */
static int map_file(struct journal_walk *w, int fd, bool is_last)
{
    struct stat status;
    void *p;

    if (fstat(fd, &status) != 0)
        return errno;
    if (status.st_size > UINT32_MAX)
        return EFBIG;
    if (status.st_size == 0)
        return 0;
    if (is_last)
        read_from_disk(fd);
    if (fault_hit("disk.map"))
        return ENOMEM;
    p = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return errno;
    w->file = span_of(p, (size_t)status.st_size);
    return read_ahead(w->file);
}

/* Begins with a segment: *out_fd is its file, -1 after an error. 0 or an errno. */
static int open_segment(struct journal_walk *w, uint64_t number, int *out_fd)
{
    unmap(w);
    w->number = number;
    w->damaged_at = 0;
    segment_file_name(number, w->name);
    *out_fd = openat(w->directory_fd, w->name, O_RDONLY | O_CLOEXEC);
    return *out_fd < 0 ? errno : 0;
}

/* What an errno means; 0 is no error. */
static struct err *end_reading(const struct journal_walk *w, int fd, int error)
{
    journal_close_file(&fd);
    if (error == 0)
        return NULL;
    return ERR(ERR_STORAGE_FAILURE, "cannot read %s/%s: %s", w->directory, w->name,
               strerror(error));
}

static struct err *map_segment(struct journal_walk *w, uint64_t number, bool is_last)
{
    int fd;
    int error = open_segment(w, number, &fd);

    if (error == 0)
        error = map_file(w, fd, is_last);
    return end_reading(w, fd, error);
}

/* The change that is damaged begins where the last whole one ended. */
static struct err *damaged(struct journal_walk *w, uint64_t offset, const char *why)
{
    w->damaged_at = w->change_count > 0 ? w->change[0].offset : offset;
    return ERR(ERR_STORAGE_FAILURE,
               "%s/%s is damaged at offset %" PRIu64 ": %s; restore a backup, or see `svc-journal "
               "repair %s`",
               w->directory, w->name, offset, why, w->directory);
}

/* The header belongs where it was found. */
static struct err *check_header(struct journal_walk *w)
{
    const struct segment_header *h = &w->scan.header;

    if (h->first_serial == 0)
        return damaged(w, 0, "no serial is 0");
    if (h->number != w->number)
        return damaged(w, 0, "the name and the header have different numbers");
    if (w->has_begun && !uuid_eq(&h->journal, &w->id))
        return damaged(w, 0, "the segment belongs to another journal");
    if (w->has_begun && h->first_serial != w->next_serial)
        return damaged(w, 0, "it does not begin with the serial where the segment before ends");
    if (w->has_begun && segment_tells_of_before(h) && h->bytes_before != w->record_bytes)
        return damaged(w, 0, "the segment before does not end where it did when this one began");
    return NULL;
}

static struct err *hand_on(struct journal_walk *w, const struct segment_record *record)
{
    struct err *e = w->on_record == NULL ? NULL : w->on_record(w->context, record);

    if (e != NULL) {
        w->damaged_at = w->change_count > 0 ? w->change[0].offset : record->offset;
        return err_prefix(e, "%s/%s, record at offset %" PRIu64 ": ", w->directory, w->name,
                          record->offset);
    }
    w->next_serial = record->serial + record->serials;
    w->records++;
    w->record_bytes += segment_record_bytes(record->body.n);
    return NULL;
}

static void hold_back(struct journal_walk *w, const struct segment_record *record)
{
    if (w->change_count == w->change_size) {
        w->change_size = MAX(16, 2 * w->change_size);
        w->change = mem_resize(w->change, w->change_size * sizeof(*w->change));
    }
    w->change[w->change_count++] = *record;
}

static struct err *take_record(struct journal_walk *w, const struct segment_record *record)
{
    if (record->more) {
        hold_back(w, record);
        return NULL;
    }
    for (size_t i = 0; i < w->change_count; i++)
        TRY(hand_on(w, &w->change[i]));
    TRY(hand_on(w, record));
    w->change_count = 0;
    return NULL;
}

/* Where the records end: as it should be, in a torn tail, or in damage. */
static struct err *judge_end(struct journal_walk *w, enum segment_next end, bool is_last,
                             struct journal_walk_end *out_end)
{
    bool open_change = w->change_count > 0;
    const char *why = end == SEGMENT_BROKEN ? w->scan.why : "the rest of a change is missing";
    uint64_t later;

    *out_end = (struct journal_walk_end){w->scan.offset, NULL};
    if (end == SEGMENT_END && !open_change)
        return NULL;
    if (!is_last)
        return damaged(w, w->scan.offset, why);
    if (end == SEGMENT_BROKEN && segment_scan_finds_later(&w->scan, &later)) {
        struct err *e = damaged(w, w->scan.offset, why);

        return err_prefix(e, "there are later commits (offset %" PRIu64 "), but ", later);
    }
    *out_end = (struct journal_walk_end){open_change ? w->change[0].offset : w->scan.offset, why};
    return NULL;
}

/* A journal may be walked while its server writes: then what no record was, for want of bytes that
 * came a moment later, is one when it is looked at again. */
static enum segment_next next_record(struct journal_walk *w, struct segment_record *out_record)
{
    enum segment_next next = segment_scan_next(&w->scan, out_record);

    for (unsigned looks = 1; next == SEGMENT_BROKEN && looks < LOOKS; looks++)
        next = segment_scan_next(&w->scan, out_record);
    return next;
}

/* A commit begins where the rest of a change should be. Its serial does not tell, when that rest
 * takes none: what a loss of power has left away are moved records. */
static enum segment_next within_change(struct journal_walk *w, const struct segment_record *record)
{
    w->scan.offset = record->offset;
    w->scan.next_serial = record->serial;
    w->scan.why = "a commit begins within a change";
    return SEGMENT_BROKEN;
}

static struct err *scan_records(struct journal_walk *w, bool is_last,
                                struct journal_walk_end *out_end)
{
    struct segment_record record;
    enum segment_next next;

    while ((next = next_record(w, &record)) == SEGMENT_RECORD) {
        if (record.commit_start && w->change_count > 0) {
            next = within_change(w, &record);
            break;
        }
        TRY(take_record(w, &record));
    }
    return judge_end(w, next, is_last, out_end);
}

struct err *journal_walk_segment(struct journal_walk *w, uint64_t number, bool is_last,
                                 struct journal_walk_end *out_end)
{
    struct err *e;

    w->change_count = 0;
    TRY(map_segment(w, number, is_last));
    e = segment_scan_start(&w->scan, w->file);
    if (e != NULL)
        return err_prefix(e, "%s/%s: ", w->directory, w->name);
    TRY(check_header(w));
    w->id = w->scan.header.journal;
    w->next_serial = w->scan.header.first_serial;
    w->record_bytes = 0;
    w->has_begun = true;
    return scan_records(w, is_last, out_end);
}

/* Reads until there is something: in all but blank files that is the header. 0 or an errno. */
static int look_for_bytes(int fd, bool *out_blank)
{
    char block[SEGMENT_HEADER_BYTES];
    ssize_t n;

    read_from_disk(fd);
    *out_blank = true;
    while (*out_blank && (n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0)
            return errno;
        *out_blank = segment_blank(span_of(block, (size_t)n));
    }
    return 0;
}

struct err *journal_walk_is_blank(struct journal_walk *w, uint64_t number, bool *out_blank)
{
    int fd;
    int error = open_segment(w, number, &fd);

    if (error == 0)
        error = look_for_bytes(fd, out_blank);
    return end_reading(w, fd, error);
}
