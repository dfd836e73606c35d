/* The document as a whole: what of the registry the key may use, what parts of it are referred to,
 * and all that is not of single resources. A large one gives way to others, as a listing does. */
#include "access/access.h"
#include "base/budget.h"
#include "base/buf.h"
#include "openapi/openapi_inner.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "webhook/selector.h"
#include "json/json.h"

bool openapi_is_raised(const struct resource *event)
{
    return !selector_is_notice(event->folded);
}

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

/* Who may not GET the resource is not shown what was changed, but for what is shown only once. */
static unsigned shown_by(const struct resource *resource, const struct access_key *key,
                         unsigned methods)
{
    unsigned of_changes =
        METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_PUT);

    if ((resource->methods & METHOD_BIT(METHOD_GET)) == 0 && resource->ops->answered != NULL)
        return methods;
    if (!access_allows(key, resource->name, METHOD_GET))
        of_changes = resource->ops->answer != NULL ? METHOD_BIT(METHOD_POST) : 0;
    return methods & (METHOD_BIT(METHOD_GET) | of_changes);
}

bool openapi_next(struct openapi *d, size_t *place, struct openapi_resource *out_resource)
{
    const struct resources *resources = d->call->rest->resources;

    while (*place < resources->count && openapi_may_go_on(d)) {
        const struct resource *resource = resources->sorted[(*place)++];
        bool asks_only = resource->ops != NULL && resource->ops->post != NULL &&
                         (resource->methods & METHOD_BIT(METHOD_GET)) == 0;

        unsigned methods;

        if (!resource_is_visible(resource, d->call->key))
            continue;
        methods = methods_of(resource, d->call->key);
        *out_resource = (struct openapi_resource){
            .resource = resource,
            .methods = methods,
            .shown = shown_by(resource, d->call->key, methods),
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
    d->has_webhooks = true;
    d->has_events = d->has_events || openapi_is_raised(resource);
    d->binary_event_count += resource->is_binary_event;
    if (!resource->is_binary_event &&
        (d->first_event == NULL ||
         (openapi_is_raised(resource) && !openapi_is_raised(d->first_event))))
        d->first_event = resource;
}

/* What parts of `components` are referred to. */
static void look(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);)
        look_at(d, &r);
}

/* What a newcomer has to know before the rest. */
#define ABOUT                                                                                      \
    "\"A resource of entities is asked by `GET`, with conditions as `where`, and is answered by "  \
    "an "                                                                                          \
    "array, also of one; `POST` inserts, `PATCH` changes, `DELETE` deletes what the conditions "   \
    "find. An event is raised by `POST` to `Svc.Event`. A webhook, an entity of "                  \
    "`Svc.Admin.Webhook`, selects events and has each sent to its `Destination`; what is sent is " \
    "under `webhooks`. What is refused changes nothing, and is answered by a `Problem`. The "      \
    "document is of what the key that asked for it may use.\""

static void add_head(struct openapi *d)
{
    struct buf *b = d->out;

    buf_add_str(b, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Svc\",\"version\":\"" SVCD_VERSION
                   "\",\"description\":" ABOUT "},\"servers\":[{\"url\":");
    json_add_string(b, d->call->rest->base_path);
    buf_add_str(b, "}],\"security\":[{\"apikey\":[]},{\"bearer\":[]},{\"basic\":[]}");
    buf_add_str(b, access_requires_key(d->call->rest->access) ? "]" : ",{}]");
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
    buf_add_str(b, "},\"examples\":{");
    openapi_add_answer_examples(d);
    buf_add_str(b, "},\"headers\":{");
    openapi_add_headers(d);
    buf_add_char(b, '}');
    openapi_add_schemas(d);
    buf_add_char(b, '}');
}

void openapi_write(struct call *call, struct buf *out)
{
    struct openapi d = {.call = call, .out = out, .budgeted = out->n};

    look(&d);
    openapi_look_at_names(&d);
    add_head(&d);
    add_tags(&d);
    openapi_add_paths(&d);
    openapi_add_webhooks(&d);
    add_components(&d);
    buf_add_char(d.out, '}');
}
