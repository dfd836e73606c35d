/* A map from patterns to their matchers. A scope is made with its first entry and freed with its
 * last. Where there is none at all, which is the usual case, an event costs one comparison. */
#include "match/scopes.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "match/matcher.h"
#include "match/matchers.h"
#include "json/json.h"

#include <string.h>

struct scope {
    struct matchers *matchers;
    size_t pattern_bytes;
    char pattern[];
};

struct scopes {
    struct map by_pattern;
    uint64_t evaluated, looked_at;
};

struct span scope_pattern(const struct scope *scope)
{
    return span_of(scope->pattern, scope->pattern_bytes);
}

static struct span pattern_key(const void *item)
{
    return scope_pattern(item);
}

struct scopes *scopes_new(void)
{
    struct scopes *ss = NEW(struct scopes);

    map_init(&ss->by_pattern, pattern_key);
    return ss;
}

void scopes_free(struct scopes *ss)
{
    if (ss == NULL)
        return;
    MUST(map_count(&ss->by_pattern) == 0);
    map_done(&ss->by_pattern);
    mem_free(ss);
}

size_t scopes_count(const struct scopes *ss)
{
    return map_count(&ss->by_pattern);
}

/* `shop.person` is directly in `shop.`. */
static struct span namespace_of(struct span name)
{
    size_t n = name.n;

    while (n > 0 && name.p[n - 1] != '.')
        n--;
    return span_sub(name, 0, n);
}

bool scope_covers(struct span pattern, struct span name)
{
    if (span_eq(pattern, SPAN("*")) || span_eq(pattern, name))
        return true;
    return span_ends(pattern, SPAN(".*")) &&
           span_eq(span_sub(pattern, 0, pattern.n - 1), namespace_of(name));
}

static struct scope *make(struct scopes *ss, struct span pattern)
{
    struct scope *scope = mem_alloc(sizeof(*scope) + pattern.n);

    scope->matchers = matchers_new();
    scope->pattern_bytes = pattern.n;
    memcpy(scope->pattern, pattern.p, pattern.n);
    map_add(&ss->by_pattern, scope);
    return scope;
}

struct scope *scopes_add(struct scopes *ss, struct span pattern, struct span tenant,
                         struct matcher_entry *entry, const struct conditions *c)
{
    struct scope *scope = map_find(&ss->by_pattern, pattern);

    if (scope == NULL)
        scope = make(ss, pattern);
    matchers_add(scope->matchers, tenant, entry, c);
    return scope;
}

void scopes_remove(struct scopes *ss, struct scope *scope, struct span tenant,
                   struct matcher_entry *entry)
{
    matchers_remove(scope->matchers, tenant, entry);
    if (matchers_count(scope->matchers) > 0)
        return;
    map_remove(&ss->by_pattern, scope_pattern(scope));
    matchers_free(scope->matchers);
    mem_free(scope);
}

/* An event, and who is told. */
struct putting {
    struct scopes *scopes;
    struct span tenant;
    struct json_value payload;
    struct arena *arena;
    matcher_found_fn *on_found;
    void *context;
};

static void put(struct putting *p, struct span pattern)
{
    struct scopes *ss = p->scopes;
    const struct scope *scope = map_find(&ss->by_pattern, pattern);
    struct matcher_stats before, after;

    if (scope == NULL)
        return;
    matchers_stats(scope->matchers, p->tenant, &before);
    matchers_match(scope->matchers, p->tenant, p->payload, p->arena, p->on_found, p->context);
    matchers_stats(scope->matchers, p->tenant, &after);
    ss->evaluated += after.evaluated - before.evaluated;
    ss->looked_at += after.looked_at - before.looked_at;
}

void scopes_match(struct scopes *ss, struct span name, bool every, struct span tenant,
                  struct json_value payload, struct arena *a, matcher_found_fn *on_found,
                  void *context)
{
    struct putting putting = {ss, tenant, payload, a, on_found, context};
    struct span inside;

    if (map_count(&ss->by_pattern) == 0)
        return;
    inside = namespace_of(name);
    if (every)
        put(&putting, SPAN("*"));
    put(&putting, arena_printf(a, "%.*s*", SPAN_FMT(inside)));
    put(&putting, name);
}

void scopes_stats(const struct scopes *ss, uint64_t *out_evaluated, uint64_t *out_looked_at)
{
    *out_evaluated = ss->evaluated;
    *out_looked_at = ss->looked_at;
}
