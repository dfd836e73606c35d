/* Found entities are kept in the order in which they were found, which is that of their object_no,
 * so that one is found again by halving. One that changes or goes leaves an empty place there; one
 * that has changed is `late`, until it is tested again, and if it passes then, until it changes
 * once more. So whatever is in either place is as it was when it was tested, or is known not to be.
 *
 * Late ones are tested in slices too, when all others have been, or a scan beside busy writers
 * would leave too many of them to the evaluation; but not more of them than of the others. */
#include "rest/scan.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/query.h"
#include "rest/call.h"
#include "rest/crud_inner.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/collection.h"
#include "store/cursor.h"

#include <stdlib.h>

enum {
    SLICE_NS = 500000,
    ENTITY_BYTES = 512,   /* what an entity costs besides its text, as if it were text */
    CLOCK_BYTES = 1 << 14 /* of both, after which the clock is looked at */
};

struct found {
    uint64_t object_no;
    struct entity *entity; /* NULL: it has changed since, or is gone */
};

/* Changed after the scan had passed it. */
struct scan_late {
    uint64_t object_no;
    struct entity *entity;
    struct list_link untested; /* linked: not tested since; else it passed */
};

struct scan {
    struct list_link link; /* linked while it is under way */
    struct list *in;       /* then: of `scans` */
    struct rest *rest;
    struct cursor cursor;
    struct arena arena;
    struct span resource_name;
    struct collection *collection;
    const struct resource *resource; /* within a slice */
    uint64_t declared_at;            /* which version of the resource it is about */
    bool is_masked, objects_only;
    struct query query;
    struct query_source source;
    struct query_filter *filter;
    struct found *found;
    size_t found_count, found_size;
    size_t live_count; /* of these, that are not empty places */
    uint64_t enough;   /* of those */
    struct map late;   /* struct scan_late */
    struct list untested;
    uint64_t passed, retested;
    struct err *failed;
    unsigned repeats;
    void (*on_done)(void *context);
    void *context;
};

/* What is found. ---------------------------------------------------------------------------- */

static struct span late_key(const void *item)
{
    const struct scan_late *late = item;

    return span_of((const char *)&late->object_no, sizeof(late->object_no));
}

static struct scan_late *find_late(const struct scan *s, const struct entity *e)
{
    return map_find(&s->late, span_of((const char *)&e->object_no, sizeof(e->object_no)));
}

static void add_found(struct scan *s, struct entity *e)
{
    if (s->found_count == s->found_size) {
        s->found_size = MAX(64, 2 * s->found_size);
        s->found = mem_resize(s->found, s->found_size * sizeof(*s->found));
    }
    s->found[s->found_count++] = (struct found){e->object_no, e};
    s->live_count++;
}

static int cmp_found(const void *key, const void *item)
{
    uint64_t a = *(const uint64_t *)key, b = ((const struct found *)item)->object_no;

    return (a > b) - (a < b);
}

static void drop_found(struct scan *s, const struct entity *e)
{
    struct found *found = s->found_count == 0 ? NULL
                                              : bsearch(&e->object_no, s->found, s->found_count,
                                                        sizeof(*s->found), cmp_found);

    if (found == NULL || found->entity == NULL)
        return;
    found->entity = NULL;
    s->live_count--;
}

static void drop_late(struct scan *s, struct scan_late *late)
{
    map_remove(&s->late, late_key(late));
    if (list_linked(&late->untested))
        list_remove(&s->untested, &late->untested);
    mem_free(late);
}

static void on_changed(struct cursor *cursor, struct entity *e)
{
    struct scan *s = CONTAINER_OF(cursor, struct scan, cursor);
    struct scan_late *late = find_late(s, e);

    drop_found(s, e);
    if (late == NULL) {
        late = NEW(struct scan_late);
        late->object_no = e->object_no;
        late->entity = e;
        map_add(&s->late, late);
    }
    if (!list_linked(&late->untested))
        list_push_back(&s->untested, &late->untested);
}

static void on_gone(struct cursor *cursor, struct entity *e)
{
    struct scan *s = CONTAINER_OF(cursor, struct scan, cursor);
    struct scan_late *late = find_late(s, e);

    drop_found(s, e);
    if (late != NULL)
        drop_late(s, late);
}

/* Testing. ---------------------------------------------------------------------------------- */

/* As the caller is shown it. */
static struct span render(struct query_source *source, const struct query_item *item,
                          struct arena *a)
{
    const struct scan *s = CONTAINER_OF(source, struct scan, source);
    struct span text = crud_text(s->resource, item->object, a);

