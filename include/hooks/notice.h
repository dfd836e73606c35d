/* Notices: events that the server itself raises about webhooks (docs/specification.md, section 7).
 * They are events as all others, for the same matchers, rights and tenants, in the change that
 * records what they tell of. One that cannot be raised is left out and counted, and never holds up
 * what caused it.
 *
 * What ends badly may do so a thousand times a second. So a webhook raises NOTICES_IN_HAND at once,
 * then NOTICES_PER_SECOND, and a change NOTICES_PER_CHANGE; a notice goes to NOTICE_WEBHOOKS_MOST
 * webhooks; what becomes of deliveries of notices causes none. A notice descends from the event
 * whose delivery it tells of (Limits.EventDescendants). */
#ifndef HOOKS_NOTICE_H
#define HOOKS_NOTICE_H

#include "base/uuid.h"

struct change;
struct event_chain;
struct hooks;
struct webhook;

enum {
    NOTICES_IN_HAND = 100,
    NOTICES_PER_SECOND = 1,
    NOTICES_PER_CHANGE = 1000,
    NOTICE_WEBHOOKS_MOST = 1000
};

/* Their event resources. */
extern const struct resource_definition notice_webhook_paused, notice_webhook_recovered,
    notice_delivery_dead;

/* How many dead deliveries a webhook may tell of now: a new hand is full. Whether there is enough
 * is asked when a change is worked out, which may be in vain; each that is dead when a change is
 * applied takes one. */
struct notice_hand {
    uint32_t spent;
    uint64_t at_ms; /* loop clock: the time that `spent` is of */
};
bool notice_hand_has(const struct notice_hand *hand, unsigned more, uint64_t now_ms);
/* False: it was empty. */
bool notice_hand_take(struct notice_hand *hand, uint64_t now_ms);

struct notice_delivery {
    struct uuid id, event;
    struct span resource; /* the event's */
    unsigned attempts;
    struct span last_error;
};

/* What a notice tells, and what it descends from. */
struct notice {
    const struct resource_definition *of; /* one of the three */
    struct webhook *webhook;
    struct span why;
    unsigned depth; /* how many events led to it */
    struct event_chain *chain;
    const struct notice_delivery *dead; /* of the third; NULL */
};
/* Adds the event to the change, behind the records of what it tells of. A webhook that is paused is
 * not told of that itself. */
void notice_raise(struct hooks *hooks, const struct notice *notice, struct change *change);

#endif
