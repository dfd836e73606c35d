/* A scan goes over the entities in order of insertion, and notes each that the query's filter lets
 * pass, in the version that it has: one that changes or goes is found no more. An entity that
 * changes behind the scan is noted as late, by a look at the store's newer records before each
 * slice, and is tested when the others have been. So when nothing late is left, each entity behind
 * the scan has been tested as it is, and those noted in their versions are what a walk would find.
 *
 * It ends beside any writers. Each time that they have added as many tests as it began with, its
 * slices double, until one does more than all that writers add before the next. What changes often
 * is noted often, but tested only as it is. */
#include "rest/scan.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/query.h"
#include "rest/access.h"
#include "rest/call.h"
#include "rest/crud_inner.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "rest/tenant.h"
#include "store/collection.h"

#include <stdlib.h>

enum {
    SLICE_NS = 500000,
    DOUBLINGS_MOST = 16,
    ENTITY_BYTES = 512,   /* what an entity costs besides its text, as if it were text */
    CLOCK_BYTES = 1 << 14 /* of both, after which the clock is looked at */
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
    struct list_link link; /* in the service's queue, while it is under way */
    struct rest *rest;
    struct arena arena;
    struct span resource_name;
    struct collection *collection;
    const struct resource *resource; /* within a slice */
    uint64_t declared_at;            /* which version of the resource it is about */
    const struct access_key *key;    /* a copy: keys may change meanwhile */
    struct query query;
    struct query_source source;
    struct query_filter *filter;
    struct collection_walk walk; /* kept: the scan has begun */
    size_t begun_with;           /* so many tests ahead */
    struct notes found, late;
    uint64_t enough;    /* of those found */
    size_t late_tested; /* of those late, the first ones */
    uint64_t added;     /* to what there is to test, since it began */
    uint64_t newest;    /* serial: what changed until then is noted */
    struct err *failed;
    void (*on_done)(void *context);
    void *context;
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
    bool is_ahead = s->walk.next != NULL && e->object_no >= s->walk.next->object_no;

    if (!is_ahead)
        add_note(&s->late, e);
    if (!is_ahead || e->object_no > s->newest)
        s->added++;
}

/* Testing. ---------------------------------------------------------------------------------- */

/* As the caller is shown it. */
static struct span render(struct query_source *source, const struct query_item *item,
                          struct arena *a)
{
    const struct scan *s = CONTAINER_OF(source, struct scan, source);
    struct span text = crud_entity(s->rest, s->resource, item->object, a);

    return crud_limits(s->resource, s->key) ? crud_limited(s->resource, s->key, text, a) : text;
}

static void test(struct scan *s, struct entity *e)
{
    const struct query_item item = {.json = entity_json(e), .object = e};
    bool passes = false;

    s->failed = query_filter_passes(s->filter, &item, &passes);
    if (passes)
        add_note(&s->found, e);
}

static bool has_walked(const struct scan *s)
{
    return s->walk.next == NULL || s->found.count >= s->enough;
}

static bool is_done(const struct scan *s)
{
    return s->failed != NULL || (has_walked(s) && s->late_tested == s->late.count);
}

/* Returns what it cost. */
static size_t test_next(struct scan *s)
{
    struct entity *e = has_walked(s) ? find_noted(s, &s->late.items[s->late_tested++])
                                     : collection_walk_next(&s->walk);

    if (s->late_tested == s->late.count)
        s->late_tested = s->late.count = 0;
    if (e == NULL)
        return ENTITY_BYTES;
    test(s, e);
    return ENTITY_BYTES + entity_json(e).n;
}

/* Slices. ----------------------------------------------------------------------------------- */

static uint64_t declared_at(const struct resource *r)
{
    return r->declaration == NULL ? 0 : r->declaration->version;
}

/* What the query was read by is there only as long as the resource is the same. */
static bool find_resource(struct scan *s)
{
    const struct resource *r = resource_named(s->rest->resources, s->resource_name);

    s->resource = r;
    return r != NULL && r->collection == s->collection && declared_at(r) == s->declared_at;
}

/* Returns whether that was the last one. */
static bool run_slice(struct scan *s)
{
    unsigned shift = (unsigned)MIN(s->added / s->begun_with, DOUBLINGS_MOST);
    uint64_t end_ns = clock_mono_ns() + ((uint64_t)SLICE_NS << shift);
    int64_t left = s->rest->limits->scan_entities << shift;
    size_t bytes = 0;

    s->rest->metrics->scan_slices++;
    if (!find_resource(s))
        return true;
    s->newest = collection_visit_newer(s->collection, s->newest, note_newer, s);
    while (left-- > 0 && !is_done(s)) {
        bytes += test_next(s);
        if (bytes < CLOCK_BYTES)
            continue;
        if (clock_mono_ns() >= end_ns)
            break;
        bytes = 0;
    }
    return is_done(s);
}

