/* The parts of this floor, set up and taken down in reverse, and what they do when something
 * changes below: a stored entity raises its event, webhooks follow the declarations. */
#include "hooks/hooks.h"

#include "access/access.h"
#include "base/mem.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/event_raise.h"
#include "hooks/forgotten.h"
#include "hooks/retention.h"
#include "hooks/share.h"
#include "protocol/cloudevents.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/once.h"
#include "webhook/webhook.h"
#include "webhook/webhook_lanes.h"
#include "webhook/worst.h"

void hooks_init(struct hooks *hooks, const struct hooks_options *options)
{
    struct rest *rest = options->rest;

    *hooks = (struct hooks){
        .rest = rest,
        .loop = rest->loop,
        .store = rest->store,
        .turn = rest->turn,
        .limits = rest->limits,
        .metrics = rest->metrics,
        .fetcher = options->fetcher,
        .egress = options->egress,
        .retention_limits = options->retention,
        .in_flight_most = options->in_flight_most,
        .connections_per_host = options->connections_per_host != 0 ? options->connections_per_host
                                                                   : HOOKS_CONNECTIONS_PER_HOST,
        .body_bytes_most =
            options->body_bytes_most != 0 ? options->body_bytes_most : HOOKS_BODY_BYTES,
        .prompt_ms = options->prompt_ms != 0 ? options->prompt_ms : PACING_PROMPT_MS,
        .cloudevents_source = options->cloudevents_source,
        .cloudevents_origin = cloudevents_host(options->cloudevents_source),
    };
    hooks->worst = NEW(struct worst);
    hooks->events = events_new(hooks);
    hooks->once = once_new(hooks->store, options->retention->idempotency_seconds);
    hooks->shares = shares_new(hooks);
    hooks->deliveries = deliveries_new(hooks);
    hooks->forgotten = forgotten_new(hooks);
    hooks->retention = retention_new(hooks);
}

static const enum resource_event events[METHOD_COUNT] = {
    [METHOD_POST] = EVENT_INSERTED,
    [METHOD_PATCH] = EVENT_UPDATED,
    [METHOD_DELETE] = EVENT_DELETED,
};

/* The key's, else the entity's: of a declared resource with that property. */
static struct span tenant_of_change(const struct call *call, struct json_value entity)
{
    const struct shape *shape = call->resource->shape;
    struct span text;

    if (call->key != NULL && call->key->tenant.n > 0)
        return call->key->tenant;
    if (shape->dynamic || shape_find(shape, SPAN("Tenant")) == NULL)
        return span_of(NULL, 0);
    text = json_string(json_member_fold(entity, SPAN("Tenant")), call->arena);
    return access_is_tenant(text) ? text : span_of(NULL, 0);
}

/* In the same change that stores the entity. */
static struct err *raise_event(void *context, struct call *call, enum method verb, struct span json)
{
    struct hooks *hooks = context;
    struct span name = call->resource->events[events[verb]];
    struct resource *resource =
        name.p == NULL ? NULL : resource_named(hooks->rest->resources, name);
    struct event_raised raised;
    struct event_draft draft;

    if (resource == NULL)
        return NULL; /* there is none, or its declaration was deleted since */
    draft = (struct event_draft){
        .resource = resource,
        .payload = arena_printf(call->arena, "[%.*s]", SPAN_FMT(json)),
        .entities = entity_parse(json, call->arena),
        .depth = request_depth(call->request),
        .chain = call->request->chain,
    };
    draft.tenant = tenant_of_change(call, draft.entities);
    if (verb != METHOD_DELETE)
        change_entity_read(call->change, draft.entities);
    retention_wake(hooks->retention);
    return event_raise(hooks, &draft, call->change, &raised);
}

static void on_error_stored(void *context)
{
    struct hooks *hooks = context;

    retention_wake(hooks->retention);
}

static void make_room(void *context)
{
    struct hooks *hooks = context;

    retention_make_room(hooks->retention);
}

static void detach(void *context, struct resource *resource)
{
    struct hooks *hooks = context;

    webhooks_detach(hooks->webhooks, resource);
}

static struct err *settle(void *context, struct arena *a, uint64_t *out_serial)
{
    struct hooks *hooks = context;

    return webhooks_settle(hooks->webhooks, a, out_serial);
}

/* Those whose owner has lost its right match nothing from now on, also when they cannot be paused
 * for want of room on the disk. */
static struct err *keys_changed(void *context, struct span name, struct arena *a,
                                uint64_t *out_serial)
{
    struct hooks *hooks = context;

    *out_serial = 0;
    if (!webhooks_detach_unowned(hooks->webhooks, name))
        return NULL;
    return webhooks_settle(hooks->webhooks, a, out_serial);
}

void hooks_observe(struct hooks *hooks)
{
    hooks->lanes = NEW(struct webhook_lanes);
    *hooks->lanes = deliveries_as_lanes(hooks->deliveries);
    hooks->webhooks = webhooks_new(hooks->rest, hooks->lanes);
    hooks->rest->observer =
        (struct rest_observer){hooks, raise_event, on_error_stored, make_room, keys_changed};
    hooks->rest->resources->observer = (struct resources_observer){hooks, detach, settle};
}

void hooks_start(struct hooks *hooks)
{
    retention_wake(hooks->retention);
    deliveries_start(hooks->deliveries);
}

void hooks_stop(struct hooks *hooks)
{
    retention_free(TAKE(hooks->retention));
    deliveries_free(TAKE(hooks->deliveries));
}

void hooks_done(struct hooks *hooks)
{
    hooks_stop(hooks);
    forgotten_free(hooks->forgotten);
    once_free(hooks->once);
    events_free(hooks->events);
    webhooks_free(hooks->webhooks);
    shares_free(hooks->shares);
    mem_free(hooks->lanes);
    mem_free(hooks->worst);
}
