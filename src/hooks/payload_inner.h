/* Where an event's payload is: beside the event, for event.c, which makes both, and payload.c. */
#ifndef HOOKS_PAYLOAD_INNER_H
#define HOOKS_PAYLOAD_INNER_H

#include "hooks/event.h"
#include "journal/place.h"

struct blob;
struct share;

/* An event's part in what is held. */
struct payload_slot {
    struct list_link link;      /* in `idle` or `needed`, while it is held */
    struct blob *blob;          /* NULL: in the journal only */
    struct journal_place place; /* of the event's record */
    struct blob *sent;          /* by attempts under way; NULL: by none */
    struct share *share;        /* of the first of these */
    uint32_t attempts;          /* these */
    uint32_t pending;           /* deliveries that have not ended */
};

struct event_whole {
    struct event event;
    struct payload_slot payload;
};

static inline struct payload_slot *payload_slot_of(struct event *event)
{
    return &CONTAINER_OF(event, struct event_whole, event)->payload;
}

#endif
