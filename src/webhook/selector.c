/* A selector is read as any URI; what comes of its first part is a resource or a pattern.
 * Conditions on a pattern are judged as on undeclared properties, as nobody knows what is to be
 * declared. */
#include "webhook/selector.h"

#include "access/access.h"
#include "base/text.h"
#include "match/scopes.h"
#include "protocol/schema.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "resource/resource.h"

struct err *selector_say_how_to_declare(struct err *e, struct span name)
{
    bool is_full = span_find_char(name, '.', 0) < name.n;
    struct err *told;

    if (err_code(e) != ERR_UNKNOWN_RESOURCE)
        return e;
    told = ERR(ERR_UNKNOWN_RESOURCE,
               "%.*s An event resource is declared by POST /Svc.Admin.Resource with "
               "{\"Name\":\"%s%.*s\",\"Kind\":\"EventResource\"}.",
               SPAN_FMT(err_message(e)), is_full ? "" : "Shop.", SPAN_FMT(name));
    err_free(e);
    return told;
}

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

/* Of a CloudEvent's attributes, which are no part of the payload: `ce.subject`. */
static bool is_of_attributes(const struct uri_condition *condition)
{
    return span_istarts(condition->key, SPAN("ce.")) || span_ieq(condition->key, SPAN("ce"));
}

static struct err *check_resource(const struct resource *resource, const struct uri *uri)
{
    if (resource->kind != KIND_EVENT)
        return ERR(ERR_WRONG_SELECTOR_KIND, "'%.*s' is of kind %.*s, not EventResource",
                   SPAN_FMT(resource->name), SPAN_FMT(resource_kind_names.values[resource->kind]));
    for (size_t i = 0; resource->is_binary_event && i < uri->condition_count; i++)
        if (!is_of_attributes(&uri->conditions[i]))
            return ERR(ERR_INVALID_EVENT_SELECTOR,
                       "'%.*s' has a binary payload, on which conditions cannot be put",
                       SPAN_FMT(resource->name));
    return NULL;
}

/* Patterns. -------------------------------------------------------------------------------- */

static bool is_pattern(struct span name)
{
    return selector_is_every(name) || span_ends(name, SPAN(".*"));
}

static struct err *check_pattern(struct span pattern)
{
    struct span rest = pattern, part = span_split(&rest, '.');

    while (rest.p != NULL && text_is_made_of(part, "_-"))
        part = span_split(&rest, '.');
    if (rest.p == NULL && span_eq(part, SPAN("*")))
        return NULL;
    return ERR(ERR_INVALID_EVENT_SELECTOR,
               "'%.*s' is no pattern of event resources: these are '*' and 'Namespace.*'",
               SPAN_FMT(pattern));
}

bool selector_is_every(struct span pattern)
{
    return span_eq(pattern, SPAN("*"));
}

bool selector_is_notice(struct span event_resource)
{
    const struct span space = SPAN("Svc."); /* nobody else declares such names */

    return event_resource.n > space.n && event_resource.p[space.n - 1] == '.' &&
           span_istarts(event_resource, space);
}

struct span selector_name(const struct selector *selector)
{
    struct span rest = span_sub(selector->normal, 1, selector->normal.n);

    return span_split(&rest, '/');
}

bool selector_covers(const struct selector *selector, const struct resource *event)
{
    if (selector->resource != NULL)
        return selector->resource == event;
    if (selector_is_every(selector->pattern) && selector_is_notice(event->folded))
        return false;
    return event->kind == KIND_EVENT && scope_covers(selector->pattern, event->folded);
}

/* What is called as notices are, and is none, never will be an event resource. */
static bool may_be_selected(const struct resources *resources, const struct selector *selector,
                            struct span part)
{
    const struct resource *own;

    if (!selector_is_notice(part))
        return true;
    if (selector_is_every(selector->pattern))
        return false;
    own = resource_named(resources, part);
    return is_pattern(part) || (own != NULL && own->kind == KIND_EVENT);
}

void selector_narrow(const struct selector *selector, const struct resources *resources,
                     const struct access_key *key, struct arena *a, struct span **out_parts,
                     size_t *out_count)
{
    size_t kept = 0;

    access_narrow(key, selector->pattern, a, out_parts, out_count);
    for (size_t i = 0; i < *out_count; i++)
        if (may_be_selected(resources, selector, (*out_parts)[i]))
            (*out_parts)[kept++] = (*out_parts)[i];
    *out_count = kept;
}

/* Parsing. --------------------------------------------------------------------------------- */

static struct err *find(const struct resources *resources, const struct uri *uri,
                        const struct access_key *key, struct arena *a, struct selector *selector)
{
    if (is_pattern(uri->resource)) {
        selector->pattern = text_fold(a, uri->resource);
        return check_pattern(uri->resource);
    }
    TRY(resource_find(resources, uri->resource, key, &selector->resource));
    return check_resource(selector->resource, uri);
}

static struct span normal_of(const struct selector *selector, struct span pattern, struct arena *a)
{
    struct buf normal;

    buf_init_arena(&normal, a);
    buf_add_char(&normal, '/');
    buf_add(&normal, selector->resource != NULL ? selector->resource->name : pattern);
    if (selector->conditions->count > 0) {
        buf_add_char(&normal, '/');
        conditions_add_normal(&normal, selector->conditions);
    }
    return buf_span(&normal);
}

/* Whatever is declared of payloads, nothing is of attributes. */
static struct err *parse_conditions(const struct uri *uri, const struct shape *shape,
                                    struct arena *a, const struct conditions **out_conditions)
{
    struct conditions *all = ARENA_NEW(a, struct conditions), one;

    *all = (struct conditions){ARENA_ARRAY(a, struct condition, uri->condition_count), 0};
    for (size_t i = 0; i < uri->condition_count; i++) {
        bool is_payload = !is_of_attributes(&uri->conditions[i]);

        TRY(conditions_parse(&uri->conditions[i], 1, is_payload ? shape : &schema_dynamic, a,
                             &one));
        all->items[all->count++] = one.items[0];
    }
    *out_conditions = all;
    return NULL;
}

struct err *selector_parse(const struct resources *resources, struct span text,
                           const struct access_key *key, size_t max_conditions, struct arena *a,
                           struct selector *out_selector)
{
    struct selector selector = {.resource = NULL};
    struct uri uri;
    struct err *e;

    if (!span_starts(text, SPAN("/")))
        return ERR(ERR_INVALID_EVENT_SELECTOR, "'%.*s' does not begin with '/'", SPAN_FMT(text));
    e = uri_parse(text, SPAN("/"), max_conditions, a, &uri);
    if (e != NULL)
        return as_selector_error(e, text);
    TRY(check_form(&uri, text));
    e = find(resources, &uri, key, a, &selector);
    if (e != NULL)
        return err_code(e) == ERR_WRONG_SELECTOR_KIND || err_code(e) == ERR_INVALID_EVENT_SELECTOR
                   ? e
                   : as_selector_error(selector_say_how_to_declare(e, uri.resource), text);
    e = parse_conditions(&uri,
                         selector.resource == NULL
                             ? &schema_dynamic
                             : resource_payload_shape(resources, selector.resource),
                         a, &selector.conditions);
    if (e != NULL)
        return as_selector_error(e, text);
    selector.normal = normal_of(&selector, uri.resource, a);
    *out_selector = selector;
    return NULL;
}
