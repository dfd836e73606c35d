/* Cleaning the journal. The store lists its objects in the order of the records that hold them.
 * When sealed segments take more than half as much again as what is alive, the objects of the
 * oldest segment are appended again, a slice a turn; when those moves are committed its file is
 * deleted.
 *
 * A record that is moved takes no serial. So nobody but the journal sees it, and each node of a
 * cluster cleans at times of its own while the order of changes is the same on all.
 *
 * That goes on until every segment that was there has been cleaned once: a pass. One that gained
 * nothing, because objects are larger than half a segment for example, is not followed by another
 * before there is a good part of new garbage.
 *
 * On a full disk, one that has refused a change, everything that is garbage counts: a pass follows
 * as long as anything has become garbage since the last one began. It needs no room but what turn.c
 * keeps back for it. A segment that holds nothing alive goes at once, always. */
#ifndef STORE_CLEANER_H
#define STORE_CLEANER_H

#include "base/arena.h"

/* Cleans the segments that were there when it began. */
struct pass {
    bool is_under_way;
    bool was_made;    /* there has been one since the start */
    bool was_in_vain; /* the last one */
    uint64_t end;     /* number of the segment that was the last one when it began */
    /* When it began: in sealed segments what was not alive; what was; the journal's length. */
    uint64_t garbage, live, appended;
    uint64_t moved; /* bytes since then, in whole blocks */
    uint64_t made;  /* turn_garbage when it began */
};

struct cleaner {
    struct turn *turn;
    struct store *store;
    struct journal *journal;
    uint32_t slice_bytes;
    uint64_t moved; /* the last move's journal_sequence; the oldest segment may go when that is
                       committed */
    struct pass pass;
    bool is_full; /* the disk is */
    bool fails;   /* it was said; tried again at every turn end */
    struct arena scratch;
};

/* slice_bytes: moved a turn at most; 0: 64 KiB. All three are borrowed, and open. */
void cleaner_init(struct cleaner *c, struct turn *turn, struct store *store,
                  struct journal *journal, uint32_t slice_bytes);
/* Zeroed is allowed. */
void cleaner_done(struct cleaner *c);
/* At a turn's end, before its commit, when the journal has a second segment. True: there is more to
 * do, and no commit to wait for. What fails, a full disk above all, is logged once and tried again.
 */
bool cleaner_step(struct cleaner *c);

#endif
