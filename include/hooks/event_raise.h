/* Raising an event (event.h). */
#ifndef HOOKS_EVENT_RAISE_H
#define HOOKS_EVENT_RAISE_H

#include "base/uuid.h"
#include "json/json.h"

struct change;
struct event_chain;
struct hooks;
struct resource;
struct webhook;

/* What an application raises. */
struct event_draft {
    struct resource *resource;  /* of kind event */
    struct span payload;        /* JSON array, or bytes */
    struct json_value entities; /* the payload parsed, for matching, with the attributes of a
                                 * CloudEvent; absent for other binary ones */
    struct span content_type;   /* binary only */
    const struct webhook *only; /* the one webhook that may match; NULL: all */
    struct webhook *except;     /* one that does not; or NULL */
    uint32_t most;              /* webhooks, of those that match; 0: all */
    struct span tenant;         /* empty: none */
    struct span client_id;      /* empty: none */
    struct span ce;             /* attributes of a CloudEvent; empty: it is none */
    uint8_t depth;
    struct event_chain *chain; /* of the event that caused it in this process; NULL: none */
};

struct event_raised {
    struct uuid id;
    uint64_t object_no;
    int64_t time_unix_ns;
    uint32_t webhooks;
};

/* Adds the event's record to a change: matches, counts, bounds (ERR_OVERLOADED when the deliveries
 * would pass PendingDeliveries, ERR_INFINITE_LOOP for the 17th of a chain, and for descendants past
 * EventDescendants). Deliveries that their webhook, or its account, has no room for are dead. */
struct err *event_raise(struct hooks *hooks, const struct event_draft *draft, struct change *change,
                        struct event_raised *out_raised) MUST_USE;

#endif
