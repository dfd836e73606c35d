/* Declarations that change together. Each is made once for the sake of its own checks and thrown
 * away; what others may refer to is kept. The references of every declared resource are looked at
 * as they would be afterwards. */
#include "base/map.h"
#include "base/text.h"
#include "rest/declaration.h"
#include "store/entity.h"

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

static struct err *enter(struct outlook *o, struct declared *d)
{
    const struct declared *before = map_find(&o->by_name, d->folded);
    const struct resource *builtin = resource_builtin_ending(o->resources, d->folded);
    bool is_taken = before != NULL ? before->verb != METHOD_DELETE
                                   : resource_named(o->resources, d->name) != NULL;

    if (d->verb == METHOD_POST && is_taken)
        return ERR(ERR_CONFLICT, "Name: there is a resource '%.*s' already", SPAN_FMT(d->name));
    if (d->verb != METHOD_DELETE && builtin != NULL)
        return ERR(ERR_INVALID_ENTITY, "Name: '%.*s' is what the built-in '%.*s' ends in",
                   SPAN_FMT(d->name), SPAN_FMT(builtin->name));
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
    map_done(&o.by_name);
    return e;
}
