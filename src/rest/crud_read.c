/* GET, HEAD and REPORT: from the resource's source through the query to the answer. */
#include "base/blob.h"
#include "base/budget.h"
#include "base/limits.h"
#include "base/must.h"
#include "protocol/formats.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/source.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/crud_inner.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/scan.h"
#include "store/entity.h"
#include "store/snapshot.h"
#include "store/turn.h"

#include <string.h>

/* Where the entities come from: on the loop's stack, where all happens in one turn, a walk over
 * what is stored. On a fiber the same as it was at one moment: one entity, those that an index
 * leads to, or all; or, for a change, those that a scan has found. */
struct collection_source {
    struct query_source source;
    struct collection_walk walk;
    struct call *call;
    int64_t left;              /* so many are given before it gives way */
    struct snapshot *snapshot; /* NULL: `walk` is walked */
    struct snapshot_walk all;
    struct entity **found; /* NULL: `all` is walked */
    size_t found_count, found_given;
    bool found_hold; /* those have passed the query's filter */
};

/* Can the text that is shown be another than the one that is stored? */
static bool renders(const struct call *call)
{
    const struct resource *resource = call->resource;

    return (resource->shape_since > 0 && !resource->shape->dynamic) ||
           resource->ops->stored_shape != NULL || resource->ops->holds_secrets != NULL ||
           (resource->ops->limit != NULL && crud_limits(call));
}

/* What a request that reads looks at instead of what is stored now; NULL: nothing. */
static struct snapshot *snapshot_for(const struct call *call)
{
    if (call->evaluation != NULL)
        return evaluation_snapshot(call->evaluation);
    return turn_before(call->rest->turn);
}

/* As the request sees it, whatever has become of it. */
static const struct entity *seen(const struct snapshot *snapshot, const struct entity *e)
{
    return snapshot != NULL ? snapshot_entity(snapshot, e) : e;
}

const struct entity *crud_seen(const struct call *call, const struct entity *e)
{
    return seen(snapshot_for(call), e);
}

static bool gave(struct collection_source *s, struct entity *e, struct query_item *out_item)
{
    if (e == NULL)
        return false;
    *out_item = (struct query_item){
        .json = blob_span(seen(s->snapshot, e)->json), .object = e, .holds = s->found_hold};
    return true;
}

/* An index leads to entities of pages before as well, which need no test. */
static bool next_entity(struct query_source *source, struct query_item *out_item)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);
    struct entity *e = collection_walk_next(&s->walk);

    while (e != NULL && e->object_no <= s->walk.above && budget_ask(16))
        e = s->walk.is_turned ? NULL : collection_walk_next(&s->walk);
    return gave(s, e, out_item);
}

/* Once it has been told to stop, what the walk comes to may be gone. */
static bool next_if_good(struct query_source *source, struct query_item *out_item)
{
    return budget_ask(0) && next_entity(source, out_item);
}

static void turn_back(struct query_source *source)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    if (s->all.snapshot != NULL)
        snapshot_walk_turn(&s->all);
    else
        collection_walk_turn(&s->walk);
}

static bool next_found(struct query_source *source, struct query_item *out_item)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    if (s->found_given == s->found_count)
        return false;
    return gave(s, s->found[s->found_given++], out_item);
}

static bool next_of_all(struct query_source *source, struct query_item *out_item)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    return gave(s, snapshot_walk_next(&s->all), out_item);
}

/* It gives way after so many, besides the clock. */
static bool counts_down(struct collection_source *s)
{
    if (s->left-- > 0)
        return true;
    s->left = s->call->rest->limits->scan_entities;
    return budget_give_way();
}

static bool next_counted(struct query_source *source, struct query_item *out_item)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    return counts_down(s) &&
           (s->snapshot != NULL ? next_of_all(source, out_item) : next_entity(source, out_item));
}

/* Masking comes before the conditions, so that nobody can guess a secret by asking for it. */
static struct span render_entity(struct query_source *source, const struct query_item *item,
                                 struct arena *a)
{
    const struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    return crud_show(s->call, seen(s->snapshot, item->object), a);
}

/* It never changes. */
static uint64_t object_no(struct query_source *source, const struct query_item *item)
{
    const struct entity *e = item->object;

    (void)source;
    return e->object_no;
}

/* What is computed belongs to the entity as it is now, if it is still there. */
static struct span hidden_value(struct query_source *source, const struct query_item *item,
                                const struct property *property, struct arena *a)
{
    const struct call *call = CONTAINER_OF(source, struct collection_source, source)->call;
    const struct entity *e = item->object;
    struct buf b;

    if (snapshot_for(call) != NULL || call->evaluation != NULL)
        e = collection_find(call->resource->collection, &e->id);
    if (e == NULL)
        return SPAN("null");
    buf_init_arena(&b, a);
    call->resource->ops->hidden(call, e, property, &b);
    return buf_span(&b);
}

