#include "network.h"

#include "base/mem.h"
#include "base/must.h"

struct fetcher {
    struct list under_way;
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
    the_fetcher = *out_fetcher = f;
    return NULL;
}

void fetcher_free(struct fetcher *f)
{
    if (f == NULL)
        return;
    while (list_pop_front(&f->under_way) != NULL)
        continue;
    mem_free(f);
    the_fetcher = NULL;
}

void fetch_start(struct fetcher *fetcher, struct fetch *f)
{
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

const char *fetch_error_text(enum fetch_error error)
{
    static const char *const texts[] = {
#define FETCH_AS_TEXT(symbol, text) [symbol] = text,
        FETCH_ERRORS(FETCH_AS_TEXT)
#undef FETCH_AS_TEXT
    };

    return texts[error];
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
