#include "hooks/event_post_inner.h"

#include "access/access.h"
#include "base/budget.h"
#include "hooks/event_raise.h"
#include "hooks/hooks.h"
#include "hooks/retention.h"
#include "protocol/formats.h"
#include "protocol/method.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "json/json.h"
#include "json/member.h"

/* What an event costs besides what asks itself. */
enum { EVENT_UNITS = 1024 };

struct err *event_resource_find(struct call *call, struct span name, struct resource **out_resource)
{
    struct err *e;
    struct resource *resource;

    e = resource_find(call->rest->resources, name, call->key, &resource);
    if (e != NULL)
        return selector_say_how_to_declare(e, name);
    if (resource->kind != KIND_EVENT)
        return ERR(ERR_WRONG_RESOURCE_KIND, "'%.*s' is of kind %.*s, not EventResource",
                   SPAN_FMT(resource->name), SPAN_FMT(resource_kind_names.values[resource->kind]));
    if (access_methods(call->key, resource->name, METHODS_ALL) == 0)
        return ERR(ERR_NOT_AUTHORIZED, "the API key has no right on '%.*s'",
                   SPAN_FMT(resource->name));
    *out_resource = resource;
    return NULL;
}

struct err *event_post_find(struct call *call, struct span name, struct resource **out_resource)
{
    TRY(event_resource_find(call, name, out_resource));
    if (selector_is_notice((*out_resource)->folded))
        return ERR(ERR_NOT_AUTHORIZED, "'%.*s' is raised by the server alone",
                   SPAN_FMT((*out_resource)->name));
    return NULL;
}

/* Drafts. ---------------------------------------------------------------------------------- */

struct err *event_post_check(struct call *call, const struct resource *resource,
                             struct json_value payload)
{
    const struct shape *of = resource_payload_shape(call->rest->resources, resource);
    uint32_t place = 0;

    if (json_type(payload) == JSON_OBJECT)
        return schema_check(of, payload, call->arena);
    for (struct json_value v = json_first(payload); json_exists(v); v = json_next(payload, v)) {
        struct err *e = schema_check(of, v, call->arena);

        if (e != NULL)
            return err_prefix(e, "Payload, entity %u: ", place);
        place++;
    }
    return NULL;
}

/* What was given, else the key's, which is the only one that its requests may give. */
static struct err *give_tenant(const struct call *call, struct span given,
                               struct event_draft *draft)
{
    struct span own = call->key == NULL ? span_of(NULL, 0) : call->key->tenant;

    if (given.p == NULL) {
        draft->tenant = own;
        return NULL;
    }
    TRY(access_check_tenant(given));
    if (own.n > 0 && !span_eq(own, given))
        return ERR(ERR_NOT_AUTHORIZED, "Tenant: the API key may raise events of '%.*s' only",
                   SPAN_FMT(own));
    draft->tenant = given;
    return NULL;
}

struct err *posting_draft_entities(struct call *call, struct resource *resource,
                                   struct json_value payload, struct event_draft *out_draft)
{
    struct event_draft draft = {.resource = resource, .entities = payload};

    if (resource->is_binary_event)
        return ERR(ERR_INVALID_ENTITY,
                   "'%.*s' has a binary payload: POST its bytes to /Svc.Event/Resource=%.*s",
                   SPAN_FMT(resource->name), SPAN_FMT(resource->name));
    TRY(formats_from_json(payload, call->arena, &draft.payload));
    TRY(event_post_check(call, resource, payload));
    draft.depth = request_depth(call->request);
    draft.chain = call->request->chain;
    *out_draft = draft;
    return NULL;
}

struct err *posting_draft_bytes(struct call *call, struct resource *resource, struct span type,
                                struct span bytes, struct event_draft *out_draft)
{
    struct event_draft draft = {
        .resource = resource, .depth = request_depth(call->request), .chain = call->request->chain};

