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
 *      |             `---> ABORTED   (custom payload: BreakOnError, BreakOnNoContent; loop)
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
    struct list_link link; /* in its lane's list of this state (pending, in flight, ended) */
    struct heap_node due;  /* in its lane's heap while WAITING */
    struct event *event;
    struct lane *lane;
    uint64_t object_no;
    uint64_t version;
    int64_t next_unix_ns;
    char *last_error;        /* NULL: none */
    struct attempt *attempt; /* while IN_FLIGHT */
    uint16_t attempts;
    uint16_t last_status;
    uint8_t state;
};

/* A webhook's queue. Exists while it has deliveries or remembers something. */
struct lane {
    struct uuid webhook_id;
    struct webhook *webhook; /* NULL: deleted; its deliveries are being dropped */
    struct list pending, in_flight, ended;
    struct heap waiting;
    struct timer timer;          /* earliest of: due, hold, rate */
    struct list_link ready_link; /* in the scheduler's ring while it may start one */
    int64_t failing_since_unix_ns, hold_until_unix_ns;
    double tokens; /* of RatePerSecond */
    uint64_t tokens_at_ms;
    struct stored stored; /* of its RECORD_LANE, when there is one */
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
/* Deliveries that are queued or waiting: what PendingDeliveries bounds. */
size_t deliveries_pending(const struct deliveries *d);
size_t deliveries_count(const struct deliveries *d, enum delivery_state state);
struct delivery *delivery_find(const struct deliveries *d, const struct uuid *id);
struct delivery *delivery_find_no(const struct deliveries *d, uint64_t object_no);
void delivery_id(const struct delivery *delivery, struct uuid *out_id);
void delivery_add_json(const struct delivery *delivery, struct buf *b);
/* The webhook's settings changed, or it was paused, resumed or deleted (webhook.c calls it). */
void deliveries_webhook_changed(struct deliveries *d, struct webhook *w);
void deliveries_webhook_gone(struct deliveries *d, struct webhook *w);

#endif
