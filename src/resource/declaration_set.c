/* Declarations that change together. Each is made once for the sake of its own checks and thrown
 * away; what others may refer to is kept. The references of every declared resource are looked at
 * as they would be afterwards. */
#include "base/map.h"
#include "base/text.h"
#include "resource/declaration.h"
#include "store/entity.h"
#include "json/json.h"

void declaration_set_init(struct declaration_set *set, const struct resources *resources,
                          struct arena *a)
{
    *set = (struct declaration_set){.resources = resources, .arena = a};
}

static struct span copied(struct arena *a, struct span text)
{
    return text.p == NULL ? text : arena_copy(a, text);
}

static struct declared *declared_of(const struct resource *r, enum method verb, struct arena *a)
{
    struct declared *d = ARENA_NEW(a, struct declared);

    d->verb = verb;
    d->name = copied(a, r->name);
    d->folded = copied(a, r->folded);
    d->kind = r->kind;
    for (size_t i = 0; i < ARRAY_LEN(d->events); i++)
        d->events[i] = copied(a, r->events[i]);
    d->payload_resource = copied(a, r->payload_resource);
    d->cloudevents_type = copied(a, r->cloudevents_type);
    d->is_binary_event = r->is_binary_event;
    return d;
}

struct err *declaration_set_add(struct declaration_set *set, enum method verb, struct span json)
{
    struct resource *made = resource_new();
    struct err *e = resource_make(entity_parse(json, set->arena), set->arena, made);
    struct declared *d;

    if (e == NULL) {
        d = declared_of(made, verb, set->arena);
        if (set->first == NULL)
            set->first = d;
        else
            set->last->next = d;
        set->last = d;
    }
    resource_free(made);
    return e;
}

/* Checking. -------------------------------------------------------------------------------- */

/* The names of the set; the last word on a name counts. */
struct outlook {
    const struct resources *resources;
    struct map by_name; /* struct declared */
};

static struct span declared_key(const void *item)
{
    return ((const struct declared *)item)->folded;
}

/* The built-in resource whose name ends in this one, or the absent span: also one that there is in
 * a cluster alone, which this server may join later. */
static struct span builtin_ending(const struct outlook *o, struct span folded)
{
    static const struct span of_clusters = SPAN_INIT("Svc.Admin.Node");
    const struct resource *builtin = resource_builtin_ending(o->resources, folded);

    if (builtin != NULL)
        return builtin->name;
    return span_eq(folded, SPAN("admin.node")) ? of_clusters : span_of(NULL, 0);
}

static struct err *enter(struct outlook *o, struct declared *d)
{
    const struct declared *before = map_find(&o->by_name, d->folded);
    const struct span builtin = builtin_ending(o, d->folded);
    bool is_taken = before != NULL ? before->verb != METHOD_DELETE
                                   : resource_named(o->resources, d->name) != NULL;

    if (d->verb == METHOD_POST && is_taken)
        return ERR(ERR_CONFLICT, "Name: there is a resource '%.*s' already", SPAN_FMT(d->name));
    if (d->verb != METHOD_DELETE && builtin.p != NULL)
        return ERR(ERR_INVALID_ENTITY, "Name: '%.*s' is what the built-in '%.*s' ends in",
                   SPAN_FMT(d->name), SPAN_FMT(builtin));
    map_put(&o->by_name, d);
    return NULL;
}

/* What will be there by that name, or NULL. */
static const struct declared *look_up(const struct outlook *o, struct span name, struct arena *a)
{
    const struct declared *d = map_find(&o->by_name, text_fold(a, name));
    const struct resource *resource;

    if (d != NULL)
        return d->verb == METHOD_DELETE ? NULL : d;
    resource = resource_named(o->resources, name);
    return resource == NULL ? NULL : declared_of(resource, METHOD_PATCH, a);
}

static struct err *check_event(const struct outlook *o, const struct declared *d,
                               enum resource_event place, struct arena *a)
{
    static const char *const members[] = {"Inserted", "Updated", "Deleted"};
    struct span name = d->events[place];
    const struct declared *event;

