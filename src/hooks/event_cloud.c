/* A POST on Svc.Event that carries CloudEvents (docs/specification.md, section 13). An event's type
 * leads to its resource, its source and id are its ClientId; from there on it is raised as any
 * other, with its attributes beside it. What comes again is told by source, id, type and data:
 * other attributes may differ from one try to the next, as those that trace requests do. At the end
 * is what conditions look at of an event that is kept. */
#include "access/access.h"
#include "base/blob.h"
#include "base/budget.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "hooks/event.h"
#include "hooks/event_post_inner.h"
#include "hooks/event_raise.h"
#include "hooks/payload.h"
#include "protocol/negotiate.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/entity.h"

/* What an event costs besides what asks itself. */
enum { EVENT_UNITS = 4096 };

/* An event's data: JSON, or bytes of its media type; or neither. */
struct cloud_data {
    struct json_value json;
    struct span bytes;
    struct span type; /* absent: none is told */
};

/* Nearly all values are none, and this tells most of them at one look. */
static bool may_be_mode(struct span value)
{
    const size_t at = SPAN("application/").n;

    return value.n > at && (value.p[at] == 'c' || value.p[at] == 'C');
}

bool event_cloud_is_carried(const struct request *request, enum cloudevents_mode *out_mode)
{
    bool has_fields = false;

    *out_mode = CLOUDEVENTS_BINARY;
    for (size_t i = 0; i < request->header_count; i++) {
        struct span name = request->headers[i].name;

        if (cloudevents_is_field(name))
            has_fields = true;
        else if (may_be_mode(request->headers[i].value) && *out_mode == CLOUDEVENTS_BINARY &&
                 span_ieq(name, SPAN("Content-Type")))
            *out_mode = cloudevents_mode(request->headers[i].value);
    }
    return has_fields || *out_mode != CLOUDEVENTS_BINARY;
}

/* JSON is UTF-8, whatever its media type is called. */
static struct err *check_charset(struct span type, struct arena *a)
{
    struct span parameters = span_sub(type, span_find_char(type, ';', 0), type.n);
    enum format format;
    struct err *e = negotiate_content_type(
        arena_printf(a, "application/json%.*s", SPAN_FMT(parameters)), false, &format);
    bool is_good = e == NULL;

    err_free(e);
    if (is_good)
        return NULL;
    return ERR(ERR_UNSUPPORTED_CONTENT, "Content-Type '%.*s': only UTF-8 can be read",
               SPAN_FMT(type));
}

/* The resource. ---------------------------------------------------------------------------- */

/* A full name means what it says, whatever another resource's events are called. */
static struct err *find_resource(struct call *call, struct span type,
                                 struct resource **out_resource)
{
    const struct resources *resources = call->rest->resources;
    struct resource *resource = resource_of_type(resources, type);
    struct err *e;

    if (resource == NULL || resource_named(resources, type) != NULL) {
        e = event_post_find(call, type, out_resource);
        return e == NULL ? NULL : err_prefix(e, "type: ");
    }
    if (access_methods(call->key, resource->name, METHODS_ALL) == 0)
        return ERR(ERR_NOT_AUTHORIZED, "type: the API key has no right on '%.*s'",
                   SPAN_FMT(resource->name));
    *out_resource = resource;
    return NULL;
}

/* Data. ------------------------------------------------------------------------------------ */

static struct err *parse_json(struct call *call, struct span text, struct json_value *out_value)
{
    const struct limits *limits = call->rest->limits;
    const struct json_limits bounds = {(uint32_t)limits->json_depth, (uint32_t)limits->json_nodes};
    struct json_doc *doc = ARENA_NEW(call->arena, struct json_doc);

    TRY(json_parse(text, &bounds, call->arena, doc));
    TRY(json_check_unique(json_root(doc), false, call->arena));
    *out_value = json_root(doc);
    return NULL;
}

/* Of an event in JSON. */
static struct cloud_data data_of(const struct cloudevent *event, struct arena *a)
{
    struct cloud_data data = {.bytes = event->bytes, .type = event->data_type};

    if (!json_exists(event->data) || cloudevents_is_json(event->data_type))
        data.json = event->data;
    else
        data.bytes = json_string(event->data, a);
    return data;
}

static struct err *entities_of(struct call *call, const struct resource *resource,
                               const struct cloud_data *data, struct json_value *out_entities)
{
    struct json_doc *doc;

    if (json_exists(data->json)) {
        *out_entities = data->json;
        return NULL;
    }
    if (data->bytes.n == 0)
        return parse_json(call, SPAN("[]"), out_entities);
    if (cloudevents_is_json(data->type)) {
        struct span text = data->bytes;

        if (data->type.p != NULL)
            TRY(check_charset(data->type, call->arena));
        if (span_starts(text, SPAN("\xef\xbb\xbf"))) /* a byte order mark */
            text = span_sub(text, 3, text.n);
        return parse_json(call, text, out_entities);
    }
    TRY(negotiate_content_type(data->type, true, &call->formats->in));
    if (data->bytes.p != call->request->body.p)
        return ERR(ERR_UNSUPPORTED_CONTENT,
                   "datacontenttype '%.*s' is not JSON, and '%.*s' carries entities",
                   SPAN_FMT(data->type), SPAN_FMT(resource->name));
    doc = ARENA_NEW(call->arena, struct json_doc);
    TRY(crud_body(call, doc));
    TRY(json_check_unique(json_root(doc), false, call->arena));
    *out_entities = json_root(doc);
    return NULL;
}

