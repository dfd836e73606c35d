/* Which payloads of events are in memory. All are in the journal; up to Limits.PayloadBytes of them
 * are held here as well, so that a backlog of any length takes little memory. Those that no
 * delivery waits for go first, then those that will be needed last. */
#ifndef HOOKS_PAYLOAD_H
#define HOOKS_PAYLOAD_H

#include "base/buf.h"
#include "store/stored.h"
#include "store/turn.h"

struct span;
struct blob;

struct event;
struct hooks;

/* An event's part in it. */
struct payload_slot {
    struct list_link link;      /* in `idle` or `needed`, while it is held */
    struct blob *blob;          /* NULL: in the journal only */
    struct journal_place place; /* of the event's record */
    uint32_t pending;           /* deliveries that have not ended */
};

struct payloads {
    struct hooks *hooks;
    struct list idle;   /* no delivery waits for these */
    struct list needed; /* roughly in the order in which they will be: the last one last */
    size_t bytes;
    struct turn_wait commit; /* what is not on disk cannot be let go */
    struct buf scratch;
};

void payloads_init(struct payloads *p, struct hooks *hooks);
void payloads_done(struct payloads *p);

/* The event was raised, or replayed. */
void payload_add(struct payloads *p, struct event *event, struct span payload,
                 const struct store_origin *origin);
/* Its record is elsewhere now. */
void payload_moved(struct event *event, const struct store_origin *origin);
void payload_remove(struct payloads *p, struct event *event);
/* A delivery more that has not ended, or one that has. */
void payload_needed(struct payloads *p, struct event *event);
void payload_unneeded(struct payloads *p, struct event *event);

bool payload_is_held(const struct event *event);
/* False: it is not in memory, the disk was asked for it, try again soon. True: payload_get will not
 * wait, or there is an error that it will tell. */
bool payload_ready(struct payloads *p, struct event *event);
/* A new reference. Waits for the disk when it has to. Errors of journal_read. */
struct err *payload_get(struct payloads *p, struct event *event, struct blob **out_blob) MUST_USE;

#endif
