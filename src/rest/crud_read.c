/* GET, HEAD and REPORT: from the resource's source through the query to the answer. */
#include "base/budget.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/must.h"
#include "base/uuid.h"
#include "query/meta.h"
#include "query/query.h"
#include "query/uri.h"
#include "rest/access.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/crud_inner.h"
#include "rest/evaluation.h"
#include "rest/formats.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/scan.h"
#include "rest/schema.h"
#include "store/collection.h"
#include "store/index.h"
#include "store/snapshot.h"

#include <string.h>

enum { BUCKET_MOST = 20000 };

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

bool crud_renders(const struct call *call)
{
    const struct resource *resource = call->resource;

    return (resource->shape_since > 0 && !resource->shape->dynamic) ||
           resource->ops->stored_shape != NULL || resource->ops->holds_secrets != NULL ||
           crud_limits(resource, call->key);
}

struct span crud_shown(const struct resource *resource, struct span json, struct arena *a)
{
    struct buf b;

    if (resource->ops->stored_shape == NULL)
        return json;
    buf_init_arena(&b, a);
    schema_add_reshaped(&b, resource->shape, entity_parse(json, a), a);
    return buf_span(&b);
}

struct span crud_text(const struct resource *resource, const struct entity *e, struct arena *a)
{
    struct buf b;

    if (e->version >= resource->shape_since || resource->shape->dynamic)
        return crud_shown(resource, entity_json(e), a);
    buf_init_arena(&b, a);
    schema_add_reshaped(&b, resource->shape, entity_parse(entity_json(e), a), a);
    return buf_span(&b);
}

struct span crud_visible(const struct rest *rest, const struct resource *resource, struct span json,
                         struct arena *a)
{
    struct buf masked;

    if (resource->ops->holds_secrets == NULL)
        return json;
    buf_init_arena(&masked, a);
    mask_add_value(&masked, &rest->mask, entity_parse(json, a), a);
    return buf_span(&masked);
}

bool crud_limits(const struct resource *resource, const struct access_key *key)
{
    return resource->ops->limit != NULL && !access_reads_all(key);
}

struct span crud_limited(const struct resource *resource, const struct access_key *key,
                         struct span json, struct arena *a)
{
    struct buf limited;

    buf_init_arena(&limited, a);
    resource->ops->limit(resource->context, key, &limited, json, a);
    return buf_span(&limited);
}

struct span crud_entity(const struct rest *rest, const struct resource *resource,
                        const struct entity *e, struct arena *a)
{
    struct span json = crud_text(resource, e, a);

    if (resource->ops->holds_secrets == NULL || !resource->ops->holds_secrets(e))
        return json;
    return crud_visible(rest, resource, json, a);
}

/* As the request sees it, whatever has become of it. */
static const struct entity *seen(const struct call *call, const struct entity *e)
{
    const struct evaluation *evaluation = evaluation_running(call->rest);

    return evaluation != NULL && evaluation->has_snapshot
               ? snapshot_entity(&evaluation->snapshot, e)
               : e;
}

static bool gave(struct collection_source *s, struct entity *e, struct query_item *out_item)
{
    if (e == NULL)
        return false;
    *out_item = (struct query_item){
        .json = entity_json(seen(s->call, e)), .object = e, .holds = s->found_hold};
    return true;
}

static bool next_entity(struct query_source *source, struct query_item *out_item)
{
    struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    return gave(s, collection_walk_next(&s->walk), out_item);
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

struct span crud_show(const struct call *call, const struct entity *e, struct arena *a)
{
    struct span text = crud_entity(call->rest, call->resource, e, a);

    return crud_limits(call->resource, call->key) ? crud_limited(call->resource, call->key, text, a)
                                                  : text;
}

/* Masking comes before the conditions, so that nobody can guess a secret by asking for it. */
static struct span render_entity(struct query_source *source, const struct query_item *item,
                                 struct arena *a)
{
    const struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);

    return crud_show(s->call, seen(s->call, item->object), a);
}

static struct span hidden_value(struct query_source *source, const struct query_item *item,
                                const struct property *property, struct arena *a)
{
    const struct collection_source *s = CONTAINER_OF(source, struct collection_source, source);
    const struct entity *live = item->object;
    struct buf b;
    struct span text;

    /* What is computed belongs to the entity as it is now, if it is still there. */
    if (evaluation_running(s->call->rest) != NULL) {
        const struct entity *e = item->object;

        live = collection_find(s->call->resource->collection, &e->id);
    }
    if (live == NULL)
        return SPAN("null");
    buf_init(&b, BUF_NO_CAP);
    s->call->resource->ops->hidden(s->call, live, property, &b);
    text = arena_copy(a, buf_span(&b));
    buf_done(&b);
    return text;
}

