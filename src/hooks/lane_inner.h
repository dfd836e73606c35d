/* A lane from inside, for its own files: lane.c (the machine and the scheduler), lane_queue.c
 * (which delivery is next, and when), lane_host.c (how many attempts to one host), share.c (how
 * many of one account), lane_record.c (what it remembers of outcomes), lane_life.c (from the
 * first delivery to the last, and the settings). */
#ifndef HOOKS_LANE_INNER_H
#define HOOKS_LANE_INNER_H

#include "base/uuid.h"
#include "delivery_inner.h"
#include "hooks/notice.h"
#include "io/timer.h"
#include "webhook/pacing.h"
#include "webhook/worst.h"

struct lane_origin;
struct pacing_outcome;
struct store_kind;

enum { LANE_RECENT_MOST = 64 };

/* How a webhook's attempts ended since the start of the process, or of the lane. */
struct lane_history {
    uint64_t recent;       /* one bit an attempt, the last one lowest: was it a success? */
    unsigned recent_count; /* of these, at most LANE_RECENT_MOST */
    int64_t success_unix_ns, failure_unix_ns; /* the last of each; 0: none */
    char *error;                              /* of the last failure; NULL: none */
};

struct lane {
    struct list_link link;       /* in the list of all lanes, unless it is dying */
    struct list_link state_link; /* in that of its state */
    uint8_t state;               /* enum lane_state */
    bool ordered;
    bool is_troubled; /* the server paused its webhook, or a delivery died: its next success is told
                       */
    struct timer timer; /* in states that end at a time */
    struct uuid webhook_id;
    struct webhook *webhook;      /* NULL: dying */
    struct list all;              /* its deliveries, in the order in which they came */
    struct heap pending, waiting; /* by rank */
    uint32_t in_flight;
    struct pacing pacing;
    struct lane_origin *origin; /* of the destination; NULL: it is local */
    bool needs_consent;         /* of its receiver, before anything is sent: lane_consent.h */
    bool makes_bodies;          /* each attempt its own, of a length that is not known before */
    uint64_t made_bytes;        /* of the last one */
    struct share *share;        /* its account's; NULL during a replay */
    int64_t failing_since_unix_ns, hold_until_unix_ns;
    uint64_t hold_until_ms; /* loop clock */
    struct lane_history history;
    struct notice_hand notices;     /* of dead deliveries */
    struct worst_entry worst;       /* known to hooks.worst */
    struct lane_consent *consent;   /* NULL: nobody has to agree */
    struct lane_settings *settings; /* kept for the next attempts; NULL: none */
    struct stored stored;           /* of its RECORD_LANE, when there is one */
    struct deliveries *deliveries;
};

/* lane.c */
/* The one mover: its list, its timer, and a place that was kept for it. `at_ms`: when the state
 * ends, of those that end at a time. */
void lane_move(struct lane *lane, enum lane_state next, uint64_t at_ms);
/* Does it stand in its account's line? */
bool lane_is_in_line(const struct lane *lane);
/* So many attempts more, or fewer, have one of the slots that all webhooks share. */
void lane_take_slots(struct lane *lane, int more);
/* Takes an outcome into account, and what its pace is from now on. */
void lane_pace(struct lane *lane, const struct pacing_outcome *outcome);
/* All of what drives them: begins; starts nothing more; is over. */
void scheduler_init(struct deliveries *d);
void scheduler_stop(struct deliveries *d);
void scheduler_done(struct deliveries *d);
/* Something is DYING: has lanes_reap called until nothing is. */
void lanes_reap_soon(struct deliveries *d);
/* Its time has come. */
void lane_on_time(struct timer *timer);

/* lane_queue.c */
heap_less_fn lane_rank_less;
uint64_t lane_now_ms(const struct lane *lane);
/* What is started next: a WAITING one when none is PENDING, or ordered, when that comes first.
 * NULL: nothing is queued. */
const struct delivery *lane_head(const struct lane *lane);
/* The WAITING one that is attempted first, or NULL. Its rank: when it is due, loop clock, ms. */
struct delivery *lane_first_waiting(const struct lane *lane);
/* Those whose time has come become PENDING. */
void lane_promote(struct lane *lane);
void lane_set_ordered(struct lane *lane, bool ordered);
/* After a replay: has the journal the events of its deliveries? *latest_unix_ns becomes the latest
 * time that it knows of, if that is later. ERR_STORAGE_FAILURE. */
struct err *lane_check_events(const struct lane *lane, int64_t *latest_unix_ns) MUST_USE;
/* After a replay: when the wall clock is behind the latest time that is known, waits count from
 * there. */
void lanes_count_waits(struct deliveries *d, int64_t latest_unix_ns);
/* Of the next record. */
uint64_t lanes_next_serial(const struct deliveries *d);

/* lane_record.c */
extern const struct store_kind lane_kind; /* context: the deliveries */

/* lane_life.c */
/* Drops some of what is DYING, which is something. */
void lanes_reap(struct deliveries *d);
/* After a replay (store_kind.loaded); an error refuses the journal. `context`: the deliveries. */
struct err *lanes_loaded(void *context) MUST_USE;

#endif