    if (type.p == NULL)
        type = resource->content_type;
    if (!negotiate_is_media_type(type))
        return ERR(ERR_UNSUPPORTED_CONTENT, "Content-Type '%.*s' is no media type", SPAN_FMT(type));
    if (!negotiate_is_of_type(type, resource->content_type))
        return ERR(ERR_UNSUPPORTED_CONTENT,
                   "Content-Type '%.*s' is not what '%.*s' is declared to carry, which is '%.*s'",
                   SPAN_FMT(type), SPAN_FMT(resource->name), SPAN_FMT(resource->content_type));
    draft.content_type = type;
    draft.payload = bytes;
    *out_draft = draft;
    return NULL;
}

/* The event that an object describes. */
static struct err *draft_of_description(struct call *call, struct span name,
                                        struct json_value payload, struct event_draft *out_draft)
{
    struct resource *resource;

    if (name.p == NULL)
        return ERR(ERR_INVALID_ENTITY, "Resource is missing");
    if (!json_exists(payload))
        return ERR(ERR_INVALID_ENTITY, "Payload is missing");
    TRY(event_post_find(call, name, &resource));
    return posting_draft_entities(call, resource, payload, out_draft);
}

static struct err *negotiate_in(struct call *call)
{
    return negotiate_content_type(request_header(call->request, SPAN("Content-Type")), true,
                                  &call->formats->in);
}

/* The event whose payload is the body. */
static struct err *draft_of_body(struct call *call, struct span name, struct event_draft *out_draft)
{
    struct json_doc *doc = ARENA_NEW(call->arena, struct json_doc);
    struct resource *resource;

    TRY(event_post_find(call, name, &resource));
    if (resource->is_binary_event)
        return posting_draft_bytes(call, resource,
                                   request_header(call->request, SPAN("Content-Type")),
                                   call->request->body, out_draft);
    TRY(negotiate_in(call));
    TRY(crud_body(call, doc));
    TRY(json_check_unique(json_root(doc), false, call->arena));
    return posting_draft_entities(call, resource, json_root(doc), out_draft);
}

static bool may_see(const struct access_key *key, const struct webhook *w)
{
    return key == NULL || key->tenant.n == 0 || span_eq(key->tenant, webhook_tenant(w));
}

struct err *event_webhook_find(const struct call *call, const struct webhooks *webhooks,
                               struct span id, enum err_code unknown,
                               const struct webhook **out_webhook)
{
    static const struct span owner = SPAN_INIT("Svc.Admin.Webhook");
    const struct webhook *w;
    struct uuid uuid;

    if (!access_allows(call->key, owner, METHOD_GET))
        return ERR(ERR_NOT_AUTHORIZED, "WebhookId: the API key may not use GET on '%.*s'",
                   SPAN_FMT(owner));
    w = uuid_parse(id, &uuid) ? webhook_find(webhooks, &uuid) : NULL;
    if (w == NULL || !may_see(call->key, w))
        return ERR(unknown, "WebhookId: there is no webhook '%.*s'", SPAN_FMT(id));
    *out_webhook = w;
    return NULL;
}

/* The event is for one webhook alone: the way to test it without touching others. It has to match
 * as always; a paused one, whose deliveries would wait, is refused. */
static struct err *send_to_one(struct posting *p, struct span id, struct event_draft *draft)
{
    const struct webhook *w;

    TRY(event_webhook_find(p->call, p->hooks->webhooks, id, ERR_INVALID_ENTITY, &w));
    if (w->is_paused)
        return ERR(ERR_CONFLICT, "WebhookId: webhook '%.*s' is paused, its deliveries wait",
                   SPAN_FMT(id));
    if (!webhook_selects(w, draft->resource))
        return ERR(ERR_INVALID_ENTITY, "WebhookId: the EventSelector of '%.*s' is not on '%.*s'",
                   SPAN_FMT(id), SPAN_FMT(draft->resource->name));
    if (webhook_tenant(w).n > 0 && !span_eq(webhook_tenant(w), draft->tenant))
        return ERR(ERR_INVALID_ENTITY, "WebhookId: the event is not of the Tenant of '%.*s'",
                   SPAN_FMT(id));
    draft->only = w;
    return NULL;
}

