/* Event selectors (docs/specification.md, section 8): `/<event resource>`
 * alone, or with conditions on the payload, `/Shop.PersonCreated/Name.Length>10&Email!=null`. */
#ifndef HOOKS_SELECTOR_H
#define HOOKS_SELECTOR_H

#include "query/condition.h"

struct access_key;
struct resource;
struct resources;

struct selector {
    struct resource *resource; /* of kind event */
    struct conditions conditions;
    struct span normal; /* with the resource's full name */
};

/* Everything it yields lives in the arena. Errors, all 400: ERR_WRONG_SELECTOR_KIND when the name
 * is another kind of resource's; ERR_INVALID_EVENT_SELECTOR for everything else (no leading '/', no
 * such resource, meta-conditions, conditions that do not fit the payload or on a binary event). */
struct err *selector_parse(const struct resources *resources, struct span text,
                           const struct access_key *key, size_t max_conditions, struct arena *a,
                           struct selector *out_selector) MUST_USE;

#endif