    if (name.p == NULL)
        return NULL;
    if (span_istarts(name, SPAN("Svc.")))
        return ERR(ERR_INVALID_ENTITY, "Events.%s: '%.*s' is the server's own", members[place],
                   SPAN_FMT(name));
    event = look_up(o, name, a);
    if (event == NULL || event->kind != KIND_EVENT)
        return ERR(ERR_INVALID_ENTITY, "Events.%s: '%.*s' is no event resource", members[place],
                   SPAN_FMT(name));
    if (event->is_binary_event ||
        (event->payload_resource.p != NULL && !span_ieq(event->payload_resource, d->name)))
        return ERR(ERR_INVALID_ENTITY, "Events.%s: the payload of '%.*s' is something else",
                   members[place], SPAN_FMT(name));
    return NULL;
}

static struct err *check_payload(const struct outlook *o, const struct declared *d, struct arena *a)
{
    const struct declared *entities;

    if (d->payload_resource.p == NULL)
        return NULL;
    entities = look_up(o, d->payload_resource, a);
    if (entities != NULL && entities->kind == KIND_ENTITY)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "Payload.Resource: '%.*s' is no entity resource",
               SPAN_FMT(d->payload_resource));
}

static struct err *check_references(const struct outlook *o, const struct declared *d,
                                    struct arena *a)
{
    struct err *e = check_payload(o, d, a);

    for (unsigned i = 0; i < ARRAY_LEN(d->events) && e == NULL; i++)
        e = check_event(o, d, i, a);
    return e == NULL ? NULL : err_prefix(e, "'%.*s': ", SPAN_FMT(d->name));
}

/* Those that are there already and stay as they are. */
static struct err *check_others(const struct outlook *o, struct arena *a)
{
    for (size_t i = 0; i < o->resources->count; i++) {
        const struct resource *r = o->resources->sorted[i];
        struct err *e;

        if (r->declaration == NULL || map_find(&o->by_name, r->folded) != NULL)
            continue;
        e = check_references(o, declared_of(r, METHOD_PATCH, a), a);
        if (e != NULL)
            return err_prefix(err_recode(e, ERR_CONFLICT), "another resource refers to this one: ");
    }
    return NULL;
}

/* Types of CloudEvents. */
static struct span type_key(const void *item)
{
    return ((const struct declared *)item)->cloudevents_type;
}

static struct err *enter_type(struct map *types, struct declared *d)
{
    const struct declared *other;

    if (d->verb == METHOD_DELETE || d->cloudevents_type.p == NULL)
        return NULL;
    other = map_find(types, d->cloudevents_type);
    if (other != NULL && other != d)
        return ERR(ERR_CONFLICT, "CloudEventsType: '%.*s' is that of '%.*s' already",
                   SPAN_FMT(d->cloudevents_type), SPAN_FMT(other->name));
    map_put(types, d);
    return NULL;
}

/* Those that stay as they are, then those of the set. */
static struct err *enter_types(const struct declaration_set *set, const struct outlook *o,
                               struct map *types)
{
    for (size_t i = 0; i < o->resources->count; i++) {
        const struct resource *r = o->resources->sorted[i];

        if (r->cloudevents_type.p != NULL && map_find(&o->by_name, r->folded) == NULL)
            TRY(enter_type(types, declared_of(r, METHOD_PATCH, set->arena)));
    }
    for (struct declared *d = set->first; d != NULL; d = d->next)
        if (map_find(&o->by_name, d->folded) == d) /* the last word */
            TRY(enter_type(types, d));
    return NULL;
}

static struct err *check_types(const struct declaration_set *set, const struct outlook *o)
{
    const struct declared *d = set->first;
    struct map types;
    struct err *e;

    while (d != NULL && d->cloudevents_type.p == NULL)
        d = d->next;
    if (d == NULL)
        return NULL;
    map_init(&types, type_key);
    e = enter_types(set, o, &types);
    map_done(&types);
    return e;
}

struct err *declaration_set_check(const struct declaration_set *set)
{
    struct outlook o = {.resources = set->resources};
    struct err *e = NULL;

    map_init(&o.by_name, declared_key);
    for (struct declared *d = set->first; d != NULL && e == NULL; d = d->next)
        e = enter(&o, d);
    for (const struct declared *d = set->first; d != NULL && e == NULL; d = d->next)
        if (d->verb != METHOD_DELETE)
            e = check_references(&o, d, set->arena);
    if (e == NULL)
        e = check_others(&o, set->arena);
    if (e == NULL)
        e = check_types(set, &o);
    map_done(&o.by_name);
    return e;
}
