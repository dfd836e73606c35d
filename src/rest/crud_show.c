/* Entities as they are shown: in the form that their resource has now, without secrets, and as far
 * as the key's rights go. */
#include "rest/crud_inner.h"

#include "access/access.h"
#include "access/mask.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"

static struct span reshaped(const struct shape *shape, struct span json, struct arena *a)
{
    struct buf b;

    buf_init_arena(&b, a);
    schema_add_reshaped(&b, shape, entity_parse(json, a), a);
    return buf_span(&b);
}

struct span crud_shown(const struct resource *resource, struct span json, struct arena *a)
{
    struct span shown;

    if (resource->ops->stored_shape == NULL)
        return json;
    shown = schema_shown(resource->shape, resource->ops->stored_shape, json, a);
    return shown.p != NULL ? shown : reshaped(resource->shape, json, a);
}

static bool is_of_older_shape(const struct resource *resource, const struct entity *e)
{
    return e->version < resource->shape_since && !resource->shape->dynamic;
}

struct span crud_stored(const struct resource *resource, const struct entity *e, struct arena *a)
{
    struct span json = entity_json(e);

    return is_of_older_shape(resource, e) ? reshaped(crud_stored_shape(resource), json, a) : json;
}

struct span crud_text(const struct resource *resource, const struct entity *e, struct arena *a)
{
    struct span json = entity_json(e);

    return is_of_older_shape(resource, e) ? reshaped(resource->shape, json, a)
                                          : crud_shown(resource, json, a);
}

struct span crud_visible(const struct rest *rest, const struct resource *resource, struct span json,
                         struct arena *a)
{
    return resource->ops->holds_secrets == NULL ? json
                                                : mask_value(rest->mask, entity_parse(json, a), a);
}

bool crud_limits(const struct call *call)
{
    return !access_reads_all(call->key);
}

struct span crud_show(const struct call *call, const struct entity *e, struct arena *a)
{
    const struct resource *resource = call->resource;
    struct span text = crud_text(resource, e, a);
    struct buf limited;

    if (resource->ops->holds_secrets != NULL && resource->ops->holds_secrets(e))
        text = crud_visible(call->rest, resource, text, a);
    if (resource->ops->limit == NULL || !crud_limits(call))
        return text;
    buf_init_arena(&limited, a);
    resource->ops->limit(resource->context, call->key, &limited, text, a);
    return buf_span(&limited);
}
