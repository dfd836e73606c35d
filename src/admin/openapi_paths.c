/* Paths: of each resource what the key may do with it, and of each entity that has an Id. Of the
 * parameters of the query form, and of header fields, one table says for which methods they mean
 * something. */
#include "base/json.h"
#include "openapi.h"
#include "query/meta.h"
#include "query/shape.h"

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
    bool is_simple = span_eq(value, SPAN("boolean")) || span_eq(value, SPAN("integer"));

    add_parameter_head(b, meta->name, "query");
    json_add_string(b, span_str(meta->meaning));
    buf_add_str(b, ",\"schema\":{\"type\":");
    json_add_string(b, is_simple ? value : SPAN("string"));
    if (!is_simple) {
        json_add_name(b, SPAN("description"));
        json_add_string(b, value);
    }
    buf_add_str(b, "}}");
}

static void add_where(struct buf *b)
{
    add_parameter_head(b, SPAN("where"), "query");
    buf_add_str(b, "\"Conditions, all of which must hold: `Name=value`, also with != < > <= >=\","
                   "\"style\":\"form\",\"explode\":true,\"schema\":{\"type\":\"array\",\"items\":{"
                   "\"type\":\"string\"}}}");
}

static void add_header(struct buf *b, struct span name, const char *meaning)
{
    add_parameter_head(b, name, "header");
    json_add_string(b, span_str(meaning));
    buf_add_str(b, ",\"schema\":{\"type\":\"string\"}}");
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
            add_header(b, headers[i].name, headers[i].meaning);
    if (d->raises_events)
        add_header(b, SPAN("Idempotency-Key"),
                   "Names the request for 24 hours: once more, it is answered as the first time");
}

static void refer(struct buf *b, size_t *count, struct span name)
{
    buf_printf(b, "%s{\"$ref\":\"#/components/parameters/%.*s\"}", (*count)++ > 0 ? "," : "",
               SPAN_FMT(name));
}

static void add_parameters(struct openapi *d, const struct openapi_resource *r, enum method method,
                           bool is_of_one)
{
    bool is_asked = r->resource->ops->post_asks;
    unsigned bit = METHOD_BIT(is_asked ? METHOD_GET : method);
    struct buf *b = d->out;
    size_t count = 0;

    buf_add_str(b, ",\"parameters\":[");
    if ((bit & FINDS) != 0 && !is_of_one)
        refer(b, &count, SPAN("where"));
    for (size_t i = 0; i < meta_count; i++) {
        struct meta_use use = use_of(&meta_table[i]);

        if ((use.methods & bit) != 0 && (!is_of_one || use.is_of_one) &&
            (!inserts(&use) || r->resource->collection != NULL))
            refer(b, &count, meta_table[i].name);
    }
    for (size_t i = 0; i < ARRAY_LEN(headers) && !is_asked; i++)
        if ((headers[i].methods & bit) != 0)
            refer(b, &count, headers[i].name);
    if (method == METHOD_POST && takes_idempotency_key(r))
        refer(b, &count, SPAN("Idempotency-Key"));
    buf_add_char(b, ']');
}

/* ---- bodies ---- */

static void add_one_or_several(struct openapi *d, enum openapi_schema schema, struct span resource)
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
        add_one_or_several(d, OPENAPI_INPUT, name);
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
static void add_answer_body(struct openapi *d, const struct openapi_resource *r)
{
    struct buf *b = d->out;

    buf_add_str(b, ",\"content\":{\"application/json\":{\"schema\":{\"type\":\"array\",\"items\":");
    if (r->asks)
        buf_add_str(b, "{}");
    else
        openapi_add_reference(d, OPENAPI_ANSWER, r->resource->name);
    buf_add_str(b, "}}}");
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
    {METHOD_PUT, 200, true, "What was updated"},
    {METHOD_PUT, 201, true, "What was inserted"},
};

static void add_response(struct openapi *d, const struct openapi_resource *r,
                         const struct answer *answer, size_t *count)
{
    bool is_shown = r->asks || openapi_has(r, OPENAPI_ANSWER);

    buf_printf(d->out, "%s\"%d\":{\"description\":\"%s\"", (*count)++ > 0 ? "," : "",
               answer->status, answer->meaning);
    if (answer->status == 200 || answer->status == 201)
        add_answer_headers(d, answer->method, answer->status);
    if (answer->has_body && is_shown)
        add_answer_body(d, r);
    buf_add_char(d->out, '}');
}

#define COUNT_ANSWER                                                                               \
    "\"200\":{\"description\":\"How many\",\"content\":{\"application/json\":{\"schema\":{"        \
    "\"$ref\":\"#/components/schemas/Counts\"}}}}"
#define PROBLEM_ANSWER ",\"default\":{\"$ref\":\"#/components/responses/Problem\"}}"