static bool has_begun(const struct scan *s)
{
    return list_linked(&s->walk.kept);
}

static void begin(struct scan *s)
{
    size_t least = (size_t)s->rest->limits->scan_entities;

    collection_keep_walk(s->collection, &s->walk);
    s->newest = collection_visit_newer(s->collection, UINT64_MAX, NULL, NULL);
    s->begun_with = MAX(collection_count(s->collection), least);
}

/* Those that have begun take turns among the first SCANS_MOST, others wait behind them. */
static void queue(struct scan *s)
{
    struct scans *all = s->rest->scans;
    struct list_link *at = has_begun(s) ? list_first(&all->queue) : NULL;

    for (unsigned i = 1; at != NULL && i < SCANS_MOST; i++)
        at = list_next(&all->queue, at);
    if (at == NULL)
        list_push_back(&all->queue, &s->link);
    else
        list_insert_before(&all->queue, at, &s->link);
    loop_post(all->loop, &all->task);
}

static void on_turn(struct loop_task *task)
{
    struct scans *all = CONTAINER_OF(task, struct scans, task);
    struct scan *s = CONTAINER_OF(list_pop_front(&all->queue), struct scan, link);

    if (!list_empty(&all->queue))
        loop_post(all->loop, task);
    if (!has_begun(s))
        begin(s);
    if (run_slice(s))
        s->on_done(s->context);
    else
        queue(s);
}

void scans_init(struct scans *s, struct loop *loop)
{
    s->loop = loop;
    list_init(&s->queue);
    s->task.run = on_turn;
}

size_t scans_count(const struct scans *s)
{
    return list_count(&s->queue);
}

/* Life. ------------------------------------------------------------------------------------- */

/* What the call has understood, understood once more, from a copy. */
static void read_query(struct scan *s, const struct call *call)
{
    struct uri uri;
    struct err *e;

    uri_copy(call->uri, &s->arena, &uri);
    e = query_parse(&uri, call->resource->shape, &s->arena, &s->query);
    MUST(e == NULL);
    if (tenant_of(call).n > 0)
        tenant_add_condition(&s->query.conditions, call->resource->shape, s->key->tenant,
                             &s->arena);
}

struct scan *scan_new(const struct call *call, bool objects_only)
{
    struct scan *s = NEW(struct scan);

    s->rest = call->rest;
    arena_init(&s->arena);
    s->resource_name = arena_copy(&s->arena, call->resource->name);
    s->collection = call->resource->collection;
    s->declared_at = declared_at(call->resource);
    s->key = access_copy(call->key, &s->arena);
    s->source.render = crud_renders(call) ? render : NULL;
    read_query(s, call);
    s->filter = query_filter_new(&s->query, &s->source, objects_only);
    s->enough = query_enough(&s->query);
    return s;
}

void scan_start(struct scan *s, void (*on_done)(void *context), void *context)
{
    s->on_done = on_done;
    s->context = context;
    s->enough = MAX(s->enough, 4 * s->found.count);
    queue(s);
}

void scan_free(struct scan *s)
{
    if (s == NULL)
        return;
    if (list_linked(&s->link))
        list_remove(&s->rest->scans->queue, &s->link);
    if (list_empty(&s->rest->scans->queue))
        loop_unpost(s->rest->scans->loop, &s->rest->scans->task);
    collection_drop_walk(&s->walk);
    mem_free(s->found.items);
    mem_free(s->late.items);
    query_filter_free(s->filter);
    query_done(&s->query);
    err_free(s->failed);
    arena_done(&s->arena);
    mem_free(s);
}

/* What it comes to. ------------------------------------------------------------------------- */

bool scan_fits(const struct scan *s, const struct call *call)
{
    return call->resource->collection == s->collection &&
           declared_at(call->resource) == s->declared_at && access_is_same(call->key, s->key);
}

static int cmp_entities(const void *a, const void *b)
{
    const struct entity *first = *(struct entity *const *)a, *second = *(struct entity *const *)b;

    return (first->object_no > second->object_no) - (first->object_no < second->object_no);
}

/* Late ones are out of order. */
static void list_found(const struct scan *s, struct arena *a, struct scan_result *result)
{
    bool is_sorted = true;

    result->entities = ARENA_ARRAY(a, struct entity *, s->found.count);
    for (size_t i = 0; i < s->found.count; i++) {
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

struct err *scan_take_result(struct scan *s, struct arena *a, struct scan_result *out_result)
{
    bool is_current = collection_version(s->collection) <= s->newest;

    TRY(TAKE(s->failed));
    *out_result = (struct scan_result){.entities = NULL};
    if (!is_current || !is_done(s))
        return NULL;
    list_found(s, a, out_result);
    out_result->is_whole = s->walk.next == NULL;
    return NULL;
}
