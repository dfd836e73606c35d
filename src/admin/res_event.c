/* Svc.Event: applications raise events here, and read back those that are kept
 * (docs/specification.md, section 7). */
#include "admin/builtin.h"
#include "admin/service.h"
#include "hooks/event.h"
#include "hooks/event_post.h"
#include "query/shape.h"
#include "rest/rendered.h"

static const struct property properties[] = {
    ID_PROPERTY(
        "ID of the event, the webhook-id of its deliveries; in a POST the client's own, which "
        "makes it idempotent"),
    {.name = SPAN_INIT("Resource"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .meaning = SPAN_INIT("The event resource")},
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When it was raised"),
    READ_ONLY_PROPERTY("ContentType", TYPE_STRING, 0, "Media type of the payload"),
    {.name = SPAN_INIT("Payload"),
     .type = TYPE_ANY,
     .meaning = SPAN_INIT("An entity, or an array of them; binary payloads show as base64")},
    {.name = SPAN_INIT("WebhookId"),
     .type = TYPE_STRING,
     .meaning = SPAN_INIT("In a POST: the one webhook that the event may match; not kept")},
    READ_ONLY_PROPERTY("Webhooks", TYPE_INTEGER, 0, "Number of webhooks that it matched"),
    OBJECT_NO_PROPERTY,
};

static const struct shape shape = {properties, ARRAY_LEN(properties), false};

static void *next_kept(struct rendered *r)
{
    struct events *events = service_of(r->call)->hooks.events;

    r->cursor = r->cursor == NULL ? events_first(events) : events_next(events, r->cursor);
    return r->cursor;
}

static void *next_single(struct rendered *r)
{
    return TAKE(r->cursor);
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    event_add_json(service_of(r->call)->hooks.events, object, b);
}

static struct err *open_source(struct call *call)
{
    struct events *events = service_of(call)->hooks.events;
    struct uuid id;

    call_shows(call, events_version(events));
    if (rendered_wanted_id(call, SPAN("Id"), &id))
        rendered_open(call, next_single, add_json)->cursor = events_find(events, &id);
    else
        rendered_open(call, next_kept, add_json);
    return NULL;
}

static void forget(struct change *change, const void *object)
{
    event_forget(change, object);
}

static struct err *post(struct call *call)
{
    return event_post(&service_of(call)->hooks, call);
}

static const struct resource_ops ops = {
    .open = open_source,
    .post = post,
    .forget = forget,
    .reads_raw_body = true,
};

const struct resource_definition res_event = {
    .name = SPAN_INIT("Svc.Event"),
    .description = SPAN_INIT("Raises events, and keeps them for a while"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
};
