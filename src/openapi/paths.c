/* Paths: of each resource what the key may do with it, and of each entity that has an Id. Of the
 * parameters of the query form, and of header fields, one table says for which methods they mean
 * something. */
#include "openapi/openapi_inner.h"
#include "query/meta.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "json/json.h"

#include <stdlib.h>

#define READS (METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_HEAD))
#define CHANGES (METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_PUT) | METHOD_BIT(METHOD_DELETE))
/* Those that are answered with what they have changed. */
#define ANSWERED_CHANGES                                                                           \
    (METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_PUT))
/* Those that begin by finding entities. */
#define FINDS (READS | CHANGES | METHOD_BIT(METHOD_REPORT))

/* ---- parameters ---- */

static const struct header {
    struct span name;
    unsigned methods;
    const char *meaning;
} headers[] = {
    {SPAN_INIT("Prefer"),
     METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PATCH) |
         METHOD_BIT(METHOD_PUT),
     "`count=exact` of a GET: Svc-total; `return=minimal` of a change: no body"},
    {SPAN_INIT("If-Match"), CHANGES, "ETag of the entity: 412 when it has changed"},
    {SPAN_INIT("If-None-Match"), READS, "ETag of the entity: 304 when it has not changed"},
};

/* Meta-conditions that do not take part in finding entities, or not with every method. */
static const struct meta_use {
    struct span name;
    unsigned methods;
    bool is_of_one; /* it means something for a single entity too */
} meta_uses[] = {
    {SPAN_INIT("unsafe"), METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_DELETE), false},
    {SPAN_INIT("safepost"), METHOD_BIT(METHOD_POST), false},
    {SPAN_INIT("select"), READS, true},
    {SPAN_INIT("add"), READS, true},
    {SPAN_INIT("rename"), READS, true},
    {SPAN_INIT("distinct"), READS | METHOD_BIT(METHOD_REPORT), false},
};

static struct meta_use use_of(const struct meta_info *meta)
{
    for (size_t i = 0; i < ARRAY_LEN(meta_uses); i++)
        if (span_eq(meta_uses[i].name, meta->name))
            return meta_uses[i];
    return (struct meta_use){meta->name, FINDS, false};
}

static void add_parameter_head(struct buf *b, struct span name, const char *in)
{
    json_add_name(b, name);
    buf_add_str(b, "{\"name\":");
    json_add_string(b, name);
    buf_printf(b, ",\"in\":\"%s\",\"description\":", in);
}

static void add_meta(struct buf *b, const struct meta_info *meta)
{
    struct span value = span_str(meta->value);
    bool is_integer = span_eq(value, SPAN("integer"));
    bool is_simple = is_integer || span_eq(value, SPAN("boolean"));

    add_parameter_head(b, meta->name, "query");
    json_add_string(b, span_str(meta->meaning));
    buf_add_str(b, ",\"schema\":{\"type\":");
    json_add_string(b, is_simple ? value : SPAN("string"));
    if (is_integer)
        buf_add_str(b, ",\"format\":\"int64\"");
    if (!is_simple) {
        buf_add_str(b, ",\"minLength\":1,\"description\":");
        json_add_string(b, value);
    }
    buf_add_str(b, "}}");
}

static void add_where(struct buf *b)
{
    add_parameter_head(b, SPAN("where"), "query");
    buf_add_str(b, "\"Conditions, all of which must hold, each a parameter of its own: "
                   "`where=Age>=18&where=Name!=null`. Operators: = != < > <= >=\","
                   "\"style\":\"form\",\"explode\":true,\"schema\":{\"type\":\"array\",\"items\":{"
                   "\"type\":\"string\"}}}");
}

/* `limits` are further members of the schema. */
static void add_header(struct buf *b, struct span name, const char *meaning, const char *limits)
{
    add_parameter_head(b, name, "header");
    json_add_string(b, span_str(meaning));
    buf_printf(b, ",\"schema\":{\"type\":\"string\"%s}}", limits);
}

static bool takes_idempotency_key(const struct openapi_resource *r)
{
    return span_eq(r->resource->name, SPAN("Svc.Event"));
}

static bool inserts(const struct meta_use *use)
{
    return (use->methods & METHOD_BIT(METHOD_POST)) != 0;
}

static bool is_referred_to(const struct openapi *d, const struct meta_use *use)
{
    if (inserts(use))
        return d->has_safepost;
    return (use->methods & d->methods) != 0 || (d->has_asking && (use->methods & READS) != 0);
}

