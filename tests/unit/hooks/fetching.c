#include "fetching.h"

#include "fetch/fetch_url.h"

#include <string.h>

struct fetcher {
    struct list under_way, origins;
};

static struct fetcher *the_fetcher; /* there is one at a time */
size_t starts;

struct err *fetcher_new(struct loop *l, struct resolver *r, const struct egress_rules *rules,
                        const struct fetch_options *options, struct fetcher **out_fetcher)
{
    (void)l, (void)r, (void)rules, (void)options;
    the_fetcher = *out_fetcher = NEW(struct fetcher);
    list_init(&the_fetcher->under_way);
    list_init(&the_fetcher->origins);
    starts = 0;
    return NULL;
}

void fetcher_free(struct fetcher *f)
{
    struct list_link *link;

    if (f == NULL)
        return;
    ck_assert(list_empty(&f->under_way));
    while ((link = list_pop_front(&f->origins)) != NULL) {
        struct fetch_origin *origin = CONTAINER_OF(link, struct fetch_origin, link);

        ck_assert(origin->refs == 0 && origin->user == NULL);
        mem_free(origin);
    }
    mem_free(f);
}

struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url)
{
    struct span text = fetch_url_origin(url);
    struct fetch_origin *origin;

    LIST_EACH(&f->origins, at) {
        origin = CONTAINER_OF(at, struct fetch_origin, link);
        if (span_eq(fetch_origin_text(origin), text)) {
            origin->refs++;
            return origin;
        }
    }
    origin = NEW(struct fetch_origin);
    origin->refs = 1;
    ck_assert_uint_lt(text.n, sizeof(origin->text));
    memcpy(origin->text, text.p, text.n);
    list_push_back(&f->origins, &origin->link);
    return origin;
}

void fetch_origin_put(struct fetch_origin *origin)
{
    if (origin == NULL)
        return;
    ck_assert(origin->refs > 1 || (origin->refs == 1 && origin->user == NULL));
    origin->refs--;
}

struct span fetch_origin_text(const struct fetch_origin *origin)
{
    return span_str(origin->text);
}

void **fetch_origin_user(struct fetch_origin *origin)
{
    return &origin->user;
}

bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address)
{
    memset(out_address, origin->address, sizeof(*out_address));
    return origin->address != 0;
}

void fetch_start(struct fetcher *f, struct fetch *fetch)
{
    ck_assert(fetch->origin->refs > 0);
    ck_span_is(fetch_url_origin(fetch->url), fetch_origin_text(fetch->origin));
    list_push_back(&f->under_way, &fetch->link);
    starts++;
}

void fetch_cancel(struct fetcher *f, struct fetch *fetch)
{
    if (list_linked(&fetch->link))
        list_remove(&f->under_way, &fetch->link);
}

size_t fetch_active(const struct fetcher *f)
{
    return list_count(&f->under_way);
}

static bool goes_to(const struct fetch *fetch, const char *origin)
{
    return origin == NULL || strcmp(fetch->origin->text, origin) == 0;
}

size_t under_way(const char *origin)
{
    size_t count = 0;

    LIST_EACH(&the_fetcher->under_way, at)
        count += goes_to(CONTAINER_OF(at, struct fetch, link), origin);
    return count;
}

struct fetch *oldest(const char *origin)
{
    LIST_EACH(&the_fetcher->under_way, at)
        if (goes_to(CONTAINER_OF(at, struct fetch, link), origin))
            return CONTAINER_OF(at, struct fetch, link);
    ck_abort_msg("nothing is under way to %s", origin == NULL ? "anybody" : origin);
}

void connect_one(const char *origin, uint8_t address)
{
    struct fetch *fetch = oldest(origin);

    fetch->origin->address = address;
    fetch->on_connected(fetch);
}

void answer_with(const char *origin, int status, int64_t retry_after_s, uint32_t took_ms)
{
    const struct fetch_result result = {
        .status = status, .retry_after_s = retry_after_s, .total_ms = took_ms};
    struct fetch *fetch = oldest(origin);

    list_remove(&the_fetcher->under_way, &fetch->link);
    fetch->on_done(fetch, &result);
}

void answer(const char *origin, int status)
{
    answer_with(origin, status, -1, 3);
}
