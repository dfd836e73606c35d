/* The files of a journal: its directory, the lock on it, the segments in it, and a walk over their
 * records that changes nothing. Recovery goes this way, and so does svc-journal. */
#ifndef JOURNAL_JOURNAL_FILES_H
#define JOURNAL_JOURNAL_FILES_H

#include "journal/segment.h"

#include <dirent.h>

#define JOURNAL_NAME_BYTES 40

/* Closes the descriptor, unless it is -1, which it is then. errno stays. */
void journal_close_file(int *fd);
/* The lock, which lasts as long as the descriptor and its copies. ERR_STORAGE_FAILURE: another
 * process has it, which the message names. */
struct err *journal_lock(const char *directory, int directory_fd, int *out_lock_fd) MUST_USE;
/* The names in the directory, to be closed by closedir; NULL with errno. A stream of its own:
 * readdir moves the position of its descriptor. */
DIR *journal_names(int directory_fd);
/* The segments' numbers in ascending order (mem_free). */
struct err *journal_list(const char *directory, int directory_fd, uint64_t **out_numbers,
                         size_t *out_count) MUST_USE;
/* ERR_STORAGE_FAILURE when one is missing between others, whose place is *out_place then. */
struct err *journal_check_numbers(const char *directory, const uint64_t *numbers, size_t count,
                                  size_t *out_place) MUST_USE;

/* Where the records of a segment end. */
struct journal_walk_end {
    uint64_t offset; /* of what comes after the last whole change */
    const char *why; /* what is wrong there: an interrupted write left it; NULL: nothing is */
};

struct journal_walk {
    const char *directory;
    int directory_fd;
    /* Called for each record, change by change: of one that is not complete for none. NULL: none.
     * An error ends the walk. */
    struct err *(*on_record)(void *context, const struct segment_record *record);
    void *context;
    /* What was read so far. */
    struct uuid id;
    bool has_begun; /* a segment was read: the next must fit */
    uint64_t next_serial;
    uint64_t records;
    /* The segment read last; mapped until the next one is, or journal_walk_done. */
    uint64_t number;
    char name[JOURNAL_NAME_BYTES];
    struct span file;
    struct segment_scan scan;
    uint64_t record_bytes;         /* of its records that were handed on */
    uint64_t damaged_at;           /* after an error: offset of the change that cannot be read */
    struct segment_record *change; /* records of one whose last has not come yet */
    size_t change_count, change_size;
};

void journal_walk_init(struct journal_walk *w, const char *directory, int directory_fd);
void journal_walk_done(struct journal_walk *w);
/* Reads one segment. ERR_STORAGE_FAILURE: it cannot be read, or is damaged; the message names file,
 * offset and what can be done. A torn end is none, in the last segment. */
struct err *journal_walk_segment(struct journal_walk *w, uint64_t number, bool is_last,
                                 struct journal_walk_end *out_end) MUST_USE;
/* Nothing of this segment ever reached the disk: it is empty, or only zeros. */
struct err *journal_walk_is_blank(struct journal_walk *w, uint64_t number,
                                  bool *out_blank) MUST_USE;

#endif
