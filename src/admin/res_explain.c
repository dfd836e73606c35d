/* Svc.Explain: does a selector find an event, and why (docs/specification.md, section 7). The
 * selector is given or a webhook's, the event is kept or given. Nothing is raised, and nothing is
 * told that the key could not read elsewhere. */
#include "webhook/explain.h"

#include "access/access.h"
#include "admin/builtin.h"
#include "base/limits.h"
#include "hooks/event.h"
#include "hooks/event_post.h"
#include "hooks/hooks.h"
#include "protocol/formats.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "query/shape.h"
#include "rest/crud.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "webhook/webhook_owner.h"

enum { SELECTOR, WEBHOOK, EVENT, RESOURCE, PAYLOAD };

static const struct property properties[] = {
    [SELECTOR] = {.name = SPAN_INIT("EventSelector"),
                  .type = TYPE_STRING,
                  .meaning = SPAN_INIT("The selector; or WebhookId")},
    [WEBHOOK] = {.name = SPAN_INIT("WebhookId"),
                 .type = TYPE_STRING,
                 .meaning = SPAN_INIT("The webhook whose selector is meant")},
    [EVENT] = {.name = SPAN_INIT("EventId"),
               .type = TYPE_STRING,
               .meaning = SPAN_INIT("An event that is kept; or Resource and Payload")},
    [RESOURCE] = {.name = SPAN_INIT("Resource"),
                  .type = TYPE_STRING,
                  .meaning = SPAN_INIT("The event resource of an event that is not raised")},
    [PAYLOAD] = {.name = SPAN_INIT("Payload"),
                 .type = TYPE_ANY,
                 .flags = PROPERTY_PAYLOAD,
                 .meaning = SPAN_INIT("Its payload: an entity, or an array of them")},
};

static const struct property condition_properties[] = {
    READ_ONLY_PROPERTY("Condition", TYPE_STRING, 0, "As it stands in the selector"),
    READ_ONLY_PROPERTY("Value", TYPE_ANY, 0, "What was found; of a `*` at most ten"),
    READ_ONLY_PROPERTY("Holds", TYPE_BOOLEAN, 0, "Whether that meets it"),
};
static const struct shape condition_shape = {.properties = condition_properties,
                                             .count = ARRAY_LEN(condition_properties)};
static const struct property answered_properties[] = {
    READ_ONLY_PROPERTY("Matches", TYPE_BOOLEAN, 0, "Whether the event is delivered for it"),
    READ_ONLY_PROPERTY("Reason", TYPE_STRING, 0, "Why, or why not, in words"),
    READ_ONLY_PROPERTY("Selector", TYPE_STRING, 0, "The selector, in normal form"),
    {.name = SPAN_INIT("Conditions"),
     .type = TYPE_ARRAY,
     .flags = PROPERTY_READ_ONLY,
     .members = &condition_shape,
     .meaning = SPAN_INIT("Each of its conditions")},
};
static const struct shape answered = {.properties = answered_properties,
                                      .count = ARRAY_LEN(answered_properties)};

static const struct shape shape = {
    .properties = properties, .count = ARRAY_LEN(properties), .name = SPAN_INIT("Svc.Explain")};

/* What is asked. */
struct question {
    struct call *call;
    struct json_value *given; /* by property */
    struct selector *selectors;
    size_t selector_count;
    struct span refused; /* why it finds nothing in any case; absent: nothing is known against it */
    struct explain_event event;
    const struct webhook *webhook; /* whose selector it is; NULL: nobody's */
    struct span tenant;            /* the event's; empty: none */
};

static bool is_given(const struct question *q, size_t property)
{
    return json_type(q->given[property]) != JSON_NULL;
}

static struct span text_of(const struct question *q, size_t property)
{
    return json_string(q->given[property], q->call->arena);
}

static struct err *check_form(const struct question *q)
{
    if (is_given(q, SELECTOR) == is_given(q, WEBHOOK))
        return ERR(ERR_INVALID_ENTITY, "either EventSelector or WebhookId must be given");
    if (is_given(q, EVENT) == (is_given(q, RESOURCE) || is_given(q, PAYLOAD)))
        return ERR(ERR_INVALID_ENTITY, "either EventId must be given, or Resource and Payload");
    if (is_given(q, RESOURCE) != is_given(q, PAYLOAD))
        return ERR(ERR_INVALID_ENTITY, "%s is missing",
                   is_given(q, PAYLOAD) ? "Resource" : "Payload");
    return NULL;
}

/* The selector. ---------------------------------------------------------------------------- */

static struct err *parse_selectors(struct question *q, const struct span *texts, size_t count)
{
    const struct call *call = q->call;

    q->selectors = ARENA_ARRAY(call->arena, struct selector, count);
    for (; q->selector_count < count; q->selector_count++)
        TRY(selector_parse(call->rest->resources, texts[q->selector_count], call->key,
                           (size_t)call->rest->limits->conditions, call->arena,
                           &q->selectors[q->selector_count]));
    return NULL;
}

static struct err *read_selector(struct question *q)
{
    struct span text = text_of(q, SELECTOR);

    return parse_selectors(q, &text, 1);
}

/* By somebody, or by the server, which says why. */
static struct span paused(struct json_value webhook, struct arena *a)
{
    struct span text = json_string(json_member(webhook, SPAN("ErrorMessage")), a);

    return text.n == 0 ? SPAN("The webhook is paused.")
                       : arena_printf(a, "The webhook is paused: %.*s", SPAN_FMT(text));
}