    return s->is_masked ? crud_masked(s->resource, text, a) : text;
}

static bool passes(struct scan *s, struct entity *e)
{
    const struct query_item item = {.json = entity_json(e), .object = e};
    bool passes = false;

    s->failed = query_filter_passes(s->filter, &item, &passes);
    return passes;
}

static size_t test_next(struct scan *s)
{
    struct entity *e = cursor_pass(&s->cursor);

    s->passed++;
    if (passes(s, e))
        add_found(s, e);
    return entity_json(e).n;
}

static size_t test_late(struct scan *s)
{
    struct list_link *link = list_pop_front(&s->untested);
    struct scan_late *late = CONTAINER_OF(link, struct scan_late, untested);
    size_t bytes = entity_json(late->entity).n;

    s->retested++;
    if (!passes(s, late->entity))
        drop_late(s, late);
    return bytes;
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

static bool is_done(const struct scan *s)
{
    if (s->failed != NULL || s->live_count >= s->enough)
        return true;
    return s->cursor.next == NULL && (list_empty(&s->untested) || s->retested >= s->passed);
}

/* Returns whether that was the last one. */
static bool run_slice(struct scan *s)
{
    uint64_t end_ns = clock_mono_ns() + SLICE_NS;
    int64_t left = s->rest->limits->scan_entities;
    size_t bytes = 0;

    s->rest->metrics->scan_slices++;
    if (!find_resource(s))
        return true;
    while (left-- > 0 && !is_done(s)) {
        bytes += ENTITY_BYTES + (s->cursor.next != NULL ? test_next(s) : test_late(s));
        if (bytes < CLOCK_BYTES)
            continue;
        if (clock_mono_ns() >= end_ns)
            break;
        bytes = 0;
    }
    return is_done(s);
}

static struct scan *scan_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct scan, link);
}

static bool is_open(const struct scan *s)
{
    return list_linked(&s->cursor.link);
}

static void go_on(struct scan *s)
{
    struct scans *all = s->rest->scans;

    s->in = &all->going;
    list_push_back(s->in, &s->link);
    loop_post(all->loop, &all->task);
}

static void let_next_go(struct scans *all)
{
    while (all->open_count < SCANS_MOST && !list_empty(&all->waiting)) {
        struct scan *s = scan_at(list_pop_front(&all->waiting));

        cursor_open(&s->cursor, s->collection);
        all->open_count++;
        go_on(s);
    }
}

static void on_turn(struct loop_task *task)
{
    struct scans *all = CONTAINER_OF(task, struct scans, task);
    struct scan *s = scan_at(list_pop_front(&all->going));
    bool is_last = run_slice(s);

    if (!is_last)
        go_on(s);
    else if (!list_empty(&all->going))
        loop_post(all->loop, &all->task);
    if (is_last)
        s->on_done(s->context);
}

void scans_init(struct scans *s, struct loop *loop)
{
    s->loop = loop;
    list_init(&s->going);
    list_init(&s->waiting);
    s->task.run = on_turn;
}

size_t scans_count(const struct scans *s)
{
    return list_count(&s->going) + list_count(&s->waiting);
}

/* Life. ------------------------------------------------------------------------------------- */

static struct uri_condition *copy_conditions(const struct uri_condition *from, size_t count,
                                             struct arena *a)
{
    struct uri_condition *copies = ARENA_ARRAY(a, struct uri_condition, count);

    for (size_t i = 0; i < count; i++) {
        copies[i] = from[i];
        copies[i].key = arena_copy(a, from[i].key);
        copies[i].value = arena_copy(a, from[i].value);
    }
    return copies;
}

/* What the call has understood, understood once more, from copies. */
static void read_query(struct scan *s, const struct call *call)
{
    struct uri uri = *call->uri;
    struct err *e;

    uri.conditions = copy_conditions(uri.conditions, uri.condition_count, &s->arena);
    uri.metas = copy_conditions(uri.metas, uri.meta_count, &s->arena);
    e = query_parse(&uri, call->resource->shape, &s->arena, &s->query);
    MUST(e == NULL);
}

struct scan *scan_new(const struct call *call, bool objects_only)
{
    const struct scan *before = call->request->scan;
    struct scan *s = NEW(struct scan);

