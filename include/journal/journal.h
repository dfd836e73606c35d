/* The append-only journal: one sequence of records in segment files of a fixed size, filled with
 * zeros ahead of use. It knows serial numbers, changes (groups of records that hold together) and
 * commits (one write each); what a record means is the store's business.
 *
 * One commit is under way at a time; what is appended meanwhile gathers for the next. A failed
 * write or sync is final: the journal says so once (on_failed) and takes nothing any more. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "base/macros.h"
#include "base/span.h"

struct buf;
struct histogram;
struct journal;
struct journal_options; /* journal_options.h */
struct journal_place;
struct loop;
struct segment_record;

struct journal_callbacks {
    /* Recovery, before journal_open returns: every record in order. An error refuses the journal.
     */
    struct err *(*on_replay)(void *context, const struct segment_record *record,
                             struct journal_place place);
    /* Everything up to and including this serial is committed. The same as before, after a commit
     * of nothing but records that take none. */
    void (*on_commit)(void *context, uint64_t serial);
    /* A write or a sync failed; nothing later is or will be acknowledged. */
    void (*on_failed)(void *context, const char *what, int error_number);
    void *context;
};

/* Locks the directory, recovers, and is ready to append. A torn tail of the last segment is cut
 * and logged. Errors ERR_STORAGE_FAILURE, naming file and offset: damage in the middle, a missing
 * segment, a newer format, a directory in use. */
struct err *journal_open(struct loop *loop, const struct journal_options *options,
                         const struct journal_callbacks *callbacks,
                         struct journal **out_journal) MUST_USE;
/* Commits nothing more; what was submitted is waited for (blocking). NULL is allowed. */
void journal_close(struct journal *j);

/* Serial of the next record to be appended. */
uint64_t journal_next_serial(const struct journal *j);

/* What must still fit after a change. */
struct journal_left {
    uint64_t spare; /* changes to come; one that is committed alone takes whole blocks of 4096 */
    uint64_t moves; /* what cleaning takes with it from a segment: journal_moved_bytes */
};

/* Room for `bytes` more, after which `left` would still fit; NULL: nothing has to.
 * ERR_STORAGE_FAILURE (507) when the disk has no room, ERR_OVERLOADED (503) when it is so slow that
 * several segments wait to be written. Nothing is changed. */
struct err *journal_reserve(struct journal *j, size_t bytes,
                            const struct journal_left *left) MUST_USE;

/* Is a second segment ready for such room? */
bool journal_has_reserve(const struct journal *j);
/* Gives it back, once the first one has the room and an eighth of a segment more. */
void journal_release(struct journal *j, const struct journal_left *left);

struct journal_record {
    uint16_t kind;
    uint32_t serials; /* 0: a copy of what an earlier record says, which cleaning has made; it takes
                         no serial, so that whoever counts serials does not see it. Its own is that
                         of the record to come */
    struct span body; /* copied */
};
/* Appends the records of one change, which take `bytes` (segment_record_bytes of each): after a
 * crash all are there or none. Returns the serial of the first; places, when not NULL, gets one per
 * record. Nothing is written before journal_commit. Room must have been reserved, or be there; a
 * change larger than a segment gets a segment of its size. */
uint64_t journal_append(struct journal *j, const struct journal_record *records, size_t count,
                        size_t bytes, struct journal_place *places);
/* The same in pieces, for a change that is long: nothing is the journal's before journal_draft_end,
 * and until then, or journal_draft_drop, nothing else is appended. `bytes`: of all its records. */
void journal_draft_begin(struct journal *j, size_t bytes);
/* Its place. `more`: another will follow. */
struct journal_place journal_draft_add(struct journal *j, const struct journal_record *record,
                                       bool more);
/* Returns the serial of the first. */
uint64_t journal_draft_end(struct journal *j);
/* None is allowed. */
void journal_draft_drop(struct journal *j);
/* Starts writing what has been appended unless a commit is under way; that one's completion starts
 * the next. Called once a turn. */
void journal_commit(struct journal *j);
/* For who decides what may be written: what is appended from now on goes into another write than
 * what was before. Returns what to give journal_commit_to, which is journal_commit for what was
 * appended before the cut alone. Never 0. */
uint64_t journal_cut(struct journal *j);
void journal_commit_to(struct journal *j, uint64_t cut);
bool journal_idle(const struct journal *j);
uint64_t journal_committed_serial(const struct journal *j);
/* How many changes have been appended since the start, and up to which of them all are committed:
 * what serials do not tell of records that take none. */
uint64_t journal_sequence(const struct journal *j);
uint64_t journal_committed_sequence(const struct journal *j);
/* Is the record at this place committed? False for all once the journal has failed. */
bool journal_has_committed(const struct journal *j, struct journal_place place);

/* Reads a committed record's body back. When it is not in the page cache: with `may_wait` it blocks
 * until the disk has brought it; otherwise *out_there is false, the disk has been asked for it and
 * for what follows it, and a later call will find it. */
struct err *journal_read(struct journal *j, struct journal_place place, bool may_wait,
                         struct buf *out_body, bool *out_there) MUST_USE;

/* Cleaning moves records in commits of at least this, but for the last one of a segment. */
#define JOURNAL_MOVE_BYTES 65536u

/* Room that records of `bytes` take when they are moved: each commit ends with a part of a block.
 * The records of a segment take so little of it that they, moved, fit into one of the same size. */
uint64_t journal_moved_bytes(uint64_t bytes);

/* Would that much fit in one piece into what is allocated? */
bool journal_can_move(const struct journal *j, uint64_t moved_bytes);
/* What the records of the largest segment take at most; 0: all are of the usual size. */
uint64_t journal_largest(const struct journal *j);
/* Numbers of the oldest segment, and of that which records are appended to: it may be the only one.
 */
uint64_t journal_oldest_number(const struct journal *j);
uint64_t journal_newest_number(const struct journal *j);

/* Cleaning. First serial of the segment after the oldest one: when no live record is in the oldest
 * one any more, it may go. 0 while there is only one. (Several may have the same first serial: the
 * records of all but the last of these take none.) */
uint64_t journal_second_first_serial(const struct journal *j);
/* The oldest segment is not needed any more: its file is deleted when everything appended until now
 * is on stable storage, which may be what took the place of its records. A file that cannot be
 * deleted is logged, and tried again every second. */
void journal_drop_oldest(struct journal *j);
/* Is there a file still to be deleted? */
bool journal_is_dropping(const struct journal *j);

struct journal_stats {
    uint64_t commits;
    uint64_t bytes;          /* of all segment files and the one prepared; not of dropped ones */
    uint64_t sealed_bytes;   /* of these, of segments that nothing is written to any more */
    uint64_t appended_bytes; /* since start, padding included */
    uint64_t segments;
    uint64_t replayed_records;
    uint64_t cut_bytes;     /* torn tail found at recovery */
    uint64_t reserve_bytes; /* of these: the second segment that is ready */
    bool full;              /* no room for a change, or soon none: an eighth of a segment is left */
    bool failed;
};
void journal_stats(const struct journal *j, struct journal_stats *out_stats);
/* Each commit's duration is added to it, from now on; it outlives the journal. */
void journal_time_commits(struct journal *j, struct histogram *times);

#endif
