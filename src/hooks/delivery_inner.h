/* What the files of deliveries and lanes share: all deliveries and lanes, and who moves them. */
#ifndef HOOKS_DELIVERY_INNER_H
#define HOOKS_DELIVERY_INNER_H

#include "base/map.h"
#include "hooks/delivery.h"
#include "hooks/lane.h"

struct bodies;
struct record_delivery;
struct response;
struct scheduler;
struct signings;

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
    struct map hosts;                       /* struct lane_host by address */
    struct list settings;                   /* struct lane_settings, the one used last at the end */
    struct bodies *bodies;                  /* body.c */
    struct scheduler *scheduler;            /* lane.c */
    bool is_started;                        /* see deliveries_start */
    uint64_t started_ms;                    /* loop clock */
    uint64_t first_no;                      /* whatever is older was there before the start */
    struct list idle_attempts;              /* kept for the next ones, a bounded number */
    struct list stopped_attempts; /* whose outcome is to be recorded: see attempts_record */
    struct signings *signings;    /* of their large bodies */
    struct response *response;    /* of local requests, which are evaluated one at a time */
};

/* delivery.c */
/* The one mover. */
void delivery_move(struct deliveries *d, struct delivery *delivery, enum delivery_state next);
void delivery_add_record(struct change *change, const struct record_delivery *record);
struct record_delivery delivery_record(const struct delivery *delivery);
/* A record of the one with this number is applied soon: see map_expect. */
void deliveries_expect(const struct deliveries *d, uint64_t object_no);
/* Frees without a record; an attempt under way is cancelled. */
void delivery_drop(struct deliveries *d, struct delivery *delivery);

/* lane.c */
/* Something has changed in its queue, or in what it has under way. */
void lane_update(struct lane *lane);
/* Looks at it and moves it to where it belongs, from any state but DYING. */
void lane_settle(struct lane *lane);
/* It is PARKED, by its state_link: a place is kept for it. */
void lane_call(struct list_link *parked);
/* There may be something to start, or to record: as soon as the turn is not held. */
void lanes_wake(struct deliveries *d);

/* lane_queue.c */
/* One more / one less, of any state. */
void lane_add(struct lane *lane, struct delivery *delivery);
void lane_remove(struct lane *lane, struct delivery *delivery);
/* One that has not ended comes to its state, or leaves it: to the queue of what is PENDING, or
 * WAITING, or IN_FLIGHT to one of the slots that all webhooks share. */
void lane_enter(struct lane *lane, struct delivery *delivery);
void lane_leave(struct lane *lane, struct delivery *delivery);
/* Nothing is started before this; a time that has passed: no hold. */
void lane_hold(struct lane *lane, int64_t until_unix_ns);

/* lane_record.c */
/* A delivery of it is dead, and may be told of: one more. False: it was one too many. */
bool lane_count_death(struct lane *lane);

/* lane_life.c */
struct lane *lane_get(struct deliveries *d, const struct uuid *webhook_id);
/* Frees it when nothing keeps it. */
void lane_release(struct lane *lane);
void lanes_init(struct deliveries *d);
void lanes_done(struct deliveries *d);

#endif
