/* What the files of the journal share: journal_open.c begins and ends it, journal.c appends and
 * commits, journal_room.c keeps room ahead, journal_drop.c deletes, journal_recover.c reads at
 * start, journal_directory.c makes and tidies the directory. What svc-journal needs too is in
 * journal_files.h. */
#ifndef JOURNAL_JOURNAL_PRIVATE_H
#define JOURNAL_JOURNAL_PRIVATE_H

#include "io/timer.h"
#include "journal/journal.h"
#include "journal/journal_files.h"
#include "journal/journal_options.h"

#include <sys/types.h>

#define JOURNAL_SEGMENT_MIN (64u << 10)
#define JOURNAL_SEGMENT_MAX (1u << 30)  /* one write must hold it */
#define JOURNAL_QUEUE_MAX 4             /* batches that wait, each in a segment of its own */
#define JOURNAL_FILL_BYTES (256u << 10) /* zeros written at once */

struct journal_segment {
    struct list_link link;
    struct segment_header header; /* number 0: prepared, not in use yet */
    char name[JOURNAL_NAME_BYTES];
    bool named;             /* has its final name, so may hold something committed */
    bool is_too_long;       /* the file: zeros are on their way to what was cut off */
    bool sealed;            /* nothing is written to it any more */
    struct disk_file *file; /* NULL once sealed */
    uint64_t size;          /* allocated */
    uint64_t end;           /* where the next batch goes; a block offset */
    uint64_t records;       /* bytes of its records, without what fills blocks up */
    uint64_t filled;        /* up to here writing needs no change of the file's metadata */
    uint64_t needed_until;  /* dropped: until the change of this sequence is committed */
    uint64_t uncached;      /* dropped: the kernel was told not to cache it up to here */
};

/* What one write commits: records, in memory that the disk engine can write from. */
struct journal_batch {
    struct list_link link;
    struct journal_segment *segment;
    uint64_t offset; /* in the segment; a block offset */
    char *p;
    size_t size; /* whole blocks */
    size_t n;
    size_t dirty;                           /* from here on the memory is zeros, unless n is more */
    uint64_t first_sequence, last_sequence; /* of its changes: journal_sequence */
    uint64_t first_serial;
    uint64_t end_serial; /* of the record that will follow */
};

/* Filling with zeros ahead of use: one step at most is under way. */
struct journal_fill {
    struct disk_job job;
    struct journal_segment *segment; /* NULL: none is under way */
    uint64_t from, to;
    void *zeros;
};

struct journal {
    struct loop *loop;
    struct journal_callbacks callbacks;
    struct histogram *times; /* of commits; NULL: nobody wants to know */
    enum journal_fsync fsync;
    uint64_t segment_bytes;

    char *directory;
    int directory_fd; /* -1: not open */
    int lock_fd;      /* -1: not locked */
    struct disk *disk;
    struct disk_file *names; /* the directory, to be synced */

    struct uuid id;
    uint64_t next_serial;
    uint64_t committed_serial;
    /* Of changes, in the order in which they were appended. Serials cannot tell: records that
     * cleaning moves take none. */
    uint64_t sequence, committed_sequence;
    uint64_t wanted_sequence; /* a commit of everything up to this was asked for */

    struct list segments;             /* oldest first; records are appended to the last */
    struct journal_segment *written;  /* the one that writes go to; NULL before the first commit */
    struct journal_segment *ahead[2]; /* prepared, in the order of use; NULL: none */
    uint64_t prepared;                /* how many so far: each has a name of its own */
    struct list dropped;      /* segments to be deleted, in order, as soon as that is safe */
    struct loop_task uncache; /* posted while the first of them is cached */
    int uncache_fd;           /* of that one; -1: none */

    struct list batches;             /* oldest first; the first may be under way */
    struct journal_batch *draft;     /* see journal_draft_begin; NULL: none */
    uint64_t draft_serial;           /* of the record that will follow in it */
    struct journal_batch *gathering; /* the last one, when more may be added; or NULL */
    struct list spares;              /* struct journal_batch, empty: the one used last first */

