/* Which connections are this process's own. One that a webhook leads to this server itself comes
 * from loopback, as a proxy's does, but says what the webhook's maker wants. */
#include "fetch_private.h"

static struct span key_of(const void *item)
{
    const struct fetch_conn *c = item;

    return span_of((const char *)&c->ends, sizeof(c->ends));
}

void fetch_own_init(struct fetcher *f)
{
    map_init(&f->own, key_of);
}

void fetch_own_done(struct fetcher *f)
{
    map_done(&f->own);
}

void fetch_own_add(struct fetch_conn *c)
{
    c->has_ends = ip_ends_of(fetch_socket_fd(c->socket), &c->ends);
    if (c->has_ends && map_find(&c->fetcher->own, key_of(c)) == NULL)
        map_add(&c->fetcher->own, c);
}

void fetch_own_remove(struct fetch_conn *c)
{
    struct map *own = &c->fetcher->own;

    if (c->has_ends && map_find(own, key_of(c)) == c)
        map_remove(own, key_of(c));
    c->has_ends = false;
}

bool fetch_is_own(const struct fetcher *f, const struct ip_ends *ends)
{
    const struct fetch_conn wanted = {.ends = ip_ends_reversed(ends)};

    return map_count(&f->own) > 0 && map_find(&f->own, key_of(&wanted)) != NULL;
}
