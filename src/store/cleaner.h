/* Cleaning the journal. The store lists its objects in the order of the records that hold them.
 * When sealed segments take more than half as much again as what is alive, the objects of the
 * oldest segment are appended again, a slice a turn; when those moves are committed its file is
 * deleted.
 *
 * That goes on until everything has been moved once: a pass. One that gained nothing, because
 * objects are larger than half a segment for example, is not followed by another before there is a
 * good part of new garbage. */
#ifndef STORE_CLEANER_H
#define STORE_CLEANER_H

#include "base/arena.h"

/* Moves everything that was there when it began. */
struct pass {
    bool is_under_way;
    bool was_in_vain; /* the last one */
    uint64_t end;     /* serials from here on came after it began */
    /* When it began: in sealed segments what was not alive; what was; the journal's length. */
    uint64_t garbage, live, appended;
    uint64_t moved; /* bytes since then, in whole blocks */
};

struct cleaner {
    struct turn *turn;
    struct store *store;
    struct journal *journal;
    uint32_t slice_bytes;
    uint64_t moved_serial; /* the last move's; the oldest segment may go when it is committed */
    struct pass pass;
    bool fails; /* it was said; tried again at every turn end */
    struct arena scratch;
};

/* slice_bytes: moved a turn at most; 0: 64 KiB. All three are borrowed, and open. */
void cleaner_init(struct cleaner *c, struct turn *turn, struct store *store,
                  struct journal *journal, uint32_t slice_bytes);
/* Zeroed is allowed. */
void cleaner_done(struct cleaner *c);
/* At a turn's end, before its commit. True: there is more to do, and no commit to wait for. What
 * fails, a full disk above all, is logged once and tried again. */
bool cleaner_step(struct cleaner *c);

#endif
