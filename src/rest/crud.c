/* POST, PATCH, PUT and DELETE on stored entities. Each builds one change and carries it out last:
 * an error anywhere leaves everything as it was. */
#include "rest/crud.h"

#include "access/access.h"
#include "access/secrets.h"
#include "base/budget.h"
#include "base/limits.h"
#include "protocol/negotiate.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/source.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud_inner.h"
#include "rest/crud_safepost.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/tenant.h"
#include "store/change.h"

/* What an entity costs besides what asks itself: its reading, its checks, its record. */
enum { ENTITY_UNITS = 1024 };

struct err *crud_body(struct call *call, struct json_doc *out_doc)
{
    const struct limits *limits = call->rest->limits;
    const struct json_limits bounds = {(uint32_t)limits->json_depth, (uint32_t)limits->json_nodes};
    struct span text = call->request->body;

    if (span_starts(text, SPAN("\xef\xbb\xbf"))) /* a byte order mark */
        text = span_sub(text, 3, text.n);
    if (span_trim(text).n == 0)
        return ERR(ERR_NO_DATA_SOURCE, "%.*s on '%.*s' needs a body, and there is none",
                   SPAN_FMT(method_name(call->method)), SPAN_FMT(call->resource->name));
    if (call->formats->in == FORMAT_NDJSON)
        return json_parse_lines(text, &bounds, call->arena, out_doc);
    return json_parse(text, &bounds, call->arena, out_doc);
}

static struct err *check_several(const struct call *call, size_t count)
{
    if (count <= 1 || call->query->meta.is_unsafe)
        return NULL;
    return ERR(ERR_AMBIGUOUS_MATCH,
               "%zu entities of '%.*s' match, and %.*s of several needs the meta-condition "
               "unsafe=true",
               count, SPAN_FMT(call->resource->name), SPAN_FMT(method_name(call->method)));
}

struct err *crud_check_found(const struct call *call, size_t count)
{
    return count > 0 ? check_several(call, count)
                     : ERR(ERR_UNKNOWN_ENTITY, "no entity of '%.*s' matches",
                           SPAN_FMT(call->resource->name));
}

static void add_info(struct call *call, size_t count, const char *verb)
{
    struct buf info;

    buf_init_arena(&info, call->arena);
    buf_add_u64(&info, count);
    buf_add(&info, count == 1 ? SPAN(" entity ") : SPAN(" entities "));
    buf_add_str(&info, verb);
    buf_add(&info, SPAN(" '"));
    buf_add(&info, call->resource->name);
    buf_add_char(&info, '\'');
    response_add_own_header(call->response, SPAN("Svc-info"), buf_span(&info));
}

/* Is there anything that is shown but once? */
static bool has_made(const struct call *call)
{
    const struct resource_ops *ops = call->resource->ops;

    return ops->has_made != NULL && ops->has_made(call);
}

static bool answers_itself(const struct call *call)
{
    const struct resource_ops *ops = call->resource->ops;

    if (ops->has_made != NULL)
        return ops->has_made(call);
    return call->method == METHOD_POST && ops->answer != NULL;
}

static bool shows_as_stored(const struct call *call)
{
    const struct resource_ops *ops = call->resource->ops;

    return ops->answer == NULL && ops->stored_shape == NULL && ops->holds_secrets == NULL;
}

static struct span answered(struct call *call, struct span json)
{
    struct span shown = crud_shown(call->resource, json, call->arena);
    struct buf b;

    if (!answers_itself(call))
        return crud_visible(call->rest, call->resource, shown, call->arena);
    buf_init_arena(&b, call->arena);
    call->resource->ops->answer(call, shown, &b);
    return buf_span(&b);
}

void crud_answer_changed(struct call *call, int status, const char *verb, const struct span *items,
                         size_t count)
{
    struct response *response = call->response;
    struct span *visible;

    response->status = status;
    if (verb != NULL)
        add_info(call, count, verb);
    if (request_header(call->request, SPAN("Prefer")).p != NULL && !answers_itself(call) &&
        negotiate_prefers_minimal(request_header_all(call->request, SPAN("Prefer"), call->arena))) {
        response_add_own_header(response, SPAN("Preference-Applied"), SPAN("return=minimal"));
        return;
    }
    if (call->key != NULL && !has_made(call) &&
        !access_allows(call->key, call->resource->name, METHOD_GET))
        return;
    if (shows_as_stored(call)) {
        crud_write_list(call, items, count);
        return;
    }
    visible = ARENA_ARRAY(call->arena, struct span, count);
    for (size_t i = 0; i < count && budget_ask(ENTITY_UNITS); i++)
        visible[i] = answered(call, items[i]);
    if (!budget_stopped())
        crud_write_list(call, visible, count);
}

