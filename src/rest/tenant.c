/* The rule stands here alone. Its condition is a quoted string, so that a tenant called `2026` is
 * that text and no year; a property of another type than string holds no tenants, and then nothing
 * is found. */
#include "rest/tenant.h"

#include "access/access.h"
#include "base/must.h"
#include "protocol/schema.h"
#include "query/condition.h"
#include "query/query.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "store/entity.h"
#include "json/json.h"

#include <string.h>

static const struct span member = SPAN_INIT("Tenant");

static const struct property *property_of(const struct shape *shape)
{
    return shape == NULL || shape->dynamic ? NULL : shape_find(shape, member);
}

struct span tenant_within(const struct access_key *key, const struct resource *resource)
{
    if (key == NULL || key->tenant.n == 0 || property_of(resource->shape) == NULL)
        return span_of(NULL, 0);
    return key->tenant;
}

struct span tenant_of(const struct call *call)
{
    return tenant_within(call->key, call->resource);
}

void tenant_add_condition(struct conditions *conditions, const struct shape *shape,
                          struct span tenant, struct arena *a)
{
    struct condition *items = ARENA_ARRAY(a, struct condition, conditions->count + 1);
    struct condition *own = &items[conditions->count];
    struct err *e;

    if (conditions->count > 0)
        memcpy(items, conditions->items, conditions->count * sizeof(*items));
    *own = (struct condition){.op = URI_EQ,
                              .literal = {.kind = LITERAL_STRING, .quoted = true, .text = tenant}};
    e = path_parse(member, shape, a, &own->path);
    MUST(e == NULL); /* the shape has the property */
    *conditions = (struct conditions){items, conditions->count + 1};
}

void tenant_confine(struct call *call)
{
    struct span tenant = tenant_of(call);

    if (tenant.n > 0)
        tenant_add_condition(&call->query->conditions, call->resource->shape, tenant, call->arena);
}

bool tenant_covers(const struct call *call, struct span json)
{
    struct span tenant = tenant_of(call);
    struct arena a;
    bool is_same;

    if (tenant.n == 0)
        return true;
    arena_init(&a);
    is_same = span_eq(json_string(json_member_fold(entity_parse(json, &a), member), &a), tenant);
    arena_done(&a);
    return is_same;
}

static struct err *refuse(const struct call *call)
{
    return ERR(ERR_NOT_AUTHORIZED, "Tenant: the API key may write none but '%.*s'",
               SPAN_FMT(call->key->tenant));
}

struct err *tenant_check_draft(const struct call *call, struct draft *draft)
{
    struct span tenant = tenant_of(call);
    const struct property *property = property_of(call->resource->shape);
    struct json_value value;

    if (tenant.n == 0)
        return NULL;
    MUST(property != NULL); /* tenant_within */
    if (property->type != TYPE_STRING && property->type != TYPE_ANY)
        return refuse(call);
    value = draft_value(draft, property->name, call->arena);
    if (json_type(value) != JSON_NULL)
        return span_eq(json_string(value, call->arena), tenant) ? NULL : refuse(call);
    draft_set_text(draft, property->name, tenant, call->arena);
    return NULL;
}
