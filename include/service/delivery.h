/* Deliveries: each event that matched a webhook becomes one, and is attempted until it is
 * delivered, dead or aborted. Every webhook has a lane of its own: queue, limits, clock; a
 * scheduler gives each lane its turn, so that no receiver delays another (architecture.md,
 * "Deliveries").
 *
 *            +---------- retry time, or PATCH ----------+
 *            v                                          |
 *   PENDING ---> IN_FLIGHT ---> WAITING ----------------+
 *      ^             |---> DELIVERED
 *      |             |---> DEAD      (schedule used up, or 410)
 *      |             `---> ABORTED   (custom payload: BreakOnError, BreakOnNoContent; loop;
 *      |                              too large)
 *      `--- PATCH {"State":"Pending"} from DELIVERED, DEAD, ABORTED
 *
 * IN_FLIGHT is not journaled: after a restart it is PENDING again (at-least-once). */
#ifndef SERVICE_DELIVERY_H
#define SERVICE_DELIVERY_H

#include "base/heap.h"
#include "base/sm.h"
#include "io/timer.h"
#include "service/webhook.h"

#define DELIVERY_STATES(X)                                                                         \
    X(DELIVERY_PENDING, "Pending")                                                                 \
    X(DELIVERY_IN_FLIGHT, "InFlight")                                                              \
    X(DELIVERY_WAITING, "Waiting")                                                                 \
    X(DELIVERY_DELIVERED, "Delivered")                                                             \
    X(DELIVERY_DEAD, "Dead")                                                                       \
    X(DELIVERY_ABORTED, "Aborted")

enum delivery_state {
#define DELIVERY_AS_ENUM(symbol, name) symbol,
    DELIVERY_STATES(DELIVERY_AS_ENUM)
#undef DELIVERY_AS_ENUM
        DELIVERY_STATE_COUNT
};
extern const struct enumeration delivery_state_names;
extern const struct sm_table delivery_machine;

/* One event to one webhook. Kept small: a backlog has millions. */
struct delivery {
    struct stored stored;
    struct list_link lane_link; /* in its lane's `all` */
    struct list_link age_link;  /* among those that have ended, or that have not, oldest first */
    struct heap_node queued;    /* in its lane's `pending` or `waiting` */
    union {
        /* PENDING: place in the queue; WAITING: loop clock when due, ms, or in an ordered lane the
         * object_no. */
        uint64_t rank;
        struct attempt *attempt; /* IN_FLIGHT */
    };
    struct event *event;
    struct lane *lane;
    uint64_t object_no;
    uint64_t version;
    int64_t at_unix_ns; /* WAITING: when it is attempted again; ended: when it did; 0: none */
    char *last_error;   /* NULL: none */
    uint16_t attempts;
    uint16_t last_status;
    uint8_t state; /* enum delivery_state */
};

/* How a webhook's attempts ended since the start of the process, or of the lane. */
struct lane_history {
    uint64_t recent;       /* one bit an attempt, the last one lowest: was it a success? */
    unsigned recent_count; /* of these, at most LANE_RECENT_MOST */
    int64_t success_unix_ns, failure_unix_ns; /* the last of each; 0: none */
    char *error;                              /* of the last failure; NULL: none */
};
enum { LANE_RECENT_MOST = 64 };

/* How long the last attempt took. */
enum lane_pace { LANE_UNKNOWN, LANE_SLOW, LANE_PROMPT };

/* A webhook's queue. Exists while it has deliveries or remembers something. */
struct lane {
    struct list_link link; /* in the list of all lanes */
    struct uuid webhook_id;
    struct webhook *webhook;
    bool is_dying;                 /* the webhook was deleted, the deliveries are being dropped */
    bool is_starting;              /* an attempt: its local request may delete what the lane has */
    struct list all;               /* its deliveries, in the order in which they came */
    struct heap pending;           /* by rank */
    struct heap waiting;           /* by rank */
    uint64_t head_no, head_due_ms; /* ordered: which waits first and when it is due, loop clock */
    uint32_t in_flight;
    enum lane_pace pace;
    /* What the webhook's Delivery says, read once for all attempts. */
    uint32_t max_in_flight;
    uint32_t window; /* of it what may be used now: see lane_note_outcome */
    double rate_per_second;
    bool ordered;
    double tokens; /* of the rate: one a start */
    uint64_t tokens_at_ms;
    uint64_t hold_until_ms;             /* loop clock */
    struct timer timer;                 /* earliest of: due, hold, next token */
    struct delivery_settings *settings; /* kept for the next attempts; NULL: none */
    /* In the scheduler's ring, among those that wait for a commit, or parked at the host. */
    struct list_link ready_link;
    struct list *ready_in;      /* which of these; NULL: none */
    struct delivery_host *host; /* that of the destination; NULL: it is local */
    bool is_called;             /* the host keeps a place for it */
    int64_t failing_since_unix_ns, hold_until_unix_ns;
    struct lane_history history;
    struct stored stored; /* of its RECORD_LANE, when there is one */
    struct deliveries *deliveries;
};

