/* POST with `safepost`: which entity each input stands for.
 *
 * The values that an input has on the paths make a key, one for all equal values, and inputs of one
 * key share a match. What is stored is looked for by index where the paths have one; the entities
 * of all other matches are found in one pass over the collection. The inputs of a request count one
 * after the other: the second of a key updates what the first wrote, which is not in the store yet.
 */
#include "rest/crud_safepost.h"
#include "base/blob.h"
#include "base/budget.h"
#include "base/map.h"
#include "base/must.h"
#include "query/condition.h"
#include "query/literal.h"
#include "query/path.h"
#include "query/query.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud_inner.h"
#include "rest/tenant.h"
#include "store/collection.h"

enum { ENTITY_UNITS = 512 };

struct safepost {
    struct call *call;
    bool is_list;
    struct map by_key;
    struct safepost_match **of_inputs;
    size_t input_count, taken_count;
    /* Of the entity looked at last. */
    struct conditions same; /* that each path has the value that it has there */
    struct buf key;
    struct arena scratch;
};

static struct span match_key(const void *item)
{
    return ((const struct safepost_match *)item)->key;
}

/* ---- keys ---- */

/* Fills s->same and s->key. Returns the path that has an object or an array for its value, which
 * equals nothing, else NULL. */
static const struct path *read_values(struct safepost *s, struct json_value entity)
{
    buf_clear(&s->key);
    for (size_t i = 0; i < s->same.count; i++) {
        struct condition *same = &s->same.items[i];
        struct value value = path_read(&same->path, entity, &s->scratch);

        if (!literal_of_value(&same->path, &value, &same->literal))
            return &same->path;
        literal_add_key(&s->key, &same->literal);
    }
    return NULL;
}

static struct safepost_match *match_new(struct safepost *s, struct json_value input)
{
    struct arena *a = s->call->arena;
    struct safepost_match *match = ARENA_NEW(a, struct safepost_match);

    match->key = arena_copy(a, buf_span(&s->key));
    match->input = input;
    match->first_input = s->input_count;
    map_add(&s->by_key, match);
    return match;
}

/* ---- what is stored ---- */

static struct err *note_stored(const struct safepost *s, struct safepost_match *match,
                               const struct entity *e)
{
    struct err *several;

    if (match->old == NULL) {
        match->old = e;
        return NULL;
    }
    several = ERR(ERR_AMBIGUOUS_MATCH, "safepost: several entities of '%.*s' have the values given",
                  SPAN_FMT(s->call->resource->name));
    return s->is_list ? err_prefix(several, "entity %zu: ", match->first_input) : several;
}

/* As everybody sees it: a secret is not to be found out by writing what it may be. */
static struct span shown(struct safepost *s, const struct entity *stored)
{
    const struct resource_ops *ops = s->call->resource->ops;
    struct span json = entity_json(stored);

    return ops->holds_secrets == NULL || !ops->holds_secrets(stored)
               ? json
               : crud_visible(s->call->rest, s->call->resource, json, &s->scratch);
}

/* Looks at what the walk yields for entities of `only`, or, NULL, of all matches that no index led
 * to. */
static struct err *walk_stored(struct safepost *s, struct collection_walk *walk,
                               const struct safepost_match *only)
{
    struct entity *stored;

    while (budget_ask(ENTITY_UNITS) && (stored = collection_walk_next(walk)) != NULL) {
        struct safepost_match *match = NULL;

        arena_reset(&s->scratch);
        if (!tenant_covers(s->call, entity_json(stored)))
            continue;
        if (read_values(s, entity_parse(shown(s, stored), &s->scratch)) == NULL)
            match = map_find(&s->by_key, buf_span(&s->key));
        if (match != NULL && (only != NULL ? match == only : !match->by_index))
            TRY(note_stored(s, match, stored));
    }
    return budget_check();
}

static struct err *find_by_index(struct safepost *s, struct safepost_match *match)
{
    struct collection_walk walk;