/* Is it a walk over all of many, to look for some? */
static bool is_scannable(const struct collection_source *s)
{
    const struct call *call = s->call;
    const struct collection_walk *path = &s->walk;

    return call->request->gives_way && !path->single && path->bucket == NULL &&
           collection_count(path->collection) > (size_t)call->rest->limits->scan_entities &&
           query_can_filter(call->query);
}

static void give_found(struct collection_source *s)
{
    s->source.next = next_found;
    s->source.turn_back = NULL;
}

/* `Id=` names one, or none. */
static void note_single(struct collection_source *s)
{
    struct entity *e = NULL;
    struct uuid uuid;
    struct span id;

    if (conditions_string(&s->call->query->conditions, SPAN("Id"), &id) &&
        uuid_parse_own(id, &uuid))
        e = snapshot_find(s->snapshot, s->walk.collection, &uuid);
    s->found = ARENA_ARRAY(s->call->arena, struct entity *, 1);
    if (e != NULL)
        s->found[s->found_count++] = e;
}

static bool names_id(const struct call *call)
{
    return conditions_equal_to(&call->query->conditions, SPAN("Id")) != NULL;
}

/* As it was at the request's moment. */
static void open_snapshot(struct collection_source *s)
{
    if (names_id(s->call)) {
        note_single(s);
        give_found(s);
        return;
    }
    s->source.holds = false;
    s->left = s->call->rest->limits->scan_entities;
    snapshot_walk(s->snapshot, s->walk.collection, &s->call->query->conditions, &s->all);
    s->source.next = query_can_filter(s->call->query) ? next_counted : next_of_all;
}

static struct err *open_scan(struct collection_source *s, bool objects_only)
{
    bool holds = s->source.holds;
    struct scan_result result;

    s->source.holds = false; /* what comes late is tested, wherever the walk led */
    s->source.turn_back = NULL;
    TRY(scan_run(s->call, objects_only, &result));
    s->found = result.entities;
    s->found_count = result.count;
    s->found_hold = true;
    s->source.holds = holds;
    give_found(s);
    return NULL;
}

/* Unless what is looked for may be among the first ones, nothing is looked at twice. */
static void open_counted(struct collection_source *s)
{
    bool ends_early = query_enough(s->call->query) < UINT64_MAX;

    s->left = ends_early ? s->call->rest->limits->scan_entities : 0;
    s->source.next = next_counted;
}

static void walk(struct collection_source *s)
{
    collection_walk(s->call->resource->collection, &s->call->query->conditions, &s->walk);
    s->source.next = next_entity;
    s->source.turn_back = turn_back;
    s->source.holds = s->walk.holds;
}

/* Other than one that is named is looked for, or not now, or not on the loop's stack. */
static struct err *open_walk(struct collection_source *s, bool objects_only)
{
    struct evaluation *evaluation = s->call->evaluation;

    if (s->snapshot != NULL) {
        open_snapshot(s);
    } else if (evaluation != NULL && query_can_filter(s->call->query)) {
        return open_scan(s, objects_only);
    } else if (evaluation != NULL) {
        TRY(evaluation_begin_change(s->call));
        walk(s); /* others may have changed it before */
        s->source.next = next_if_good;
    } else if (is_scannable(s)) {
        open_counted(s);
    }
    return NULL;
}

/* Of the entity that is named, or of the collection; what came after the snapshot is not shown. */
static uint64_t version_shown(const struct collection_source *s)
{
    uint64_t version = s->walk.single && s->walk.next != NULL
                           ? s->walk.next->version
                           : collection_version(s->walk.collection);

    return s->snapshot != NULL ? MIN(version, s->snapshot->serial) : version;
}

static struct err *open_source(struct call *call, bool objects_only)
{
    struct collection_source *s;

    if (call->resource->ops->open != NULL)
        return call->resource->ops->open(call);
    MUST(call->resource->collection != NULL);
    s = ARENA_NEW(call->arena, struct collection_source);
    if (renders(call))
        s->source.render = render_entity;
    if (call->resource->ops->hidden != NULL)
        s->source.hidden = hidden_value;
    s->source.object_no = object_no;
    s->call = call;
    s->snapshot = snapshot_for(call);
    walk(s);
    call->source = &s->source;
    crud_shows(call, version_shown(s));
    if (s->walk.single && s->snapshot == NULL && call->evaluation == NULL)
        return NULL;
    return open_walk(s, objects_only);
}

void crud_shows(struct call *call, uint64_t version)
{
    call->response->serial = MAX(call->response->serial, version);
}

static void close_source(struct call *call)
{
    struct collection_source *s;

    if (call->resource->ops->open != NULL || call->source == NULL)
        return;
    s = CONTAINER_OF(call->source, struct collection_source, source);
    if (s->all.snapshot != NULL)
        snapshot_walk_drop(&s->all);
}

/* A change that looked for entities of a collection, and found them, begins. */
static struct err *begin_change(struct call *call)
{
    return call->resource->ops->open == NULL && call->evaluation == NULL
               ? evaluation_begin_change(call)
               : NULL;
}