/* What some operation refers to: where nothing is found, or inserted, nobody is told how. */
void openapi_add_parameters(struct openapi *d)
{
    struct buf *b = d->out;

    if ((d->methods & FINDS) != 0 || d->has_asking)
        add_where(b);
    for (size_t i = 0; i < meta_count; i++) {
        struct meta_use use = use_of(&meta_table[i]);

        if (is_referred_to(d, &use))
            add_meta(b, &meta_table[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if ((d->methods & headers[i].methods) != 0)
            add_header(b, headers[i].name, headers[i].meaning, "");
    if (d->raises_events)
        add_header(b, SPAN("Idempotency-Key"),
                   "Names the request for 24 hours: once more, it is answered as the first time",
                   ",\"minLength\":1,\"maxLength\":255,\"pattern\":\"^[!-~]+$\"");
    if (d->raises_events && d->has_events)
        openapi_add_cloudevent_parameters(d);
}

void openapi_refer_to_parameter(struct buf *b, struct span name)
{
    json_add_comma(b);
    buf_printf(b, "{\"$ref\":\"#/components/parameters/%.*s\"}", SPAN_FMT(name));
}

static void add_parameters(struct openapi *d, const struct openapi_resource *r, enum method method,
                           bool is_of_one)
{
    bool is_asked = r->resource->ops->post_asks;
    unsigned bit = METHOD_BIT(is_asked ? METHOD_GET : method);
    struct buf *b = d->out;

    buf_add_str(b, ",\"parameters\":[");
    if ((bit & FINDS) != 0 && !is_of_one)
        openapi_refer_to_parameter(b, SPAN("where"));
    for (size_t i = 0; i < meta_count; i++) {
        struct meta_use use = use_of(&meta_table[i]);

        if ((use.methods & bit) != 0 && (!is_of_one || use.is_of_one) &&
            (!inserts(&use) || r->resource->collection != NULL))
            openapi_refer_to_parameter(b, meta_table[i].name);
    }
    for (size_t i = 0; i < ARRAY_LEN(headers) && !is_asked; i++)
        if ((headers[i].methods & bit) != 0)
            openapi_refer_to_parameter(b, headers[i].name);
    if (method == METHOD_POST && takes_idempotency_key(r))
        openapi_refer_to_parameter(b, SPAN("Idempotency-Key"));
    buf_add_char(b, ']');
}

/* ---- bodies ---- */

void openapi_add_one_or_several(struct openapi *d, enum openapi_schema schema, struct span resource)
{
    buf_add_str(d->out, "{\"oneOf\":[");
    openapi_add_reference(d, schema, resource);
    buf_add_str(d->out, ",{\"type\":\"array\",\"items\":");
    openapi_add_reference(d, schema, resource);
    buf_add_str(d->out, "}]}");
}

static void add_body_schema(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    struct span name = r->resource->name;

    if (r->resource->ops->post_asks)
        buf_add_str(d->out, "{}");
    else if (method == METHOD_PATCH)
        openapi_add_reference(d, OPENAPI_PATCH, name);
    else if (method == METHOD_PUT || r->asks)
        openapi_add_reference(d, OPENAPI_INPUT, name);
    else
        openapi_add_one_or_several(d, OPENAPI_INPUT, name);
}

static void add_body(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    struct buf *b = d->out;

    buf_add_str(b, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                   "\"schema\":");
    add_body_schema(d, r, method);
    openapi_add_example(d, r, method);
    buf_add_str(b, "}}}");
}

/* ---- answers ---- */

/* JSON alone: a second media type, which can only be a string, would take its types from what
 * generators make of the first. */
static void add_answer_body(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    struct buf *b = d->out;

    buf_add_str(b, ",\"content\":{\"application/json\":{\"schema\":{\"type\":\"array\",\"items\":");
    if (openapi_has(r, OPENAPI_ANSWER))
        openapi_add_reference(d, OPENAPI_ANSWER, r->resource->name);
    else
        buf_add_str(b, "{}");
    buf_add_char(b, '}');
    openapi_add_answer_example(d, r, method);
    buf_add_str(b, "}}");
}

/* Header fields of answers, and what they come with. */
static const struct field {
    struct span name;
    unsigned methods;
    bool only_created;
    const char *meaning;
} fields[] = {
    {SPAN_INIT("Svc-count"), READS, false, "How many entities the answer holds"},
    {SPAN_INIT("Svc-pager"), READS, false, "URI of the next page, below the base path"},
    {SPAN_INIT("Svc-info"), ANSWERED_CHANGES, false, "What was done, in words"},
    {SPAN_INIT("Location"), METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PUT), true,
     "Of the one that was inserted"},
    {SPAN_INIT("ETag"), READS | ANSWERED_CHANGES, false, "Where the answer holds one entity"},
};

void openapi_add_headers(struct openapi *d)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        bool is_used = (d->methods & fields[i].methods) != 0;

        if (!is_used && !(d->has_asking && (fields[i].methods & READS) != 0))
            continue;
        json_add_name(d->out, fields[i].name);
        buf_printf(d->out, "{\"description\":\"%s\",\"schema\":{\"type\":\"string\"}}",
                   fields[i].meaning);
    }
}

