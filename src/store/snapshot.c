/* Versions tell: what is stored is in a snapshot as it is, if its version is not younger; else it
 * is among what was saved, or has come later. A walk merges the two by the entities' numbers. What
 * is saved comes in the order of changes, and is kept in that of the numbers. */
#include "store/snapshot.h"

#include "base/blob.h"
#include "base/budget.h"
#include "base/mem.h"
#include "base/must.h"
#include "store/entity.h"
#include "store/numbered.h"
#include "store/store.h"

/* What it costs to free what was saved of an entity. */
enum { SAVED_UNITS = 128 };

/* What was saved of one collection. */
struct part {
    struct list_link link;
    struct collection *collection;
    struct numbered saved;
};

static struct span saved_key(const void *item)
{
    return uuid_key(&((const struct entity *)item)->id);
}

void snapshot_open(struct snapshot *snapshot, struct store *s, uint64_t serial)
{
    *snapshot = (struct snapshot){.store = s, .serial = serial};
    map_init_own(&snapshot->saved, saved_key);
    list_init(&snapshot->parts);
    list_push_back(store_snapshots(s), &snapshot->link);
}

static void free_part(struct part *part)
{
    struct entity *saved;

    while ((saved = numbered_pop(&part->saved)) != NULL) {
        blob_unref(saved->json);
        mem_free(saved);
        budget_spend(SAVED_UNITS);
    }
    mem_free(part);
}

void snapshot_close(struct snapshot *snapshot)
{
    struct part *part;
    struct store *s = TAKE(snapshot->store);

    if (s == NULL)
        return;
    list_remove(store_snapshots(s), &snapshot->link);
    map_done(&snapshot->saved);
    while ((part = LIST_OBJECT(list_pop_front(&snapshot->parts), struct part, link)) != NULL)
        free_part(part);
    store_free_gone(s);
}

static struct part *find_part(const struct snapshot *snapshot, const struct collection *c)
{
    LIST_EACH(&snapshot->parts, at) {
        struct part *part = CONTAINER_OF(at, struct part, link);

        if (part->collection == c)
            return part;
    }
    return NULL;
}

/* Put in front: who changes one entity of a collection changes more of it. */
static struct part *get_part(struct snapshot *snapshot, struct collection *c)
{
    struct part *part = find_part(snapshot, c);

    if (part == NULL) {
        part = NEW(struct part);
        part->collection = c;
    } else {
        list_remove(&snapshot->parts, &part->link);
    }
    list_push_front(&snapshot->parts, &part->link);
    return part;
}

static void save(struct snapshot *snapshot, const struct entity *e)
{
    struct part *part = get_part(snapshot, e->collection);
    struct entity *saved = NEW(struct entity);

    saved->collection = e->collection;
    saved->id = e->id;
    saved->object_no = e->object_no;
    saved->version = e->version;
    saved->json = blob_ref(e->json);
    numbered_add(&part->saved, saved);
    map_add(&snapshot->saved, saved);
}

void snapshots_save(struct list *snapshots, const struct entity *e)
{
    LIST_EACH(snapshots, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (e->version <= snapshot->serial)
            save(snapshot, e);
    }
}

bool snapshot_is_current(const struct snapshot *snapshot, const struct collection *c)
{
    return collection_version(c) <= snapshot->serial;
}

static struct entity *find_saved(const struct snapshot *snapshot, const struct uuid *id)
{
    return map_find(&snapshot->saved, uuid_key(id));
}

struct entity *snapshot_find(struct snapshot *snapshot, struct collection *c, const struct uuid *id)
{
    struct entity *e = collection_find(c, id);

    if (e != NULL && e->version <= snapshot->serial)
        return e;
    e = find_saved(snapshot, id);
    return e != NULL && e->collection == c ? e : NULL;
}

/* One that is gone has a version that is younger than any. */
const struct entity *snapshot_entity(const struct snapshot *snapshot, const struct entity *e)
{
    const struct entity *saved = e->version <= snapshot->serial ? e : find_saved(snapshot, &e->id);

    MUST(saved != NULL);
    return saved;
}

/* ---- walks ---- */

void snapshot_walk(struct snapshot *snapshot, struct collection *c,
                   const struct conditions *conditions, struct snapshot_walk *out_walk)
{
    out_walk->snapshot = snapshot;
    collection_keep_walk(c, conditions, &out_walk->live);
    out_walk->given = out_walk->live.above;
}

void snapshot_walk_drop(struct snapshot_walk *walk)
{
    collection_drop_walk(&walk->live);
}

/* An index leads to entities of pages before as well. */
static bool is_passed_over(const struct snapshot_walk *walk, const struct entity *e)
{
    return e->version > walk->snapshot->serial || e->object_no <= walk->live.above;
}

/* Is it, and are all after it? From there on all have come, or have changed, later; or the other
 * way all are of pages before. */
static bool is_beyond(const struct snapshot_walk *walk, const struct entity *e)
{
    return walk->live.is_turned ? e->object_no <= walk->live.above
                                : e->object_no > walk->snapshot->serial;
}

/* What has changed since is passed over, which may be much. */
static struct entity *live_next(struct snapshot_walk *walk)
{
    while (walk->live.next != NULL && is_passed_over(walk, walk->live.next)) {
        if (is_beyond(walk, walk->live.next)) {
            walk->live.next = NULL;
            break;
        }
        collection_walk_next(&walk->live);
        if (!budget_ask(16))
            return NULL;
    }
    return walk->live.next;
}

static struct entity *saved_next(const struct snapshot_walk *walk)
{
    struct part *part = find_part(walk->snapshot, walk->live.collection);
    struct entity *saved;

    if (part == NULL)
        return NULL;
    if (!walk->live.is_turned)
        return numbered_above(&part->saved, walk->given);
    saved = numbered_up_to(&part->saved, walk->given - 1); /* which is not 0 then */
    return saved != NULL && saved->object_no > walk->live.above ? saved : NULL;
}

static bool is_next(const struct snapshot_walk *walk, const struct entity *saved,
                    const struct entity *live)
{
    if (saved == NULL || live == NULL)
        return live == NULL;
    return walk->live.is_turned ? saved->object_no > live->object_no
                                : saved->object_no < live->object_no;
}

void snapshot_walk_turn(struct snapshot_walk *walk)
{
    collection_walk_turn(&walk->live);
    walk->given = UINT64_MAX;
}

struct entity *snapshot_walk_next(struct snapshot_walk *walk)
{
    struct entity *live = live_next(walk), *saved = saved_next(walk);
    struct entity *next = is_next(walk, saved, live) ? saved : live;

    if (next == NULL)
        return NULL;
    walk->given = next->object_no;
    return next == live ? collection_walk_next(&walk->live) : saved;
}
