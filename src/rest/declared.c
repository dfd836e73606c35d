/* What the resources that the application declares do their own way: entities that raise events
 * tell the observer when they are stored, binary resources answer with their bytes. */
#include "rest/declared.h"

#include "base/blob.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/response.h"
#include "rest/rest.h"

static struct err *stored(struct call *call, enum method verb, struct span json)
{
    const struct rest_observer *observer = &call->rest->observer;

    return observer->entity_stored == NULL
               ? NULL
               : observer->entity_stored(observer->context, call, verb, json);
}

const struct resource_ops declared_entity_ops = {.stored = stored};

static struct err *get_content(struct call *call)
{
    const struct resource *resource = call->resource;
    struct response *response = call->response;

    response->status = 200;
    response->content_type = resource->content_type;
    buf_add(&response->body, blob_span(resource->content));
    return NULL;
}

const struct resource_ops declared_binary_ops = {.get = get_content};
