/* Attempts by where they go. Several webhooks may lead to one host; when that hangs, what waits for
 * it must not hold the slots that all webhooks share. So a host has places, as many as it may have
 * connections, and a lane that finds none is parked. Each place that becomes free is kept for a
 * lane that has been parked for longest, which is called to the scheduler's ring; when its turn
 * comes and it has nothing to start any more, the place goes to the next.
 *
 * A host is an address: many names may lead to one. Lanes lead to an origin (scheme, name, port),
 * whose address is known when a connection to it was made; until then, and behind a proxy, it is a
 * host of its own. Parked lanes are its own list, and the origins of a host that have such take
 * turns: so one that turns out to lead to another address moves there in one step, with its
 * attempts under way and the lanes that wait. The map by origin is the fetcher's. */
#include "hooks/lane_host.h"
#include "base/mem.h"
#include "fetch/fetch.h"
#include "hooks/delivery_inner.h"
#include "hooks/hooks.h"

struct span lane_host_key(const void *item)
{
    const struct lane_host *host = item;

    return span_of((const char *)&host->address, sizeof(host->address));
}

static struct lane_host *host_get(struct deliveries *d, const struct in6_addr *address)
{
    struct lane_host *host = map_find(&d->hosts, span_of((const char *)address, sizeof(*address)));

    if (host != NULL)
        return host;
    host = NEW(struct lane_host);
    host->deliveries = d;
    host->address = *address;
    list_init(&host->parked);
    map_add(&d->hosts, host);
    return host;
}

static size_t places(const struct lane_host *host)
{
    return host->deliveries->hooks->connections_per_host;
}

/* Origins that have just come together in one host may have taken more than there are: then a place
 * that is kept is none. */
bool lane_origin_admits(const struct lane_origin *origin, bool is_called)
{
    return origin->host->taken < places(origin->host) + is_called;
}

void lane_origin_enter(struct lane_origin *origin)
{
    origin->refs++;
    origin->taken++;
    origin->host->taken++;
}

/* What is free is kept for those that wait, origin by origin. */
static void call_parked(struct lane_host *host)
{
    while (host->deliveries->is_started && host->taken < places(host) &&
           !list_empty(&host->parked)) {
        struct list_link *first = list_pop_front(&host->parked);
        struct lane_origin *origin = CONTAINER_OF(first, struct lane_origin, link);

        list_push_back(&host->parked, first);
        lane_origin_enter(origin);
        lane_call(list_first(&origin->parked));
    }
}

void lane_origin_leave(struct lane_origin *origin)
{
    if (origin == NULL)
        return;
    origin->taken--;
    origin->host->taken--;
    call_parked(origin->host);
    lane_origin_put(origin);
}

void lane_origin_line_up(struct lane_origin *origin)
{
    if (list_empty(&origin->parked) == !list_linked(&origin->link))
        return;
    if (list_empty(&origin->parked))
        list_remove(&origin->host->parked, &origin->link);
    else
        list_push_back(&origin->host->parked, &origin->link);
}

static void join_host(struct lane_origin *origin, struct lane_host *host)
{
    origin->host = host;
    host->origins++;
    host->taken += origin->taken;
    lane_origin_line_up(origin);
    call_parked(host);
}

static void part_with_host(struct lane_origin *origin)
{
    struct lane_host *host = origin->host;

    host->taken -= origin->taken;
    if (list_linked(&origin->link))
        list_remove(&host->parked, &origin->link);
    if (--host->origins > 0) {
        call_parked(host);
    } else if (host != &origin->own) {
        map_remove(&host->deliveries->hosts, lane_host_key(host));
        mem_free(host);
    }
}

void lane_origin_connected(struct lane_origin *origin)
{
    struct in6_addr address;
    struct lane_host *host;

    if (!fetch_origin_address(origin->fetch, &address))
        return;
    host = host_get(origin->own.deliveries, &address);
    if (host == origin->host)
        return;
    part_with_host(origin);
    join_host(origin, host);
}

static struct lane_origin *origin_new(struct deliveries *d, struct fetch_origin *fetch)
{
    struct lane_origin *origin = NEW(struct lane_origin);

    origin->fetch = fetch;
    origin->own.deliveries = d;
    list_init(&origin->parked);
    list_init(&origin->own.parked);
    join_host(origin, &origin->own);
    lane_origin_connected(origin); /* in the time of an earlier one, perhaps */
    return origin;
}

struct lane_origin *lane_origin_get(struct deliveries *d, struct span url)
{
    struct fetch_origin *fetch = fetch_origin_get(d->hooks->fetcher, url);
    void **user = fetch_origin_user(fetch);
    struct lane_origin *origin = *user;

    if (origin == NULL)
        *user = origin = origin_new(d, fetch);
    else
        fetch_origin_put(fetch); /* it holds one */
    origin->refs++;
    return origin;
}

void lane_origin_put(struct lane_origin *origin)
{
    if (origin == NULL || --origin->refs > 0)
        return;
    part_with_host(origin);
    *fetch_origin_user(origin->fetch) = NULL;
    fetch_origin_put(origin->fetch);
    mem_free(origin);
}
