/* A map of those that are remembered. Entries with failures are in the list `failed` as well, in
 * the order of their last one, and a timer forgets the front of it when its time has come: as a
 * bucket is full again a minute after the last failure at the latest, none stays for longer than
 * two.
 *
 * Whoever has a network of IPv6 often has 65 536 of them, a site: a /48. A site has failures too,
 * but neither connections nor requests, and stands in the same map, as an address that no network
 * is. */
#include "access/clients.h"

#include "io/timer.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/ip.h"
#include "io/loop.h"

#include <string.h>

enum { MINUTE_MS = 60000, COMPLAINT_MS = 1000, NETWORK_BYTES = 8, SITE_BYTES = 6, SITE_TIMES = 10 };

struct client {
    struct in6_addr network; /* the key */
    size_t connections, requests;
    unsigned fill_times; /* as fast as FailedSignInsPerMinute says its bucket fills */
    uint64_t full_at_us; /* when the bucket of failures is full again; loop clock */
    struct list_link failed;
};

struct clients {
    struct loop *loop;
    const struct limits *limits;
    struct map by_network;
    struct list failed;
    struct timer forget;
    size_t requests; /* of all, also of those without an address */
    uint64_t silent_until_ms;
};

static struct span network_key(const void *item)
{
    const struct client *client = item;

    return span_of((const char *)client->network.s6_addr, sizeof(client->network.s6_addr));
}

static struct in6_addr network_of(const struct in6_addr *ip)
{
    struct in6_addr network = *ip;

    if (!IN6_IS_ADDR_V4MAPPED(ip))
        memset(network.s6_addr + NETWORK_BYTES, 0, sizeof(network) - NETWORK_BYTES);
    return network;
}

/* False for IPv4. */
static bool has_site(const struct in6_addr *ip)
{
    return !IN6_IS_ADDR_V4MAPPED(ip);
}

static struct in6_addr site_of(const struct in6_addr *ip)
{
    struct in6_addr site = *ip;

    memset(site.s6_addr + SITE_BYTES, 0, sizeof(site) - SITE_BYTES);
    site.s6_addr[sizeof(site) - 1] = 1; /* where networks have 0 */
    return site;
}

static struct client *find_network(const struct clients *c, const struct in6_addr *network)
{
    const struct client wanted = {.network = *network};

    return map_find(&c->by_network, network_key(&wanted));
}

static struct client *find(const struct clients *c, const struct in6_addr *ip)
{
    struct in6_addr network;

    if (ip == NULL || map_count(&c->by_network) == 0)
        return NULL;
    network = network_of(ip);
    return find_network(c, &network);
}

static struct client *find_or_add_network(struct clients *c, const struct in6_addr *network,
                                          unsigned fill_times)
{
    struct client *client = find_network(c, network);

    if (client != NULL)
        return client;
    client = NEW(struct client);
    client->network = *network;
    client->fill_times = fill_times;
    map_add(&c->by_network, client);
    return client;
}

static struct client *find_or_add(struct clients *c, const struct in6_addr *ip)
{
    struct in6_addr network = network_of(ip);

    return find_or_add_network(c, &network, 1);
}

static void forget_unneeded(struct clients *c, struct client *client)
{
    if (client->connections > 0 || client->requests > 0 || list_linked(&client->failed))
        return;
    map_remove(&c->by_network, network_key(client));
    mem_free(client);
}

static void forget_failures(struct clients *c, struct client *client)
{
    list_remove(&c->failed, &client->failed);
    client->full_at_us = 0;
    forget_unneeded(c, client);
}

static struct client *first_failed(const struct clients *c)
{
    struct list_link *link = list_first(&c->failed);

    return link == NULL ? NULL : CONTAINER_OF(link, struct client, failed);
}

static uint64_t now_us(const struct clients *c)
{
    return loop_now_ms(c->loop) * 1000;
}

static void on_forget(struct timer *timer)
{
    struct clients *c = CONTAINER_OF(timer, struct clients, forget);
    struct client *first;

    while ((first = first_failed(c)) != NULL && first->full_at_us <= now_us(c))
        forget_failures(c, first);
    if (first != NULL)
        timer_start(c->loop, timer, (first->full_at_us - now_us(c) + 999) / 1000);
}

struct clients *clients_new(struct loop *loop, const struct limits *limits)
{
    struct clients *c = NEW(struct clients);

    c->loop = loop;
    c->limits = limits;
    map_init(&c->by_network, network_key);
    list_init(&c->failed);
    timer_init(&c->forget, on_forget);
    return c;
}

void clients_free(struct clients *c)
{
    struct client *first;

    if (c == NULL)
        return;
    timer_stop(c->loop, &c->forget);
    while ((first = first_failed(c)) != NULL)
        forget_failures(c, first);
    MUST(map_count(&c->by_network) == 0 && c->requests == 0);
    map_done(&c->by_network);
    mem_free(c);
}

size_t clients_count(const struct clients *c)
{
    return map_count(&c->by_network);
}

const struct in6_addr *client_address(const struct client *client)
{
    return &client->network;
}

static bool reaches(size_t count, int64_t limit)
{
    return limit > 0 && count >= (uint64_t)limit;
}

/* ---- connections ---- */