    s->rest = call->rest;
    s->repeats = before == NULL ? 0 : before->repeats + 1;
    arena_init(&s->arena);
    s->resource_name = arena_copy(&s->arena, call->resource->name);
    s->collection = call->resource->collection;
    s->declared_at = declared_at(call->resource);
    s->is_masked = crud_masks(call);
    s->objects_only = objects_only;
    s->source.render = crud_renders(call) ? render : NULL;
    read_query(s, call);
    s->filter = query_filter_new(&s->query, &s->source, objects_only);
    s->enough = query_enough(&s->query);
    s->cursor.on_changed = on_changed;
    s->cursor.on_gone = on_gone;
    map_init(&s->late, late_key);
    list_init(&s->untested);
    return s;
}

void scan_start(struct scan *s, void (*on_done)(void *context), void *context)
{
    struct scans *all = s->rest->scans;

    s->on_done = on_done;
    s->context = context;
    if (is_open(s)) {
        go_on(s);
        return;
    }
    s->in = &all->waiting;
    list_push_back(s->in, &s->link);
    let_next_go(all);
}

static void leave(struct scan *s)
{
    struct scans *all = s->rest->scans;

    if (list_linked(&s->link))
        list_remove(s->in, &s->link);
    if (is_open(s)) {
        cursor_close(&s->cursor);
        all->open_count--;
        let_next_go(all);
    }
    if (list_empty(&all->going))
        loop_unpost(all->loop, &all->task);
}

static void free_late(void *late, void *arg)
{
    (void)arg;
    mem_free(late);
}

void scan_free(struct scan *s)
{
    if (s == NULL)
        return;
    leave(s);
    map_each(&s->late, free_late, NULL);
    map_done(&s->late);
    mem_free(s->found);
    query_filter_free(s->filter);
    query_done(&s->query);
    err_free(s->failed);
    arena_done(&s->arena);
    mem_free(s);
}

/* What it comes to. ------------------------------------------------------------------------- */

bool scan_fits(const struct scan *s, const struct call *call, bool objects_only)
{
    return call->resource->collection == s->collection &&
           declared_at(call->resource) == s->declared_at && crud_masks(call) == s->is_masked &&
           objects_only == s->objects_only;
}

unsigned scan_repeats(const struct scan *s)
{
    return s->repeats;
}

void scan_want_more(struct scan *s)
{
    s->enough = s->enough > UINT64_MAX / 4 ? UINT64_MAX : 4 * s->enough;
}

struct err *scan_take_failure(struct scan *s)
{
    return TAKE(s->failed);
}

struct lates {
    const struct scan_late **items;
    size_t count;
};

static void list_late(void *late, void *arg)
{
    struct lates *all = arg;

    all->items[all->count++] = late;
}

static int cmp_late(const void *a, const void *b)
{
    uint64_t first = (*(const struct scan_late *const *)a)->object_no;
    uint64_t second = (*(const struct scan_late *const *)b)->object_no;

    return (first > second) - (first < second);
}

void scan_walk(const struct scan *s, struct collection *c, uint64_t most, struct arena *a,
               struct scan_walk *out_walk)
{
    struct lates late = {NULL, 0};

    *out_walk = (struct scan_walk){.scan = s, .collection = c, .left = most};
    if (s == NULL) {
        out_walk->next = collection_first(c);
        return;
    }
    late.items = ARENA_ARRAY(a, const struct scan_late *, map_count(&s->late));
    map_each(&s->late, list_late, &late);
    if (late.count > 0)
        qsort(late.items, late.count, sizeof(*late.items), cmp_late);
    out_walk->late = late.items;
    out_walk->late_count = late.count;
    out_walk->next = s->cursor.next;
}

static const struct found *find_place(struct scan_walk *walk)
{
    const struct scan *s = walk->scan;

    while (s != NULL && walk->place < s->found_count && s->found[walk->place].entity == NULL)
        walk->place++;
    return s != NULL && walk->place < s->found_count ? &s->found[walk->place] : NULL;
}

/* Of those that it has not come to. */
static struct entity *next_of_rest(struct scan_walk *walk)
{
    struct entity *e = walk->next;

    walk->is_cut = e != NULL && walk->left == 0;
    if (e == NULL || walk->is_cut)
        return NULL;
    walk->left--;
    walk->next = collection_next(walk->collection, e);
    return e;
}

struct entity *scan_walk_next(struct scan_walk *walk, bool *out_holds)
{
    const struct found *found = find_place(walk);
    const struct scan_late *late =
        walk->late_place < walk->late_count ? walk->late[walk->late_place] : NULL;

    if (found != NULL && (late == NULL || found->object_no < late->object_no)) {
        walk->place++;
        *out_holds = true;
        return found->entity;
    }
    *out_holds = false;
    if (late == NULL)
        return next_of_rest(walk);
    walk->late_place++;
    *out_holds = !list_linked(&late->untested);
    return late->entity;
}
