/* The registry. Names are found through one map: every dot-delimited suffix of the full names,
 * which are among them, with the resources that end in it. What a declaration says is read in
 * resource_make.c. */
#include "resource/resource.h"

#include "access/access.h"
#include "base/blob.h"
#include "base/fiber.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "match/matchers.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/referrers.h"
#include "store/store.h"

#include <string.h>

static const struct span kind_names[KIND_COUNT] = {
    [KIND_ENTITY] = SPAN_INIT("EntityResource"),
    [KIND_EVENT] = SPAN_INIT("EventResource"),
    [KIND_BINARY] = SPAN_INIT("BinaryResource"),
};

const struct enumeration resource_kind_names = {"Kind", kind_names, KIND_COUNT};

/* A name, or the end of one after a dot, and whose it is. */
struct suffix {
    char *text; /* folded */
    size_t text_bytes;
    struct resource *named;      /* whose full name it is; or NULL */
    struct resource **resources; /* sorted by name */
    size_t count;
};

static struct span suffix_key(const void *item)
{
    const struct suffix *suffix = item;

    return span_of(suffix->text, suffix->text_bytes);
}

static struct span type_key(const void *item)
{
    return ((const struct resource *)item)->cloudevents_type;
}

static const struct resource_ops nothing;

void resources_init(struct resources *r, struct store *store, struct turn *turn)
{
    *r = (struct resources){.store = store, .turn = turn, .by_suffix = NEW(struct map)};
    for (unsigned i = 0; i < KIND_COUNT; i++)
        r->declared_ops[i] = &nothing;
    map_init_own(r->by_suffix, suffix_key);
    r->by_type = NEW(struct map);
    map_init(r->by_type, type_key);
}

unsigned resource_methods(enum resource_kind kind, unsigned methods)
{
    unsigned all = method_closure(methods);

    return kind == KIND_BINARY ? all & ~METHOD_BIT(METHOD_REPORT) : all; /* nothing to count */
}

struct resource *resource_new(void)
{
    struct resource *resource = NEW(struct resource);

    arena_init(&resource->arena);
    return resource;
}

void resource_free(struct resource *resource)
{
    if (resource == NULL)
        return;
    matchers_free(resource->matchers);
    mem_free(resource->referrers);
    blob_unref(resource->content);
    arena_done(&resource->arena);
    mem_free(resource);
}

static void free_suffix(void *item, void *arg)
{
    struct suffix *suffix = item;

    (void)arg;
    mem_free(suffix->text);
    mem_free(suffix->resources);
    mem_free(suffix);
}

void resources_done(struct resources *r)
{
    map_each(r->by_suffix, free_suffix, NULL);
    map_done(r->by_suffix);
    mem_free(r->by_suffix);
    map_done(r->by_type);
    mem_free(r->by_type);
    for (size_t i = 0; i < r->count; i++)
        resource_free(r->sorted[i]);
    mem_free(r->sorted);
}

/* Adds to a list that is sorted by name. */
static void insert_sorted(struct resource ***list, size_t *count, struct resource *resource)
{
    size_t place = *count;

    *list = mem_resize(*list, (*count + 1) * sizeof(struct resource *));
    while (place > 0 && span_cmp((*list)[place - 1]->name, resource->name) > 0)
        place--;
    memmove(&(*list)[place + 1], &(*list)[place], (*count - place) * sizeof(struct resource *));
    (*list)[place] = resource;
    (*count)++;
}

static void remove_sorted(struct resource **list, size_t *count, const struct resource *resource)
{
    size_t place = 0;

    while (list[place] != resource)
        place++;
    (*count)--;
    memmove(&list[place], &list[place + 1], (*count - place) * sizeof(struct resource *));
}

static void add_suffix(struct resources *r, struct resource *resource, struct span text)
{
    struct suffix *suffix = map_find(r->by_suffix, text);

    if (suffix == NULL) {
        suffix = NEW(struct suffix);
        suffix->text = mem_string(text);
        suffix->text_bytes = text.n;
        map_add(r->by_suffix, suffix);
    }
    if (text.n == resource->folded.n)
        suffix->named = resource;
    insert_sorted(&suffix->resources, &suffix->count, resource);
}

