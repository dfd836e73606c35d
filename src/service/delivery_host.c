/* Attempts by where they go. Several webhooks may have one host for a receiver; when that hangs,
 * what waits for its connections must not hold the slots that all webhooks share. So a host has
 * places, enough to keep its connections busy, and a lane that finds none is parked. Each place
 * that becomes free is kept for the lane that has been parked for longest, which is called to the
 * scheduler's ring; when its turn comes and it has nothing to start any more, the place goes to the
 * next. */
#include "base/mem.h"
#include "base/must.h"
#include "service/delivery_inner.h"

#include <string.h>

/* Of its connections' number: a place for one that is under way and for one to follow it at once.
 */
enum { PLACES_A_CONNECTION = 2 };

struct delivery_host {
    struct deliveries *deliveries;
    unsigned refs;    /* lanes that lead to it, and attempts */
    size_t in_flight; /* attempts */
    size_t called;    /* lanes in the ring for which a place is kept */
    struct list parked;
    size_t origin_bytes;
    char origin[];
};

static struct span host_key(const void *item)
{
    const struct delivery_host *host = item;

    return span_of(host->origin, host->origin_bytes);
}

void hosts_init(struct deliveries *d)
{
    map_init(&d->hosts, host_key);
}

void hosts_done(struct deliveries *d)
{
    map_done(&d->hosts);
}

struct delivery_host *host_get(struct deliveries *d, struct span origin)
{
    struct delivery_host *host = map_find(&d->hosts, origin);

    if (host == NULL) {
        host = mem_zero(sizeof(*host) + origin.n);
        host->deliveries = d;
        list_init(&host->parked);
        host->origin_bytes = origin.n;
        memcpy(host->origin, origin.p, origin.n);
        map_add(&d->hosts, host);
    }
    host->refs++;
    return host;
}

void host_put(struct delivery_host *host)
{
    if (host == NULL || --host->refs > 0)
        return;
    map_remove(&host->deliveries->hosts, host_key(host));
    mem_free(host);
}

static bool has_place(const struct delivery_host *host)
{
    size_t connections = host->deliveries->service->connections_per_host;

    return host->in_flight + host->called < connections * PLACES_A_CONNECTION;
}

bool host_admits(const struct lane *lane)
{
    return lane->host == NULL || lane->is_called || has_place(lane->host);
}

static void call_parked(struct delivery_host *host)
{
    struct list_link *link;

    while (host->deliveries->is_started && has_place(host) &&
           (link = list_first(&host->parked)) != NULL) {
        struct lane *lane = CONTAINER_OF(link, struct lane, ready_link);

        host->called++;
        lane_call(lane);
        lane->is_called = true;
    }
}

struct list *host_parked(struct delivery_host *host)
{
    return &host->parked;
}

void host_uncall(struct lane *lane)
{
    if (!lane->is_called)
        return;
    lane->is_called = false;
    lane->host->called--;
    call_parked(lane->host);
}

struct delivery_host *host_enter(struct lane *lane)
{
    struct delivery_host *host = lane->host;

    if (host == NULL)
        return NULL;
    host->refs++;
    host->in_flight++;
    host->called -= lane->is_called;
    lane->is_called = false;
    return host;
}

void host_leave(struct delivery_host *host)
{
    if (host == NULL)
        return;
    host->in_flight--;
    call_parked(host);
    host_put(host);
}