static void add_responses(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    /* What asks is answered as a GET is. */
    enum method as = r->asks ? METHOD_GET : method;
    size_t count = 0;

    buf_add_str(d->out, ",\"responses\":{");
    if (as == METHOD_DELETE || as == METHOD_REPORT)
        buf_add_str(d->out, COUNT_ANSWER);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (answers[i].method == as && !(r->asks && answers[i].status == 304))
            add_response(d, r, &answers[i], &count);
    buf_add_str(d->out, PROBLEM_ANSWER);
}

/* ---- operations ---- */

static const struct verb {
    const char *key, *prefix, *summary, *summary_of_one;
} verbs[] = {
    [METHOD_GET] = {"get", "get", "Finds entities; by Accept as NDJSON or CSV too",
                    "Shows an entity"},
    [METHOD_POST] = {"post", "post", "Inserts entities; one, an array, or NDJSON", ""},
    [METHOD_PATCH] = {"patch", "patch", "Updates entities", "Updates an entity"},
    [METHOD_PUT] = {"put", "put", "Replaces an entity, or inserts it", "Replaces an entity"},
    [METHOD_DELETE] = {"delete", "delete", "Deletes entities", "Deletes an entity"},
    [METHOD_REPORT] = {"x-report", "report", "Counts entities", ""},
    [METHOD_HEAD] = {"head", "head", "Looks for entities", "Looks for an entity"},
};

/* Names of resources have no place before the first `_` of an operationId: it is unique. */
static void add_operation_head(struct openapi *d, const struct resource *resource,
                               enum method method, const char *more, const char *summary)
{
    struct buf *b = d->out;

    json_add_name(b, span_str(verbs[method].key));
    buf_printf(b, "{\"operationId\":\"%s%s_%.*s\",\"tags\":[\"%.*s\"],\"summary\":\"%s\"",
               verbs[method].prefix, more, SPAN_FMT(resource->name), SPAN_FMT(resource->name),
               summary);
    json_add_name(b, SPAN("description"));
    json_add_string(b, resource->description.n > 0 ? resource->description : resource->name);
}

static void add_operation(struct openapi *d, const struct openapi_resource *r, enum method method,
                          bool is_of_one)
{
    bool takes_body = method == METHOD_POST || method == METHOD_PATCH || method == METHOD_PUT;
    const char *summary = is_of_one ? verbs[method].summary_of_one : verbs[method].summary;

    add_operation_head(d, r->resource, method, is_of_one ? "One" : "", r->asks ? "Asks" : summary);
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

static void add_bytes_methods(struct openapi *d, const struct openapi_resource *r)
{
    struct span type = r->resource->content_type;
    struct buf *b = d->out;

    for (enum method method = 0; method < METHOD_COUNT; method++) {
        if ((r->methods & METHOD_BIT(method)) == 0)
            continue;
        add_operation_head(d, r->resource, method, "", "Reads its bytes");
        buf_add_str(b, ",\"responses\":{\"200\":{\"description\":\"The bytes\"");
        if (method == METHOD_GET) {
            buf_add_str(b, ",\"content\":{");
            json_add_string(b, type.n > 0 ? type : SPAN("*/*"));
            buf_add_str(b, ":{}}");
        }
        buf_add_str(
            b, "},\"304\":{\"description\":\"They are those that are known\"}" PROBLEM_ANSWER "}");
    }
}

/* ---- Svc.Event in its second form ---- */

static void add_event_names(struct openapi *d)
{
    struct openapi_resource r;
    size_t count = 0;

    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (r.resource->kind != KIND_EVENT)
            continue;
        if (count++ > 0)
            buf_add_char(d->out, ',');
        json_add_string(d->out, r.resource->name);
    }
}

static void add_payloads(struct openapi *d)
{
    struct openapi_resource r;
    size_t count = 0;

    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (!openapi_has(&r, OPENAPI_PAYLOAD))
            continue;
        if (count++ > 0)
            buf_add_char(d->out, ',');
        add_one_or_several(d, OPENAPI_PAYLOAD, r.resource->name);
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
    add_operation_head(d, event->resource, METHOD_POST, "Payload",
                       "Raises an event, with the payload as body");
    buf_add_str(b, ",\"parameters\":[{\"$ref\":\"#/components/parameters/Idempotency-Key\"}],"
                   "\"requestBody\":{\"required\":true,\"content\":{");
    if (d->has_entity_events) {
        buf_add_str(b, "\"application/json\":{\"schema\":{\"anyOf\":[");
        add_payloads(d);
        buf_add_str(b, "]}}");
    }
    if (d->has_binary_events) {
        json_add_name(b, SPAN("*/*"));
        buf_add_str(b, "{}");
    }
    buf_add_str(b, "}}");
    add_responses(d, event, METHOD_POST);
    buf_add_str(b, "}}");
}

/* ---- all ---- */

static void add_resource(struct openapi *d, const struct openapi_resource *r)
{
    unsigned of_one = r->methods & (READS | CHANGES);
    struct buf *b = d->out;

    buf_printf(b, "%s\"/%.*s\":{", b->n > 0 && b->p[b->n - 1] == '{' ? "" : ",",
               SPAN_FMT(r->resource->name));
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
            add_event_path(d, &r);
    }
    buf_add_char(d->out, '}');
}