struct err *crud_apply(struct call *call)
{
    uint64_t serial;

    TRY(budget_check());
    if (buf_over(&call->response->body)) /* what is answered with an error must not happen */
        return call_refuse_answer(call);
    TRY(evaluation_apply(call, &serial));
    crud_shows(call, serial);
    return NULL;
}

static struct err *apply(struct call *call)
{
    const struct resource_ops *ops = call->resource->ops;

    if (ops->apply == NULL)
        return crud_apply(call);
    TRY(budget_check());
    if (ops->changes_at_once)
        budget_hold();
    return ops->apply(call);
}

/* An entity as it was written, or was found to be already. */
struct written {
    struct span json;
    uint64_t version;
};

/* A secret that is written is a change, equal or not: nobody learns one by trying. */
static bool changes_nothing(const struct call *call, const struct draft *draft,
                            const struct entity *old, struct span json, struct arena *a)
{
    return call->method == METHOD_PATCH && span_eq(json, crud_stored(call->resource, old, a)) &&
           !secrets_are_written(call->rest->mask, draft, a);
}

/* Encodes a checked draft into the change. */
static struct err *store_draft(struct call *call, struct draft *draft, const struct entity *old,
                               struct arena *a, struct written *out_written)
{
    const struct resource_ops *ops = call->resource->ops;
    struct change *change = call->change;
    struct uuid id = old != NULL ? old->id : uuid_new();
    uint64_t object_no = old != NULL ? old->object_no : change->next_serial;
    struct written written = {.version = change->next_serial};
    struct buf text;

    buf_init_arena(&text, call->arena);
    schema_encode(&text, draft, &id, object_no);
    written.json = buf_span(&text);
    if (old != NULL && changes_nothing(call, draft, old, written.json, a)) {
        written.version = MAX(old->version, call->resource->shape_since);
        *out_written = written;
        return NULL;
    }
    change_put_entity(change, call->resource->name, &id, object_no, written.json);
    if (ops->stored != NULL)
        TRY(ops->stored(call, old != NULL ? METHOD_PATCH : METHOD_POST, written.json));
    *out_written = written;
    return call->change->bodies.n > (size_t)call->rest->limits->change_bytes
               ? call_refuse_change(call)
               : NULL;
}

const struct shape *crud_stored_shape(const struct resource *resource)
{
    return resource->ops->stored_shape != NULL ? resource->ops->stored_shape : resource->shape;
}

/* Decodes one input object over an old entity (NULL: an insert) and stores it; `a` holds what that
 * takes on the way. */
static struct err *decode_entity(struct call *call, struct json_value input,
                                 const struct entity *old, enum schema_mode mode, struct arena *a,
                                 struct written *out_written)
{
    const struct resource *resource = call->resource;
    const struct shape *shape = crud_stored_shape(resource);
    struct span old_text = old != NULL ? entity_json(old) : span_of(NULL, 0);
    struct json_value old_json = {NULL, NULL};
    struct draft draft;

    if (resource->ops->holds_secrets != NULL) {
        TRY(secrets_decode(call->rest->mask, shape, input, old_text, mode, a, &draft));
    } else {
        if (old != NULL)
            old_json = entity_parse(old_text, a);
        TRY(schema_decode(shape, input, old_json, mode, a, &draft));
    }
    if (call->key != NULL && call->key->tenant.n > 0)
        TRY(tenant_check_draft(call, &draft));
    if (resource->ops->check != NULL)
        TRY(resource->ops->check(call, &draft, old));
    return store_draft(call, &draft, old, a, out_written);
}

/* Many entities may be updated by one small body: what each takes on the way is given back. */
static struct err *write_entity(struct call *call, struct json_value input,
                                const struct entity *old, enum schema_mode mode,
                                struct written *out_written)
{
    struct arena scratch;
    struct err *e;

    if (old == NULL)
        return decode_entity(call, input, NULL, mode, call->arena, out_written);
    arena_init(&scratch);
    e = decode_entity(call, input, old, mode, &scratch, out_written);
    arena_done(&scratch);
    return e;
}

