/* The set-up list, what the service does as a whole, and the exact reverse. Everything is made over
 * an empty store; the replay then goes through the same code as live changes. */
#include "admin/service.h"

#include "access/mask.h"
#include "admin/builtin.h"
#include "admin/service_options.h"
#include "base/mem.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "hooks/delivery.h"
#include "journal/journal.h"
#include "resource/declaration.h"
#include "rest/api_key.h"
#include "rest/cluster_view.h"
#include "rest/metrics.h"
#include "rest/stream.h"
#include "store/store.h"
#include "store/turn.h"

/* What is read and deleted is served from a full disk too. */
static bool is_ready(const void *context)
{
    const struct service *s = context;

    return !s->is_draining && s->failed == NULL &&
           (s->rest.cluster == NULL || s->rest.cluster->is_ready);
}

static void make_rest(struct service *s, struct loop *loop, struct service_options *options)
{
    s->rest = (struct rest){
        .loop = loop,
        .store = s->store,
        .turn = s->turn,
        .limits = &s->limits,
        .metrics = s->metrics,
        .base_path = span_str(options->base_path),
        .cors_origins = options->cors_origins,
        .hosts = options->hosts,
        .cloudevents_origins = options->cloudevents_origins,
        .is_ready = is_ready,
        .ready_context = s,
        .answer_page = console_answer,
    };
    rest_init(&s->rest);
    s->rest.mask->header_names = options->secret_headers;
    rest_set_access(&s->rest, &options->access);
}

static struct err *make_hooks(struct service *s, const struct service_options *options)
{
    struct loop *loop = s->rest.loop;

    TRY(resolver_new(loop, &options->resolve, &s->resolver));
    TRY(fetcher_new(loop, s->resolver, s->egress, &options->fetch, &s->fetcher));
    hooks_init(&s->hooks, &(struct hooks_options){
                              .rest = &s->rest,
                              .fetcher = s->fetcher,
                              .egress = s->egress,
                              .retention = &s->retention,
                              .in_flight_most = options->delivery_in_flight,
                              .connections_per_host = options->connections_per_host,
                              .body_bytes_most = options->body_bytes_in_flight,
                              .prompt_ms = options->prompt_ms,
                              .cloudevents_source = span_str(options->cloudevents_source),
                          });
    return NULL;
}

struct err *service_new(struct loop *loop, struct service_options *options,
                        struct service **out_service)
{
    struct service *s = NEW(struct service);
    struct err *e;

    s->limits = options->limits;
    s->retention = options->retention;
    s->egress = NEW(struct egress_rules);
    *s->egress = options->egress;
    egress_init(&options->egress);
    s->metrics = NEW(struct metrics);
    metrics_init(s->metrics);
    s->store = store_new();
    s->turn = turn_new(loop, s->store);
    make_rest(s, loop, options);
    TRY_GOTO(e, make_hooks(s, options), failed);
    TRY_GOTO(e, builtin_add_all(s), failed);
    hooks_observe(&s->hooks);
    declarations_observe(s->rest.resources);
    *out_service = s;
    return NULL;

failed:
    service_free(s);
    return e;
}

static void on_journal_failed(void *context, const char *why)
{
    struct service *s = context;

    mem_free(s->failed);
    s->failed = mem_string(span_str(why));
    deliveries_stop(s->hooks.deliveries);
    if (s->on_failed != NULL)
        s->on_failed(s->on_failed_context);
}

void service_join_cluster(struct service *s)
{
    resources_add_builtin(s->rest.resources, &res_node, s);
}

struct err *service_replay(struct service *s, const struct turn_options *options)
{
    turn_on_failed(s->turn, on_journal_failed, s);
    TRY(turn_open(s->turn, options));
    journal_time_commits(turn_journal(s->turn), &s->metrics->journal_sync);
    return NULL;
}

void service_start(struct service *s)
{
    hooks_start(&s->hooks);
}

void service_drain(struct service *s)
{
    s->is_draining = true;
    api_keys_write_uses(s->rest.api_keys);
    streams_drain(s->rest.streams);
    deliveries_stop(s->hooks.deliveries);
}

void service_free(struct service *s)
{
    if (s == NULL)
        return;
    turn_settle(s->turn);
    hooks_stop(&s->hooks);
    fetcher_free(s->fetcher);
    resolver_free(s->resolver);
    hooks_done(&s->hooks);
    rest_done(&s->rest);
    turn_free(s->turn);
    store_free(s->store);
    mem_free(s->metrics);
    egress_done(s->egress);
    mem_free(s->egress);
    mem_free(s->failed);
    mem_free(s);
}
