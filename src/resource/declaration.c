/* The registry follows the collection of declarations; the collection follows the configuration. */
#include "resource/declaration.h"

#include "base/log.h"
#include "base/must.h"
#include "protocol/method.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "json/json.h"

#define TEXT(s) SPAN_INIT(s)

static const struct property events_properties[] = {
    PROPERTY("Inserted", TYPE_STRING, "Raised by an insertion"),
    PROPERTY("Updated", TYPE_STRING, "Raised by a change"),
    PROPERTY("Deleted", TYPE_STRING, "Raised by a deletion"),
};
static const struct shape events_shape = {events_properties, ARRAY_LEN(events_properties), false};

static const struct property payload_properties[] = {
    PROPERTY("Resource", TYPE_STRING, "Entities of this resource"),
    PROPERTY("ContentType", TYPE_STRING, "Bytes of this media type"),
};
static const struct shape payload_shape = {payload_properties, ARRAY_LEN(payload_properties),
                                           false};

static const struct property properties[] = {
    ID_PROPERTY("Unique ID of the declaration"),
    PROPERTY("Name", TYPE_STRING,
             "Full name: parts of letters, digits, _ and -, with dots between them",
             .flags = PROPERTY_REQUIRED | PROPERTY_INDEXED),
    PROPERTY("Kind", TYPE_STRING, "What it is: entities, events, or bytes",
             .flags = PROPERTY_REQUIRED, .values = &resource_kind_names),
    PROPERTY("Description", TYPE_STRING, "Text for people", .default_json = TEXT("\"\"")),
    PROPERTY("Methods", TYPE_ARRAY, "Methods that it supports; null: all that its kind can have",
             .elements = TYPE_STRING, .values = &method_names),
    PROPERTY("Properties", TYPE_ARRAY,
             "Properties of its entities, or of its payloads; null: any members",
             .members = &schema_property_shape),
    PROPERTY("Indexes", TYPE_ARRAY, "Properties that are found by value in constant time"),
    PROPERTY("Events", TYPE_OBJECT, "Event resources that changes of its entities raise",
             .members = &events_shape),
    PROPERTY("Payload", TYPE_OBJECT, "What an event carries; null: any entities",
             .members = &payload_shape, .flags = PROPERTY_WHOLE),
    PROPERTY("CloudEventsType", TYPE_STRING,
             "What its events are called as CloudEvents (type); null: by its name"),
    PROPERTY("ContentType", TYPE_STRING, "Media type of a binary resource's content"),
    PROPERTY("File", TYPE_STRING, "File beside the configuration that holds the content",
             .flags = PROPERTY_CONFIGURED),
    PROPERTY("Content", TYPE_STRING, "The content, in base64"),
    READ_ONLY_PROPERTY("IsReadOnly", TYPE_BOOLEAN, 0,
                       "Whether it is the configuration's, and can be changed there only",
                       .default_json = TEXT("false")),
    OBJECT_NO_PROPERTY,
};
const struct span declaration_resource = TEXT("Svc.Admin.Resource");
const struct shape declaration_shape = {.properties = properties,
                                        .count = ARRAY_LEN(properties),
                                        .name = SPAN_INIT("Svc.Admin.Resource")};

/* The registry. ---------------------------------------------------------------------------- */

static bool same_list(const struct span *a, size_t a_count, const struct span *b, size_t b_count)
{
    bool same = a_count == b_count;

    for (size_t i = 0; i < a_count && same; i++)
        same = span_eq(a[i], b[i]);
    return same;
}

/* A key with a tenant asks for nothing else. */
static bool wants_tenant_index(const struct resource *resource)
{
    const struct property *p =
        resource->shape->dynamic ? NULL : shape_find(resource->shape, SPAN("Tenant"));

    for (size_t i = 0; i < resource->index_count; i++)
        if (span_ieq(resource->indexes[i], SPAN("Tenant")))
            return false;
    return p != NULL && p->type == TYPE_STRING;
}

