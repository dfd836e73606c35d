/* The set-up list and its exact reverse. Everything is made over an empty store; the replay then
 * goes through the same code as live changes. */
#include "admin/service.h"

#include "admin/builtin.h"
#include "base/mem.h"
#include "hooks/retention.h"
#include "rest/declaration.h"

static struct err *index_builtin(const struct resource_definition *definition,
                                 struct resource *resource)
{
    enum { MOST = 8 };
    struct span indexed[MOST];
    size_t count = 0;

    if (resource->collection == NULL)
        return NULL;
    for (size_t i = 0; i < definition->shape->count && count < MOST; i++)
        if ((definition->shape->properties[i].flags & PROPERTY_INDEXED) != 0)
            indexed[count++] = definition->shape->properties[i].name;
    return collection_set_indexes(resource->collection, definition->shape, indexed, count);
}

static struct err *add_builtins(struct service *s)
{
    static const struct resource_definition *const definitions[] = {
#define BUILTIN_AS_POINTER(definition) &definition,
        BUILTIN_RESOURCES(BUILTIN_AS_POINTER)
#undef BUILTIN_AS_POINTER
    };

    for (size_t i = 0; i < ARRAY_LEN(definitions); i++)
        TRY(index_builtin(definitions[i],
                          resources_add_builtin(&s->resources, s->store, definitions[i])));
    return NULL;
}

static struct err *make_outgoing(struct service *s, const struct service_options *options)
{
    TRY(resolver_new(s->loop, &options->resolve, &s->resolver));
    return fetcher_new(s->loop, s->resolver, &s->egress, &options->fetch, &s->fetcher);
}

static void on_journal_failed(void *context, const char *why)
{
    struct service *s = context;

    mem_free(s->failed);
    s->failed = mem_string(span_str(why));
    deliveries_stop(s->deliveries);
    if (s->on_failed != NULL)
        s->on_failed(s->on_failed_context);
}

struct err *service_new(struct loop *loop, struct service_options *options,
                        struct service **out_service)
{
    struct service *s = NEW(struct service);
    struct err *e;

    s->loop = loop;
    s->limits = options->limits;
    s->retention = options->retention;
    s->base_path = span_str(options->base_path);
    s->cors_origins = options->cors_origins;
    s->delivery_in_flight = options->delivery_in_flight;
    s->connections_per_host =
        options->connections_per_host != 0 ? options->connections_per_host : CONNECTIONS_PER_HOST;
    s->access = options->access;
    s->egress = options->egress;
    access_init(&options->access);
    egress_init(&options->egress);
    metrics_init(&s->metrics);
    s->clients = clients_new(loop, &s->limits);
    s->store = store_new();
    s->turn = turn_new(loop, s->store);
    turn_on_failed(s->turn, on_journal_failed, s);
    scans_init(&s->scans, loop);
    resources_init(&s->resources);
    s->events = events_new(s);
    s->once = once_new(s->store, s->retention.idempotency_seconds);
    s->deliveries = deliveries_new(s);
    retention_init(s);
    TRY_GOTO(e, add_builtins(s), failed);
    s->webhooks = webhooks_new(s);
    declarations_observe(s);
    TRY_GOTO(e, make_outgoing(s, options), failed);
    *out_service = s;
    return NULL;

failed:
    service_free(s);
    return e;
}

static void on_commit_time(void *context, uint64_t ns)
{
    struct service *s = context;

    histogram_add(&s->metrics.journal_sync, ns);
}

struct err *service_open(struct service *s, const struct turn_options *options)
{
    TRY(turn_open(s->turn, options));
    journal_on_timing(turn_journal(s->turn), on_commit_time, s);
    return NULL;
}

void service_start(struct service *s)
{
    retention_wake(s);
    deliveries_start(s->deliveries);
}

void service_drain(struct service *s)
{
    s->is_draining = true;
    deliveries_stop(s->deliveries);
}

void service_free(struct service *s)
{
    if (s == NULL)
        return;
    retention_stop(s);
    deliveries_free(s->deliveries);
    fetcher_free(s->fetcher);
    resolver_free(s->resolver);
    once_free(s->once);
    events_free(s->events);
    webhooks_free(s->webhooks);
    resources_done(&s->resources);
    turn_free(s->turn);
    store_free(s->store);
    clients_free(s->clients);
    egress_done(&s->egress);
    access_done(&s->access);
    mem_free(s->failed);
    mem_free(s);
}
