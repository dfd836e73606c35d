/* POST with `safepost`: which entity each input stands for.
 *
 * The values that an input has on the paths make a key, one for all equal values, and inputs of one
 * key share a match. What is stored is looked for by index where the paths have one; the entities
 * of all other matches are found in one pass over the collection. The inputs of a request count one
 * after the other: the second of a key updates what the first wrote, which is not in the store yet.
 */
#include "base/map.h"
#include "base/must.h"
#include "service/crud_inner.h"
#include "service/service.h"

#include <string.h>

struct safepost {
    struct call *call;
    bool is_list;
    const struct path *paths;
    size_t path_count;
    struct map by_key;
    struct safepost_match **of_inputs;
    size_t input_count, taken_count;
    struct literal *values; /* scratch, one a path */
    struct buf key;         /* scratch */
};

static struct span match_key(const void *item)
{
    return ((const struct safepost_match *)item)->key;
}

/* ---- keys ---- */

/* Fills s->values and s->key. Returns the path that has an object or an array for its value, which
 * equals nothing, else NULL. */
static const struct path *read_values(struct safepost *s, struct json_value entity, struct arena *a)
{
    buf_clear(&s->key);
    for (size_t i = 0; i < s->path_count; i++) {
        struct value value = path_read(&s->paths[i], entity, a);

        if (!literal_of_value(&s->paths[i], &value, &s->values[i]))
            return &s->paths[i];
        literal_add_key(&s->key, &s->values[i]);
    }
    return NULL;
}

static struct safepost_match *match_new(struct safepost *s)
{
    struct arena *a = s->call->arena;
    struct safepost_match *match = ARENA_NEW(a, struct safepost_match);

    match->key = arena_copy(a, buf_span(&s->key));
    match->values = ARENA_ARRAY(a, struct literal, s->path_count);
    memcpy(match->values, s->values, s->path_count * sizeof(*s->values));
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

/* Looks at what the walk yields for entities of `only`, or, NULL, of all matches that no index led
 * to. */
static struct err *walk_stored(struct safepost *s, struct collection_walk *walk,
                               struct safepost_match *only)
{
    struct arena scratch;
    struct entity *stored;
    struct err *e = NULL;

    arena_init(&scratch);
    while (e == NULL && (stored = collection_walk_next(walk)) != NULL) {
        struct safepost_match *match = NULL;

        arena_reset(&scratch);
        if (read_values(s, entity_parse(entity_json(stored), &scratch), &scratch) == NULL)
            match = map_find(&s->by_key, buf_span(&s->key));
        if (match != NULL && (only != NULL ? match == only : !match->by_index))
            e = note_stored(s, match, stored);
    }
    arena_done(&scratch);
    return e;
}

static struct err *find_by_index(struct safepost *s, struct safepost_match *match)
{
    struct conditions same = {ARENA_ARRAY(s->call->arena, struct condition, s->path_count),
                              s->path_count};
    struct collection_walk walk;

    for (size_t i = 0; i < s->path_count; i++)
        same.items[i] = (struct condition){s->paths[i], URI_EQ, match->values[i]};
    collection_walk(s->call->resource->collection, &same, &walk);
    match->by_index = walk.single || walk.bucket != NULL;
    return match->by_index ? walk_stored(s, &walk, match) : NULL;
}

static struct err *find_stored(struct safepost *s)
{
    const struct conditions none = {NULL, 0};
    struct collection_walk walk;
    bool all_by_index = true;

    for (size_t i = 0; i < s->input_count; i++) {
        if (s->of_inputs[i]->first_input != i)
            continue;
        TRY(find_by_index(s, s->of_inputs[i]));
        all_by_index &= s->of_inputs[i]->by_index;
    }
    if (all_by_index)
        return NULL;
    collection_walk(s->call->resource->collection, &none, &walk);
    return walk_stored(s, &walk, NULL);
}

/* ---- inputs ---- */

static struct err *note_input(struct safepost *s, struct json_value input)
{
    const struct path *structure = read_values(s, input, s->call->arena);
    struct safepost_match *match;

    if (structure != NULL)
        return ERR(ERR_INVALID_ENTITY, "%.*s: safepost compares no objects and arrays",
                   SPAN_FMT(structure->text));
    match = map_find(&s->by_key, buf_span(&s->key));
    s->of_inputs[s->input_count] = match != NULL ? match : match_new(s);
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
    }
    return NULL;
}

struct err *safepost_open(struct call *call, struct json_value root, struct safepost **out_safepost)
{
    const struct meta *meta = &call->query.meta;
    struct safepost *s = ARENA_NEW(call->arena, struct safepost);
    struct err *e;

    s->call = call;
    s->is_list = json_type(root) == JSON_ARRAY;
    s->paths = meta->safeposts;
    s->path_count = meta->safepost_count;
    s->values = ARENA_ARRAY(call->arena, struct literal, s->path_count);
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
    if (s == NULL)
        return;
    map_each(&s->by_key, forget_written, NULL);
    map_done(&s->by_key);
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