/* Entities of a resource that was declared before are found as they are. */
static void give_collection(struct resources *r, struct resource *resource)
{
    size_t count = resource->index_count;
    struct span *indexes = ARENA_ARRAY(&resource->arena, struct span, count + 1);
    struct err *e;

    for (size_t i = 0; i < count; i++)
        indexes[i] = resource->indexes[i];
    if (wants_tenant_index(resource))
        indexes[count++] = SPAN("Tenant");
    resource->collection = store_collection(r->store, resource->name);
    e = collection_set_indexes(resource->collection, resource->shape, indexes, count);
    MUST(e == NULL); /* resource_make lets nothing pass that cannot be indexed */
}

static void tell(struct resources *r, struct resource *resource)
{
    if (r->observer.changing != NULL)
        r->observer.changing(r->observer.context, resource);
}

/* Events that carry its entities have another shape now. */
static void tell_by_payload(struct resources *r, const struct resource *entities)
{
    for (size_t i = 0; i < r->count; i++) {
        struct resource *event = r->sorted[i];

        if (event->payload_resource.p != NULL && span_ieq(event->payload_resource, entities->name))
            tell(r, event);
    }
}

static void replace(struct resources *r, struct resource *old, struct resource *made)
{
    bool same_shape = span_eq(old->properties, made->properties);
    bool same_indexes =
        same_shape && same_list(old->indexes, old->index_count, made->indexes, made->index_count);
    uint64_t changed = made->declaration->version;

    made->shape_since = same_shape ? old->shape_since : changed;
    tell(r, old);
    resources_put(r, made);
    if (!same_shape)
        tell_by_payload(r, old);
    if (old->kind == KIND_ENTITY && !same_indexes)
        give_collection(r, old);
}

static void declare(struct resources *r, struct resource *made)
{
    struct resource *old = resource_named(r, made->name);

    if (old != NULL) {
        replace(r, old, made);
        return;
    }
    made->shape_since = made->declaration->version;
    resources_put(r, made);
    if (made->kind == KIND_ENTITY)
        give_collection(r, made);
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct resources *r = context;
    struct resource *made = resource_new();
    struct arena scratch;
    struct err *e;

    (void)old_json;
    arena_init(&scratch);
    e = resource_make(entity_parse(entity_json(entity), &scratch), &scratch, made);
    made->declaration = entity;
    if (log_failed(LOG_ERROR, "resource", "a stored declaration is not understood", e))
        resource_free(made);
    else
        declare(r, made);
    arena_done(&scratch);
}

static void on_gone(void *context, struct entity *entity)
{
    struct resources *r = context;
    struct arena scratch;
    struct json_value json;
    struct resource *resource;

    arena_init(&scratch);
    json = entity_parse(entity_json(entity), &scratch);
    resource = resource_named(r, json_string(json_member(json, SPAN("Name")), &scratch));
    if (resource != NULL && resource->declaration == entity) {
        tell(r, resource);
        resources_remove(r, resource);
    }
    arena_done(&scratch);
}

static void add_method(struct buf *b, struct json_value value, struct arena *a)
{
    struct span name = method_name(method_parse(json_string(value, a)));

    json_add_comma(b);
    if (json_type(value) == JSON_STRING && name.p != NULL)
        json_add_string(b, name);
    else
        json_add_compact(b, value);
}

void declaration_normalise(struct draft *draft, struct arena *a)
{
    struct json_value methods = draft_value(draft, SPAN("Methods"), a);
    struct buf b;

    if (json_type(methods) != JSON_ARRAY)
        return;
    buf_init_arena(&b, a);
    buf_add_char(&b, '[');
    for (struct json_value v = json_first(methods); json_exists(v); v = json_next(methods, v))
        add_method(&b, v, a);
    buf_add_char(&b, ']');
    draft_set(draft, SPAN("Methods"), buf_span(&b));
}

struct err *declarations_changed(struct resources *r, struct arena *a, uint64_t *out_serial)
{
    const struct resources_observer *o = &r->observer;

    *out_serial = 0;
    return o->changed == NULL ? NULL : o->changed(o->context, a, out_serial);
}

static const struct collection_observer observer = {on_put, on_gone};

void declarations_observe(struct resources *r)
{
    collection_observe(store_collection(r->store, declaration_resource), &observer, r);
}
