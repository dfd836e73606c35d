/* Svc.Event: applications raise events here, and read back those that are kept (protocol.md, 7). */
#include "base/datetime.h"
#include "base/json.h"
#include "service/builtin.h"
#include "service/crud.h"
#include "service/payload.h"
#include "service/rendered.h"
#include "service/retention.h"
#include "service/service.h"

static const struct property properties[] = {
    ID_PROPERTY("ID of the event: the webhook-id of its deliveries"),
    {.name = SPAN_INIT("Resource"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .meaning = SPAN_INIT("The event resource")},
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When it was raised"),
    READ_ONLY_PROPERTY("ContentType", TYPE_STRING, 0, "Media type of the payload"),
    {.name = SPAN_INIT("Payload"),
     .type = TYPE_ANY,
     .meaning = SPAN_INIT("An entity, or an array of them; binary payloads show as base64")},
    READ_ONLY_PROPERTY("Webhooks", TYPE_INTEGER, 0, "Number of webhooks that it matched"),
    OBJECT_NO_PROPERTY,
};

static const struct shape shape = {properties, ARRAY_LEN(properties), false};

static void *next_kept(struct rendered *r)
{
    struct events *events = r->call->service->events;

    r->cursor = r->cursor == NULL ? events_first(events) : events_next(events, r->cursor);
    return r->cursor;
}

static void *next_single(struct rendered *r)
{
    return TAKE(r->cursor);
}

static void add_json(const void *object, struct buf *b)
{
    event_add_json(object, b);
}

static struct err *open_source(struct call *call)
{
    struct events *events = call->service->events;
    struct uuid id;

    call_shows(call, events_version(events));
    if (rendered_wanted_id(call, SPAN("Id"), &id))
        rendered_open(call, next_single, add_json)->cursor = events_find(events, &id);
    else
        rendered_open(call, next_kept, add_json);
    return NULL;
}

/* Raising. --------------------------------------------------------------------------------- */

static struct err *find_event_resource(struct call *call, struct span name,
                                       struct resource **out_resource)
{
    struct resource *resource;

    TRY(resource_find(&call->service->resources, name, &resource));
    if (resource->kind != KIND_EVENT)
        return ERR(ERR_WRONG_RESOURCE_KIND, "'%.*s' is of kind %.*s, not EventResource",
                   SPAN_FMT(resource->name), SPAN_FMT(resource_kind_names.values[resource->kind]));
    if (access_methods(call->key, resource->name, METHODS_ALL) == 0)
        return ERR(ERR_NOT_AUTHORIZED, "the API key has no right on '%.*s'",
                   SPAN_FMT(resource->name));
    *out_resource = resource;
    return NULL;
}

static struct err *check_entities(const struct shape *of, struct json_value payload,
                                  struct arena *a)
{
    uint32_t place = 0;

    if (json_type(payload) == JSON_OBJECT)
        return schema_check(of, payload, a);
    for (struct json_value v = json_first(payload); json_exists(v); v = json_next(payload, v)) {
        struct err *e = schema_check(of, v, a);

        if (e != NULL)
            return err_prefix(e, "Payload, entity %u: ", place);
        place++;
    }
    return NULL;
}

static struct err *draft_of_entities(struct call *call, struct resource *resource,
                                     struct json_value payload, struct event_draft *out_draft)
{
    struct event_draft draft = {.resource = resource, .entities = payload};

    if (resource->is_binary_event)
        return ERR(ERR_INVALID_ENTITY,
                   "'%.*s' has a binary payload: POST its bytes to /Svc.Event/Resource=%.*s",
                   SPAN_FMT(resource->name), SPAN_FMT(resource->name));
    TRY(payload_from_json(payload, call->arena, &draft.payload));
    TRY(check_entities(resource_payload_shape(&call->service->resources, resource), payload,
                       call->arena));
    draft.depth = call->request->depth;
    *out_draft = draft;
    return NULL;
}

/* The answer's entity: what the client needs to follow the event. */
static struct span answer_of(struct call *call, const struct resource *resource,
                             const struct event_raised *raised)
{
    struct buf b;
    struct span json;

    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, "{\"Id\":\"");
    uuid_add(&b, &raised->id);
    buf_add_str(&b, "\",\"Resource\":");
    json_add_string(&b, resource->name);
    buf_add_str(&b, ",\"Time\":\"");
    datetime_add(&b, raised->time_unix_ns);
    buf_printf(&b, "\",\"Webhooks\":%u,\"ObjectNo\":%llu}", raised->webhooks,
               (unsigned long long)raised->object_no);
    json = arena_copy(call->arena, buf_span(&b));
    buf_done(&b);
    return json;
}

