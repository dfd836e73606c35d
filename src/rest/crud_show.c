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

struct span crud_shown(const struct resource *resource, struct span json, struct arena *a)
{
    struct span shown;
    struct buf b;

    if (resource->ops->stored_shape == NULL)
        return json;
    shown = schema_shown(resource->shape, resource->ops->stored_shape, json, a);
    if (shown.p != NULL)
        return shown;
    buf_init_arena(&b, a);
    schema_add_reshaped(&b, resource->shape, entity_parse(json, a), a);
    return buf_span(&b);
}

struct span crud_text(const struct resource *resource, const struct entity *e, struct arena *a)
{
    struct buf b;

    if (e->version >= resource->shape_since || resource->shape->dynamic)
        return crud_shown(resource, entity_json(e), a);
    buf_init_arena(&b, a);
    schema_add_reshaped(&b, resource->shape, entity_parse(entity_json(e), a), a);
    return buf_span(&b);
}

struct span crud_visible(const struct rest *rest, const struct resource *resource, struct span json,
                         struct arena *a)
{
    struct buf masked;

    if (resource->ops->holds_secrets == NULL)
        return json;
    buf_init_arena(&masked, a);
    mask_add_value(&masked, rest->mask, entity_parse(json, a), a);
    return buf_span(&masked);
}

bool crud_limits(const struct resource *resource, const struct access_key *key)
{
    return resource->ops->limit != NULL && !access_reads_all(key);
}

struct span crud_limited(const struct resource *resource, const struct access_key *key,
                         struct span json, struct arena *a)
{
    struct buf limited;

    buf_init_arena(&limited, a);
    resource->ops->limit(resource->context, key, &limited, json, a);
    return buf_span(&limited);
}

struct span crud_entity(const struct rest *rest, const struct resource *resource,
                        const struct entity *e, struct arena *a)
{
    struct span json = crud_text(resource, e, a);

    if (resource->ops->holds_secrets == NULL || !resource->ops->holds_secrets(e))
        return json;
    return crud_visible(rest, resource, json, a);
}

struct span crud_show(const struct call *call, const struct entity *e, struct arena *a)
{
    struct span text = crud_entity(call->rest, call->resource, e, a);

    return crud_limits(call->resource, call->key) ? crud_limited(call->resource, call->key, text, a)
                                                  : text;
}