struct deliveries;
struct deliveries *deliveries_new(struct service *service);
/* Attempts under way are cancelled: they count as not made. */
void deliveries_free(struct deliveries *d);
/* Nothing starts before this (after the replay), nor after deliveries_stop. */
void deliveries_start(struct deliveries *d);
void deliveries_stop(struct deliveries *d);
size_t deliveries_in_flight(const struct deliveries *d);

/* For event records being applied: one more delivery, PENDING. */
void delivery_create(struct deliveries *d, const struct uuid *webhook_id, struct event *event,
                     uint64_t object_no, const struct store_origin *origin);
/* Lanes and their deliveries, for listings. Those of deleted webhooks are not found any more. */
struct lane *lane_find(const struct deliveries *d, const struct uuid *webhook_id);
struct lane *lane_first(const struct deliveries *d);
struct lane *lane_next(const struct deliveries *d, const struct lane *lane);
struct delivery *lane_first_delivery(const struct lane *lane);
struct delivery *lane_next_delivery(const struct lane *lane, const struct delivery *delivery);
/* The one that has waited for longest among those that have not ended; NULL: there is none. Looks
 * through those that have. */
struct delivery *lane_oldest_pending(const struct lane *lane);
/* The WAITING one that is attempted first, or NULL. */
struct delivery *lane_first_waiting(const struct lane *lane);
/* Attempts that the lane may have under way now. */
uint32_t lane_most_in_flight(const struct lane *lane);
/* Its receiver asked to wait (Retry-After), and the time is not over: by the loop's clock, whatever
 * the wall clock says. */
bool lane_is_held(const struct lane *lane);
/* The host has as many attempts as it may. */
bool lane_is_parked(const struct lane *lane);
/* Receivers that are not known to be prompt have as many slots as they may. */
bool lane_waits_for_slot(const struct lane *lane);
/* How long RatePerSecond keeps the next attempt back; 0: not at all. */
uint64_t lane_token_wait_ms(const struct lane *lane);
/* What is next waits for its time: all of the lane does, or the first of an ordered one. */
bool lane_head_waits(const struct lane *lane);
/* Those that ended, oldest first; NULL at the end: for retention. */
struct delivery *deliveries_oldest_ended(const struct deliveries *d);
struct delivery *deliveries_next_ended(const struct deliveries *d, const struct delivery *delivery);

/* Of those that have not ended the one that has been there for longest; NULL: there is none. */
struct delivery *deliveries_oldest_pending(const struct deliveries *d);
/* Deliveries that are queued or waiting: what PendingDeliveries bounds. */
size_t deliveries_pending(const struct deliveries *d);
/* Those of deleted webhooks included, for as long as deliveries_are_dropped. */
size_t deliveries_count(const struct deliveries *d, enum delivery_state state);
bool deliveries_are_dropped(const struct deliveries *d);
struct delivery *delivery_find(const struct deliveries *d, const struct uuid *id);
struct delivery *delivery_find_no(const struct deliveries *d, uint64_t object_no);
bool delivery_has_ended(const struct delivery *delivery);
void delivery_id(const struct delivery *delivery, struct uuid *out_id);
void delivery_add_json(const struct delivery *delivery, struct buf *b);
/* ERR_OVERLOADED when a change that adds `more` to those that have not ended, and to what it has
 * added already, would pass PendingDeliveries. */
struct err *deliveries_check_room(const struct deliveries *d, struct change *change,
                                  size_t more) MUST_USE;
/* Adds to a change: sends again, with a fresh schedule / forgets it, cancelling an attempt. The
 * first gives the delivery as it will be, for delivery_add_json. */
struct delivery delivery_resend(struct change *change, const struct delivery *delivery);
void delivery_forget(struct change *change, const struct delivery *delivery);
/* Adds to a change: failures so far do not pause the webhook any more, and when it goes to another
 * receiver, what the one before has asked for (Retry-After) does not hold it. */
void lane_start_over(struct change *change, const struct lane *lane, bool is_other_receiver);
uint64_t deliveries_version(const struct deliveries *d);
/* The webhook's settings changed, or it was paused, resumed or deleted (webhook.c calls it). */
void deliveries_webhook_changed(struct deliveries *d, struct webhook *w);
void deliveries_webhook_gone(struct deliveries *d, struct webhook *w);

#endif