    struct disk_job job; /* of the commit: one step at a time */
    bool busy;           /* it is under way */
    void *header_page;
    bool unsynced; /* something written to `written` is not on stable storage for certain */
    bool sync_due;
    bool names_unsynced;
    struct journal_fill fill;

    struct timer second;  /* runs while one of these, or unsynced, needs it */
    uint64_t no_room_for; /* size of a segment that was refused, the smallest; 0: none. Neither it
                             nor a larger one is tried again before the timer fires */
    /* What was refused last, and is tried again as soon as there may be room: while `full`. */
    uint64_t wanted_bytes;
    struct journal_left wanted_left;
    uint64_t largest; /* size of the largest segment */
    bool drop_failed; /* likewise for deleting */

    struct list copies;     /* struct journal_copy that may keep dropped segments */
    uint64_t dropped_bytes; /* of all segments in `dropped` */

    int read_fd; /* of the segment last read from; -1: none */
    uint64_t read_number;

    struct journal_stats stats;
};

/* Starts whatever can be done now. */
void journal_advance(struct journal *j);
/* Makes journal_on_second run within a second. */
void journal_wait_second(struct journal *j);
void journal_on_second(struct timer *timer);
void journal_free_batches(struct journal *j);
/* Of a link of its list. */
#define SEGMENT_OF(link_ptr) LIST_OBJECT(link_ptr, struct journal_segment, link)
/* NULL when there is none. */
struct journal_segment *journal_last_segment(const struct journal *j);

/* `<directory>/<name>` in `b`, which it clears; valid as long as b stays untouched. */
const char *journal_path(const struct journal *j, const char *name, struct buf *b);
/* Makes the directory when needed, opens and locks it. */
struct err *journal_directory_open(struct journal *j) MUST_USE;
/* Deletes what a killed process prepared. */
struct err *journal_directory_tidy(struct journal *j) MUST_USE;
/* 0 or an errno. */
int journal_rename(struct journal *j, const char *from, const char *to);
int journal_unlink(struct journal *j, const char *name);

/* Replays what is there. Leaves `segments` empty when there is nothing. */
struct err *journal_recover(struct journal *j) MUST_USE;

/* Makes ahead[0] ready, with room for a change of `bytes`. */
struct err *journal_room_prepare(struct journal *j, uint64_t bytes) MUST_USE;
/* Gives the file its size for good, or takes back what was added. */
struct err *journal_room_allocate(struct journal *j, struct journal_segment *segment,
                                  uint64_t size) MUST_USE;
/* Makes ahead[0] the last segment, for a change of so many bytes. */
struct journal_segment *journal_room_take(struct journal *j, uint64_t bytes);
/* How many bytes of records may be added to the segment, wherever they stand; in one commit. */
uint64_t journal_records_left(const struct journal_segment *segment);
uint64_t journal_room_left(const struct journal_segment *segment);
/* Notes that the segment has been forgotten. */
void journal_room_forget(struct journal *j, const struct journal_segment *segment);
/* Prepares a segment ahead when the last one is nearly used, looks whether a full disk still is,
 * and fills ahead. */
void journal_room_keep(struct journal *j);
/* Does the step that is under way touch what this batch will write? */
bool journal_room_fills(const struct journal *j, const struct journal_batch *batch);
void journal_segment_seal(struct journal *j, struct journal_segment *segment);
void journal_segment_free(struct journal_segment *segment);

/* Deletes the first of the dropped segments, of which there are, or prepares that, if it can be
 * done now. */
void journal_drop_advance(struct journal *j);
void journal_on_uncache(struct loop_task *task);
/* Does a copy need that dropped segment? One that may not hold it any longer is lost. */
bool journal_copies_keep(struct journal *j, uint64_t number);

/* As pread; without `may_wait` EAGAIN when it is not cached, where the file system can tell. */
ssize_t journal_read_some(int fd, char *p, size_t n, uint64_t offset, bool may_wait);
/* Forgets a descriptor of that segment. */
void journal_read_forget(struct journal *j, uint64_t number);

#endif
