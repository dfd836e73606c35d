/* Origins: scheme, host and port. Each has the connections that are kept open to it, and a place of
 * libcurl's for its TLS sessions: one that all shared would hold eight sessions, for however many
 * hosts. An origin that nobody refers to is kept, so that the next delivery to a host that has
 * closed its connection still resumes its session; of those, a bounded number. */
#include "fetch_private.h"

#include "base/mem.h"
#include "base/must.h"
#include "fetch/fetch_url.h"

#include <string.h>

enum { UNUSED_MOST = 1024 };

static struct span key(const void *item)
{
    const struct fetch_origin *origin = item;

    return span_of(origin->text, origin->bytes);
}

static struct fetch_origin *origin_new(struct fetcher *f, struct span text)
{
    struct fetch_origin *origin = mem_zero(sizeof(*origin) + text.n + 1);

    origin->fetcher = f;
    origin->bytes = text.n;
    memcpy(origin->text, text.p, text.n);
    list_init(&origin->kept);
    origin->is_tls = span_istarts(text, SPAN("https://"));
    origin->is_usable = fetch_target_parse(key(origin), &origin->target);
    map_add(&f->origins, origin);
    return origin;
}

static void origin_free(struct fetch_origin *origin)
{
    struct fetcher *f = origin->fetcher;

    MUST(origin->user == NULL && list_empty(&origin->kept));
    list_remove(&f->unused_origins, &origin->unused);
    map_remove(&f->origins, key(origin));
    curl_share_cleanup(origin->share);
    mem_free(origin);
}

static void free_oldest_unused(struct fetcher *f)
{
    origin_free(CONTAINER_OF(list_first(&f->unused_origins), struct fetch_origin, unused));
}

struct fetch_origin *fetch_origin_ref(struct fetch_origin *origin)
{
    if (origin->refs++ == 0 && list_linked(&origin->unused))
        list_remove(&origin->fetcher->unused_origins, &origin->unused);
    return origin;
}

struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url)
{
    struct span text = fetch_url_origin(url);
    struct fetch_origin *origin = map_find(&f->origins, text);

    return fetch_origin_ref(origin != NULL ? origin : origin_new(f, text));
}

void fetch_origin_put(struct fetch_origin *origin)
{
    struct fetcher *f;

    if (origin == NULL || --origin->refs > 0)
        return;
    f = origin->fetcher;
    list_push_back(&f->unused_origins, &origin->unused);
    if (list_count(&f->unused_origins) > UNUSED_MOST)
        free_oldest_unused(f);
}

struct span fetch_origin_text(const struct fetch_origin *origin)
{
    return key(origin);
}

void **fetch_origin_user(struct fetch_origin *origin)
{
    return &origin->user;
}

bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address)
{
    if (origin->has_address)
        *out_address = origin->address;
    return origin->has_address;
}

void fetch_origins_init(struct fetcher *f)
{
    map_init(&f->origins, key);
    list_init(&f->unused_origins);
}

void fetch_origins_done(struct fetcher *f)
{
    while (!list_empty(&f->unused_origins))
        free_oldest_unused(f);
    MUST(map_count(&f->origins) == 0);
    map_done(&f->origins);
}
