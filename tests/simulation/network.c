#include "network.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "fetch/fetch_url.h"

#include <string.h>

/* One to each receiver; what is known of it lasts as long as the fetcher. */
struct fetch_origin {
    unsigned refs;
    void *user;
    uint8_t address, last; /* where its name leads to; where its last connection does, 0: none */
};

enum { ADDRESSES = 2 };

struct fetcher {
    struct list under_way;
    struct fetch_origin origins[SIM_RECEIVERS];
};

static struct fetcher *the_fetcher; /* there is one at a time */

static struct {
    void (*on_start)(void *context, struct fetch *f);
    void (*on_cancel)(void *context, struct fetch *f);
    void *context;
} watcher;

struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher)
{
    struct fetcher *f = NEW(struct fetcher);

    (void)loop, (void)resolver, (void)rules, (void)options;
    MUST(the_fetcher == NULL);
    list_init(&f->under_way);
    for (size_t i = 0; i < SIM_RECEIVERS; i++)
        f->origins[i].address = (uint8_t)(1 + rng_below(ADDRESSES));
    the_fetcher = *out_fetcher = f;
    return NULL;
}

void fetcher_free(struct fetcher *f)
{
    if (f == NULL)
        return;
    while (list_pop_front(&f->under_way) != NULL)
        continue;
    for (size_t i = 0; i < SIM_RECEIVERS; i++)
        MUST(f->origins[i].refs == 0 && f->origins[i].user == NULL);
    mem_free(f);
    the_fetcher = NULL;
}

const char *sim_network_url(unsigned receiver)
{
    static const char *const urls[SIM_RECEIVERS] = {
        "http://receiver-0.test/", "http://receiver-1.test/", "https://receiver-2.test/",
        "http://receiver-3.test:8080/", "http://receiver-4.test/hook"};

    return urls[receiver];
}

struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url)
{
    for (unsigned i = 0; i < SIM_RECEIVERS; i++)
        if (span_eq(url, span_str(sim_network_url(i)))) {
            f->origins[i].refs++;
            return &f->origins[i];
        }
    MUST_NOT_REACH();
}

void fetch_origin_put(struct fetch_origin *origin)
{
    if (origin == NULL)
        return;
    MUST(origin->refs > 0 && (origin->refs > 1 || origin->user == NULL));
    origin->refs--;
}

struct span fetch_origin_text(const struct fetch_origin *origin)
{
    return fetch_url_origin(span_str(sim_network_url((unsigned)(origin - the_fetcher->origins))));
}

void **fetch_origin_user(struct fetch_origin *origin)
{
    return &origin->user;
}

bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address)
{
    if (origin->last == 0)
        return false;
    memset(out_address, origin->last, sizeof(*out_address));
    return true;
}

/* A name may lead elsewhere than before. */
void sim_network_connect(struct fetch *f)
{
    struct fetch_origin *origin = f->origin;

    if (rng_below(8) == 0)
        origin->address = (uint8_t)(1 + rng_below(ADDRESSES));
    origin->last = origin->address;
    f->on_connected(f);
}

static bool is_same_host(const struct fetch_origin *a, const struct fetch_origin *b)
{
    return a == b || (a->last != 0 && a->last == b->last);
}

size_t sim_network_count_beside(const struct fetch *f)
{
    size_t count = 0;

    LIST_EACH(&the_fetcher->under_way, at)
        count += is_same_host(CONTAINER_OF(at, struct fetch, link)->origin, f->origin);
    return count;
}

void fetch_start(struct fetcher *fetcher, struct fetch *f)
{
    MUST(f->origin->refs > 0);
    list_push_back(&fetcher->under_way, &f->link);
    watcher.on_start(watcher.context, f);
}

void fetch_cancel(struct fetcher *fetcher, struct fetch *f)
{
    if (!list_linked(&f->link))
        return;
    list_remove(&fetcher->under_way, &f->link);
    watcher.on_cancel(watcher.context, f);
}

size_t fetch_active(const struct fetcher *f)
{
    return list_count(&f->under_way);
}

void sim_network_watch(void (*on_start)(void *context, struct fetch *f),
                       void (*on_cancel)(void *context, struct fetch *f), void *context)
{
    watcher.on_start = on_start;
    watcher.on_cancel = on_cancel;
    watcher.context = context;
}

size_t sim_network_count(void)
{
    return list_count(&the_fetcher->under_way);
}

struct fetch *sim_network_at(size_t place)
{
    struct list_link *link = list_first(&the_fetcher->under_way);

    while (place-- > 0)
        link = list_next(&the_fetcher->under_way, link);
    return CONTAINER_OF(link, struct fetch, link);
}

void sim_network_answer(struct fetch *f, const struct fetch_result *result)
{
    list_remove(&the_fetcher->under_way, &f->link);
    f->on_done(f, result);
}
