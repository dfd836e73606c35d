#include "hooks/selector.h"

#include "hooks/event_post.h"
#include "query/uri.h"
#include "rest/resource.h"

/* The same words under the one ErrorCode that a webhook's owner can look for. */
static struct err *as_selector_error(struct err *e, struct span text)
{
    return err_prefix(err_recode(e, ERR_INVALID_EVENT_SELECTOR), "'%.*s': ", SPAN_FMT(text));
}

static struct err *check_form(const struct uri *uri, struct span text)
{
    if (uri->resource.p == NULL)
        return ERR(ERR_INVALID_EVENT_SELECTOR, "'%.*s' names no event resource", SPAN_FMT(text));
    if (uri->meta_count > 0)
        return ERR(ERR_INVALID_EVENT_SELECTOR, "'%.*s' has meta-conditions, which select no events",
                   SPAN_FMT(text));
    return NULL;
}

static struct err *check_resource(const struct resource *resource, const struct uri *uri)
{
    if (resource->kind != KIND_EVENT)
        return ERR(ERR_WRONG_SELECTOR_KIND, "'%.*s' is of kind %.*s, not EventResource",
                   SPAN_FMT(resource->name), SPAN_FMT(resource_kind_names.values[resource->kind]));
    if (resource->is_binary_event && uri->condition_count > 0)
        return ERR(ERR_INVALID_EVENT_SELECTOR,
                   "'%.*s' has a binary payload, on which conditions cannot be put",
                   SPAN_FMT(resource->name));
    return NULL;
}

struct err *selector_parse(const struct resources *resources, struct span text,
                           const struct access_key *key, size_t max_conditions, struct arena *a,
                           struct selector *out_selector)
{
    struct selector selector = {.resource = NULL};
    struct uri uri;
    struct buf normal;
    struct err *e;

    if (!span_starts(text, SPAN("/")))
        return ERR(ERR_INVALID_EVENT_SELECTOR, "'%.*s' does not begin with '/'", SPAN_FMT(text));
    e = uri_parse(text, SPAN("/"), max_conditions, a, &uri);
    if (e != NULL)
        return as_selector_error(e, text);
    TRY(check_form(&uri, text));
    e = resource_find(resources, uri.resource, key, &selector.resource);
    if (e != NULL)
        return as_selector_error(event_say_how_to_declare(e, uri.resource), text);
    TRY(check_resource(selector.resource, &uri));
    e = conditions_parse(uri.conditions, uri.condition_count,
                         resource_payload_shape(resources, selector.resource), a,
                         &selector.conditions);
    if (e != NULL)
        return as_selector_error(e, text);
    buf_init(&normal, BUF_NO_CAP);
    buf_add_char(&normal, '/');
    buf_add(&normal, selector.resource->name);
    if (selector.conditions.count > 0) {
        buf_add_char(&normal, '/');
        conditions_add_normal(&normal, &selector.conditions);
    }
    selector.normal = arena_copy(a, buf_span(&normal));
    buf_done(&normal);
    *out_selector = selector;
    return NULL;
}
