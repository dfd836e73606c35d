/* Svc.Admin.Resource: what is declared, changed at run time (docs/specification.md, section 7). The
 * requests of one call are checked together, before anything takes effect; see declaration.h. */
#include "admin/builtin.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "resource/declaration.h"
#include "rest/crud.h"
#include "rest/rest.h"
#include "rest/tenant.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "json/json.h"

static struct span member_of(struct json_value json, struct span name, struct arena *a)
{
    return json_string(json_member(json, name), a);
}

static struct err *check_unchanged(const struct draft *draft, struct json_value old,
                                   struct span name, struct arena *a)
{
    if (span_eq(draft_get(draft, name), json_text(json_member(old, name))))
        return NULL;
    return ERR(ERR_CONFLICT, "%.*s: the %.*s of '%.*s' cannot be changed, delete it first",
               SPAN_FMT(name), SPAN_FMT(name), SPAN_FMT(member_of(old, SPAN("Name"), a)));
}

static struct err *check_own(struct json_value declaration, struct arena *a)
{
    if (!json_is_true(json_member(declaration, SPAN("IsReadOnly"))))
        return NULL;
    return ERR(ERR_CONFLICT,
               "'%.*s' is declared by the configuration, and can only be changed there",
               SPAN_FMT(member_of(declaration, SPAN("Name"), a)));
}

static struct err *check(struct call *call, struct draft *draft, const struct entity *old)
{
    struct arena *a = call->arena;
    struct json_value json;

    if (json_exists(draft_value(draft, SPAN("File"), a)))
        return ERR(ERR_INVALID_ENTITY, "File: can be given in the configuration only");
    declaration_normalise(draft, a);
    if (old == NULL)
        return NULL;
    json = entity_parse(entity_json(old), a);
    TRY(check_own(json, a));
    TRY(check_unchanged(draft, json, SPAN("Name"), a));
    return check_unchanged(draft, json, SPAN("Kind"), a);
}

static struct declaration_set *set_of(struct call *call)
{
    if (call->own == NULL) {
        call->own = ARENA_NEW(call->arena, struct declaration_set);
        declaration_set_init(call->own, call->rest->resources, call->arena);
    }
    return call->own;
}

static struct err *stored(struct call *call, enum method verb, struct span json)
{
    TRY(check_own(entity_parse(json, call->arena), call->arena));
    return declaration_set_add(set_of(call), verb, json);
}

/* What is deleted takes its entities along, when that is what was asked for. */
static struct err *empty(struct call *call, const struct declared *gone)
{
    const struct resource *resource = resource_named(call->rest->resources, gone->name);
    const struct collection *c = resource->collection;

    if (c == NULL || collection_count(c) == 0)
        return NULL;
    if (tenant_within(call->key, resource).n > 0)
        return ERR(ERR_NOT_AUTHORIZED,
                   "'%.*s' holds entities with tenants, which a key with a tenant may not delete "
                   "with the resource",
                   SPAN_FMT(resource->name));
    if (!call->query->meta.is_unsafe)
        return ERR(ERR_CONFLICT,
                   "'%.*s' holds %zu entities, which would be deleted too: that needs the "
                   "meta-condition unsafe=true",
                   SPAN_FMT(resource->name), collection_count(c));
    for (const struct entity *e = collection_first(c); e != NULL; e = collection_next(c, e))
        change_delete_entity(call->change, resource->name, &e->id);
    return NULL;
}

static struct err *apply(struct call *call)
{
    const struct declaration_set *set = set_of(call);
    uint64_t serial = 0;

    TRY(declaration_set_check(set));
    for (const struct declared *d = set->first; d != NULL; d = d->next)
        if (d->verb == METHOD_DELETE)
            TRY(empty(call, d));
    TRY(crud_apply(call));
    TRY(declarations_changed(call->rest->resources, call->arena, &serial));
    crud_shows(call, serial);
    return NULL;
}

static const struct resource_ops ops = {
    .check = check, .stored = stored, .apply = apply, .changes_at_once = true};

const struct resource_definition res_resource = {
    .name = SPAN_INIT("Svc.Admin.Resource"),
    .description = SPAN_INIT("The resources that the application declares"),
    .kind = KIND_ENTITY,
    .methods = METHODS_ALL,
    .shape = &declaration_shape,
    .ops = &ops,
    .is_stored = true,
};
