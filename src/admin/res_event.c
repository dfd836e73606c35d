/* Svc.Event: applications raise events here, and read back those that are kept
 * (docs/specification.md, section 7). */
#include "access/access.h"
#include "admin/builtin.h"
#include "base/budget.h"
#include "hooks/event.h"
#include "hooks/event_post.h"
#include "hooks/forgotten.h"
#include "hooks/hooks.h"
#include "hooks/payload.h"
#include "query/query.h"
#include "query/shape.h"
#include "rest/crud.h"
#include "rest/evaluation.h"
#include "rest/rendered.h"
#include "rest/stream.h"

static const struct property properties[] = {
    ID_PROPERTY("ID of the event, the webhook-id of its deliveries"),
    {.name = SPAN_INIT("Resource"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .meaning = SPAN_INIT("The event resource")},
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When it was raised"),
    READ_ONLY_PROPERTY("ContentType", TYPE_STRING, 0, "Media type of the payload"),
    {.name = SPAN_INIT("Payload"),
     .type = TYPE_ANY,
     .flags = PROPERTY_REQUIRED | PROPERTY_PAYLOAD,
     .meaning = SPAN_INIT("An entity, or an array of them; binary payloads show as base64")},
    {.name = SPAN_INIT("ClientId"),
     .type = TYPE_STRING,
     .meaning =
         SPAN_INIT("The client's own Id, which makes raising it idempotent: 1 to 255 visible "
                   "ASCII characters; of a CloudEvent its source and id")},
    {.name = SPAN_INIT("Tenant"),
     .type = TYPE_STRING,
     .meaning = SPAN_INIT("Whose it is: webhooks of other tenants do not get it")},
    {.name = SPAN_INIT("WebhookId"),
     .type = TYPE_STRING,
     .flags = PROPERTY_SENT,
     .meaning = SPAN_INIT("In a POST: the one webhook that the event may match; not kept")},
    READ_ONLY_PROPERTY("ce", TYPE_OBJECT, 0, "Attributes of what came as a CloudEvent; else null"),
    READ_ONLY_PROPERTY("Webhooks", TYPE_INTEGER, 0, "Number of webhooks that it matched"),
    OBJECT_NO_PROPERTY,
};

static const struct shape shape = {
    .properties = properties, .count = ARRAY_LEN(properties), .name = SPAN_INIT("Svc.Event")};

struct cursor {
    struct events *events;
    struct event *event;
    struct span tenant;    /* empty: those of all */
    struct span client_id; /* empty: those of any */
    struct span only;      /* the event resource that is asked for; empty: any */
    bool is_single;
    bool is_turned; /* from the last one back */
    bool reads_all;
    uint64_t above; /* of those with a higher ObjectNo */
    /* What the key may do with the events of the resource that was looked at last. */
    struct span resource;
    bool reads;
};

static struct event *first(const struct cursor *at)
{
    if (at->client_id.n > 0)
        return events_first_of(at->events, EVENT_CLIENT, at->client_id);
    if (at->tenant.n > 0)
        return at->is_turned ? events_last_of(at->events, EVENT_TENANT, at->tenant)
                             : events_first_of(at->events, EVENT_TENANT, at->tenant);
    return at->is_turned ? events_last(at->events) : events_first(at->events);
}

static struct event *after(const struct cursor *at)
{
    if (at->client_id.n > 0)
        return events_next_of(at->event, EVENT_CLIENT);
    if (at->tenant.n > 0)
        return at->is_turned ? events_previous_of(at->event, EVENT_TENANT)
                             : events_next_of(at->event, EVENT_TENANT);
    return at->is_turned ? events_previous(at->events, at->event)
                         : events_next(at->events, at->event);
}

static struct event *next_event(struct cursor *at)
{
    if (at->is_single)
        return TAKE(at->event);
    at->event = at->event == NULL ? first(at) : after(at);
    return at->event;
}

/* Another resource need not be read back and written to find that out. */
static bool is_passed_over(const struct cursor *at, const struct event *event)
{
    return event->object_no <= at->above || (at->only.n > 0 && !span_eq(at->only, event->resource));
}

static bool may_read(const struct call *call, struct cursor *at, const struct event *event)
{
    if (at->reads_all)
        return true;
    if (!span_eq(at->resource, event->resource)) {
        at->resource = event->resource;
        at->reads = access_allows(call->key, event->resource, METHOD_GET);
    }
    return at->reads;
}

/* Only events of resources that the key may GET. */
static void *next_readable(struct rendered *r)
{
    struct cursor *at = r->cursor;
    struct event *event = next_event(at);

    while (event != NULL && (is_passed_over(at, event) || !may_read(r->call, at, event)))
        event = budget_ask(16) ? next_event(at) : NULL;
    return event;
}

static void turn_back(struct query_source *source)
{
    struct cursor *at = CONTAINER_OF(source, struct rendered, source)->cursor;

    at->is_turned = true;
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    event_add_json(hooks_of(r->call)->events, object, b);
}

static struct err *open_source(struct call *call)
{
    struct events *events = hooks_of(call)->events;
    const struct conditions *conditions = &call->query->conditions;
    struct cursor *at = ARENA_NEW(call->arena, struct cursor);
    struct rendered *r;
    struct uuid id;

    TRY(evaluation_begin_reading(call->rest));
    crud_shows(call, events_version(events));
    at->events = events;
    at->reads_all = access_reads_all(call->key);
    at->is_single = rendered_wanted_id(call, SPAN("Id"), &id);
    if (at->is_single)
        at->event = events_find(events, &id);
    else if (!conditions_string(conditions, SPAN("ClientId"), &at->client_id))
        conditions_string(conditions, SPAN("Tenant"), &at->tenant);
    conditions_string(conditions, SPAN("Resource"), &at->only);
    at->above = conditions_above(conditions, SPAN("ObjectNo"));
    r = rendered_open(call, next_readable, add_json);
    r->cursor = at;
    rendered_by_object_no(r);
    if (!at->is_single && at->client_id.n == 0)
        r->source.turn_back = turn_back;
    return NULL;
}

/* Streams. --------------------------------------------------------------------------------- */

static struct events *events_of(const struct call *call)
{
    return hooks_of(call)->events;
}

static struct span stream_name(const void *object)
{
    return ((const struct event *)object)->resource;
}

static uint64_t stream_number(const void *object)
{
    return ((const struct event *)object)->object_no;
}

static size_t stream_bytes(const void *object)
{
    return event_bytes(object);
}

static uint64_t stream_last(const struct call *call)
{
    const struct event *last = events_last(events_of(call));

    return last == NULL ? 0 : last->object_no;
}

static uint64_t stream_forgotten(const struct call *call)
{
    return forgotten_event(hooks_of(call)->forgotten);
}

static void *stream_after(const struct call *call, uint64_t number)
{
    return events_after(events_of(call), number);
}

static void *stream_next(const struct call *call, const void *object)
{
    return events_next(events_of(call), object);
}

/* Of another tenant, or resource, none need be read back and written to find that out. */
static bool is_wanted(const struct call *call, const void *object)
{
    const struct conditions *conditions = &call->query->conditions;
    const struct event *event = object;
    struct span tenant, resource;

    if (conditions_string(conditions, SPAN("Tenant"), &tenant) && tenant.n > 0 &&
        !span_eq(tenant, event_tenant_name(event)))
        return false;
    if (conditions_string(conditions, SPAN("Resource"), &resource) &&
        !span_eq(resource, event->resource))
        return false;
    return access_reads_all(call->key) || access_allows(call->key, event->resource, METHOD_GET);
}

static bool is_ready(const struct call *call, void *object)
{
    return payload_ready(events_payloads(events_of(call)), object);
}

static void stream_add_json(const struct call *call, void *object, struct arena *a, struct buf *b)
{
    (void)a;
    event_add_json(events_of(call), object, b);
}

static const struct stream_source stream = {
    .name = stream_name,
    .number = stream_number,
    .bytes = stream_bytes,
    .last = stream_last,
    .forgotten = stream_forgotten,
    .after = stream_after,
    .next = stream_next,
    .is_wanted = is_wanted,
    .is_ready = is_ready,
    .add_json = stream_add_json,
};

/* ------------------------------------------------------------------------------------------ */

static void forget(struct change *change, const void *object)
{
    event_forget(change, object);
}

static struct err *post(struct call *call)
{
    return event_post(hooks_of(call), call);
}

static const struct resource_ops ops = {
    .open = open_source,
    .post = post,
    .forget = forget,
    .apply = builtin_apply_forgotten,
    .never_changes = true,
    .reads_raw_body = true,
    .check_post = event_post_check_conditions,
    .stream = &stream,
};

const struct resource_definition res_event = {
    .name = SPAN_INIT("Svc.Event"),
    .description = SPAN_INIT("Raises events, and keeps them for a while"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
};
