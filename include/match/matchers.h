/* The matchers of one event resource: one for selectors without a tenant, to which every event is
 * put, and one for each tenant that has selectors, to which only that tenant's events are. So an
 * event costs nothing for the selectors of other tenants, however many there are. */
#ifndef MATCH_MATCHERS_H
#define MATCH_MATCHERS_H

#include "base/span.h"

struct arena;
struct conditions;
struct json_value;
struct matcher_entry;
struct matcher_stats;
struct matchers;

struct matchers *matchers_new(void);
/* All entries must have been removed. NULL is allowed. */
void matchers_free(struct matchers *ms);
/* Entries in all of them, and how many tenants have any. */
size_t matchers_count(const struct matchers *ms);
size_t matchers_tenants(const struct matchers *ms);
/* As matcher_add, among those of this tenant; empty: among those that get every event. */
void matchers_add(struct matchers *ms, struct span tenant, struct matcher_entry *entry,
                  const struct conditions *c);
/* With the tenant that it was added with. */
void matchers_remove(struct matchers *ms, struct span tenant, struct matcher_entry *entry);
/* As matcher_match, for an event of this tenant, or, empty, of none. */
void matchers_match(struct matchers *ms, struct span tenant, struct json_value payload,
                    struct arena *a, void (*on_found)(void *context, struct matcher_entry *entry),
                    void *context);
/* Sums over what this tenant's events are put to. */
void matchers_stats(const struct matchers *ms, struct span tenant, struct matcher_stats *out_stats);

#endif
