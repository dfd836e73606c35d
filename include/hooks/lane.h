/* Lanes. A lane is a webhook's queue of deliveries, with limits and a clock of its own, so that no
 * receiver delays another. It exists while it has deliveries or remembers something, and is always
 * in one state, in whose list it stands. (t): the state ends at a time.
 *
 *     at rest: looked at again when something happens (event, outcome, change of its webhook)
 *   .-------------.
 *   | IDLE        |      nothing is queued, the webhook is paused, or deliveries are stopped
 *   | FULL        |      as many attempts are under way as it may have
 *   | WAITING  (t)|      all that is queued waits for its retry time
 *   | HELD     (t)|      its receiver asked to wait (Retry-After)
 *   | UNVERIFIED(t)      its receiver has not agreed yet (Verify)
 *   | THROTTLED(t)|      RatePerSecond is used up
 *   '-------------' <----------------------------------------------------------.
 *      |  what is next may start, for all that the lane has to do with it      |
 *      v                                                                       |
 *     in line: left alone until its turn comes, then looked at again           |
 *   .-------------.                                                            |
 *   | UNCOMMITTED |--.     the event that is next is not on disk yet           |
 *   | READING  (t)|--|     its payload is not in memory: it is being read back |
 *   | CROWDED  (t)|--|     bodies under way leave no room for its body
 *   | READY       |<-'-.   it stands in the scheduler's ring                   |
 *   | UNPROVED    |----|   it has ended no attempt; its like have their slots, | it may not,
 *   | SLOW        |----|   its last attempt took long; or its account's have   | after all
 *   | SATED       |----|   its account has its half of all slots               |
 *   | PARKED      |--. |   its host has as many attempts as it may             |
 *   | CALLED      |<-'-|   in the ring too; its host keeps a place for it      |
 *   '-------------' -----------------------------------------------------------|
 *                      | its turn                                              |
 *   .-------------.    |                                                       |
 *   | STARTING    |<---'   local requests of an attempt may change anything    |
 *   '-------------' -----------------------------------------------------------'
 *   .-------------.
 *   | DYING       |      from any state: its webhook is deleted; its deliveries are dropped, some
 *   '-------------'      each turn, then it is freed
 *
 * A look at the lane (lane_blocked_by) tells where it belongs, and it goes there at once. Accounts
 * have one start each, then go to the end of the ring, and so do the lanes of each, a bounded
 * number a turn: an account with a million lanes and one with a single lane wait equally long, and
 * so do a lane with a million deliveries and one with a single delivery beside it. */
#ifndef HOOKS_LANE_H
#define HOOKS_LANE_H

#include "base/span.h"

struct account;
struct arena;
struct buf;
struct collection;
struct conditions;
struct lane;
struct change;
struct deliveries;
struct delivery;
struct uuid;
struct webhook;
struct worst_entry;

/* Symbol, name, and where it may go. */
#define LANE_STATES(X)                                                                             \
    X(LANE_IDLE, "Idle", LANE_LOOK)                                                                \
    X(LANE_FULL, "Full", LANE_LOOK)                                                                \
    X(LANE_WAITING, "Waiting", LANE_LOOK)                                                          \
    X(LANE_HELD, "Held", LANE_LOOK)                                                                \
    X(LANE_UNVERIFIED, "Unverified", LANE_LOOK)                                                    \
    X(LANE_THROTTLED, "Throttled", LANE_LOOK)                                                      \
    X(LANE_UNCOMMITTED, "Uncommitted", LANE_LOOK)                                                  \
    X(LANE_READING, "Reading", LANE_LOOK)                                                          \
    X(LANE_CROWDED, "Crowded", LANE_LOOK)                                                          \
    X(LANE_UNPROVED, "Unproved", LANE_LOOK | SM_TO(LANE_STARTING))                                 \
    X(LANE_SLOW, "Slow", LANE_LOOK | SM_TO(LANE_STARTING))                                         \
    X(LANE_SATED, "Sated", LANE_LOOK | SM_TO(LANE_STARTING))                                       \
    X(LANE_READY, "Ready", LANE_LOOK | SM_TO(LANE_STARTING))                                       \
    X(LANE_PARKED, "Parked", LANE_LOOK | SM_TO(LANE_CALLED))                                       \
    X(LANE_CALLED, "Called", LANE_LOOK | SM_TO(LANE_STARTING))                                     \
    X(LANE_STARTING, "Starting", LANE_LOOK)                                                        \
    X(LANE_DYING, "Dying", 0)

/* Where a look at it may lead, which is to all states down to PARKED, and the end. */
#define LANE_LOOK ((SM_TO(LANE_PARKED + 1) - 1) | SM_TO(LANE_DYING))

enum lane_state {
#define LANE_AS_ENUM(symbol, name, moves) symbol,
    LANE_STATES(LANE_AS_ENUM)
#undef LANE_AS_ENUM
        LANE_STATE_COUNT
};
extern const struct sm_table lane_machine;

