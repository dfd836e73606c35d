/* Which webhooks an event is to be sent to. */
#ifndef HOOKS_EVENT_MATCH_H
#define HOOKS_EVENT_MATCH_H

#include "base/buf.h"
#include "hooks/delivery.h"

struct event_draft;
struct event_raised;
struct hooks;

/* What it costs to note a webhook. */
enum { EVENT_MATCH_UNITS = 64 };

/* What was found, a webhook once, however many of its selectors match. */
struct event_matched {
    struct hooks *hooks;
    const struct event_draft *draft;
    const struct change *change;
    uint64_t no; /* of the event, among those that were put to the webhooks: no two have the same */
    struct buf ids;
    struct buf refused; /* struct event_refused: of those that are dead at once */
    uint32_t count, refused_count;
};

struct event_refused {
    uint32_t place; /* in ids */
    enum delivery_refusal why;
};

/* Fills ids and refused, which are empty. */
void event_match(struct event_matched *matched);
/* Adds to the change, behind the event's record, that the deliveries of `refused` are dead, and the
 * notices of it. */
void event_add_refused(struct event_matched *matched, struct change *change,
                       const struct event_raised *raised);

#endif
