/* When the lanes of an account have their turn: what the scheduler posts, and waits for. For
 * lane.c, which it is in, and lane_life.c, which sets it up. */
#ifndef HOOKS_SCHEDULER_H
#define HOOKS_SCHEDULER_H

#include "io/loop.h"
#include "store/turn.h"
#include "store/turn_wait.h"

struct deliveries;

struct scheduler {
    struct deliveries *deliveries;
    struct turn_wait commit; /* for those that are UNCOMMITTED */
    struct loop_task starter, reaper;
    bool is_starting;      /* the starter runs: it sees for itself what becomes ready */
    struct turn_line line; /* while the turn is held nothing starts, or is recorded */
};

/* What runs when the starter's turn has come, a commit has ended, or the turn is not held any more.
 */
void scheduler_on_start(struct loop_task *starter);
void scheduler_on_committed(struct turn_wait *commit);
void scheduler_on_free(struct turn_line *line);

#endif
