/* The tenants' matchers are in a map by the tenant's name, each made with its first entry and freed
 * with its last: tenants come and go, and an empty one costs nothing. */
#include "match/matchers.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "match/matcher.h"
#include "json/json.h"

#include <string.h>

struct of_tenant {
    struct matcher *matcher;
    size_t tenant_bytes;
    char tenant[];
};

struct matchers {
    struct matcher *all; /* entries without a tenant */
    struct map by_tenant;
    size_t count;
};

static struct span tenant_key(const void *item)
{
    const struct of_tenant *of = item;

    return span_of(of->tenant, of->tenant_bytes);
}

struct matchers *matchers_new(void)
{
    struct matchers *ms = NEW(struct matchers);

    ms->all = matcher_new();
    map_init(&ms->by_tenant, tenant_key);
    return ms;
}

void matchers_free(struct matchers *ms)
{
    if (ms == NULL)
        return;
    MUST(map_count(&ms->by_tenant) == 0);
    map_done(&ms->by_tenant);
    matcher_free(ms->all);
    mem_free(ms);
}

size_t matchers_count(const struct matchers *ms)
{
    return ms->count;
}

size_t matchers_tenants(const struct matchers *ms)
{
    return map_count(&ms->by_tenant);
}

static struct of_tenant *find(const struct matchers *ms, struct span tenant)
{
    return tenant.n == 0 ? NULL : map_find(&ms->by_tenant, tenant);
}

static struct of_tenant *make(struct matchers *ms, struct span tenant)
{
    struct of_tenant *of = mem_alloc(sizeof(*of) + tenant.n);

    of->matcher = matcher_new();
    of->tenant_bytes = tenant.n;
    memcpy(of->tenant, tenant.p, tenant.n);
    map_add(&ms->by_tenant, of);
    return of;
}

void matchers_add(struct matchers *ms, struct span tenant, struct matcher_entry *entry,
                  const struct conditions *c)
{
    struct of_tenant *of = find(ms, tenant);

    if (of == NULL && tenant.n > 0)
        of = make(ms, tenant);
    matcher_add(of != NULL ? of->matcher : ms->all, entry, c);
    ms->count++;
}

void matchers_remove(struct matchers *ms, struct span tenant, struct matcher_entry *entry)
{
    struct of_tenant *of = find(ms, tenant);

    MUST(of != NULL || tenant.n == 0);
    matcher_remove(of != NULL ? of->matcher : ms->all, entry);
    ms->count--;
    if (of == NULL || matcher_count(of->matcher) > 0)
        return;
    map_remove(&ms->by_tenant, tenant);
    matcher_free(of->matcher);
    mem_free(of);
}

void matchers_match(struct matchers *ms, struct span tenant, struct json_value payload,
                    struct arena *a, matcher_found_fn *on_found, void *context)
{
    const struct of_tenant *of = find(ms, tenant);

    matcher_match(ms->all, payload, a, on_found, context);
    if (of != NULL)
        matcher_match(of->matcher, payload, a, on_found, context);
}

static void add(struct matcher_stats *sum, const struct matcher *m)
{
    struct matcher_stats stats;

    matcher_stats(m, &stats);
    sum->events += stats.events;
    sum->evaluated += stats.evaluated;
    sum->looked_at += stats.looked_at;
    sum->found += stats.found;
    sum->predicates += stats.predicates;
    sum->bytes += stats.bytes;
}

void matchers_stats(const struct matchers *ms, struct span tenant, struct matcher_stats *out_stats)
{
    const struct of_tenant *of = find(ms, tenant);
    struct matcher_stats sum = {.events = 0};

    add(&sum, ms->all);
    if (of != NULL)
        add(&sum, of->matcher);
    *out_stats = sum;
}
