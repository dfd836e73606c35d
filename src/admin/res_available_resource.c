/* Svc.AvailableResource: the resources that the key may use, sorted by name (docs/specification.md,
 * section 7). */
#include "access/access.h"
#include "admin/builtin.h"
#include "query/shape.h"
#include "resource/declaration.h"
#include "rest/rendered.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/store.h"
#include "json/json.h"

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

/* One line of the listing: what of a resource this key may use. */
struct line {
    const struct resource *resource;
    unsigned methods;
};

static void *next(struct rendered *r)
{
    const struct resources *resources = r->call->rest->resources;
    size_t *place = r->cursor;
    struct line *line = ARENA_NEW(r->call->arena, struct line);

    while (*place < resources->count) {
        line->resource = resources->sorted[(*place)++];
        if (!resource_is_visible(line->resource, r->call->key))
            continue;
        line->methods = access_methods(r->call->key, line->resource->name, line->resource->methods);
        return line;
    }
    return NULL;
}

static void add_json(struct rendered *r, void *object, struct buf *b)
{
    const struct line *line = object;
    const struct resource *resource = line->resource;

    (void)r;
    buf_add_str(b, "{\"Name\":");
    json_add_string(b, resource->name);
    json_add_name(b, SPAN("Description"));
    json_add_string(b, resource->description);
    json_add_name(b, SPAN("Methods"));
    method_add_json(b, line->methods);
    json_add_name(b, SPAN("Kind"));
    json_add_string(b, resource_kind_names.values[resource->kind]);
    buf_add_char(b, '}');
}

static struct err *open_source(struct call *call)
{
    struct rendered *r = rendered_open(call, next, add_json);

    r->cursor = ARENA_NEW(call->arena, size_t);
    call_shows(call, collection_version(store_collection(call->rest->store, declaration_resource)));
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