static void remove_suffix(struct resources *r, struct resource *resource, struct span text)
{
    struct suffix *suffix = map_find(r->by_suffix, text);

    remove_sorted(suffix->resources, &suffix->count, resource);
    if (suffix->named == resource)
        suffix->named = NULL;
    if (suffix->count > 0)
        return;
    map_remove(r->by_suffix, text);
    free_suffix(suffix, NULL);
}

/* Types. ----------------------------------------------------------------------------------- */

struct resource *resource_of_type(const struct resources *r, struct span type)
{
    return map_find(r->by_type, type);
}

/* Two may have the same for a moment, while declarations change together: the last one counts. */
static void enter_type(struct resources *r, struct resource *resource)
{
    if (resource->cloudevents_type.p != NULL)
        map_put(r->by_type, resource);
}

static void leave_type(struct resources *r, const struct resource *resource)
{
    struct span type = resource->cloudevents_type;

    if (type.p != NULL && map_find(r->by_type, type) == resource)
        map_remove(r->by_type, type);
}

static struct resource *find_named(const struct resources *r, struct span folded)
{
    const struct suffix *suffix = map_find(r->by_suffix, folded);

    return suffix != NULL ? suffix->named : NULL;
}

typedef void suffix_fn(struct resources *r, struct resource *resource, struct span text);

/* The name itself, and what comes after each of its dots. */
static void each_suffix(struct resources *r, struct resource *resource, suffix_fn *act)
{
    struct span rest = resource->folded;

    while (rest.p != NULL) {
        act(r, resource, rest);
        span_split(&rest, '.');
    }
}

static void add(struct resources *r, struct resource *resource)
{
    resource->referrers = NEW(struct referrers);
    list_init(&resource->referrers->selectors);
    list_init(&resource->referrers->targets);
    insert_sorted(&r->sorted, &r->count, resource);
    each_suffix(r, resource, add_suffix);
}

struct resource *resources_add_builtin(struct resources *r,
                                       const struct resource_definition *definition, void *context)
{
    struct resource *resource = resource_new();

    resource->name = definition->name;
    resource->folded = text_fold(&resource->arena, definition->name);
    resource->description = definition->description;
    resource->content_type = definition->content_type;
    resource->kind = definition->kind;
    resource->methods = resource_methods(definition->kind, definition->methods);
    resource->shape = definition->shape;
    resource->ops = definition->ops;
    resource->context = context;
    if (definition->is_stored)
        resource->collection = store_collection(r->store, definition->name);
    if (definition->kind == KIND_EVENT)
        resource->matchers = matchers_new();
    add(r, resource);
    return resource;
}

static void free_retired(void *resource)
{
    resource_free(resource);
}

/* What others hold on to stays, everything that was declared is the new one's. */
static void replace(struct resource *old, struct resource *made)
{
    struct resource was = *old;

    MUST(old->kind == made->kind && span_eq(old->name, made->name));
    *old = *made;
    old->collection = was.collection;
    old->referrers = was.referrers;
    old->matchers = was.matchers;
    if (old->content == NULL && span_eq(old->file, was.file))
        old->content = TAKE(was.content);
    *made = (struct resource){.arena = was.arena, .content = was.content};
    fiber_retire(free_retired, made);
}

/* Nothing follows from entities that raise no events: they are stored, and that is all. */
static const struct resource_ops *ops_of(const struct resources *r, const struct resource *made)
{
    bool raises = false;

    for (size_t i = 0; i < ARRAY_LEN(made->events); i++)
        raises |= made->events[i].p != NULL;
    return made->kind == KIND_ENTITY && !raises ? &nothing : r->declared_ops[made->kind];
}

struct resource *resources_put(struct resources *r, struct resource *made)
{
    struct resource *old = find_named(r, made->folded);

    r->changes++;
    made->ops = ops_of(r, made);
    if (old != NULL) {
        leave_type(r, old);
        replace(old, made);
        enter_type(r, old);
        return old;
    }
    if (made->kind == KIND_EVENT)
        made->matchers = matchers_new();
    add(r, made);
    enter_type(r, made);
    return made;
}

void resources_remove(struct resources *r, struct resource *resource)
{
    MUST(list_empty(&resource->referrers->selectors) && list_empty(&resource->referrers->targets));
    leave_type(r, resource);
    remove_sorted(r->sorted, &r->count, resource);
    each_suffix(r, resource, remove_suffix);
    r->changes++;
    fiber_retire(free_retired, resource);
}