/* Is it a walk over all of many, to look for some? */
static bool is_scannable(const struct collection_source *s, bool objects_only)
{
    const struct call *call = s->call;
    const struct collection_walk *walk = &s->walk;

    return call->request->gives_way && !walk->single && walk->bucket == NULL &&
           collection_count(walk->collection) > (size_t)call->rest->limits->scan_entities &&
           query_can_filter(call->query, objects_only);
}

/* What an index leads to, if that is known of the moment and can be noted at once. */
static bool note_bucket(struct collection_source *s)
{
    struct collection_walk *walk = &s->walk;

    if (!snapshot_is_current(s->snapshot, walk->collection))
        return false;
    if (walk->single)
        return true; /* none has that value */
    if (walk->bucket == NULL || index_bucket_count(walk->bucket) > BUCKET_MOST)
        return false;
    s->found = ARENA_ARRAY(s->call->arena, struct entity *, index_bucket_count(walk->bucket));
    while (walk->next != NULL)
        s->found[s->found_count++] = collection_walk_next(walk);
    return true;
}

/* `Id=` names one, or none. */
static void note_single(struct collection_source *s)
{
    const struct literal *id = conditions_equal_to(&s->call->query->conditions, SPAN("Id"));
    struct entity *e = NULL;
    struct uuid uuid;

    if (id->kind == LITERAL_STRING && uuid_parse_own(id->text, &uuid))
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
    s->source.next = next_found;
    if (names_id(s->call)) {
        note_single(s);
        return;
    }
    s->source.holds = false;
    if (note_bucket(s))
        return;
    s->left = s->call->rest->limits->scan_entities;
    snapshot_walk(s->snapshot, s->walk.collection, &s->all);
    s->source.next = query_can_filter(s->call->query, false) ? next_counted : next_of_all;
}

static struct err *open_scan(struct collection_source *s, bool objects_only)
{
    struct scan_result result;

    TRY(scan_run(s->call, objects_only, &result));
    s->found = result.entities;
    s->found_count = result.count;
    s->found_hold = true;
    s->source.next = next_found;
    return NULL;
}

/* Unless what is looked for may be among the first ones, nothing is looked at twice. */
static void open_counted(struct collection_source *s)
{
    bool ends_early = query_enough(s->call->query) < UINT64_MAX;

    s->left = ends_early ? s->call->rest->limits->scan_entities : 0;
    s->source.next = next_counted;
}

static struct err *open_walk(struct collection_source *s, bool objects_only)
{
    struct evaluation *evaluation = evaluation_running(s->call->rest);

    s->source.next = next_entity;
    if (evaluation != NULL && evaluation->has_snapshot) {
        s->snapshot = &evaluation->snapshot;
        open_snapshot(s);
    } else if (evaluation != NULL && query_can_filter(s->call->query, objects_only)) {
        return open_scan(s, objects_only);
    } else if (evaluation != NULL) {
        return evaluation_begin_change(s->call);
    } else if (is_scannable(s, objects_only)) {
        open_counted(s);
    }
    return NULL;
}

static struct err *open_collection(struct call *call, bool objects_only)
{
    struct collection_source *s = ARENA_NEW(call->arena, struct collection_source);

    MUST(call->resource->collection != NULL);
    if (crud_renders(call))
        s->source.render = render_entity;
    if (call->resource->ops->hidden != NULL)
        s->source.hidden = hidden_value;
    s->call = call;
    collection_walk(call->resource->collection, &call->query->conditions, &s->walk);
    s->source.holds = s->walk.holds;
    call->source = &s->source;
    if (s->walk.single && s->walk.next != NULL)
        call_shows(call, s->walk.next->version);
    else
        call_shows(call, collection_version(call->resource->collection));
    return open_walk(s, objects_only);
}

static struct err *open_source(struct call *call, bool objects_only)
{
    return call->resource->ops->open != NULL ? call->resource->ops->open(call)
                                             : open_collection(call, objects_only);
}

static void close_source(struct call *call)
{
    if (call->resource->ops->open == NULL && call->source != NULL)
        snapshot_walk_drop(&CONTAINER_OF(call->source, struct collection_source, source)->all);
}

