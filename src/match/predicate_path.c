/* Paths are told apart by their text, as case matters where an entity has members `a` and `A`, and
 * by what the last step means. A path lies in one block with its texts; it knows nothing of the
 * shape it was parsed against, which may go. */
#include "predicate_private.h"

#include "base/must.h"
#include "base/text.h"

#include <string.h>

struct span predicate_path_key_of(const void *item)
{
    return ((const struct predicate_path *)item)->key;
}

struct span predicate_step_key_of(const void *item)
{
    return ((const struct first_step *)item)->key;
}

/* ---- paths ---- */

/* Copies `s` to *end, moves *end behind it and returns the copy. */
static struct span append(char **end, struct span s)
{
    struct span copy = {*end, s.n};

    if (s.n > 0)
        memcpy(*end, s.p, s.n);
    *end += s.n;
    return copy;
}

static struct span path_key(struct predicates *set, const struct path *path)
{
    buf_clear(&set->key);
    buf_add_char(&set->key, (char)path->part);
    buf_add_char(&set->key, (char)path->part_if_missing);
    buf_add(&set->key, path->text);
    return buf_span(&set->key);
}

static size_t block_bytes(const struct path *path, struct span key)
{
    size_t n = sizeof(struct predicate_path) + path->step_count * sizeof(*path->steps);

    for (size_t i = 0; i < path->step_count; i++)
        n += path->steps[i].name.n;
    return n + path->part_name.n + key.n;
}

static struct predicate_path *path_new(struct predicates *set, const struct path *source,
                                       struct span key)
{
    size_t bytes = block_bytes(source, key);
    struct predicate_path *path = predicates_alloc(set, bytes);
    struct path_step *steps = (struct path_step *)(path + 1);
    char *end = (char *)(steps + source->step_count);

    path->path = *source;
    path->path.text = span_of(NULL, 0);
    path->path.property = NULL;
    path->path.steps = steps;
    for (size_t i = 0; i < source->step_count; i++)
        steps[i] = (struct path_step){append(&end, source->steps[i].name), source->steps[i].index};
    path->path.part_name = append(&end, source->part_name);
    path->key = append(&end, key);
    path->bytes = bytes;
    list_init(&path->unequals);
    for (enum literal_kind kind = 0; kind < LITERAL_KINDS; kind++)
        path->ranges[kind].cmp = predicate_key_cmp(kind);
    map_add(&set->paths, path);
    return path;
}

struct predicate_path *predicate_path_ref(struct predicates *set, const struct path *source)
{
    struct span key = path_key(set, source);
    struct predicate_path *path = map_find(&set->paths, key);

    if (path == NULL)
        path = path_new(set, source, key);
    path->refs++;
    return path;
}

void predicate_path_unref(struct predicates *set, struct predicate_path *path)
{
    MUST(path->refs > 0);
    if (--path->refs > 0)
        return;
    MUST(path->waits == 0);
    MUST(map_remove(&set->paths, path->key) == path);
    predicates_drop(set, path, path->bytes);
}

/* ---- first steps ---- */

static size_t step_bytes(const struct first_step *step)
{
    return sizeof(*step) + step->key.n;
}

struct first_step *predicate_path_first_step(struct predicates *set, struct span name)
{
    buf_clear(&set->key);
    text_fold_into(buf_reserve(&set->key, name.n), name);
    buf_commit(&set->key, name.n);
    return map_find(&set->first_steps, buf_span(&set->key));
}

static struct first_step *step_new(struct predicates *set, struct span key)
{
    struct first_step *step = predicates_alloc(set, sizeof(*step) + key.n);
    char *end = (char *)(step + 1);

    list_init(&step->paths);
    step->key = append(&end, key);
    map_add(&set->first_steps, step);
    return step;
}

static void join_step(struct predicates *set, struct predicate_path *path)
{
    path->first_step = predicate_path_first_step(set, path->path.steps[0].name);
    if (path->first_step == NULL)
        path->first_step = step_new(set, buf_span(&set->key));
    list_push_back(&path->first_step->paths, &path->step_link);
}

static void quit_step(struct predicates *set, struct predicate_path *path)
{
    struct first_step *step = TAKE(path->first_step);

    list_remove(&step->paths, &path->step_link);
    if (!list_empty(&step->paths))
        return;
    MUST(map_remove(&set->first_steps, step->key) == step);
    predicates_drop(set, step, step_bytes(step));
}

/* ---- waiting ---- */

void predicate_path_wait(struct predicates *set, struct predicate_path *path, bool null_satisfies)
{
    if (path->waits++ == 0) {
        list_push_back(&set->waited, &path->waited_link);
        join_step(set, path);
    }
    if (null_satisfies && path->waits_on_null++ == 0)
        list_push_back(&set->waited_on_null, &path->null_link);
}

void predicate_path_leave(struct predicates *set, struct predicate_path *path, bool null_satisfies)
{
    MUST(path->waits > 0);
    if (--path->waits == 0) {
        list_remove(&set->waited, &path->waited_link);
        quit_step(set, path);
    }
    if (null_satisfies && --path->waits_on_null == 0)
        list_remove(&set->waited_on_null, &path->null_link);
}