static void add_answer_headers(struct openapi *d, enum method method, int status)
{
    buf_add_str(d->out, ",\"headers\":{");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if ((fields[i].methods & METHOD_BIT(method)) == 0 ||
            (fields[i].only_created && status != 201))
            continue;
        json_add_name(d->out, fields[i].name);
        buf_printf(d->out, "{\"$ref\":\"#/components/headers/%.*s\"}", SPAN_FMT(fields[i].name));
    }
    buf_add_char(d->out, '}');
}

/* Which success has which meaning, and a body where the key may read what it has written. */
static const struct answer {
    enum method method;
    int status;
    bool has_body;
    const char *meaning;
} answers[] = {
    {METHOD_GET, 200, true, "What was found"},
    {METHOD_GET, 204, false, "Nothing was found, and the request had no query"},
    {METHOD_GET, 304, false, "The entity is the one that is known"},
    {METHOD_HEAD, 200, false, "Something was found"},
    {METHOD_HEAD, 204, false, "Nothing was found, and the request had no query"},
    {METHOD_HEAD, 304, false, "The entity is the one that is known"},
    {METHOD_POST, 200, true, "Nothing was inserted: what is there, or was updated"},
    {METHOD_POST, 201, true, "What was inserted"},
    {METHOD_PATCH, 200, true, "What was updated"},
    {METHOD_PATCH, 202, true, "What was asked for has begun"},
    {METHOD_PUT, 200, true, "What was updated"},
    {METHOD_PUT, 201, true, "What was inserted"},
};

static void add_response(struct openapi *d, const struct openapi_resource *r,
                         const struct answer *answer)
{
    /* What asks is answered as a GET is. */
    bool is_shown = r->asks || (r->shown & METHOD_BIT(answer->method)) != 0;

    json_add_comma(d->out);
    buf_printf(d->out, "\"%d\":{\"description\":\"%s\"", answer->status, answer->meaning);
    if (answer->status >= 200 && answer->status <= 202)
        add_answer_headers(d, answer->method, answer->status);
    if (answer->has_body && is_shown)
        add_answer_body(d, r, r->asks ? METHOD_POST : answer->method);
    buf_add_char(d->out, '}');
}

#define COUNT_ANSWER                                                                               \
    "\"200\":{\"description\":\"How many\",\"content\":{\"application/json\":{\"schema\":{"        \
    "\"$ref\":\"#/components/schemas/Counts\"},\"example\":[{\"Count\":1}]}}}"
#define PROBLEM_ANSWER ",\"default\":{\"$ref\":\"#/components/responses/Problem\"}}"

/* `as`: the method that it is answered as. */
static bool may_answer(const struct openapi_resource *r, enum method as,
                       const struct answer *answer)
{
    return answer->method == as && !(r->asks && answer->status == 304) &&
           !(answer->status == 202 && !r->resource->ops->begins);
}

static void add_responses(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    /* What asks is answered as a GET is. */
    enum method as = r->asks ? METHOD_GET : method;

    buf_add_str(d->out, ",\"responses\":{");
    if (as == METHOD_DELETE || as == METHOD_REPORT)
        buf_add_str(d->out, COUNT_ANSWER);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (may_answer(r, as, &answers[i]))
            add_response(d, r, &answers[i]);
    buf_add_str(d->out, PROBLEM_ANSWER);
}

/* ---- operations ---- */

