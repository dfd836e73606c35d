/* Svc.Aggregator: a JSON template whose strings of the form `GET /…` and `REPORT /…` are replaced
 * by what these requests give (docs/specification.md, section 7; docs/reference/resources.md).
 *
 * The template is walked once and written out compactly, everything as it stands in it, and each
 * request is evaluated where its string stands. All of that happens in one turn, so that the
 * results show one moment. */
#include "admin/builtin.h"
#include "admin/service.h"
#include "base/budget.h"
#include "base/header_field.h"
#include "dispatch/dispatch.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "query/source.h"
#include "query/uri.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "rest/response.h"
#include "json/json.h"

/* A place in the template, for messages: `People.0.Count`. */
struct place {
    const struct place *outer; /* NULL: a member of the template itself, or an element */
    struct span name;          /* of a member, or absent */
    uint32_t index;            /* of an element */
};

struct aggregation {
    struct call *call;
    struct response inner; /* of the request under way */
    struct buf text;       /* of the whole result */
    int64_t requests_left;
};

static struct span place_text(const struct place *place, struct arena *a)
{
    struct span own =
        place->name.p != NULL ? place->name : arena_printf(a, "%u", (unsigned)place->index);

    if (place->outer == NULL)
        return own;
    return arena_printf(a, "%.*s.%.*s", SPAN_FMT(place_text(place->outer, a)), SPAN_FMT(own));
}

/* Requests. -------------------------------------------------------------------------------- */

struct local_request {
    struct span method, target;
};

static bool is_request(struct span text, struct local_request *out_request)
{
    static const struct span methods[] = {SPAN_INIT("GET"), SPAN_INIT("REPORT")};
    struct span rest = text;
    struct span method = span_split(&rest, ' ');

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (!span_eq(method, methods[i]) || !span_starts(rest, SPAN("/")))
            continue;
        *out_request = (struct local_request){method, rest};
        return true;
    }
    return false;
}

/* Only what entities are made of can stand in JSON. */
static struct err *check_kind(const struct call *call, struct span target)
{
    struct resource *resource;
    struct uri uri;

    TRY(uri_parse(target, SPAN("/"), (size_t)call->rest->limits->conditions, call->arena, &uri));
    if (uri.resource.p == NULL)
        return NULL;
    TRY(resource_find(call->rest->resources, uri.resource, call->key, &resource));
    if (resource->kind != KIND_BINARY)
        return NULL;
    return ERR(ERR_WRONG_SELECTOR_KIND, "'%.*s' is a binary resource, it has no entities",
               SPAN_FMT(resource->name));
}

/* With the caller's own key, whatever the request as a whole may be allowed. */
static struct err *run(struct aggregation *g, const struct local_request *local)
{
    const struct request *outer = g->call->request;
    const struct header_field key = {SPAN("Authorization"),
                                     request_header(outer, SPAN("Authorization"))};
    const struct request request = {
        .method = local->method,
        .target = local->target,
        .headers = &key,
        .header_count = key.value.p == NULL ? 0 : 1,
        .is_local = true,
        .depth = outer->depth,
        .chain = outer->chain,
        .nesting = outer->nesting + 1,
        .from = outer->from,
    };

    if (g->requests_left-- == 0)
        return ERR(ERR_PAYLOAD_TOO_LARGE,
                   "there are more requests than the limit AggregatedRequests (%lld)",
                   (long long)g->call->rest->limits->aggregated_requests);
    TRY(check_kind(g->call, local->target));
    dispatch_run(g->call->rest, &request, &g->inner);
    TRY(budget_check());
    crud_shows(g->call, g->inner.serial);
    if (g->inner.status >= 400)
        return ERR(g->inner.error, "%.*s", SPAN_FMT(g->inner.message));
    return NULL;
}

/* `[{"Count":12}]` is 12. */
static struct err *add_count(struct aggregation *g)
{
    struct json_doc doc;

    TRY(json_parse(buf_span(&g->inner.body), NULL, &g->inner.arena, &doc));
    buf_add(&g->text, json_text(json_member(json_first(json_root(&doc)), SPAN("Count"))));
    return NULL;
}

static struct err *add_result(struct aggregation *g, const struct local_request *local)
{
    TRY(run(g, local));
    if (span_eq(local->method, SPAN("REPORT")))
        TRY(add_count(g));
    else if (g->inner.status == 204)
        buf_add_str(&g->text, "[]");
    else
        buf_add(&g->text, buf_span(&g->inner.body));
    if (buf_over(&g->text))
        return ERR(ERR_PAYLOAD_TOO_LARGE,
                   "the answer would be larger than the limit AnswerBytes (%zu bytes)",
                   g->text.max);
    return NULL;
}

/* The template. ---------------------------------------------------------------------------- */

static struct err *add_string(struct aggregation *g, struct json_value v, const struct place *place)
{
    struct arena *a = g->call->arena;
    struct span text = json_string(v, a);
    struct local_request local;
    struct err *e;

    if (!is_request(text, &local)) {
        buf_add(&g->text, json_text(v));
        return NULL;
    }
    e = add_result(g, &local);
    return e == NULL
               ? NULL
               : err_prefix(e, "%.*s: '%.*s': ", SPAN_FMT(place_text(place, a)), SPAN_FMT(text));
}

static struct err *add_value(struct aggregation *g, struct json_value v, const struct place *place);

