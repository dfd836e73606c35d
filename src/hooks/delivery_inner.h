/* Shared by the files of delivery: delivery.c (objects and their records), delivery_attempt.c (one
 * attempt, from settings to outcome), and the lanes', which have more in lane_inner.h. */
#ifndef HOOKS_DELIVERY_INNER_H
#define HOOKS_DELIVERY_INNER_H

#include "base/map.h"
#include "hooks/lane.h"
#include "hooks/pacing.h"
#include "rest/response.h"
#include "store/turn.h"

struct record_delivery;
struct lane_origin;

struct deliveries {
    struct hooks *hooks;
    struct map by_no;
    struct list ended;     /* deliveries, oldest end first */
    struct list not_ended; /* the others, in the order in which they came */
    size_t count[DELIVERY_STATE_COUNT];
    uint64_t version;
    struct map lanes_by_id;
    struct list lanes;                      /* but those that are dying */
    struct list lanes_in[LANE_STATE_COUNT]; /* by state: see lane_move */
    struct turn_wait commit;                /* for those that are UNCOMMITTED */
    struct map hosts;                       /* struct lane_host by address */
    struct list settings;                   /* struct lane_settings, the one used last at the end */
    size_t not_prompt_in_flight;            /* attempts of lanes that are slow or unproved */
    struct loop_task starter, reaper;
    bool is_starting;             /* the starter runs: it sees for itself what becomes ready */
    bool is_started;              /* see deliveries_start */
    uint64_t started_ms;          /* loop clock */
    uint64_t first_no;            /* whatever is older was there before the start */
    struct list idle_attempts;    /* kept for the next ones, a bounded number */
    struct list stopped_attempts; /* ended without a fetch: see attempts_record */
    struct response response;     /* of local requests, which are evaluated one at a time */
};

/* delivery.c */
/* The one mover. */
void delivery_move(struct deliveries *d, struct delivery *delivery, enum delivery_state next);
void delivery_add_record(struct change *change, const struct record_delivery *record);
struct record_delivery delivery_record(const struct delivery *delivery);
/* Frees without a record; an attempt under way is cancelled. */
void delivery_drop(struct deliveries *d, struct delivery *delivery);

/* lane.c */
/* Something has changed in its queue, or in what it has under way. */
void lane_update(struct lane *lane);

/* lane_queue.c */
/* One more / one less, of any state. */
void lane_add(struct lane *lane, struct delivery *delivery);
void lane_remove(struct lane *lane, struct delivery *delivery);
/* One that has not ended comes to its state, or leaves it: to the queue of what is PENDING, or
 * WAITING, or IN_FLIGHT to one of the slots that all webhooks share. */
void lane_enter(struct lane *lane, struct delivery *delivery);
void lane_leave(struct lane *lane, struct delivery *delivery);

/* lane_life.c */
struct lane *lane_get(struct deliveries *d, const struct uuid *webhook_id);
/* Frees it when nothing keeps it. */
void lane_release(struct lane *lane);
const struct uuid *lane_webhook_id(const struct lane *lane);
void lanes_init(struct deliveries *d);
void lanes_done(struct deliveries *d);

/* lane_record.c */
struct lane_outcome {
    struct pacing_outcome paced;
    struct retry_decision decision;
    double disable_after_days;
    int64_t started_unix_ns, ended_unix_ns;
    struct span error;
};
extern const struct store_kind lane_kind; /* context: the deliveries */
/* Adds to the change that records an outcome what the lane remembers of it, and when it is the end
 * of the receiver, that the webhook is paused. */
void lane_add_outcome(struct change *change, const struct lane *lane, const struct lane_outcome *o);
/* When that is applied. */
void lane_note_outcome(struct lane *lane, const struct lane_outcome *o);

/* lane_settings.c */
struct lane_settings {
    struct list_link link; /* while they are the lane's */
    struct lane *lane;
    unsigned refs;
    uint64_t version; /* of the webhook */
    struct webhook_settings webhook;
    struct signer *signer; /* NULL: not needed yet */
    struct arena arena;
};
/* As the webhook is now; to be put back. */
struct lane_settings *lane_settings_get(struct lane *lane);
/* NULL is allowed. */
void lane_settings_put(struct lane_settings *settings);

/* lane_host.c */
/* NULL: its destination is local. */
struct fetch_origin *lane_origin_fetch(const struct lane_origin *origin);
/* A connection to it was made: it may lead elsewhere than before. */
void lane_origin_connected(struct lane_origin *origin);
/* An attempt has ended: its place is free. NULL is allowed. */
void lane_origin_leave(struct lane_origin *origin);

/* delivery_attempt.c */
/* `origin`: of its lane, with a place that is the attempt's now; NULL when it is local. */
void attempt_start(struct deliveries *d, struct delivery *delivery, struct lane_origin *origin);
void attempt_cancel(struct attempt *attempt);
/* Records the outcomes of those that ended while they were started. */
void attempts_record(struct deliveries *d);
void attempts_done(struct deliveries *d);

#endif