static const struct verb {
    const char *key, *prefix, *summary, *meaning, *summary_of_one, *meaning_of_one;
} verbs[] = {
    [METHOD_GET] =
        {"get", "get", "Find entities",
         "All entities for which every `where` holds. With `limit` the answer is a page; "
         "`Svc-pager` is the URI of the next one. `Accept` may also ask for "
         "`application/x-ndjson` or `text/csv`, and where what is new is streamed, for "
         "`text/event-stream`.",
         "Show one entity", "The entity with this Id, as an array of one."},
    [METHOD_POST] =
        {"post", "post", "Insert entities",
         "One entity, or an array of them: all are inserted, or none. The body may also "
         "be `application/x-ndjson`, an entity a line. Members that are read-only are "
         "passed over.",
         "", ""},
    [METHOD_PATCH] =
        {"patch", "patch", "Update entities",
         "Changes the members that the body has in each entity for which every `where` "
         "holds. Several are changed with `unsafe=true` only; when nothing matches, "
         "that is 404.",
         "Update one entity", "Changes the members that the body has; null sets one to null."},
    [METHOD_PUT] =
        {"put", "put", "Replace an entity, or insert it",
         "The one entity for which every `where` holds becomes the body; what that leaves "
         "out takes its default. When nothing matches, it is inserted.",
         "Replace one entity", "What the body leaves out takes its default."},
    [METHOD_DELETE] =
        {"delete", "delete", "Delete entities",
         "Deletes the entities for which every `where` holds. Several are deleted with "
         "`unsafe=true` only.",
         "Delete one entity", "The answer counts 1, or 0 when it was not there."},
    [METHOD_REPORT] = {"x-report", "report", "Count entities",
                       "Counts the entities for which every `where` holds. The method is REPORT, "
                       "which OpenAPI does not know.",
                       "", ""},
    [METHOD_HEAD] = {"head", "head", "Look for entities", "As GET, without the body.",
                     "Look for one entity", "As GET, without the body."},
};

/* Names of resources have no place before the first `_` of an operationId: it is unique. */
static void add_operation_head(struct openapi *d, const struct resource *resource,
                               enum method method, const char *more, const char *summary,
                               const char *meaning)
{
    struct span mark = openapi_mark(d, resource->name);
    struct buf *b = d->out;

    json_add_name(b, span_str(verbs[method].key));
    buf_printf(b, "{\"operationId\":\"%s%s%.*s_%.*s\",\"tags\":[\"%.*s\"],\"summary\":\"%s\"",
               verbs[method].prefix, more, SPAN_FMT(mark), SPAN_FMT(resource->name),
               SPAN_FMT(resource->name), summary);
    json_add_name(b, SPAN("description"));
    json_add_string(b, span_str(meaning));
}

/* What POST of a built-in resource does its own way. */
static const struct own_post {
    struct span resource;
    const char *summary, *meaning;
} own_posts[] = {
    {SPAN_INIT("Svc.Aggregator"), "Fill a template",
     "The body is any JSON. Each string of the form `GET /...` or `REPORT /...` in it is replaced "
     "by "
     "the result of that local request."},
    {SPAN_INIT("Svc.Echo"), "Echo the request",
     "Answers the conditions and the members of the body as one object."},
    {SPAN_INIT("Svc.Event"), "Raise events",
     "One event, or an array of them: all are raised, or none. When the answer is there, each is "
     "on "
     "disk, matched against all webhooks, and its deliveries are queued. CloudEvents are taken as "
     "well: `/Svc.Event/_`, which is the same, tells of them."},
    {SPAN_INIT("Svc.Explain"), "Explain a match",
     "Does a selector, or that of a webhook, find an event, and why? Nothing is raised."},
};

static struct verb verb_of(const struct openapi_resource *r, enum method method)
{
    struct verb verb = verbs[method];

    for (size_t i = 0; i < ARRAY_LEN(own_posts) && method == METHOD_POST; i++)
        if (span_eq(own_posts[i].resource, r->resource->name)) {
            verb.summary = own_posts[i].summary;
            verb.meaning = own_posts[i].meaning;
        }
    return verb;
}

static void add_operation(struct openapi *d, const struct openapi_resource *r, enum method method,
                          bool is_of_one)
{
    bool takes_body = method == METHOD_POST || method == METHOD_PATCH || method == METHOD_PUT;
    struct verb verb = verb_of(r, method);

    if (is_of_one)
        add_operation_head(d, r->resource, method, "One", verb.summary_of_one, verb.meaning_of_one);
    else
        add_operation_head(d, r->resource, method, "", verb.summary, verb.meaning);
    add_parameters(d, r, method, is_of_one);
    if (takes_body)
        add_body(d, r, method);
    add_responses(d, r, method);
    buf_add_char(d->out, '}');
}

