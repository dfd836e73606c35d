/* Deliveries: each event that matched a webhook becomes one, and is attempted until it is
 * delivered, dead or aborted. Until then it is queued in its webhook's lane (lane.h).
 *
 *            +---------- retry time, or PATCH ----------+
 *            v                                          |
 *   PENDING ---> IN_FLIGHT ---> WAITING ----------------+
 *      ^             |---> DELIVERED      (and back to PENDING: there is no room for its body)
 *      |             |---> DEAD      (schedule used up, or 410)
 *      |             `---> ABORTED   (custom payload: BreakOnError, BreakOnNoContent; loop;
 *      |                              too large)
 *      |-----------------> DEAD      (at once: its webhook or its account has as many as it may)
 *      `--- PATCH {"State":"Pending"} from DELIVERED, DEAD, ABORTED
 *
 * IN_FLIGHT is not journaled: after a restart it is PENDING again (at-least-once). */
#ifndef HOOKS_DELIVERY_H
#define HOOKS_DELIVERY_H

#include "base/heap.h"
#include "store/stored.h"

struct arena;
struct buf;
struct attempt;
struct change;
struct event;
struct hooks;
struct lane;
struct uuid;
struct webhook;
struct webhook_lanes;

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
        uint64_t rank;           /* PENDING, WAITING: see lane_queue.c */
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

struct store_origin;
struct deliveries;
struct deliveries *deliveries_new(struct hooks *hooks);
/* Attempts under way are cancelled: they count as not made. */
void deliveries_free(struct deliveries *d);
/* Nothing starts before this (after the replay), nor after deliveries_stop. */
void deliveries_start(struct deliveries *d);
void deliveries_stop(struct deliveries *d);
size_t deliveries_in_flight(const struct deliveries *d);
/* Of the bodies of attempts under way, each once: what BodyBytesInFlight bounds. */
uint64_t deliveries_body_bytes(const struct deliveries *d);

/* For event records being applied: one more delivery, PENDING. */
void delivery_create(struct deliveries *d, const struct uuid *webhook_id, struct event *event,
                     uint64_t object_no, const struct store_origin *origin);
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
/* Of the one with that object number, of that event, raised then. */
void delivery_id_of(int64_t time_unix_ns, const struct uuid *event, uint64_t object_no,
                    struct uuid *out_id);
void delivery_add_json(const struct delivery *delivery, struct buf *b);
/* ERR_OVERLOADED when a change that adds `more` to those that have not ended, and to what it has
 * added already, would pass PendingDeliveries. */
struct err *deliveries_check_room(const struct deliveries *d, struct change *change,
                                  size_t more) MUST_USE;
/* Why a webhook may not have one more that has not ended, beside those that the change has added:
 * WebhookPendingDeliveries, or its account's half of PendingDeliveries. */
enum delivery_refusal { DELIVERY_ADMITTED, DELIVERY_PAST_WEBHOOK, DELIVERY_PAST_ACCOUNT };
/* Counts one more, if it may have it. */
enum delivery_refusal delivery_admit(struct webhook *w, const struct change *change);
/* Counts the hit, and says it in words. */
struct span delivery_refused(const struct deliveries *d, enum delivery_refusal why,
                             struct arena *a);
/* Is there room for one that has ended to be sent again? ERR_OVERLOADED, and why. */
struct err *delivery_check_resend(const struct deliveries *d, const struct delivery *delivery,
                                  struct change *change) MUST_USE;
/* Adds to a change, after the event's record: this delivery of it is dead at once. */
void delivery_add_dead(struct change *change, const struct uuid *webhook_id, uint64_t event_no,
                       uint64_t object_no, int64_t now_unix_ns, struct span why);
/* Adds to a change: sends again, with a fresh schedule / forgets it, cancelling an attempt. The
 * first gives the delivery as it will be, for delivery_add_json. */
struct delivery delivery_resend(struct change *change, const struct delivery *delivery);
void delivery_forget(struct change *change, const struct delivery *delivery);
uint64_t deliveries_version(const struct deliveries *d);
/* For webhooks_new. Its context may be freed before the webhooks are: only `freeing` is called
 * then, which does not look at it. */
struct webhook_lanes deliveries_as_lanes(struct deliveries *d);

#endif
