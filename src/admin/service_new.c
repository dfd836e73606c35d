/* The set-up list. Everything is made over an empty store; the replay then goes through the same
 * code as live changes. */
#include "admin/service.h"

#include "access/mask.h"
#include "admin/builtin.h"
#include "admin/service_options.h"
#include "base/mem.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "resource/declaration.h"
#include "rest/cluster_view.h"
#include "rest/metrics.h"
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
    dispatch_init(&s->rest);
    s->rest.mask->header_names = options->secret_headers;
    api_keys_replace(s->rest.api_keys, &options->access);
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
