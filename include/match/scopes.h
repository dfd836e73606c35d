/* The matchers of selectors that name no event resource but a pattern: `shop.*`, every event
 * resource directly in that namespace, `*`, every one there is, or one name. An event is put to the
 * matchers of the three patterns that cover its resource, whatever other patterns there are, and
 * resources need not exist for a pattern to be waited for. */
#ifndef MATCH_SCOPES_H
#define MATCH_SCOPES_H

#include "base/span.h"

#include <stdbool.h>

struct arena;
struct conditions;
struct json_value;
struct matcher_entry;
struct scope;
struct scopes;

struct scopes *scopes_new(void);
/* All entries must have been removed. NULL is allowed. */
void scopes_free(struct scopes *ss);
/* Patterns that have entries. */
size_t scopes_count(const struct scopes *ss);
/* As matchers_add, for events of resources that the pattern covers. Patterns and names are folded.
 * Returns what the entry is removed from. */
struct scope *scopes_add(struct scopes *ss, struct span pattern, struct span tenant,
                         struct matcher_entry *entry, const struct conditions *c);
void scopes_remove(struct scopes *ss, struct scope *scope, struct span tenant,
                   struct matcher_entry *entry);
/* Does the pattern cover the resource of that name? */
bool scope_covers(struct span pattern, struct span name);
struct span scope_pattern(const struct scope *scope);
/* As matchers_match, for an event of this resource; `every` false: what waits for `*` is not
 * found. An entry is found once for each of the patterns that it was added with. */
void scopes_match(struct scopes *ss, struct span name, bool every, struct span tenant,
                  struct json_value payload, struct arena *a,
                  void (*on_found)(void *context, struct matcher_entry *entry), void *context);
/* Of all matches so far: predicates evaluated and entries looked at. */
void scopes_stats(const struct scopes *ss, uint64_t *out_evaluated, uint64_t *out_looked_at);

#endif