/* A change that looked for entities of a collection, and found them, begins. */
static struct err *begin_change(struct call *call, bool objects_only)
{
    return objects_only && call->resource->ops->open == NULL &&
                   evaluation_running(call->rest) == NULL
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
    return begin_change(call, objects_only);
}

static struct err *count_selected(struct call *call, size_t *out_count)
{
    struct err *e = open_source(call, false);

    if (e == NULL)
        e = query_count(call->query, call->source, out_count);
    close_source(call);
    return e;
}

/* The number of entities that are found, when none of them need be looked at for that. */
static bool is_counted(struct call *call, size_t *out_count)
{
    const struct resource_ops *ops = call->resource->ops;
    const struct meta *meta = &call->query->meta;

    if (!meta_is_plain(meta) || meta->has_limit || meta->offset != 0)
        return false;
    if (ops->open != NULL)
        return ops->count != NULL && ops->count(call, out_count);
    if (call->query->conditions.count > 0)
        return false;
    *out_count = collection_count(call->resource->collection);
    call_shows(call, collection_version(call->resource->collection));
    return true;
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

    if (call->out.format == FORMAT_CSV && !call->request->is_local) {
        write_sheet(call, items, count);
        return;
    }
    response->content_type = format_media_type(call->out.format);
    formats_add_list(&response->body, items, count, call->out.format, call->out.indent,
                     call->arena);
}

void crud_answer_count(struct call *call, size_t count, bool in_array)
{
    struct response *response = call->response;
    struct span item = arena_printf(call->arena, "{\"Count\":%zu}", count);

    response->status = 200;
    response->content_type = format_media_type(call->out.format);
    if (in_array || call->out.format != FORMAT_JSON)
        crud_write_list(call, &item, 1);
    else if (call->out.indent > 0)
        json_add_indented(&response->body, entity_parse(item, call->arena), call->out.indent);
    else
        buf_add(&response->body, item);
}

static struct err *answer_report(struct call *call)
{
    size_t count;

    if (!is_counted(call, &count))
        TRY(count_selected(call, &count));
    crud_answer_count(call, count, true);
    return NULL;
}

/* An entity looks different too when its resource is declared otherwise. */
static uint64_t version_of(const struct call *call, const struct entity *e)
{
    return MAX(seen(call, e)->version, call->resource->shape_since);
}

/* The version in quotes, and behind it how it is shown. */
static struct span tag_of(const struct call *call, const struct entity *e, struct span how)
{
    char *room = arena_alloc(call->arena, SPAN_U64_BYTES + how.n + 2), *end;
    struct span version = span_u64(version_of(call, e), room + 1);
    size_t before = (size_t)(version.p - room) - 1; /* the room's end is where the digits end */

    end = room + 1 + SPAN_U64_BYTES;
    room[before] = '"';
    memcpy(end, how.p, how.n);
    end[how.n] = '"';
    return span_of(room + before, version.n + how.n + 2);
}

/* How an entity is shown: compact, indented. */
static const struct span hows[] = {SPAN_INIT(""), SPAN_INIT("-i")};

/* The tag names the entity's version, which is why only the entity itself carries one, not what
 * select, rename or another format made of it. */
static struct span etag_of(const struct call *call, const struct query_result *result)
{
    bool is_indented = call->out.indent > 0;

    if (call->resource->collection == NULL || result->count != 1 ||
        call->out.format != FORMAT_JSON || !meta_is_plain(&call->query->meta))
        return (struct span){NULL, 0};
    return tag_of(call, result->items[0].object, hows[is_indented]);
}

/* Is one of the tags listed that the entity has now, however it was shown? */
static bool lists_entity(const struct call *call, struct span list, const struct entity *e,
                         bool weak)
{
    for (size_t i = 0; i < ARRAY_LEN(hows); i++)
        if (negotiate_etag_listed(list, tag_of(call, e, hows[i]), weak))
            return true;
    return false;
}

static struct err *check_if_match(const struct call *call, struct span wanted,
                                  const struct entity *e)
{
    if (e == NULL)
        return ERR(ERR_PRECONDITION_FAILED, "If-Match: '%.*s' has no such entity",
                   SPAN_FMT(call->resource->name));
    if (lists_entity(call, wanted, e, false))
        return NULL;
    return ERR(ERR_PRECONDITION_FAILED, "If-Match: the entity has changed, its tag is now %.*s",
               SPAN_FMT(tag_of(call, e, SPAN(""))));
}