static struct err *raise_draft(struct call *call, const struct event_draft *draft,
                               struct span *out_answer)
{
    struct event_raised raised;

    TRY(event_raise(call->service, draft, &call->change, &raised));
    *out_answer = answer_of(call, draft->resource, &raised);
    return NULL;
}

static struct err *raise_described(struct call *call, struct json_value input,
                                   struct span *out_answer)
{
    struct resource *resource;
    struct event_draft draft;
    struct json_value name = json_member_fold(input, SPAN("Resource"));
    struct json_value payload = json_member_fold(input, SPAN("Payload"));

    TRY(schema_check(&shape, input, call->arena));
    if (json_type(name) != JSON_STRING)
        return ERR(ERR_INVALID_ENTITY, "Resource is missing");
    if (!json_exists(payload))
        return ERR(ERR_INVALID_ENTITY, "Payload is missing");
    TRY(find_event_resource(call, json_string(name, call->arena), &resource));
    TRY(draft_of_entities(call, resource, payload, &draft));
    return raise_draft(call, &draft, out_answer);
}

/* `{"Resource":…,"Payload":…}`, or an array of those: all or none. */
static struct err *post_described(struct call *call)
{
    struct json_doc doc;
    struct json_value root;
    struct span *answers;
    size_t count = 0;

    TRY(negotiate_content_type(request_header(call->request, SPAN("Content-Type")), true,
                               &call->in));
    TRY(crud_body(call, &doc));
    root = json_root(&doc);
    if (json_type(root) != JSON_ARRAY) {
        answers = ARENA_ARRAY(call->arena, struct span, 1);
        TRY(raise_described(call, root, &answers[count++]));
    } else {
        answers = ARENA_ARRAY(call->arena, struct span, json_count(root));
        for (struct json_value v = json_first(root); json_exists(v); v = json_next(root, v)) {
            struct err *e = raise_described(call, v, &answers[count]);

            if (e != NULL)
                return err_prefix(e, "entity %zu: ", count);
            count++;
        }
    }
    TRY(call_apply(call));
    return crud_answer_changed(call, 201, "inserted into", answers, count);
}

static struct err *draft_of_bytes(struct call *call, struct resource *resource,
                                  struct event_draft *out_draft)
{
    struct span type = request_header(call->request, SPAN("Content-Type"));
    struct event_draft draft = {.resource = resource, .depth = call->request->depth};

    if (type.p == NULL)
        type = resource->content_type;
    if (!negotiate_is_media_type(type))
        return ERR(ERR_UNSUPPORTED_CONTENT, "Content-Type '%.*s' is no media type", SPAN_FMT(type));
    draft.content_type = type;
    draft.payload = call->request->body;
    *out_draft = draft;
    return NULL;
}

/* The body is the payload itself; the resource is named by the condition `Resource=`. */
static struct err *post_payload(struct call *call, struct span name)
{
    struct resource *resource;
    struct event_draft draft;
    struct json_doc doc;
    struct span answer;

    TRY(find_event_resource(call, name, &resource));
    if (resource->is_binary_event) {
        TRY(draft_of_bytes(call, resource, &draft));
    } else {
        TRY(negotiate_content_type(request_header(call->request, SPAN("Content-Type")), true,
                                   &call->in));
        TRY(crud_body(call, &doc));
        TRY(draft_of_entities(call, resource, json_root(&doc), &draft));
    }
    TRY(raise_draft(call, &draft, &answer));
    TRY(call_apply(call));
    return crud_answer_changed(call, 201, "inserted into", &answer, 1);
}

static struct err *post(struct call *call)
{
    const struct literal *name = conditions_equal_to(&call->query.conditions, SPAN("Resource"));
    struct err *e;

    if (name == NULL)
        e = post_described(call);
    else
        e = post_payload(call, name->text);
    if (e == NULL)
        retention_wake(call->service);
    return e;
}

static void forget(struct change *change, const void *object)
{
    event_forget(change, object);
}

static const struct resource_ops ops = {
    .open = open_source,
    .post = post,
    .forget = forget,
    .reads_raw_body = true,
};

const struct resource_definition res_event = {
    .name = SPAN_INIT("Svc.Event"),
    .description = SPAN_INIT("Raises events, and keeps them for a while"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
};