/* Why nothing starts, in the order in which it is asked, and where the lane then belongs. */
#define LANE_REASONS(X)                                                                            \
    X(LANE_STOPPED, LANE_IDLE) /* deliveries have not begun, or are over */                        \
    X(LANE_PAUSED, LANE_IDLE)                                                                      \
    X(LANE_EMPTY, LANE_IDLE)                                                                       \
    X(LANE_BEFORE_RETRY, LANE_WAITING)                                                             \
    X(LANE_IN_ORDER, LANE_FULL) /* ordered, and its first is under way */                          \
    X(LANE_AT_MAX_IN_FLIGHT, LANE_FULL)                                                            \
    X(LANE_AT_WINDOW, LANE_FULL) /* what its receiver is trusted with by now (pacing.h) */         \
    X(LANE_ON_HOLD, LANE_HELD)                                                                     \
    X(LANE_AT_RATE, LANE_THROTTLED)                                                                \
    X(LANE_NOT_ON_DISK, LANE_UNCOMMITTED)                                                          \
    X(LANE_NO_CONSENT, LANE_UNVERIFIED) /* lane_consent.h; it is asked when this is free */        \
    X(LANE_NOT_READ, LANE_READING)                                                                 \
    X(LANE_AT_HOST, LANE_PARKED)                                                                   \
    X(LANE_AS_UNPROVED, LANE_UNPROVED)                                                             \
    X(LANE_AS_SLOW, LANE_SLOW)                                                                     \
    X(LANE_AT_BODY_BYTES, LANE_CROWDED)                                                            \
    X(LANE_UNPROVED_AT_HALF, LANE_UNPROVED) /* its account has its half of these */                \
    X(LANE_SLOW_AT_HALF, LANE_SLOW)                                                                \
    X(LANE_AT_HALF, LANE_SATED) /* or of all slots */                                              \
    X(LANE_AT_ALL_SLOTS, LANE_READY)                                                               \
    X(LANE_FREE, LANE_READY) /* nothing: it starts when its turn comes */

enum lane_reason {
#define LANE_AS_REASON(symbol, state) symbol,
    LANE_REASONS(LANE_AS_REASON)
#undef LANE_AS_REASON
};

#define LANE_NEVER UINT64_MAX

struct lane_block {
    enum lane_reason reason;
    uint64_t at_ms; /* when it is over, loop clock; LANE_NEVER: when something has happened */
};

/* The one place that says why nothing starts, for the scheduler and for Status alike. It changes
 * nothing. Of several times that have to pass it names the last. Not for a lane that is dying. */
struct lane_block lane_blocked_by(const struct lane *lane);

/* Appends a webhook's hidden property Status: how it is doing and why (webhook_status.h). */
void lane_add_status(const struct webhook *w, struct buf *b);

/* How many of the webhooks have a Status.State for which the conditions hold. False, and nothing is
 * written, when a condition is about something else, or when so many webhooks are no quick work. */
bool lanes_count_states(struct collection *webhooks, const struct conditions *conditions,
                        struct arena *a, size_t *out_count);

/* Whose it is: one of hooks.worst. */
struct lane *lane_of_worst(struct worst_entry *entry);

/* Lanes and their deliveries, for listings. Those of deleted webhooks are not found any more. */
struct lane *lane_find(const struct deliveries *d, const struct uuid *webhook_id);
struct lane *lane_first(const struct deliveries *d);
struct lane *lane_next(const struct deliveries *d, const struct lane *lane);
const struct uuid *lane_webhook_id(const struct lane *lane);
struct delivery *lane_first_delivery(const struct lane *lane);
struct delivery *lane_next_delivery(const struct lane *lane, const struct delivery *delivery);
/* Its deliveries that have not ended. */
size_t lane_pending(const struct lane *lane);
/* NULL: it is deleted. */
struct webhook *lane_webhook(const struct lane *lane);
/* The webhook's tenant; empty: it has none, or is deleted. */
struct span lane_tenant(const struct lane *lane);
/* In whose name it is. Not during a replay. */
struct account *lane_account(const struct lane *lane);
/* The webhook is deleted, the deliveries are being dropped. */
bool lane_is_dying(const struct lane *lane);

/* Nothing of it is sent before this time, which the receiver has asked for; 0: it has not. */
int64_t lane_held_until_ns(const struct lane *lane);

/* Adds to a change: failures so far do not pause the webhook any more, and when it goes to another
 * receiver, what the one before has asked for (Retry-After) does not hold it. */
void lane_start_over(struct change *change, const struct lane *lane, bool is_other_receiver);
/* Adds to a change: the webhook's next success is told. */
void lane_add_trouble(struct change *change, const struct webhook *w);
/* May the dead deliveries of a change be told of, of which the webhook has so many? */
bool lane_may_tell(const struct webhook *w, unsigned deaths);

#endif