bool resource_may_change(const struct resource *resource, enum method method)
{
    bool changes = method == METHOD_POST || method == METHOD_PATCH || method == METHOD_PUT ||
                   method == METHOD_DELETE;

    if (!changes || resource == NULL)
        return changes;
    return !(method == METHOD_POST && resource->ops->post_asks) &&
           (resource->ops->node_methods & METHOD_BIT(method)) == 0;
}

bool resource_is_visible(const struct resource *resource, const struct access_key *key)
{
    /* An event resource has no methods: any right on it will do. */
    unsigned methods = resource->kind == KIND_EVENT ? METHODS_ALL : resource->methods;

    return key == NULL || access_methods(key, resource->name, methods) != 0;
}

static struct err *ambiguous(const struct suffix *suffix, struct span name,
                             const struct access_key *key)
{
    size_t visible = 0;
    struct buf list;
    struct err *e;

    buf_init(&list, 4096);
    for (size_t i = 0; i < suffix->count; i++) {
        if (!resource_is_visible(suffix->resources[i], key))
            continue;
        buf_add_str(&list, visible++ == 0 ? ": " : ", ");
        buf_add(&list, suffix->resources[i]->name);
    }
    if (visible < suffix->count)
        buf_add_str(&list, visible == 0 ? " several resources" : ", and others");
    e = ERR(ERR_AMBIGUOUS_RESOURCE, "'%.*s' could be any of%.*s", SPAN_FMT(name),
            SPAN_FMT(buf_span(&list)));
    buf_done(&list);
    return e;
}

/* A built-in one: what is declared changes nothing of what those are called. NULL when it could be
 * several. */
static struct resource *choose(const struct suffix *suffix)
{
    struct resource *builtin = NULL;

    for (size_t i = 0; i < suffix->count; i++) {
        if (suffix->resources[i]->declaration != NULL)
            continue;
        if (builtin != NULL)
            return NULL;
        builtin = suffix->resources[i];
    }
    return builtin;
}

/* A name that is longer than any resource's can be none of them. */
enum { NAME_MOST = 256 };

struct err *resource_find(const struct resources *r, struct span name, const struct access_key *key,
                          struct resource **out_resource)
{
    char folded[NAME_MOST];
    struct span text = {folded, name.n};
    const struct suffix *suffix = NULL;
    struct resource *found;

    if (name.n <= NAME_MOST) {
        text_fold_into(folded, name);
        suffix = map_find(r->by_suffix, text);
    }
    if (suffix == NULL)
        return ERR(ERR_UNKNOWN_RESOURCE, "Svc could not locate any resource by '%.*s'.",
                   SPAN_FMT(name));
    /* the one whose full name it is comes first */
    found = suffix->named != NULL ? suffix->named
            : suffix->count == 1  ? suffix->resources[0]
                                  : choose(suffix);
    if (found == NULL)
        return ambiguous(suffix, name, key);
    *out_resource = found;
    return NULL;
}

struct err *resource_parse_query(const struct resource *resource, const struct uri *uri,
                                 struct arena *a, struct query *out_query)
{
    if (resource->kind == KIND_BINARY && uri->condition_count > 0)
        return ERR(ERR_INVALID_CONDITION_SYNTAX,
                   "'%.*s' is a binary resource, which takes no conditions",
                   SPAN_FMT(resource->name));
    if (resource->kind == KIND_BINARY && uri->meta_count > 0)
        return ERR(ERR_INVALID_META_SYNTAX,
                   "'%.*s' is a binary resource, which takes no meta-conditions",
                   SPAN_FMT(resource->name));
    return query_parse(uri, resource->shape, a, out_query);
}

struct resource *resource_named(const struct resources *r, struct span name)
{
    char folded[NAME_MOST];

    if (name.n > NAME_MOST)
        return NULL;
    text_fold_into(folded, name);
    return find_named(r, span_of(folded, name.n));
}

const struct resource *resource_builtin_ending(const struct resources *r, struct span folded)
{
    const struct suffix *suffix = map_find(r->by_suffix, folded);

    for (size_t i = 0; suffix != NULL && i < suffix->count; i++)
        if (suffix->resources[i]->declaration == NULL)
            return suffix->resources[i];
    return NULL;
}

const struct shape *resource_payload_shape(const struct resources *r, const struct resource *event)
{
    const struct resource *entities =
        event->payload_resource.p == NULL ? NULL : resource_named(r, event->payload_resource);

    return entities == NULL ? event->shape : entities->shape;
}
