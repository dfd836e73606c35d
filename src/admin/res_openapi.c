/* Svc.OpenApi: what the key may use, as an OpenAPI 3.1 document (docs/specification.md, section
 * 10). It is made for each answer from the registry and the tables of properties: there is nothing
 * that could be older than a declaration. A large one gives way to others, as a listing does. */
#include "admin/builtin.h"
#include "base/budget.h"
#include "base/digest.h"
#include "base/json.h"
#include "openapi.h"
#include "query/shape.h"
#include "rest/access.h"
#include "rest/declaration.h"
#include "rest/negotiate.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/schema.h"
#include "store/collection.h"
#include "store/store.h"

bool openapi_may_go_on(struct openapi *d)
{
    size_t written = d->out->n - d->budgeted;

    d->budgeted = d->out->n;
    return budget_ask(256 + 4 * written) && !buf_over(d->out);
}

static bool has_id(const struct resource *resource)
{
    const struct property *id = shape_find(resource->shape, SPAN("Id"));

    return resource->kind == KIND_ENTITY && id != NULL && (id->flags & PROPERTY_ENTITY) != 0;
}

/* A GET with a body cannot be described: what is asked with one is asked by POST. */
static unsigned methods_of(const struct resource *resource, const struct access_key *key)
{
    unsigned methods = access_methods(key, resource->name, resource->methods);

    return resource->ops->post_asks ? methods & METHOD_BIT(METHOD_POST) : methods;
}

bool openapi_next(struct openapi *d, size_t *place, struct openapi_resource *out_resource)
{
    const struct resources *resources = d->call->rest->resources;

    while (*place < resources->count && openapi_may_go_on(d)) {
        const struct resource *resource = resources->sorted[(*place)++];
        bool asks_only = resource->ops != NULL && resource->ops->post != NULL &&
                         (resource->methods & METHOD_BIT(METHOD_GET)) == 0;

        if (!resource_is_visible(resource, d->call->key))
            continue;
        *out_resource = (struct openapi_resource){
            .resource = resource,
            .methods = methods_of(resource, d->call->key),
            .is_stored = !resource->ops->post_asks && !asks_only && has_id(resource),
            .asks = resource->ops->post_asks || asks_only,
        };
        return true;
    }
    return false;
}

static void look_at(struct openapi *d, const struct openapi_resource *r)
{
    const struct resource *resource = r->resource;
    bool posts = (r->methods & METHOD_BIT(METHOD_POST)) != 0;

    if (resource->kind == KIND_ENTITY && !r->asks)
        d->methods |= r->methods;
    d->has_safepost = d->has_safepost || (resource->collection != NULL && posts);
    d->has_asking = d->has_asking || (resource->ops->post_asks && posts);
    d->raises_events = d->raises_events || (posts && span_eq(resource->name, SPAN("Svc.Event")));
    if (resource->kind != KIND_EVENT)
        return;
    d->has_events = true;
    d->has_binary_events = d->has_binary_events || resource->is_binary_event;
    d->has_entity_events = d->has_entity_events || !resource->is_binary_event;
}

/* What parts of `components` are referred to. */
static void look(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);)
        look_at(d, &r);
}

static void add_head(struct openapi *d)
{
    struct buf *b = d->out;

    buf_add_str(b, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Svc\",\"version\":\"" SVCD_VERSION
                   "\",\"description\":\"Resources, events and webhooks, as far as this key may "
                   "use them.\"},\"servers\":[{\"url\":");
    json_add_string(b, d->call->rest->base_path);
    buf_add_str(b, "}],\"security\":[{\"apikey\":[]},{\"bearer\":[]},{\"basic\":[]}");
    buf_add_str(b, d->call->rest->access->required ? "]" : ",{}]");
}

static void add_tags(struct openapi *d)
{
    struct openapi_resource r;

    json_add_name(d->out, SPAN("tags"));
    buf_add_char(d->out, '[');
    for (size_t place = 0, count = 0; openapi_next(d, &place, &r); count++) {
        buf_add_str(d->out, count > 0 ? ",{" : "{");
        json_add_name(d->out, SPAN("name"));
        json_add_string(d->out, r.resource->name);
        json_add_name(d->out, SPAN("description"));
        json_add_string(d->out, r.resource->description);
        buf_add_char(d->out, '}');
    }
    buf_add_char(d->out, ']');
}

static void add_components(struct openapi *d)
{
    struct buf *b = d->out;

    buf_add_str(
        b, ",\"components\":{\"securitySchemes\":{\"apikey\":{\"type\":\"apiKey\",\"in\":\"header\""
           ",\"name\":\"Authorization\",\"description\":\"`apikey <KEY>`\"},"
           "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"The key\"},"
           "\"basic\":{\"type\":\"http\",\"scheme\":\"basic\","
           "\"description\":\"The key as password, with any name\"}},"
           "\"responses\":{\"Problem\":{\"description\":\"Nothing was done, and why\",\"content\":"
           "{\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}"
           "}}");
    buf_add_str(b, ",\"parameters\":{");
    openapi_add_parameters(d);
    openapi_add_webhook_parameters(d);
    buf_add_str(b, "},\"headers\":{");
    openapi_add_headers(d);
    buf_add_char(b, '}');
    openapi_add_schemas(d);
    buf_add_char(b, '}');
}

/* A hash of the text, piece by piece: what is hashed at once is nothing that others wait for. */
static struct span tag_of(struct span text, struct arena *a)
{
    enum { PIECE = 65536, TAG_BYTES = 8 };
    uint8_t digest[DIGEST_BYTES];
    struct buf digests;
    struct buf tag;

    buf_init_arena(&digests, a);
    for (size_t at = 0; at < text.n && budget_ask(4 * (size_t)PIECE); at += PIECE) {
        digest_sha256(span_sub(text, at, MIN(at + PIECE, text.n)), digest);
        buf_add(&digests, span_of((const char *)digest, sizeof(digest)));
    }
    digest_sha256(buf_span(&digests), digest);
    buf_init_arena(&tag, a);
    for (size_t i = 0; i < TAG_BYTES; i++)
        buf_printf(&tag, "%s%02x", i == 0 ? "\"" : "", (unsigned)digest[i]);
    buf_add_char(&tag, '"');
    return buf_span(&tag);
}

/* A client that knows it is told so, and nothing more. */
static void answer_tag(struct call *call)
{
    struct response *response = call->response;
    struct span known = request_header_all(call->request, SPAN("If-None-Match"), call->arena);
    struct span tag = tag_of(buf_span(&response->body), call->arena);

    response_add_own_header(response, SPAN("ETag"), tag);
    if (known.p == NULL || !negotiate_etag_listed(known, tag, true))
        return;
    response->status = 304;
    response->content_type = span_of(NULL, 0);
    buf_clear(&response->body);
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;
    struct openapi d = {.call = call, .out = &response->body};

    call_shows(call, collection_version(store_collection(call->rest->store, declaration_resource)));
    look(&d);
    add_head(&d);
    add_tags(&d);
    openapi_add_paths(&d);
    openapi_add_webhooks(&d);
    add_components(&d);
    buf_add_char(d.out, '}');
    response->status = 200;
    response->content_type = SPAN("application/json");
    if (!buf_over(d.out))
        answer_tag(call);
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_openapi = {
    .name = SPAN_INIT("Svc.OpenApi"),
    .description = SPAN_INIT("What the key may use, as an OpenAPI 3.1 document"),
    .kind = KIND_BINARY,
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