struct err *crud_select(struct call *call, bool objects_only, struct query_result *out_result)
{
    struct err *e = open_source(call, objects_only);

    if (e == NULL)
        e = query_run(call->query, call->source, objects_only, call->arena, out_result);
    close_source(call);
    TRY(e);
    return objects_only ? begin_change(call) : NULL;
}

static struct err *count_selected(struct call *call, size_t *out_count)
{
    struct err *e = open_source(call, false);

    if (e == NULL)
        e = query_count(call->query, call->source, out_count);
    close_source(call);
    return e;
}

/* The number of entities without limit and offset, when none of them need be looked at for that. */
static bool is_total_known(struct call *call, size_t *out_count)
{
    const struct resource_ops *ops = call->resource->ops;
    const struct snapshot *snapshot = snapshot_for(call);

    if (!call->query->is_plain)
        return false;
    if (ops->count != NULL && ops->count(call, out_count))
        return true;
    if (ops->open != NULL || call->query->conditions.count > 0)
        return false;
    if (snapshot != NULL && !snapshot_is_current(snapshot, call->resource->collection))
        return false;
    *out_count = collection_count(call->resource->collection);
    crud_shows(call, collection_version(call->resource->collection));
    return true;
}

static bool is_counted(struct call *call, size_t *out_count)
{
    const struct meta *meta = &call->query->meta;

    return !meta->has_limit && meta->offset == 0 && is_total_known(call, out_count);
}

/* CSV in an answer is for people, who open it with a spreadsheet; in a delivery it is for a
 * program. */
static void write_sheet(struct call *call, const struct span *items, size_t count)
{
    struct response *response = call->response;

    response->content_type = SPAN("text/csv; charset=utf-8");
    response_add_own_header(response, SPAN("Content-Disposition"),
                            arena_printf(call->arena, "attachment; filename=\"%.*s.csv\"",
                                         SPAN_FMT(call->resource->name)));
    formats_add_sheet(&response->body, items, count, call->arena);
}

void crud_write_list(struct call *call, const struct span *items, size_t count)
{
    struct response *response = call->response;

    if (call->formats->out.format == FORMAT_CSV && !call->request->is_local) {
        write_sheet(call, items, count);
        return;
    }
    response->content_type = format_media_types[call->formats->out.format];
    formats_add_list(&response->body, items, count, call->formats->out.format,
                     call->formats->out.indent, call->arena);
}

void crud_answer_count(struct call *call, size_t count)
{
    struct span item = arena_printf(call->arena, "{\"Count\":%zu}", count);

    call->response->status = 200;
    crud_write_list(call, &item, 1);
}

static struct err *answer_report(struct call *call)
{
    size_t count;

    if (!is_counted(call, &count))
        TRY(count_selected(call, &count));
    crud_answer_count(call, count);
    return NULL;
}

/* In the negotiated format, with Svc-count, paging and ETag. */
static struct err *answer_items(struct call *call, const struct query_result *result)
{
    struct response *response = call->response;
    struct span *texts;
    bool is_known = false;

    response_add_own_header(response, SPAN("Svc-count"), arena_u64(call->arena, result->count));
    if (result->count == 0 && !call->query->is_form && call->method != METHOD_POST) {
        response->status = 204;
        return NULL;
    }
    if (result->count == 1 && call->query->is_plain)
        TRY(crud_answer_tag(call, &result->items[0], &is_known));
    if (is_known) {
        response->status = 304;
        return NULL;
    }
    if (result->more)
        crud_add_pager(call, result);
    texts = arena_alloc(call->arena, result->count * sizeof(*texts));
    for (size_t i = 0; i < result->count; i++)
        texts[i] = result->items[i].json;
    response->status = 200;
    crud_write_list(call, texts, result->count);
    return NULL;
}

/* `Prefer: count=exact`: how many there are without limit and offset. */
static struct err *read_with_total(struct call *call, struct query_result *out_result)
{
    struct response *response = call->response;
    size_t total;

    call->query->counts_all = !is_total_known(call, &total);
    TRY(crud_select(call, false, out_result));
    if (call->query->counts_all)
        total = out_result->total;
    response_add_own_header(response, SPAN("Svc-total"), arena_u64(call->arena, total));
    response_add_own_header(response, SPAN("Preference-Applied"), SPAN("count=exact"));
    return NULL;
}

static bool wants_total(const struct call *call)
{
    return negotiate_prefers_count(request_header_all(call->request, SPAN("Prefer"), call->arena));
}

struct err *crud_read(struct call *call)
{
    struct query_result result;

    if (call->method == METHOD_REPORT)
        return answer_report(call);
    if (request_header(call->request, SPAN("Prefer")).p != NULL && wants_total(call))
        TRY(read_with_total(call, &result));
    else
        TRY(crud_select(call, false, &result));
    TRY(budget_check());
    return answer_items(call, &result);
}