static struct err *add_object(struct aggregation *g, struct json_value object,
                              const struct place *outer)
{
    struct place place = {.outer = outer};

    buf_add_char(&g->text, '{');
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m)) {
        json_add_comma(&g->text);
        place.name = json_string(m.name, g->call->arena);
        buf_add(&g->text, json_text(m.name));
        buf_add_char(&g->text, ':');
        TRY(add_value(g, m.value, &place));
    }
    buf_add_char(&g->text, '}');
    return NULL;
}

static struct err *add_array(struct aggregation *g, struct json_value array,
                             const struct place *outer)
{
    struct place place = {.outer = outer};

    buf_add_char(&g->text, '[');
    for (struct json_value v = json_first(array); json_exists(v); v = json_next(array, v)) {
        json_add_comma(&g->text);
        TRY(add_value(g, v, &place));
        place.index++;
    }
    buf_add_char(&g->text, ']');
    return NULL;
}

/* Recurses as deep as bodies may be nested. */
static struct err *add_value(struct aggregation *g, struct json_value v, const struct place *place)
{
    switch (json_type(v)) {
    case JSON_STRING:
        return add_string(g, v, place);
    case JSON_ARRAY:
        return add_array(g, v, place);
    case JSON_OBJECT:
        return add_object(g, v, place);
    default:
        buf_add(&g->text, json_text(v));
        return NULL;
    }
}

/* The source. ------------------------------------------------------------------------------ */

/* The results are the entities that the query sees, so that meta-conditions work on them. */
struct results {
    struct query_source source;
    size_t *ends; /* of the results, in `text` */
    size_t count, given;
    struct span text;
};

static bool next(struct query_source *source, struct query_item *out_item)
{
    struct results *r = CONTAINER_OF(source, struct results, source);
    size_t from = r->given == 0 ? 0 : r->ends[r->given - 1];

    if (r->given == r->count)
        return false;
    *out_item = (struct query_item){.json = span_sub(r->text, from, r->ends[r->given])};
    r->given++;
    return true;
}

static struct err *aggregate_one(struct aggregation *g, struct json_value template,
                                 const struct place *place, struct results *results)
{
    if (json_type(template) != JSON_OBJECT)
        return ERR(ERR_INVALID_ENTITY, "a template is an object or an array of objects");
    TRY(add_object(g, template, place));
    results->ends[results->count++] = g->text.n;
    return NULL;
}

static struct err *aggregate(struct aggregation *g, struct json_value template,
                             struct results *results)
{
    struct arena *a = g->call->arena;
    struct place place = {.index = 0};

    if (json_type(template) != JSON_ARRAY) {
        results->ends = ARENA_ARRAY(a, size_t, 1);
        return aggregate_one(g, template, NULL, results);
    }
    results->ends = ARENA_ARRAY(a, size_t, json_count(template));
    for (struct json_value v = json_first(template); json_exists(v); v = json_next(template, v)) {
        TRY(aggregate_one(g, v, &place, results));
        place.index++;
    }
    return NULL;
}

/* Entities that are put into a template are nested deeper than they were: what is made must be
 * within what the service reads again to format it. */
static struct err *check_depth(struct span text)
{
    size_t depth = 0;
    bool is_string = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (is_string && c == '\\')
            i++;
        else if (c == '"')
            is_string = !is_string;
        else if (!is_string && (c == '{' || c == '['))
            depth++;
        else if (!is_string && (c == '}' || c == ']'))
            depth--;
        if (depth >= JSON_DEPTH_MOST)
            return ERR(ERR_PAYLOAD_TOO_LARGE, "the answer would be nested more than %d deep",
                       JSON_DEPTH_MOST - 1);
    }
    return NULL;
}

static struct err *read_template(struct call *call, struct json_doc *out_doc)
{
    if (call->request->nesting > 0)
        return ERR(ERR_INFINITE_LOOP, "'%.*s' is asked by itself", SPAN_FMT(call->resource->name));
    TRY(negotiate_content_type(request_header(call->request, SPAN("Content-Type")), false,
                               &call->formats->in));
    TRY(crud_body(call, out_doc));
    return json_check_unique(json_root(out_doc), false, call->arena);
}

static struct err *fill(struct call *call, struct json_value template, struct results *results)
{
    const struct limits *limits = call->rest->limits;
    struct aggregation g = {.call = call, .requests_left = limits->aggregated_requests};
    struct err *e = NULL;

    response_init(&g.inner, (size_t)limits->answer_bytes);
    buf_init(&g.text, (size_t)limits->answer_bytes);
    TRY_GOTO(e, aggregate(&g, template, results), done);
    TRY_GOTO(e, check_depth(buf_span(&g.text)), done);
    results->text = arena_copy(call->arena, buf_span(&g.text));

done:
    response_done(&g.inner);
    buf_done(&g.text);
    return e;
}

static struct err *open_source(struct call *call)
{
    struct results *results = ARENA_NEW(call->arena, struct results);
    struct json_doc doc;

    TRY(read_template(call, &doc));
    TRY(fill(call, json_root(&doc), results));
    results->source.next = next;
    call->source = &results->source;
    return NULL;
}

static const struct resource_ops ops = {.open = open_source, .post_asks = true};

const struct resource_definition res_aggregator = {
    .name = SPAN_INIT("Svc.Aggregator"),
    .description = SPAN_INIT("Fills a JSON template with the results of local requests"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST),
    .shape = &schema_dynamic,
    .ops = &ops,
};