struct err *crud_check_preconditions(const struct call *call, const struct entity *e)
{
    struct span wanted = request_header_all(call->request, SPAN("If-Match"), call->arena);
    struct span unwanted = request_header_all(call->request, SPAN("If-None-Match"), call->arena);

    if (wanted.p != NULL)
        TRY(check_if_match(call, wanted, e));
    if (unwanted.p == NULL || e == NULL || !lists_entity(call, unwanted, e, true))
        return NULL;
    return ERR(ERR_PRECONDITION_FAILED, "If-None-Match: '%.*s' has this entity, its tag is %.*s",
               SPAN_FMT(call->resource->name), SPAN_FMT(tag_of(call, e, SPAN(""))));
}

static void add_meta(struct buf *b, struct span name, struct span value)
{
    if (b->n > 0)
        buf_add_char(b, '&');
    buf_add(b, name);
    buf_add_char(b, '=');
    uri_add_encoded(b, value);
}

/* RFC 8288: the target stands between `<` and `>`, so that its own have to be encoded. */
static void add_link(struct call *call, struct span target)
{
    struct buf link;

    buf_init(&link, BUF_NO_CAP);
    buf_add_char(&link, '<');
    for (size_t i = 0; i < target.n; i++) {
        if (target.p[i] == '<')
            buf_add_str(&link, "%3C");
        else if (target.p[i] == '>')
            buf_add_str(&link, "%3E");
        else
            buf_add_char(&link, target.p[i]);
    }
    buf_add_str(&link, ">; rel=\"next\"");
    response_add_header(call->response, SPAN("Link"), buf_span(&link));
    buf_done(&link);
}

/* The same request with the offset moved on by one page; one from the end, to those left. */
static void add_pager(struct call *call, const struct query_result *result)
{
    const struct meta *meta = &call->query->meta;
    int64_t next = meta->offset < 0 ? -(int64_t)result->left : meta->offset + meta->limit;
    struct span next_offset = arena_printf(call->arena, "%lld", (long long)next);
    struct uri uri = *call->uri;
    struct buf target, metas;

    buf_init(&target, BUF_NO_CAP);
    buf_init(&metas, BUF_NO_CAP);
    uri.meta_count = 0;
    for (size_t i = 0; i < call->uri->meta_count; i++)
        if (!span_ieq(call->uri->metas[i].key, SPAN("offset")))
            add_meta(&metas, call->uri->metas[i].key, call->uri->metas[i].value);
    add_meta(&metas, SPAN("offset"), next_offset);
    uri_add_normal(&target, &uri, call->resource->name, false);
    if (uri.condition_count == 0)
        buf_add_str(&target, "/_");
    buf_add_char(&target, '/');
    buf_add(&target, buf_span(&metas));
    response_add_header(call->response, SPAN("Svc-pager"), buf_span(&target));
    add_link(call, crud_link(call, buf_span(&target)));
    buf_done(&target);
    buf_done(&metas);
}

struct err *crud_answer_items(struct call *call, const struct query_result *result)
{
    struct response *response = call->response;
    struct span etag = etag_of(call, result);
    struct span *texts;

    response_add_own_header(response, SPAN("Svc-count"), arena_u64(call->arena, result->count));
    if (result->count == 0 && !call->uri->is_query_form) {
        response->status = 204;
        return NULL;
    }
    if (etag.p != NULL) {
        struct span known = request_header_all(call->request, SPAN("If-None-Match"), call->arena);
        struct span wanted = request_header_all(call->request, SPAN("If-Match"), call->arena);

        if (wanted.p != NULL)
            TRY(check_if_match(call, wanted, result->items[0].object));
        response_add_own_header(response, SPAN("ETag"), etag);
        if (known.p != NULL && negotiate_etag_listed(known, etag, true)) {
            response->status = 304;
            return NULL;
        }
    }
    if (result->more)
        add_pager(call, result);
    texts = arena_alloc(call->arena, result->count * sizeof(*texts));
    for (size_t i = 0; i < result->count; i++)
        texts[i] = result->items[i].json;
    response->status = 200;
    crud_write_list(call, texts, result->count);
    return NULL;
}

struct err *crud_read(struct call *call)
{
    struct query_result result;

    if (call->method == METHOD_REPORT)
        return answer_report(call);
    TRY(crud_select(call, false, &result));
    TRY(budget_check());
    return crud_answer_items(call, &result);
}