/* Answers. --------------------------------------------------------------------------------- */

/* What the client needs to follow the event. */
static void add_answer(struct posting *p, const struct record_once *answer)
{
    enum { USUAL_BYTES = 255 };
    struct buf b;

    buf_init_arena(&b, p->call->arena);
    buf_reserve(&b, USUAL_BYTES);
    buf_add_char(&b, '{');
    member_add_uuid(&b, SPAN("Id"), &answer->event);
    member_add_text(&b, SPAN("Resource"), answer->resource);
    member_add_time(&b, SPAN("Time"), answer->time_unix_ns);
    member_add_u64(&b, SPAN("Webhooks"), answer->webhooks);
    member_add_u64(&b, SPAN("ObjectNo"), answer->event_no);
    buf_add_char(&b, '}');
    p->answers[p->count++] = buf_span(&b);
    p->last_no = answer->event_no;
}

struct err *posting_raise(struct posting *p, const struct idempotency_event *sent,
                          const struct idempotency_name *name, struct event_draft *draft)
{
    struct event_raised raised;
    struct record_once answer;

    draft->client_id = sent->client_id;
    TRY(give_tenant(p->call, sent->tenant, draft));
    if (sent->webhook.p != NULL)
        TRY(send_to_one(p, sent->webhook, draft));
    TRY(event_raise(p->hooks, draft, p->call->change, &raised));
    answer = (struct record_once){
        .time_unix_ns = raised.time_unix_ns,
        .event_no = raised.object_no,
        .event = raised.id,
        .webhooks = raised.webhooks,
        .resource = draft->resource->name,
    };
    idempotency_remember(&p->idempotency, name, &answer);
    add_answer(p, &answer);
    return NULL;
}

/* Recognised before anything else about the event is looked at: a repetition is answered as it was
 * even if the event could not be raised any more. */
struct err *posting_answer_repeated(struct posting *p, const struct idempotency_event *event,
                                    struct idempotency_name *out_name, bool *out_repeated)
{
    const struct record_once *known;

    TRY(idempotency_name(&p->idempotency, event, p->count, out_name));
    TRY(idempotency_find(&p->idempotency, out_name, &known));
    if (known != NULL)
        add_answer(p, known);
    *out_repeated = known != NULL;
    return NULL;
}

struct err *posting_each(struct posting *p, struct json_value events, posting_one_fn *post,
                         size_t units)
{
    p->answers = ARENA_ARRAY(p->call->arena, struct span, json_count(events));
    for (struct json_value v = json_first(events); json_exists(v); v = json_next(events, v)) {
        struct err *e = post(p, v);

        if (e != NULL)
            return err_prefix(e, "entity %zu: ", p->count);
        if (!budget_ask(units))
            break;
    }
    return budget_check();
}

static struct idempotency_event sent_of(const struct span texts[DESCRIBED_COUNT],
                                        struct span content_type, struct span payload)
{
    return (struct idempotency_event){
        .client_id = texts[BY_CLIENT],
        .resource = texts[BY_RESOURCE],
        .tenant = texts[BY_TENANT],
        .webhook = texts[BY_WEBHOOK],
        .content_type = content_type,
        .payload = payload,
    };
}

static struct err *post_event(struct posting *p, struct json_value input)
{
    struct json_value members[DESCRIBED_COUNT], payload;
    struct span texts[DESCRIBED_COUNT];
    struct idempotency_event sent;
    struct event_draft draft;
    struct idempotency_name name;
    bool repeated;

