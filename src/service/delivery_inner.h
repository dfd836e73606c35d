/* Shared by the files of delivery: delivery.c (objects and their records), delivery_lane.c (queues
 * and the scheduler), delivery_host.c (how many attempts to one host), delivery_attempt.c (one
 * attempt, from settings to outcome). */
#ifndef SERVICE_DELIVERY_INNER_H
#define SERVICE_DELIVERY_INNER_H

#include "service/delivery.h"
#include "service/service.h"
#include "service/sign.h"

struct deliveries {
    struct service *service;
    struct map by_no;
    struct map lanes_by_id;
    struct list lanes;
    struct list ended;         /* deliveries, oldest end first */
    struct list not_ended;     /* the others, in the order in which they came */
    struct list ready;         /* lanes that may start one: the scheduler's ring */
    struct list unknown, slow; /* lanes that may, when fewer such as they have slots */
    struct list uncommitted;   /* lanes whose next delivery is not on disk yet */
    struct turn_wait commit;   /* for those */
    struct map hosts;          /* struct delivery_host by origin */
    struct list dying;         /* lanes of deleted webhooks, dropped in slices */
    struct loop_task starter, reaper;
    struct list idle_attempts; /* kept for the next ones, a bounded number */
    struct list settings;      /* of lanes, the one used last at the end, a bounded number */
    size_t count[DELIVERY_STATE_COUNT];
    size_t unproved_in_flight; /* attempts of lanes that are not prompt */
    uint64_t version;
    bool is_started;
    uint64_t started_ms;      /* loop clock */
    uint64_t first_no;        /* whatever is older was there before the start */
    struct response response; /* of local requests, which are evaluated one at a time */
};

/* delivery.c */
void delivery_set_state(struct delivery *delivery, enum delivery_state next);
/* Frees without a record; an attempt under way is cancelled. */
void delivery_drop(struct delivery *delivery);
void delivery_add_record(struct change *change, const struct record_delivery *record);
struct record_delivery delivery_record(const struct delivery *delivery);
void lane_add_record(struct change *change, const struct lane *lane, int64_t failing_since_unix_ns,
                     int64_t hold_until_unix_ns);

/* delivery_lane.c */
struct lane *lane_get(struct deliveries *d, const struct uuid *webhook_id);
/* Frees the lane when nothing keeps it. */
void lane_release(struct lane *lane);
/* Frees it with its deliveries, all at once. */
void lane_discard(struct lane *lane);
/* Reads the webhook's limits again. */
void lane_configure(struct lane *lane);
/* Puts a delivery into the queue of its state. */
void lane_enqueue(struct lane *lane, struct delivery *delivery);
void lane_dequeue(struct lane *lane, struct delivery *delivery);
/* Nothing is started before this; a time that has passed: no hold. */
void lane_hold(struct lane *lane, int64_t until_unix_ns);
/* After a replay: as if the wall clock stood at `now_unix_ns` (it was set back). */
void lane_count_waits_from(struct lane *lane, int64_t now_unix_ns);
/* What may be started now is put into the ring; otherwise the timer is set for when it may. */
void lane_update(struct lane *lane);
/* Narrows or widens the lane's window. A receiver that hangs or refuses holds few of the slots that
 * all webhooks share, and one that comes back meets its backlog a little at a time: each success
 * doubles what it is trusted with, up to MaxInFlight, and each failure halves it. */
void lane_note_outcome(struct lane *lane, bool is_success);
/* Of the slots that all webhooks share one is taken, or free again, however its attempt ended. */
void lane_take_slot(struct lane *lane);
void lane_free_slot(struct lane *lane);
/* How long an attempt took. A quarter of the slots is not for lanes whose last one took long, half
 * of that neither for those that have made none: however many receivers hang or are slow, those
 * that answer promptly are not held up. */
void lane_note_time(struct lane *lane, uint64_t ms);
void lanes_init(struct deliveries *d);
void lanes_done(struct deliveries *d);
heap_less_fn lane_rank_less;

/* From where it is parked into the ring. */
void lane_call(struct lane *lane);

/* delivery_host.c */
void hosts_init(struct deliveries *d);
void hosts_done(struct deliveries *d);
/* Of an origin: to be put back. */
struct delivery_host *host_get(struct deliveries *d, struct span origin);
/* NULL is allowed. */
void host_put(struct delivery_host *host);
/* May the lane start an attempt? */
bool host_admits(const struct lane *lane);
/* Where lanes stand that it does not admit. */
struct list *host_parked(struct delivery_host *host);
/* The lane has had its turn, or left: a place that was kept for it is another's. */
void host_uncall(struct lane *lane);
/* An attempt of the lane begins; NULL when its destination is local. */
struct delivery_host *host_enter(struct lane *lane);
/* It has ended. NULL is allowed. */
void host_leave(struct delivery_host *host);

/* delivery_settings.c */
struct delivery_settings {
    struct list_link link; /* while they are the lane's */
    struct lane *lane;
    unsigned refs;
    uint64_t version; /* of the webhook */
    struct webhook_settings webhook;
    struct signer *signer; /* NULL: not needed yet */
    struct arena arena;
};
/* As the webhook is now; to be put back. */
struct delivery_settings *settings_get(struct lane *lane);
/* NULL is allowed. */
void settings_put(struct delivery_settings *settings);
/* The lane is about to go. */
void settings_forget(struct lane *lane);

/* delivery_attempt.c */
void attempt_start(struct deliveries *d, struct delivery *delivery);
void attempt_cancel(struct attempt *attempt);
void attempts_done(struct deliveries *d);

#endif