static void add_entity_methods(struct openapi *d, const struct openapi_resource *r, bool is_of_one)
{
    unsigned not_of_one = METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_REPORT);
    unsigned methods = is_of_one ? r->methods & ~not_of_one : r->methods;

    for (enum method method = 0; method < METHOD_COUNT; method++)
        if ((methods & METHOD_BIT(method)) != 0)
            add_operation(d, r, method, is_of_one);
}

/* ---- bytes ---- */

static bool is_json(struct span type)
{
    return span_ieq(type, SPAN("application/json")) || span_ends(type, SPAN("+json"));
}

/* The media type alone, without parameters: generators look for it like this. */
static struct span bare_type(struct span type)
{
    struct span rest = type;
    struct span bare = span_trim(span_split(&rest, ';'));

    return bare.n > 0 ? bare : SPAN("application/octet-stream");
}

static void add_bare_type(struct buf *b, struct span bare)
{
    json_add_string(b, bare);
    if (is_json(bare))
        buf_add_str(b, ":{\"schema\":{}}");
    else if (span_starts(bare, SPAN("text/")))
        buf_add_str(b, ":{\"schema\":{\"type\":\"string\"}}");
    else
        buf_add_str(b, ":{\"schema\":{\"type\":\"string\",\"format\":\"binary\"}}");
}

static void add_bytes_body(struct openapi *d, const struct openapi_resource *r, int status)
{
    buf_add_str(d->out, ",\"content\":{");
    if (openapi_has(r, OPENAPI_ANSWER)) {
        json_add_string(d->out, r->resource->content_type);
        buf_add_str(d->out, ":{\"schema\":");
        openapi_add_reference(d, OPENAPI_ANSWER, r->resource->name);
        if (status == 200)
            openapi_add_answer_example(d, r, METHOD_GET);
        buf_add_char(d->out, '}');
    } else {
        add_bare_type(d->out, bare_type(r->resource->content_type));
    }
    buf_add_char(d->out, '}');
}

/* A page that holds no data. */
static bool needs_no_key(const struct resource *resource)
{
    return span_eq(resource->name, SPAN("Svc.Console"));
}

/* Other bytes are sent each time. */
static bool has_etag(const struct resource *resource)
{
    return needs_no_key(resource) || span_eq(resource->name, SPAN("Svc.OpenApi"));
}

static void add_bytes_methods(struct openapi *d, const struct openapi_resource *r)
{
    struct buf *b = d->out;

    for (enum method method = 0; method < METHOD_COUNT; method++) {
        if ((r->methods & METHOD_BIT(method)) == 0)
            continue;
        add_operation_head(d, r->resource, method, "", "Read it",
                           method == METHOD_HEAD ? "As GET, without the body." : "All of it.");
        if (needs_no_key(r->resource))
            buf_add_str(b, ",\"security\":[]");
        if (has_etag(r->resource))
            buf_add_str(b,
                        ",\"parameters\":[{\"$ref\":\"#/components/parameters/If-None-Match\"}]");
        buf_add_str(b, ",\"responses\":{\"200\":{\"description\":\"The bytes\"");
        if (method == METHOD_GET)
            add_bytes_body(d, r, 200);
        if (openapi_has(r, OPENAPI_ANSWER)) {
            buf_add_str(b, "},\"503\":{\"description\":\"The same, of what fails\"");
            if (method == METHOD_GET)
                add_bytes_body(d, r, 503);
        }
        if (has_etag(r->resource))
            buf_add_str(b, "},\"304\":{\"description\":\"They are those that are known\"");
        buf_add_str(b, "}" PROBLEM_ANSWER "}");
    }
}

/* ---- Svc.Event in its second form ---- */

static void add_event_names(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (r.resource->kind != KIND_EVENT || !openapi_is_raised(r.resource))
            continue;
        json_add_comma(d->out);
        json_add_string(d->out, r.resource->name);
    }
}

static void add_payloads(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (!openapi_has(&r, OPENAPI_PAYLOAD) || !openapi_is_raised(r.resource))
            continue;
        json_add_comma(d->out);
        openapi_add_one_or_several(d, OPENAPI_PAYLOAD, r.resource->name);
    }
}

