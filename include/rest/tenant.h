/* Tenants: the one rule (docs/specification.md, section 6, "Tenants"). In each resource with a
 * property `Tenant` a key with a tenant sees, counts and changes only what has that value, and what
 * it writes has it. A dynamic resource has no such property, whatever its entities hold.
 *
 * What a call selects is confined by a condition that its query gets beside those that were asked
 * for, before anything is looked up: whatever goes by the conditions is confined by it, counts,
 * indexes, pages and messages too. It is not part of the URI, so no link shows it. */
#ifndef REST_TENANT_H
#define REST_TENANT_H

#include "base/err.h"

struct access_key;
struct call;
struct conditions;
struct draft;
struct resource;
struct shape;

/* The tenant that this key is confined to in this resource; absent: it is not. NULL key: not. */
struct span tenant_within(const struct access_key *key, const struct resource *resource);
/* Of the call, whose resource is known. */
struct span tenant_of(const struct call *call);
/* Adds the condition to those of the call's query. Nothing for a call that is not confined. */
void tenant_confine(struct call *call);
/* The same to any conditions on this shape, which has the property; the arena keeps the result. */
void tenant_add_condition(struct conditions *conditions, const struct shape *shape,
                          struct span tenant, struct arena *a);
/* Is the stored text one that the call may see? */
bool tenant_covers(const struct call *call, struct span json);
/* What is about to be stored gets the call's tenant where it has none. ERR_NOT_AUTHORIZED when it
 * has another, or one that the property cannot hold. */
struct err *tenant_check_draft(const struct call *call, struct draft *draft) MUST_USE;

#endif