/* What a POST or PUT has written, each entity once. */
struct posted {
    struct span *texts;
    size_t count, inserted;
    uint64_t version;          /* of what was written last */
    struct safepost *safepost; /* NULL: every input is inserted */
};

/* Updates what the input stands for: stored, or written by an input before it. */
static struct err *safepost_one(struct call *call, struct json_value input, struct posted *posted)
{
    struct safepost_match *match = safepost_next(posted->safepost);
    uint64_t object_no =
        match->old != NULL ? match->old->object_no : change_next_serial(call->change);
    bool again = match->old == &match->written;
    size_t place = again ? match->place : posted->count;
    struct written written;

    TRY(write_entity(call, input, match->old, match->old != NULL ? SCHEMA_PATCH : SCHEMA_INSERT,
                     &written));
    posted->texts[place] = written.json;
    posted->version = written.version;
    posted->inserted += match->old == NULL;
    posted->count += !again;
    match->place = place;
    safepost_wrote(match, written.json, object_no);
    return NULL;
}

static struct err *post_one(struct call *call, struct json_value input, struct posted *posted)
{
    struct written written;

    if (posted->safepost != NULL)
        return safepost_one(call, input, posted);
    TRY(decode_entity(call, input, NULL, SCHEMA_INSERT, call->arena, &written));
    posted->texts[posted->count] = written.json;
    posted->version = written.version;
    posted->inserted++;
    posted->count++;
    return NULL;
}

static struct err *post_each(struct call *call, struct json_value root, struct posted *posted)
{
    size_t index = 0;

    for (struct json_value v = json_first(root); json_exists(v); v = json_next(root, v), index++) {
        struct err *e = post_one(call, v, posted);

        if (e != NULL)
            return err_prefix(e, "entity %zu: ", index);
        if (!budget_ask(ENTITY_UNITS))
            break;
    }
    return budget_check();
}

struct span crud_id_of(struct span json)
{
    return span_sub(json, sizeof("{\"Id\":\"") - 1, sizeof("{\"Id\":\"") - 1 + UUID_TEXT_BYTES);
}

void crud_add_location(struct call *call, struct span json)
{
    struct buf link;

    buf_init_arena(&link, call->arena);
    buf_add(&link, call->rest->prefix);
    buf_add_char(&link, '/');
    buf_add(&link, call->resource->name);
    buf_add(&link, SPAN("/Id="));
    buf_add(&link, crud_id_of(json));
    response_add_own_header(call->response, SPAN("Location"), buf_span(&link));
}

static void add_location_and_tag(struct call *call, const struct posted *posted)
{
    if (posted->count != 1)
        return;
    if (posted->inserted == 1)
        crud_add_location(call, posted->texts[0]);
    crud_add_version_tag(call, posted->version);
}

static void answer_posted(struct call *call, const struct posted *posted)
{
    size_t updated = posted->count - posted->inserted;
    const char *verb = updated == 0            ? "inserted into"
                       : posted->inserted == 0 ? "updated in"
                                               : NULL; /* both */

    if (verb == NULL)
        add_info(call, posted->inserted,
                 arena_printf(call->arena, "inserted into and %zu updated in", updated).p);
    crud_answer_changed(call, posted->inserted > 0 ? 201 : 200, verb, posted->texts, posted->count);
}

struct err *crud_insert(struct call *call)
{
    struct json_doc doc;
    struct json_value root;
    struct posted posted = {.texts = NULL};
    struct err *e;
    bool is_list;

    TRY(crud_body(call, &doc));
    root = json_root(&doc);
    is_list = json_type(root) == JSON_ARRAY;
    posted.texts = ARENA_ARRAY(call->arena, struct span, is_list ? json_count(root) : 1);
    if (call->query->meta.safepost_count > 0)
        TRY(safepost_open(call, root, &posted.safepost));
    e = is_list ? post_each(call, root, &posted) : post_one(call, root, &posted);
    if (posted.safepost != NULL)
        safepost_close(posted.safepost);
    TRY(e);
    add_location_and_tag(call, &posted);
    answer_posted(call, &posted);
    return apply(call);
}

struct err *crud_body_object(struct call *call, struct json_value *out_object)
{
    struct json_doc *doc = ARENA_NEW(call->arena, struct json_doc);
    struct json_value root;

