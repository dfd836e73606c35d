/* A scan goes over the entities in order of insertion, and notes each that the query's filter lets
 * pass, in the version that it has: one that changes or goes is found no more. An entity that
 * changes behind the scan is noted as late, by a look at the store's newer records whenever it has
 * given way, and is tested when the others have been. So when nothing late is left, each entity
 * behind the scan has been tested as it is, and those noted in their versions are what a walk would
 * find.
 *
 * Where an index leads it goes over the entities of that value, of which it leaves out those that
 * have changed since it began: they are late.
 *
 * It ends beside writers: each time that they have added as many tests as it began with, it does
 * twice as many before it gives way, within what the clock allows. What changes often is noted
 * often, but tested only as it is. Who changes more than can be tested in the time of a turn, all
 * the time, has the request end at RequestCpuMs. When nothing late is left it waits until it holds
 * the turn: what came late meanwhile is all that can come. */
#include "rest/scan.h"

#include "base/blob.h"
#include "base/budget.h"
#include "base/limits.h"
#include "base/mem.h"
#include "query/query.h"
#include "query/source.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/evaluation.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/entity.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTITY_UNITS = 128, /* what an entity costs besides its test */
    COMPARE_UNITS = 32, /* and a look at the numbers of two */
    DOUBLINGS_MOST = 16
};

/* An entity in one of its versions. */
struct note {
    struct uuid id;
    uint64_t version;
};

struct notes {
    struct note *items;
    size_t count, size;
};

struct scan {
    struct call *call;
    struct collection *collection;
    const struct uuid *only; /* the one that is looked for; NULL: any */
    struct query_filter *filter;
    struct collection_walk walk;
    struct notes found, late;
    size_t late_tested; /* of those late, the first ones */
    uint64_t newest;    /* serial: what changed until then is noted */
    uint64_t begun_at;  /* the same, when it began */
    unsigned turns;     /* budget_turns then */
    int64_t left;       /* so many may be looked at before it gives way */
    size_t begun_with;  /* so many tests ahead */
    size_t added;       /* since then */
};

/* Notes. ------------------------------------------------------------------------------------ */

static void add_note(struct notes *notes, const struct entity *e)
{
    if (notes->count == notes->size) {
        notes->size = MAX(64, 2 * notes->size);
        notes->items = mem_resize(notes->items, notes->size * sizeof(*notes->items));
    }
    notes->items[notes->count++] = (struct note){e->id, e->version};
}

/* NULL: it has changed since, or is gone. */
static struct entity *find_noted(const struct scan *s, const struct note *note)
{
    struct entity *e = collection_find(s->collection, &note->id);

    return e != NULL && e->version == note->version ? e : NULL;
}

/* Notes it, unless the walk will come to it. */
static void note_newer(struct entity *e, void *scan)
{
    struct scan *s = scan;

    if (s->only != NULL && memcmp(s->only, &e->id, sizeof(e->id)) != 0)
        return;
    s->added++;
    if (s->walk.bucket != NULL || s->walk.next == NULL || e->object_no < s->walk.next->object_no)
        add_note(&s->late, e);
}

/* What changed while others had their turns. */
static void look_behind(struct scan *s)
{
    if (s->turns == budget_turns())
        return;
    s->turns = budget_turns();
    s->newest = collection_visit_newer(s->collection, s->newest, note_newer, s);
}

/* Testing. ---------------------------------------------------------------------------------- */

/* It may change, or go, while it is tested. */
static struct err *test(struct scan *s, const struct entity *e)
{
    struct entity pinned = {
        .id = e->id, .object_no = e->object_no, .version = e->version, .json = blob_ref(e->json)};
    const struct query_item item = {.json = entity_json(&pinned), .object = &pinned};
    bool passes = false;
    struct err *failed = query_filter_passes(s->filter, &item, &passes);

    if (failed == NULL && passes)
        add_note(&s->found, &pinned);
    blob_unref(pinned.json);
    return failed;
}

/* NULL: it is gone, or another by now. What changes is late, where an index leads, whatever its
 * place there. */