static int by_text(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

/* Each that a binary event is declared with. */
static void add_event_types(struct openapi *d)
{
    struct span *types = ARENA_ARRAY(d->call->arena, struct span, d->binary_event_count + 1);
    size_t count = 0;
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);)
        if (r.resource->is_binary_event)
            types[count++] = bare_type(r.resource->content_type);
    if (count > 1)
        qsort(types, count, sizeof(*types), by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && span_eq(types[i], types[i - 1]))
            continue;
        json_add_comma(d->out);
        add_bare_type(d->out, types[i]);
    }
}

static void add_event_path(struct openapi *d, const struct openapi_resource *event)
{
    struct buf *b = d->out;

    json_add_name(b, SPAN("/Svc.Event/Resource={Event}"));
    buf_add_str(b, "{\"parameters\":[{\"name\":\"Event\",\"in\":\"path\",\"required\":true,"
                   "\"description\":\"The event resource\",\"schema\":{\"type\":\"string\","
                   "\"enum\":[");
    add_event_names(d);
    buf_add_str(b, "]}}]");
    add_operation_head(d, event->resource, METHOD_POST, "Payload", "Raise one event",
                       "The body is the payload: entities, or the bytes of an event resource that "
                       "carries bytes, with their media type.");
    buf_add_str(b, ",\"parameters\":[{\"$ref\":\"#/components/parameters/Idempotency-Key\"}],"
                   "\"requestBody\":{\"required\":true,\"content\":{");
    if (d->first_event != NULL && openapi_is_raised(d->first_event)) {
        buf_add_str(b, "\"application/json\":{\"schema\":{\"anyOf\":[");
        add_payloads(d);
        buf_add_str(b, "]},\"example\":");
        buf_add(b, openapi_event_example(d, "$"));
        buf_add_char(b, '}');
    }
    add_event_types(d);
    buf_add_str(b, "}}");
    add_responses(d, event, METHOD_POST);
    buf_add_str(b, "}}");
}

static void add_cloudevents_path(struct openapi *d, const struct openapi_resource *event)
{
    struct buf *b = d->out;

    json_add_name(b, SPAN("/Svc.Event/_"));
    buf_add_char(b, '{');
    add_operation_head(
        d, event->resource, METHOD_POST, "CloudEvents", "Raise CloudEvents",
        "CloudEvents 1.0 in structured mode, as a batch, all of which are raised or "
        "none, or in binary mode: with the header fields ce-specversion, ce-id, "
        "ce-source and ce-type, and the data as the body, of any media type that the "
        "event resource carries; further ce- fields are further attributes.");
    buf_add_str(b, ",\"parameters\":[{\"$ref\":\"#/components/parameters/Prefer\"}");
    openapi_refer_to_cloudevent_parameters(d);
    buf_add_str(b, "],\"requestBody\":{\"required\":true,\"content\":{");
    openapi_add_cloudevent_bodies(d);
    buf_add_str(b, "}}");
    add_responses(d, event, METHOD_POST);
    buf_add_str(b, "}}");
}

/* ---- all ---- */

static void add_resource(struct openapi *d, const struct openapi_resource *r)
{
    unsigned of_one = r->methods & (READS | CHANGES);
    struct buf *b = d->out;

    json_add_comma(b);
    buf_printf(b, "\"/%.*s\":{", SPAN_FMT(r->resource->name));
    if (r->resource->kind == KIND_BINARY)
        add_bytes_methods(d, r);
    else
        add_entity_methods(d, r, false);
    buf_add_char(b, '}');
    if (!r->is_stored || of_one == 0)
        return;
    buf_printf(b,
               ",\"/%.*s/Id={Id}\":{\"parameters\":[{\"name\":\"Id\",\"in\":\"path\","
               "\"required\":true,\"schema\":{\"type\":\"string\"}}]",
               SPAN_FMT(r->resource->name));
    add_entity_methods(d, r, true);
    buf_add_char(b, '}');
}

static void add_event_paths(struct openapi *d, const struct openapi_resource *event)
{
    add_cloudevents_path(d, event);
    add_event_path(d, event);
}

void openapi_add_paths(struct openapi *d)
{
    struct openapi_resource r;

    json_add_name(d->out, SPAN("paths"));
    buf_add_char(d->out, '{');
    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (r.methods == 0)
            continue;
        add_resource(d, &r);
        if (takes_idempotency_key(&r) && d->raises_events && d->has_events)
            add_event_paths(d, &r);
    }
    buf_add_char(d->out, '}');
}
