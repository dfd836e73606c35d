/* Event selectors (docs/specification.md, section 8): `/<event resource>`
 * alone, or with conditions on the payload, `/Shop.PersonCreated/Name.Length>10&Email!=null`.
 * Instead of one resource `Shop.*` selects every event resource directly in that namespace, and `*`
 * every one but the server's own, those that are declared later included. */
#ifndef WEBHOOK_SELECTOR_H
#define WEBHOOK_SELECTOR_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct access_key;
struct arena;
struct conditions;
struct resource;
struct resources;

struct selector {
    struct resource *resource; /* of kind event; NULL: it has a pattern */
    struct span pattern;       /* folded: `shop.*` or `*`; absent: it has a resource */
    const struct conditions *conditions;
    struct span normal; /* with the resource's full name */
};

/* Everything it yields lives in the arena. Errors, all 400: ERR_WRONG_SELECTOR_KIND when the name
 * is another kind of resource's; ERR_INVALID_EVENT_SELECTOR for everything else (no leading '/', no
 * such resource, meta-conditions, conditions that do not fit the payload or on a binary event). */
struct err *selector_parse(const struct resources *resources, struct span text,
                           const struct access_key *key, size_t max_conditions, struct arena *a,
                           struct selector *out_selector) MUST_USE;
/* What it selects, for messages: the resource's name, or the pattern as it was written. */
struct span selector_name(const struct selector *selector);
/* Does it select events of this resource, whatever its conditions? */
bool selector_covers(const struct selector *selector, const struct resource *event);
/* May it wait for all events, but for those of the server? The name is that of a pattern. */
bool selector_is_every(struct span pattern);
/* Is it one of the server's own event resources, its notices? The name is full, in any case. */
bool selector_is_notice(struct span event_resource);
/* The parts of its pattern that the key may GET (access_narrow); none: there is nothing in it that
 * the key may ever read. */
void selector_narrow(const struct selector *selector, const struct resources *resources,
                     const struct access_key *key, struct arena *a, struct span **out_parts,
                     size_t *out_count);

/* To the message of an ERR_UNKNOWN_RESOURCE, how the event resource of that name is declared. Takes
 * the error over. */
struct err *selector_say_how_to_declare(struct err *e, struct span name);

#endif