    TRY(json_check_unique(input, false, p->call->arena)); /* the payload's members too */
    TRY(schema_check_input(p->call->resource->shape, input, p->call->arena));
    payload = json_member_fold(input, SPAN("Payload"));
    json_members_fold(input, event_described_names, DESCRIBED_COUNT, members);
    for (size_t i = 0; i < DESCRIBED_COUNT; i++)
        texts[i] = json_string(members[i], p->call->arena);
    sent = sent_of(texts, span_of(NULL, 0), json_text(payload));
    TRY(posting_answer_repeated(p, &sent, &name, &repeated));
    if (repeated)
        return NULL;
    TRY(draft_of_description(p->call, sent.resource, payload, &draft));
    return posting_raise(p, &sent, &name, &draft);
}

/* `{"Resource":…,"Payload":…}`, or an array of those. */
static struct err *post_described(struct posting *p)
{
    struct json_doc doc;
    struct json_value root;

    TRY(negotiate_in(p->call));
    TRY(crud_body(p->call, &doc));
    root = json_root(&doc);
    if (json_type(root) != JSON_ARRAY)
        return post_event(p, root);
    return posting_each(p, root, post_event, EVENT_UNITS);
}

/* The body describes events, and the URI nothing of them. */
static struct err *post_alone(struct posting *p)
{
    if (p->call->uri->condition_count > 0)
        return ERR(ERR_INVALID_CONDITION_SYNTAX,
                   "Resource: is missing, which says what event the body is the payload of");
    return post_described(p);
}

struct span posting_bare_json(struct span body)
{
    static const struct span around = SPAN_INIT(" \t\r\n\xef\xbb\xbf");
    size_t from = 0, to = body.n;

    while (from < to && span_find_char(around, body.p[from], 0) < around.n)
        from++;
    while (to > from && span_find_char(around, body.p[to - 1], 0) < around.n)
        to--;
    return span_sub(body, from, to);
}

static struct idempotency_event sent_as_body(const struct posting *p)
{
    struct span type = request_header(p->call->request, SPAN("Content-Type"));
    struct span body = p->call->request->body;
    enum format format;
    struct err *e = negotiate_content_type(type, true, &format);
    bool is_json = e == NULL;

    err_free(e);
    return is_json ? sent_of(p->texts, span_of(NULL, 0), posting_bare_json(body))
                   : sent_of(p->texts, type, body);
}

/* The body is the payload itself; the resource is named by the condition `Resource=`. */
static struct err *post_payload(struct posting *p)
{
    const struct idempotency_event sent = sent_as_body(p);
    struct event_draft draft;
    struct idempotency_name name;
    bool repeated;

    TRY(posting_answer_repeated(p, &sent, &name, &repeated));
    if (repeated)
        return NULL;
    TRY(draft_of_body(p->call, sent.resource, &draft));
    return posting_raise(p, &sent, &name, &draft);
}

static struct err *post_all(struct posting *p)
{
    enum cloudevents_mode mode;

    TRY(idempotency_init(&p->idempotency, p->hooks->once, p->call));
    TRY(event_described_read(p->call, p->texts));
    p->answers = ARENA_NEW(p->call->arena, struct span);
    if (p->texts[BY_RESOURCE].p != NULL)
        TRY(post_payload(p));
    else if (event_cloud_is_carried(p->call->request, &mode))
        TRY(event_cloud_post(p, mode));
    else
        TRY(post_alone(p));
    crud_answer_changed(p->call, p->count > 0 ? 201 : 200, "inserted into", p->answers, p->count);
    if (p->count == 1) {
        crud_add_location(p->call, p->answers[0]);
        crud_add_version_tag(p->call, p->last_no);
    }
    return crud_apply(p->call);
}

struct err *event_post(struct hooks *hooks, struct call *call)
{
    struct posting posting = {.hooks = hooks, .call = call};
    struct err *e = post_all(&posting);

    idempotency_done(&posting.idempotency);
    if (e == NULL)
        retention_wake(hooks->retention);
    return e;
}
