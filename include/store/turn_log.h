/* The turn in a cluster: what is changed is in the log (journal/replica.h) before it is in the
 * journal, and in the journal before anybody is told. docs/design/cluster.md says why it is safe.
 *
 *   leader     turn_apply --> memory, and a write of the journal that gathers, and a batch
 *              turn end   --> the batch goes to the log, unless one is under way
 *              confirmed  --> the journal writes the same records; then waits are released
 *              late       --> who waits is told so (turn_wait.on_late); nothing more is changed
 *              declined   --> the same, and memory is ahead of the log for ever: on_lost
 *   follower   a batch    --> change by change through turn_apply; once the journal has it on disk,
 *              the log is told (replica_taken)
 *
 * A server that is alone has none of this. */
#ifndef STORE_TURN_LOG_H
#define STORE_TURN_LOG_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

struct change;
struct replica;
struct replica_batch;
struct turn;

struct turn_log_callbacks {
    /* Once: memory holds what the log does not have and never will. Whoever waits for it has been
     * told; nothing is changed any more. */
    void (*on_lost)(void *context, const char *why);
    /* Changes of others have been applied; never from inside a change. */
    void (*on_followed)(void *context);
    /* A follower does not get on: a record of a kind that this version does not know (it stays so),
     * no room on the disk (it is tried again); or it does again, then `why` is NULL. */
    void (*on_stuck)(void *context, const char *why);
    void *context;
};

/* After turn_open, before any change: `replica` begins where the journal ends. Borrowed; it is told
 * with turn_log_end that it is not there any more. */
void turn_log_begin(struct turn *t, struct replica *replica,
                    const struct turn_log_callbacks *callbacks);
/* The replica is about to be freed: changes are refused from now on. */
void turn_log_end(struct turn *t);

/* Are changes carried out here and now? Of a server that is alone: always. */
bool turn_takes_changes(const struct turn *t);
/* It leads, and the log has not confirmed in time. */
bool turn_log_is_late(const struct turn *t);
/* A change was refused because a node that lives does not know records of this kind, and so would
 * it be now: kind and node. 0: there is none. */
unsigned turn_log_holds_back(const struct turn *t, struct span *out_node);
/* No change is carried out any more; what was goes on its way. */
void turn_log_close(struct turn *t);
/* Is nothing left to be confirmed, and is what was confirmed in the journal, and everybody told who
 * waits in vain? */
bool turn_log_is_settled(const struct turn *t);
bool turn_log_is_under_way(const struct turn *t);

/* replica_callbacks.on_batch. */
void turn_log_take(struct turn *t, const struct replica_batch *batch);
/* It led, and nothing of its batches is under way any more: what was never sent is lost. */
void turn_log_led(struct turn *t);

#endif
