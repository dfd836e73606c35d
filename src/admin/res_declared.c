/* The resources that the application declares: entities raise their Inserted, Updated and Deleted
 * events in the same change that stores them; binary resources answer with their bytes. */
#include "admin/builtin.h"
#include "admin/service.h"
#include "base/json.h"
#include "hooks/event.h"
#include "hooks/retention.h"

static struct span event_of(const struct resource *resource, enum method verb)
{
    switch (verb) {
    case METHOD_POST:
        return resource->events[EVENT_INSERTED];
    case METHOD_PATCH:
        return resource->events[EVENT_UPDATED];
    default:
        return resource->events[EVENT_DELETED];
    }
}

static struct err *raise_event(struct call *call, enum method verb, struct span json)
{
    struct span name = event_of(call->resource, verb);
    struct event_raised raised;
    struct event_draft draft;

    if (name.p == NULL)
        return NULL;
    draft = (struct event_draft){
        .resource = resource_named(&call->service->resources, name),
        .payload = arena_printf(call->arena, "[%.*s]", SPAN_FMT(json)),
        .entities = entity_parse(json, call->arena),
        .depth = request_depth(call->request),
    };
    if (draft.resource == NULL)
        return NULL; /* its declaration was deleted since */
    retention_wake(call->service);
    return event_raise(call->service, &draft, &call->change, &raised);
}

const struct resource_ops res_declared_ops = {.stored = raise_event};

static struct err *get_content(struct call *call)
{
    const struct resource *resource = call->resource;
    struct response *response = call->response;

    response->status = 200;
    response->content_type = resource->content_type;
    buf_add(&response->body, blob_span(resource->content));
    return NULL;
}

const struct resource_ops res_binary_ops = {.get = get_content};
