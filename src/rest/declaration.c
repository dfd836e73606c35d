/* The registry follows the collection of declarations; the collection follows the configuration. */
#include "rest/declaration.h"

#include "admin/builtin.h"
#include "admin/service.h"
#include "base/log.h"
#include "base/must.h"

#define TEXT(s) SPAN_INIT(s)

static const struct property events_properties[] = {
    {.name = TEXT("Inserted"), .type = TYPE_STRING, .meaning = TEXT("Raised by an insertion")},
    {.name = TEXT("Updated"), .type = TYPE_STRING, .meaning = TEXT("Raised by a change")},
    {.name = TEXT("Deleted"), .type = TYPE_STRING, .meaning = TEXT("Raised by a deletion")},
};
static const struct shape events_shape = {events_properties, ARRAY_LEN(events_properties), false};

static const struct property payload_properties[] = {
    {.name = TEXT("Resource"), .type = TYPE_STRING, .meaning = TEXT("Entities of this resource")},
    {.name = TEXT("ContentType"), .type = TYPE_STRING, .meaning = TEXT("Bytes of this media type")},
};
static const struct shape payload_shape = {payload_properties, ARRAY_LEN(payload_properties),
                                           false};

static const struct property properties[] = {
    ID_PROPERTY("Unique ID of the declaration"),
    {.name = TEXT("Name"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED | PROPERTY_INDEXED,
     .meaning = TEXT("Full name: parts of letters, digits and _, with dots between them")},
    {.name = TEXT("Kind"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .values = &resource_kind_names,
     .meaning = TEXT("What it is: entities, events, or bytes")},
    {.name = TEXT("Description"),
     .type = TYPE_STRING,
     .default_json = TEXT("\"\""),
     .meaning = TEXT("Text for people")},
    {.name = TEXT("Methods"),
     .type = TYPE_ARRAY,
     .meaning = TEXT("Methods that it supports; null: all that its kind can have")},
    {.name = TEXT("Properties"),
     .type = TYPE_ARRAY,
     .members = &schema_property_shape,
     .meaning = TEXT("Properties of its entities; null: any members")},
    {.name = TEXT("Indexes"),
     .type = TYPE_ARRAY,
     .meaning = TEXT("Properties that are found by value in constant time")},
    {.name = TEXT("Events"),
     .type = TYPE_OBJECT,
     .members = &events_shape,
     .meaning = TEXT("Event resources that changes of its entities raise")},
    {.name = TEXT("Payload"),
     .type = TYPE_OBJECT,
     .members = &payload_shape,
     .flags = PROPERTY_WHOLE,
     .meaning = TEXT("What an event carries; null: any entities")},
    {.name = TEXT("ContentType"),
     .type = TYPE_STRING,
     .meaning = TEXT("Media type of a binary resource's content")},
    {.name = TEXT("File"),
     .type = TYPE_STRING,
     .meaning = TEXT("File beside the configuration that holds the content")},
    {.name = TEXT("Content"), .type = TYPE_STRING, .meaning = TEXT("The content, in base64")},
    {.name = TEXT("IsReadOnly"),
     .type = TYPE_BOOLEAN,
     .flags = PROPERTY_READ_ONLY,
     .default_json = TEXT("false"),
     .meaning = TEXT("Whether it is the configuration's, and can be changed there only")},
    OBJECT_NO_PROPERTY,
};
const struct shape declaration_shape = {properties, ARRAY_LEN(properties), false};

/* The registry. ---------------------------------------------------------------------------- */

static bool same_list(const struct span *a, size_t a_count, const struct span *b, size_t b_count)
{
    bool same = a_count == b_count;

    for (size_t i = 0; i < a_count && same; i++)
        same = span_eq(a[i], b[i]);
    return same;
}

/* Entities of a resource that was declared before are found as they are. */
static void give_collection(struct service *s, struct resource *resource)
{
    struct err *e;

    resource->collection = store_collection(s->store, resource->name);
    e = collection_set_indexes(resource->collection, resource->shape, resource->indexes,
                               resource->index_count);
    MUST(e == NULL); /* resource_make lets nothing pass that cannot be indexed */
}

/* Webhooks on events that carry its entities have to be read again by its new shape. */
static void detach_by_payload(struct service *s, const struct resource *entities)
{
    for (size_t i = 0; i < s->resources.count; i++) {
        struct resource *event = s->resources.sorted[i];

        if (event->payload_resource.p != NULL && span_ieq(event->payload_resource, entities->name))
            webhooks_detach(s->webhooks, event);
    }
}

static void replace(struct service *s, struct resource *old, struct resource *made)
{
    bool same_shape = span_eq(old->properties, made->properties);
    bool same_indexes =
        same_shape && same_list(old->indexes, old->index_count, made->indexes, made->index_count);
    uint64_t changed = made->declaration->version;

    made->shape_since = same_shape ? old->shape_since : changed;
    webhooks_detach(s->webhooks, old);
    resources_put(&s->resources, made);
    if (!same_shape)
        detach_by_payload(s, old);
    if (old->kind == KIND_ENTITY && !same_indexes)
        give_collection(s, old);
}

static void declare(struct service *s, struct resource *made)
{
    struct resource *old = resource_named(&s->resources, made->name);

    if (old != NULL) {
        replace(s, old, made);
        return;
    }
    made->shape_since = made->declaration->version;
    resources_put(&s->resources, made);
    if (made->kind == KIND_ENTITY)
        give_collection(s, made);
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct service *s = context;
    struct resource *made = resource_new();
    struct arena scratch;
    struct err *e;

    (void)old_json;
    arena_init(&scratch);
    e = resource_make(entity_parse(entity_json(entity), &scratch), &scratch, made);
    made->declaration = entity;
    if (e == NULL)
        declare(s, made);
    else
        log_error("resource", "a stored declaration is not understood: %.*s",
                  SPAN_FMT(err_message(e)));
    if (e != NULL)
        resource_free(made);
    err_free(e);
    arena_done(&scratch);
}

static void on_gone(void *context, struct entity *entity)
{
    struct service *s = context;
    struct arena scratch;
    struct json_value json;
    struct resource *resource;

    arena_init(&scratch);
    json = entity_parse(entity_json(entity), &scratch);
    resource =
        resource_named(&s->resources, json_string(json_member(json, SPAN("Name")), &scratch));
    if (resource != NULL && resource->declaration == entity) {
        webhooks_detach(s->webhooks, resource);
        resources_remove(&s->resources, resource);
    }
    arena_done(&scratch);
}

static const struct collection_observer observer = {on_put, on_gone};

void declarations_observe(struct service *service)
{
    collection_observe(store_collection(service->store, res_resource.name), &observer, service);
}