static struct err *read_webhook(struct question *q)
{
    const struct webhook *w;
    struct json_value json;
    struct span *texts, member;
    size_t count;

    TRY(event_webhook_find(q->call, hooks_of(q->call)->webhooks, text_of(q, WEBHOOK),
                           ERR_UNKNOWN_ENTITY, &w));
    q->webhook = w;
    crud_shows(q->call, w->entity->version);
    json = entity_parse(entity_json(w->entity), q->call->arena);
    if (w->is_paused)
        q->refused = paused(json, q->call->arena);
    count = webhook_selectors(json, q->call->arena, &texts, &member);
    return parse_selectors(q, texts, count);
}

/* The event. ------------------------------------------------------------------------------- */

static struct err *check_readable(const struct call *call, const struct resource *resource)
{
    if (access_allows(call->key, resource->name, METHOD_GET))
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "the API key may not use GET on '%.*s'",
               SPAN_FMT(resource->name));
}

static struct err *find_event(const struct question *q, struct event **out_event)
{
    const struct call *call = q->call;
    struct span id = text_of(q, EVENT);
    struct uuid uuid;
    struct event *event = uuid_parse(id, &uuid) ? events_find(hooks_of(call)->events, &uuid) : NULL;

    /* One that the key may not read, or that is another tenant's, is not there. */
    if (event == NULL || !access_allows(call->key, event->resource, METHOD_GET) ||
        (call->key != NULL && call->key->tenant.n > 0 &&
         !span_eq(call->key->tenant, event_tenant_name(event))))
        return ERR(ERR_UNKNOWN_ENTITY, "EventId: there is no event '%.*s'", SPAN_FMT(id));
    *out_event = event;
    return NULL;
}

static struct err *read_kept(struct question *q)
{
    struct call *call = q->call;
    struct event *event;

    TRY(find_event(q, &event));
    crud_shows(call, event->object_no);
    q->tenant = event_tenant_name(event);
    q->event.resource = resource_named(call->rest->resources, event->resource);
    if (q->event.resource == NULL)
        return ERR(ERR_UNKNOWN_RESOURCE, "EventId: '%.*s' is declared no more",
                   SPAN_FMT(event->resource));
    return event_cloud_entities(hooks_of(call)->events, event, call->arena, &q->event.payload);
}

static struct err *read_given(struct question *q)
{
    struct call *call = q->call;
    struct json_value payload = q->given[PAYLOAD];
    struct resource *resource;
    struct span list;

    TRY(event_resource_find(call, text_of(q, RESOURCE), &resource));
    TRY(check_readable(call, resource));
    if (resource->is_binary_event)
        return ERR(ERR_INVALID_ENTITY, "Resource: '%.*s' has a binary payload, without conditions",
                   SPAN_FMT(resource->name));
    TRY(formats_from_json(payload, call->arena, &list));
    TRY(event_post_check(call, resource, payload));
    q->event = (struct explain_event){resource, payload};
    q->tenant = call->key == NULL ? span_of(NULL, 0) : call->key->tenant;
    return NULL;
}

/* The answer. ------------------------------------------------------------------------------ */

static void answer(struct question *q)
{
    struct call *call = q->call;
    size_t most = MAX(json_count(q->event.payload), 1) * q->selector_count, count = 0;
    struct span *items = ARENA_ARRAY(call->arena, struct span, most);

    for (size_t i = 0; i < q->selector_count; i++) {
        size_t entities;
        const struct explanation *all =
            explain(&q->selectors[i], &q->event, q->refused, call->arena, &entities);

        for (size_t j = 0; j < entities; j++)
            items[count++] = all[j].json;
    }
    call->response->status = 200;
    crud_write_list(call, items, count);
}

/* What the webhook is not given, whatever it selects. */
static void refuse_by_right(struct question *q)
{
    const struct webhook *w = q->webhook;
    struct err *e;

    if (w == NULL || q->refused.n > 0)
        return;
    if (webhook_tenant(w).n > 0 && !span_eq(webhook_tenant(w), q->tenant)) {
        q->refused = SPAN("The event is not of the webhook's tenant.");
        return;
    }
    e = webhook_owner_check(w->owner, q->call->rest->access, q->event.resource);
    if (e != NULL)
        q->refused = arena_copy(q->call->arena, err_message(e));
    err_free(e);
}

static struct err *post(struct call *call)
{
    struct question q = {.call = call};
    struct json_doc doc;

    if (call->query->conditions.count > 0)
        return ERR(ERR_INVALID_CONDITION_SYNTAX, "Svc.Explain takes its question as a body");
    TRY(crud_body(call, &doc));
    TRY(schema_read(&shape, json_root(&doc), call->arena, &q.given));
    TRY(check_form(&q));
    TRY(is_given(&q, WEBHOOK) ? read_webhook(&q) : read_selector(&q));
    TRY(is_given(&q, EVENT) ? read_kept(&q) : read_given(&q));
    refuse_by_right(&q);
    answer(&q);
    return NULL;
}

static const struct resource_ops ops = {
    .post = post, .answered = &answered, .node_methods = METHOD_BIT(METHOD_POST)};

const struct resource_definition res_explain = {
    .name = SPAN_INIT("Svc.Explain"),
    .description = SPAN_INIT("Tells whether a selector finds an event, and why"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_POST),
    .shape = &shape,
    .ops = &ops,
};
