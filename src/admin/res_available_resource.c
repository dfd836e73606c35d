/* Svc.AvailableResource: the resources that the key may use, sorted by name (docs/specification.md,
 * section 7). */
#include "access/access.h"
#include "admin/builtin.h"
#include "query/shape.h"
#include "resource/declaration.h"
#include "rest/crud.h"
#include "rest/rendered.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/store.h"
#include "json/json.h"
#include "json/member.h"

static const struct property properties[] = {
    READ_ONLY_PROPERTY("Name", TYPE_STRING, 0, "Full resource name"),
    READ_ONLY_PROPERTY("Description", TYPE_STRING, 0, "Text describing the resource"),
    {.name = SPAN_INIT("Methods"),
     .type = TYPE_ARRAY,
     .flags = PROPERTY_READ_ONLY,
     .elements = TYPE_STRING,
     .values = &method_names,
     .meaning = SPAN_INIT("Methods that the key may use")},
    {.name = SPAN_INIT("Kind"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .values = &resource_kind_names,
     .meaning = SPAN_INIT("Resource kind")},
};

static const struct shape shape = {.properties = properties,
                                   .count = ARRAY_LEN(properties),
                                   .name = SPAN_INIT("Svc.AvailableResource")};

static void *next(struct rendered *r)
{
    const struct resources *resources = r->call->rest->resources;
    size_t *place = r->cursor;

    while (*place < resources->count) {
        struct resource *resource = resources->sorted[(*place)++];

        if (resource_is_visible(resource, r->call->key))
            return resource;
    }
    return NULL;
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const struct resource *resource = object;

    buf_add_char(b, '{');
    member_add_text(b, SPAN("Name"), resource->name);
    member_add_text(b, SPAN("Description"), resource->description);
    json_add_plain_name(b, SPAN("Methods"));
    method_add_json(b, access_methods(r->call->key, resource->name, resource->methods));
    member_add_text(b, SPAN("Kind"), resource_kind_names.values[resource->kind]);
    buf_add_char(b, '}');
}

static struct err *open_source(struct call *call)
{
    struct rendered *r = rendered_open(call, next, add_json);

    r->cursor = ARENA_NEW(call->arena, size_t);
    crud_shows(call, collection_version(store_collection(call->rest->store, declaration_resource)));
    return NULL;
}

static const struct resource_ops ops = {.open = open_source};

const struct resource_definition res_available_resource = {
    .name = SPAN_INIT("Svc.AvailableResource"),
    .description = SPAN_INIT("The resources that the client may use"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &shape,
    .ops = &ops,
};
