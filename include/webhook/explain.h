/* Why a selector finds an event or does not: each of its conditions with the value that it met
 * (docs/specification.md, section 7, "Svc.Explain"). Nothing is raised, nothing changes. */
#ifndef WEBHOOK_EXPLAIN_H
#define WEBHOOK_EXPLAIN_H

#include "json/json.h"

struct resource;
struct selector;

/* The event, as it was raised or as it would be. */
struct explain_event {
    const struct resource *resource;
    struct json_value payload; /* an object, or an array of them; absent: binary */
};

/* One answer: about a selector and an entity of the payload. */
struct explanation {
    bool matches;
    struct span json; /* {"Matches","Reason","Selector","Conditions"} */
};

/* An explanation for each entity, or one when there is none, in the arena. `refused` is a reason
 * for which the selector finds nothing, whatever the conditions say; absent: there is none. */
struct explanation *explain(const struct selector *selector, const struct explain_event *event,
                            struct span refused, struct arena *a, size_t *out_count);

#endif