    TRY(crud_body(call, doc));
    root = json_root(doc);
    if (call->request->is_local && json_type(root) == JSON_ARRAY && json_count(root) == 1)
        root = json_first(root);
    if (json_type(root) != JSON_OBJECT)
        return ERR(json_type(root) == JSON_ARRAY ? ERR_DATA_SOURCE_FORMAT : ERR_INVALID_ENTITY,
                   "%.*s takes one JSON object as its body", SPAN_FMT(method_name(call->method)));
    *out_object = root;
    return NULL;
}

struct err *crud_patch(struct call *call)
{
    struct json_value input;
    struct query_result found;
    struct span *texts;
    struct written written = {.version = 0};

    TRY(crud_select(call, true, &found));
    TRY(crud_body_object(call, &input));
    TRY(crud_check_found(call, found.count));
    texts = ARENA_ARRAY(call->arena, struct span, found.count);
    for (size_t i = 0; i < found.count; i++) {
        TRY(crud_check_preconditions(call, &found.items[i]));
        TRY(write_entity(call, input, found.items[i].object, SCHEMA_PATCH, &written));
        texts[i] = written.json;
        if (!budget_ask(ENTITY_UNITS))
            return budget_check();
    }
    if (found.count == 1)
        crud_add_version_tag(call, written.version);
    crud_answer_changed(call, 200, "updated in", texts, found.count);
    return apply(call);
}

/* Else the same request again would insert another one. */
static struct err *check_conditions_hold(const struct call *call, struct span json)
{
    const struct resource *resource = call->resource;
    struct arena *a = call->arena;
    struct span seen = crud_visible(call->rest, resource, crud_shown(resource, json, a), a);

    if (conditions_hold(&call->query->conditions, entity_parse(seen, a), a))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "no entity of '%.*s' matches, and one with this body would not match either",
               SPAN_FMT(resource->name));
}

struct err *crud_put(struct call *call)
{
    struct json_value input;
    struct query_result found;
    const struct entity *old = NULL;
    struct posted posted;
    struct written written;

    TRY(crud_select(call, true, &found));
    TRY(crud_body_object(call, &input));
    if (found.count > 1)
        return ERR(ERR_AMBIGUOUS_MATCH, "%zu entities of '%.*s' match, PUT replaces one",
                   found.count, SPAN_FMT(call->resource->name));
    /* However it is written: in quotes, or its length. */
    if (found.count == 0 && conditions_begin_with(&call->query->conditions, SPAN("Id")))
        return ERR(ERR_UNKNOWN_ENTITY,
                   "no entity of '%.*s' has this Id, and ids are given by the server",
                   SPAN_FMT(call->resource->name));
    if (found.count == 1)
        old = found.items[0].object;
    TRY(crud_check_preconditions(call, old != NULL ? &found.items[0] : NULL));
    TRY(write_entity(call, input, old, old != NULL ? SCHEMA_REPLACE : SCHEMA_INSERT, &written));
    if (old == NULL)
        TRY(check_conditions_hold(call, written.json));
    posted = (struct posted){
        .texts = &written.json, .count = 1, .inserted = old == NULL, .version = written.version};
    add_location_and_tag(call, &posted);
    crud_answer_changed(call, old != NULL ? 200 : 201, old != NULL ? "updated in" : "inserted into",
                        posted.texts, 1);
    return apply(call);
}

static struct err *delete_one(struct call *call, const struct query_item *item)
{
    const struct resource_ops *ops = call->resource->ops;
    const struct entity *e = item->object;

    TRY(crud_check_preconditions(call, item));
    if (ops->forget != NULL) {
        ops->forget(call->change, item->object);
        return NULL;
    }
    change_delete_entity(call->change, call->resource->name, &e->id);
    if (ops->stored == NULL)
        return NULL;
    TRY(ops->stored(call, METHOD_DELETE, crud_text(call->resource, e, call->arena)));
    return call->change->bodies.n > (size_t)call->rest->limits->change_bytes
               ? call_refuse_change(call)
               : NULL;
}

struct err *crud_delete(struct call *call)
{
    struct query_result found;

    TRY(crud_select(call, true, &found));
    TRY(check_several(call, found.count));
    if (found.count == 0)
        TRY(crud_check_preconditions(call, NULL));
    call->change->frees_space = true;
    for (size_t i = 0; i < found.count; i++) {
        TRY(delete_one(call, &found.items[i]));
        if (!budget_ask(ENTITY_UNITS))
            return budget_check();
    }
    TRY(apply(call));
    crud_answer_count(call, found.count);
    add_info(call, found.count, "deleted from");
    return NULL;
}