static struct entity *next(struct scan *s)
{
    struct entity *e;

    if (s->walk.next != NULL) {
        e = collection_walk_next(&s->walk);
        return s->walk.bucket != NULL && e->version > s->begun_at ? NULL : e;
    }
    e = find_noted(s, &s->late.items[s->late_tested++]);
    if (s->late_tested == s->late.count)
        s->late_tested = s->late.count = 0;
    return e;
}

static bool is_done(const struct scan *s)
{
    return s->walk.next == NULL && s->late_tested == s->late.count;
}

static bool may_go_on(struct scan *s)
{
    if (--s->left > 0)
        return budget_ask(ENTITY_UNITS);
    s->left = s->call->rest->limits->scan_entities
              << MIN(s->added / s->begun_with, (size_t)DOUBLINGS_MOST);
    return budget_give_way();
}

static struct err *run(struct scan *s)
{
    while (!is_done(s)) {
        struct entity *e = next(s);

        if (e != NULL)
            TRY(test(s, e));
        if (!may_go_on(s))
            return budget_check();
        look_behind(s);
    }
    return NULL;
}

/* What it comes to. ------------------------------------------------------------------------- */

static int cmp_entities(const void *a, const void *b)
{
    const struct entity *first = *(struct entity *const *)a, *second = *(struct entity *const *)b;

    budget_spend(COMPARE_UNITS);
    return (first->object_no > second->object_no) - (first->object_no < second->object_no);
}

/* Late ones are out of order. */
static void list_found(const struct scan *s, struct scan_result *result)
{
    bool is_sorted = true;

    result->count = 0;
    result->entities = ARENA_ARRAY(s->call->arena, struct entity *, s->found.count);
    for (size_t i = 0; i < s->found.count && budget_ask(ENTITY_UNITS); i++) {
        struct entity *e = find_noted(s, &s->found.items[i]);

        if (e == NULL)
            continue;
        result->entities[result->count++] = e;
        is_sorted &=
            result->count == 1 || result->entities[result->count - 2]->object_no < e->object_no;
    }
    if (!is_sorted)
        qsort(result->entities, result->count, sizeof(*result->entities), cmp_entities);
}

/* One that is named is as one that is late. */
static void look_for_one(struct scan *s)
{
    struct uuid *only = ARENA_NEW(s->call->arena, struct uuid);
    const struct entity *e = NULL;
    struct span id;

    if (conditions_string(&s->call->query->conditions, SPAN("Id"), &id) && uuid_parse_own(id, only))
        e = collection_find(s->collection, only);
    s->only = only;
    s->walk.next = NULL;
    if (e != NULL)
        add_note(&s->late, e);
}

static void init(struct scan *s, struct call *call, bool objects_only)
{
    *s = (struct scan){.call = call, .collection = call->resource->collection};
    s->filter = query_filter_new(call->query, call->source, objects_only);
    s->left = call->rest->limits->scan_entities;
    s->begun_with = MAX(collection_count(s->collection), (size_t)s->left);
    s->turns = budget_turns();
    collection_keep_walk(s->collection, &call->query->conditions, &s->walk);
    s->newest = s->begun_at = collection_visit_newer(s->collection, UINT64_MAX, NULL, NULL);
    if (conditions_equal_to(&call->query->conditions, SPAN("Id")) != NULL)
        look_for_one(s);
}

static void done(struct scan *s)
{
    collection_drop_walk(&s->walk);
    mem_free(s->found.items);
    mem_free(s->late.items);
    query_filter_free(s->filter);
}

struct err *scan_run(struct call *call, bool objects_only, struct scan_result *out_result)
{
    struct scan s;
    struct err *e = NULL;

    init(&s, call, objects_only);
    TRY_GOTO(e, run(&s), ended);
    TRY_GOTO(e, evaluation_begin_change(call), ended);
    look_behind(&s);
    TRY_GOTO(e, run(&s), ended);
    list_found(&s, out_result);
    e = budget_check();

ended:
    done(&s);
    return e;
}