static struct err *draft_entities(struct call *call, struct resource *resource,
                                  const struct cloud_data *data, struct event_draft *out_draft)
{
    struct json_value entities;

    TRY(entities_of(call, resource, data, &entities));
    return posting_draft_entities(call, resource, entities, out_draft);
}

static struct err *draft_bytes(struct call *call, struct resource *resource,
                               const struct cloud_data *data, struct event_draft *out_draft)
{
    struct span type = data->type;

    if (!json_exists(data->json))
        return posting_draft_bytes(call, resource, type, data->bytes, out_draft);
    if (type.p == NULL)
        type = SPAN("application/json");
    return posting_draft_bytes(call, resource, type, json_text(data->json), out_draft);
}

/* Events. ---------------------------------------------------------------------------------- */

static struct idempotency_event sent_of(const struct posting *p, const struct cloudevent *event,
                                        const struct cloud_data *data, struct span client_id)
{
    bool is_json = json_exists(data->json) || cloudevents_is_json(data->type);
    struct span text =
        json_exists(data->json) ? json_text(data->json) : posting_bare_json(data->bytes);

    return (struct idempotency_event){
        .client_id = client_id,
        .cloud_type = event->type,
        .tenant = p->texts[BY_TENANT],
        .webhook = p->texts[BY_WEBHOOK],
        .content_type = is_json ? span_of(NULL, 0) : data->type,
        .payload = !is_json     ? data->bytes
                   : text.n > 0 ? text
                                : SPAN("[]"),
    };
}

static struct err *raise_event(struct posting *p, const struct cloudevent *event,
                               const struct cloud_data *data)
{
    struct call *call = p->call;
    struct span client_id;
    struct idempotency_event sent;
    struct idempotency_name name;
    struct event_draft draft;
    struct resource *resource;
    bool repeated;

    TRY(cloudevent_client_id(event, call->arena, &client_id));
    sent = sent_of(p, event, data, client_id);
    TRY(posting_answer_repeated(p, &sent, &name, &repeated));
    if (repeated)
        return NULL;
    TRY(find_resource(call, event->type, &resource));
    TRY(resource->is_binary_event ? draft_bytes(call, resource, data, &draft)
                                  : draft_entities(call, resource, data, &draft));
    draft.ce = event->attributes;
    draft.entities = entity_parse(
        cloudevents_entities(event->attributes, draft.entities, call->arena), call->arena);
    return posting_raise(p, &sent, &name, &draft);
}

/* In header fields, with the body as its data. */
static struct err *post_binary(struct posting *p)
{
    struct call *call = p->call;
    const struct request *request = call->request;
    struct header_field *fields =
        ARENA_ARRAY(call->arena, struct header_field, request->header_count);
    struct cloud_data data = {.bytes = request->body};
    struct cloudevent event;
    size_t count = 0;

    for (size_t i = 0; i < request->header_count; i++) {
        struct span name = request->headers[i].name;

        if (cloudevents_is_field(name))
            fields[count++] =
                (struct header_field){span_sub(name, 3, name.n), request->headers[i].value};
    }
    TRY(cloudevent_from_fields(fields, count, request_header(request, SPAN("Content-Type")),
                               call->rest->limits, call->arena, &event));
    data.type = event.data_type;
    return raise_event(p, &event, &data);
}

static struct err *post_json(struct posting *p, struct json_value json)
{
    struct cloudevent event;
    struct cloud_data data;

    TRY(json_check_unique(json, false, p->call->arena)); /* the data's members too */
    TRY(cloudevent_from_json(json, p->call->rest->limits, p->call->arena, &event));
    data = data_of(&event, p->call->arena);
    return raise_event(p, &event, &data);
}

struct err *event_cloud_post(struct posting *p, enum cloudevents_mode mode)
{
    struct span type = request_header(p->call->request, SPAN("Content-Type"));
    struct json_doc doc;

    if (p->texts[BY_CLIENT].p != NULL)
        return ERR(ERR_INVALID_CONDITION_SYNTAX,
                   "ClientId: of a CloudEvent it is made of its source and id");
    if (mode == CLOUDEVENTS_UNREADABLE)
        return ERR(ERR_UNSUPPORTED_CONTENT,
                   "Content-Type '%.*s': CloudEvents are read as %.*s, as %.*s, or from header "
                   "fields",
                   SPAN_FMT(type), SPAN_FMT(cloudevents_structured_type),
                   SPAN_FMT(cloudevents_batch_type));
    if (mode == CLOUDEVENTS_BINARY)
        return post_binary(p);
    TRY(check_charset(type, p->call->arena));
    p->call->formats->in = FORMAT_JSON;
    TRY(crud_body(p->call, &doc));
    if (mode != CLOUDEVENTS_BATCH)
        return post_json(p, json_root(&doc));
    if (json_type(json_root(&doc)) != JSON_ARRAY)
        return ERR(ERR_INVALID_ENTITY, "a batch of CloudEvents is an array of JSON");
    return posting_each(p, json_root(&doc), post_json, EVENT_UNITS);
}

struct err *event_cloud_entities(struct events *events, struct event *event, struct arena *a,
                                 struct json_value *out_entities)
{
    struct json_value entities = {NULL, NULL};
    struct blob *payload;

    if (!event->is_binary) {
        TRY(payload_get(events_payloads(events), event, &payload));
        entities = entity_parse(arena_copy(a, blob_span(payload)), a);
        blob_unref(payload);
    }
    if (event->ce.n > 0)
        entities = entity_parse(cloudevents_entities(event->ce, entities, a), a);
    *out_entities = entities;
    return NULL;
}