    arena_reset(&s->scratch);
    MUST(read_values(s, match->input) == NULL);
    collection_walk(s->call->resource->collection, &s->same, &walk);
    match->by_index = walk.single || walk.bucket != NULL;
    return match->by_index ? walk_stored(s, &walk, match) : NULL;
}

static struct err *find_stored(struct safepost *s)
{
    struct span tenant = tenant_of(s->call);
    struct conditions all = {NULL, 0};
    struct collection_walk walk;
    bool all_by_index = true;

    for (size_t i = 0; i < s->input_count; i++) {
        if (s->of_inputs[i]->first_input != i)
            continue;
        TRY(find_by_index(s, s->of_inputs[i]));
        all_by_index &= s->of_inputs[i]->by_index;
        if (!budget_ask(ENTITY_UNITS))
            return budget_check();
    }
    if (all_by_index)
        return NULL;
    if (tenant.n > 0)
        tenant_add_condition(&all, s->call->resource->shape, tenant, s->call->arena);
    collection_walk(s->call->resource->collection, &all, &walk);
    return walk_stored(s, &walk, NULL);
}

/* ---- inputs ---- */

static struct err *note_input(struct safepost *s, struct json_value input)
{
    const struct path *structure;
    struct safepost_match *match;

    arena_reset(&s->scratch);
    structure = read_values(s, input);
    if (structure != NULL)
        return ERR(ERR_INVALID_ENTITY, "%.*s: safepost compares no objects and arrays",
                   SPAN_FMT(structure->text));
    match = map_find(&s->by_key, buf_span(&s->key));
    s->of_inputs[s->input_count] = match != NULL ? match : match_new(s, input);
    s->input_count++;
    return NULL;
}

static struct err *note_inputs(struct safepost *s, struct json_value root)
{
    if (!s->is_list)
        return note_input(s, root);
    for (struct json_value v = json_first(root); json_exists(v); v = json_next(root, v)) {
        struct err *e = note_input(s, v);

        if (e != NULL)
            return err_prefix(e, "entity %zu: ", s->input_count);
        if (!budget_ask(ENTITY_UNITS))
            break;
    }
    return budget_check();
}

struct err *safepost_open(struct call *call, struct json_value root, struct safepost **out_safepost)
{
    const struct meta *meta = &call->query->meta;
    struct safepost *s = ARENA_NEW(call->arena, struct safepost);
    struct err *e;

    s->call = call;
    s->is_list = json_type(root) == JSON_ARRAY;
    s->same.count = meta->safepost_count;
    s->same.items = ARENA_ARRAY(call->arena, struct condition, s->same.count);
    for (size_t i = 0; i < s->same.count; i++)
        s->same.items[i] = (struct condition){.path = meta->safeposts[i], .op = URI_EQ};
    arena_init(&s->scratch);
    s->of_inputs =
        ARENA_ARRAY(call->arena, struct safepost_match *, s->is_list ? json_count(root) : 1);
    map_init(&s->by_key, match_key);
    buf_init_arena(&s->key, call->arena);
    e = note_inputs(s, root);
    if (e == NULL)
        e = find_stored(s);
    if (e != NULL) {
        safepost_close(s);
        return e;
    }
    *out_safepost = s;
    return NULL;
}

static void forget_written(void *item, void *arg)
{
    struct safepost_match *match = item;

    (void)arg;
    blob_unref(match->written.json);
}

void safepost_close(struct safepost *s)
{
    map_each(&s->by_key, forget_written, NULL);
    map_done(&s->by_key);
    arena_done(&s->scratch);
}

struct safepost_match *safepost_next(struct safepost *s)
{
    return s->of_inputs[s->taken_count++];
}

void safepost_wrote(struct safepost_match *match, struct span json, uint64_t object_no)
{
    struct entity *written = &match->written;

    MUST(uuid_parse(crud_id_of(json), &written->id));
    written->object_no = object_no;
    blob_unref(written->json);
    written->json = blob_new(json);
    match->old = written;
}
