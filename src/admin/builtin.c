/* The table of built-in resources becomes the beginning of the registry. */
#include "admin/builtin.h"

#include "admin/service.h"
#include "hooks/forgotten.h"
#include "query/shape.h"
#include "rest/crud.h"
#include "store/collection.h"

struct hooks *hooks_of(const struct call *call)
{
    return hooks_of_service(service_of(call));
}

struct hooks *hooks_of_service(struct service *s)
{
    return &s->hooks;
}

struct err *builtin_apply_forgotten(struct call *call)
{
    forgotten_add(hooks_of(call)->forgotten, call->change);
    return crud_apply(call);
}

static struct err *index_builtin(const struct resource_definition *definition,
                                 struct resource *resource)
{
    enum { MOST = 8 };
    struct span indexed[MOST];
    size_t count = 0;

    if (resource->collection == NULL)
        return NULL;
    for (size_t i = 0; i < definition->shape->count && count < MOST; i++)
        if ((definition->shape->properties[i].flags & PROPERTY_INDEXED) != 0)
            indexed[count++] = definition->shape->properties[i].name;
    return collection_set_indexes(resource->collection, definition->shape, indexed, count);
}

struct err *builtin_add_all(struct service *s)
{
    static const struct resource_definition *const definitions[] = {
#define BUILTIN_AS_POINTER(definition) &definition,
        BUILTIN_RESOURCES(BUILTIN_AS_POINTER)
#undef BUILTIN_AS_POINTER
    };

    for (size_t i = 0; i < ARRAY_LEN(definitions); i++)
        TRY(index_builtin(definitions[i],
                          resources_add_builtin(s->rest.resources, definitions[i], s)));
    return NULL;
}