struct client *clients_connect(struct clients *c, const struct in6_addr *ip)
{
    struct client *client = find_or_add(c, ip);

    if (reaches(client->connections, c->limits->connections_per_address))
        return NULL;
    client->connections++;
    return client;
}

void clients_disconnect(struct clients *c, struct client *client)
{
    client->connections--;
    forget_unneeded(c, client);
}

/* ---- requests ---- */

/* While all together are less than one may have, there is nobody to be looked up. */
enum clients_verdict clients_may_request(const struct clients *c, const struct in6_addr *ip)
{
    const struct limits *limits = c->limits;
    const struct client *client;

    if (c->requests == 0) /* none of those begun before waits: no limit is less than one */
        return CLIENTS_WELCOME;
    if (reaches(c->requests, limits->requests))
        return CLIENTS_TOO_MANY;
    if (!reaches(c->requests, limits->requests_per_address))
        return CLIENTS_WELCOME;
    client = find(c, ip);
    return client != NULL && reaches(client->requests, limits->requests_per_address)
               ? CLIENTS_TOO_MANY_OF_ONE
               : CLIENTS_WELCOME;
}

struct client *clients_begin(struct clients *c, const struct in6_addr *ip)
{
    struct client *client = ip == NULL ? NULL : find_or_add(c, ip);

    c->requests++;
    if (client != NULL)
        client->requests++;
    return client;
}

void clients_end(struct clients *c, struct client *client)
{
    c->requests--;
    if (client == NULL)
        return;
    client->requests--;
    forget_unneeded(c, client);
}

/* ---- failed sign-ins ---- */

static uint64_t failures_most(const struct clients *c, const struct client *client)
{
    return (uint64_t)c->limits->failed_sign_ins_per_minute * client->fill_times;
}

/* The bucket is kept as the time when it will be full: one that lacks n is full after n times this,
 * and empty when it lacks all. In microseconds, for a site's fills fast. */
static uint64_t fill_us(const struct clients *c, const struct client *client)
{
    return MINUTE_MS * UINT64_C(1000) / failures_most(c, client);
}

static unsigned wait_s(const struct clients *c, const struct client *client)
{
    uint64_t open_at_us;

    if (client == NULL || client->full_at_us == 0)
        return 0;
    open_at_us = now_us(c) + (failures_most(c, client) - 1) * fill_us(c, client);
    return client->full_at_us <= open_at_us
               ? 0
               : (unsigned)((client->full_at_us - open_at_us + 999999) / 1000000);
}

unsigned clients_sign_in_wait_s(const struct clients *c, const struct in6_addr *ip)
{
    struct in6_addr site;
    unsigned own_s;

    if (list_empty(&c->failed) || ip == NULL)
        return 0;
    own_s = wait_s(c, find(c, ip));
    if (!has_site(ip))
        return own_s;
    site = site_of(ip);
    return MAX(own_s, wait_s(c, find_network(c, &site)));
}

/* In the range of multicast addresses (RFC 4291, section 2.7), which no connection comes from. */
struct in6_addr clients_of_key(struct span tenant, struct span name)
{
    struct in6_addr ip = {.s6_addr = {0xff}};
    uint8_t digest[DIGEST_BYTES];
    struct buf text;

    buf_init(&text, BUF_NO_CAP);
    buf_add(&text, tenant);
    buf_add_char(&text, '\n'); /* in neither */
    buf_add(&text, name);
    digest_sha256(buf_span(&text), digest);
    memcpy(ip.s6_addr + 1, digest, sizeof(ip) - 1);
    buf_done(&text);
    return ip;
}

/* One line a second at most, however many addresses guess. */
static void complain(struct clients *c, const struct in6_addr *ip, uint64_t now_ms)
{
    char text[INET6_ADDRSTRLEN];

    if (now_ms < c->silent_until_ms)
        return;
    c->silent_until_ms = now_ms + COMPLAINT_MS;
    log_warn("access", "%s: too many wrong API keys",
             IN6_IS_ADDR_MULTICAST(ip) ? "a key that writes webhooks" : ip_text(ip, text));
}

static void note_failure(struct clients *c, struct client *client)
{
    client->full_at_us = MAX(client->full_at_us, now_us(c)) + fill_us(c, client);
    if (list_linked(&client->failed))
        list_remove(&c->failed, &client->failed);
    list_push_back(&c->failed, &client->failed);
    if (list_count(&c->failed) > CLIENTS_FAILED_MOST)
        forget_failures(c, CONTAINER_OF(list_first(&c->failed), struct client, failed));
    if (!timer_running(&c->forget))
        timer_start(c->loop, &c->forget, (client->full_at_us - now_us(c) + 999) / 1000);
}

void clients_sign_in_failed(struct clients *c, const struct in6_addr *ip)
{
    struct in6_addr site;

    if (ip == NULL || c->limits->failed_sign_ins_per_minute == 0)
        return;
    note_failure(c, find_or_add(c, ip));
    if (has_site(ip)) {
        site = site_of(ip);
        note_failure(c, find_or_add_network(c, &site, SITE_TIMES));
    }
    if (clients_sign_in_wait_s(c, ip) > 0)
        complain(c, ip, loop_now_ms(c->loop));
}
