/* Examples of what is sent and answered. What is sent can be sent as it stands. The answer has the
 * same values, and all that the server adds, in the order of the table of properties. */
#include "openapi/openapi_inner.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"

#define EXAMPLE_ID "\"01a205ab-ae0c-7514-a42e-1c7bc266a3a7\""
#define EXAMPLE_TIME "\"2026-01-31T12:00:00.0000000Z\""

/* Of built-in resources; `%` stands for an event resource, and `$` for an example of its payload.
 * `answer` is given where it is not what the table of properties makes of the same. */
static const struct own_example {
    struct span resource;
    enum method method;
    const char *json, *answer;
} own_examples[] = {
    {SPAN_INIT("Svc.Admin.ApiKey"), METHOD_POST,
     "{\"Name\":\"example\",\"AllowAccess\":[{\"Resources\":[\"Svc.AvailableResource\"],"
     "\"Methods\":[\"GET\"]}]}",
     NULL},
    {SPAN_INIT("Svc.Admin.ApiKey"), METHOD_PATCH, "{\"ExpiresAt\":\"2999-01-31T00:00:00Z\"}", NULL},
    {SPAN_INIT("Svc.Admin.Delivery"), METHOD_PATCH, "{\"State\":\"Pending\"}", NULL},
    {SPAN_INIT("Svc.Admin.Resource"), METHOD_POST,
     "{\"Name\":\"Example.Animal\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"Name\","
     "\"Type\":\"string\",\"Required\":true,\"Description\":\"\"}]}",
     NULL},
    {SPAN_INIT("Svc.Admin.Resource"), METHOD_PATCH, "{\"Description\":\"Animals\"}", NULL},
    {SPAN_INIT("Svc.Admin.Webhook"), METHOD_POST,
     "{\"Destination\":\"http://127.0.0.1:9000/hook\",\"EventSelector\":\"/%\"}", NULL},
    {SPAN_INIT("Svc.Admin.Webhook"), METHOD_PATCH, "{\"IsPaused\":true}", NULL},
    {SPAN_INIT("Svc.Aggregator"), METHOD_POST, "{\"Resources\":\"REPORT /_\"}",
     "[{\"Resources\":12}]"},
    {SPAN_INIT("Svc.Echo"), METHOD_POST, "{\"Answer\":42}", "[{\"Answer\":42}]"},
    {SPAN_INIT("Svc.Event"), METHOD_POST, "{\"Resource\":\"%\",\"Payload\":$}",
     "[{\"Id\":" EXAMPLE_ID ",\"Resource\":\"%\",\"Time\":" EXAMPLE_TIME
     ",\"Webhooks\":0,\"ObjectNo\":1}]"},
    {SPAN_INIT("Svc.Explain"), METHOD_POST,
     "{\"EventSelector\":\"/%\",\"Resource\":\"%\",\"Payload\":$}",
     "[{\"Matches\":true,\"Reason\":\"All conditions hold.\",\"Selector\":\"/%\","
     "\"Conditions\":[]}]"},
    {SPAN_INIT("Svc.Health"), METHOD_GET, NULL, "{\"Status\":\"ok\"}"},
};

static const char *const samples[TYPE_COUNT] = {
    [TYPE_ANY] = "\"text\"", [TYPE_STRING] = "\"text\"",
    [TYPE_INTEGER] = "1",    [TYPE_NUMBER] = "1.5",
    [TYPE_BOOLEAN] = "true", [TYPE_DATETIME] = "\"2026-01-31T12:00:00Z\"",
    [TYPE_OBJECT] = "{}",    [TYPE_ARRAY] = "[]",
};

/* Values that the server gives, by what they are called. */
static const struct own_value {
    struct span name;
    const char *json;
} own_values[] = {
    {SPAN_INIT("Action"), "\"GET\""},
    {SPAN_INIT("AllowAccess"),
     "[{\"Resources\":[\"Svc.AvailableResource\"],\"Methods\":[\"GET\"]}]"},
    {SPAN_INIT("Body"), "\"\""},
    {SPAN_INIT("BodyByteCount"), "64"},
    {SPAN_INIT("Code"), "110"},
    {SPAN_INIT("ContentType"), "\"application/json\""},
    {SPAN_INIT("CreatedBy"), "\"admin\""},
    {SPAN_INIT("DeliveryId"), EXAMPLE_ID},
    {SPAN_INIT("Destination"), "\"http://127.0.0.1:9000/hook\""},
    {SPAN_INIT("Error"), "null"},
    {SPAN_INIT("ErrorCode"), "\"UnknownResource\""},
    {SPAN_INIT("ErrorMessage"), "null"},
    {SPAN_INIT("Event"), "\"Example.Happened\""},
    {SPAN_INIT("EventId"), EXAMPLE_ID},
    {SPAN_INIT("Id"), EXAMPLE_ID},
    {SPAN_INIT("Key"), "\"svck_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwQx7cVd0nT5e\""},
    {SPAN_INIT("Kind"), "\"EntityResource\""},
    {SPAN_INIT("LastError"), "null"},
    {SPAN_INIT("LastStatus"), "200"},
    {SPAN_INIT("LastUsedTime"), "null"},
    {SPAN_INIT("Message"), "\"Svc could not locate any resource by 'Example.Animal'.\""},
    {SPAN_INIT("Method"), "\"POST\""},
    {SPAN_INIT("Methods"), "[\"GET\",\"REPORT\",\"HEAD\"]"},
    {SPAN_INIT("NextAttemptTime"), "null"},
    {SPAN_INIT("ObjectNo"), "1"},
    {SPAN_INIT("Owner"), "\"admin\""},
    {SPAN_INIT("Resource"), "\"Example.Happened\""},
    {SPAN_INIT("ResourceName"), "\"Example.Animal\""},
    {SPAN_INIT("ResponseBody"), "\"\""},
    {SPAN_INIT("StatusCode"), "200"},
    {SPAN_INIT("Tenant"), "null"},
    {SPAN_INIT("Uri"), "\"/Example.Animal/_/_\""},
    {SPAN_INIT("WebhookId"), EXAMPLE_ID},
};

/* A value for each property that a client writes. Whose it is, the key says. */
static void add_sample(struct openapi *d, struct buf *b, const struct shape *shape)
{
    buf_add_char(b, '{');
    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++) {
        const struct property *p = &shape->properties[i];

        if ((p->flags & PROPERTY_READ_ONLY) != 0 || span_ieq(p->name, SPAN("Tenant")))
            continue;
        json_add_name(b, p->name);
        buf_add_str(b, samples[p->type]);
    }
    buf_add_char(b, '}');
}

struct span openapi_event_example(struct openapi *d, const char *json)
{
    const struct resource *event = d->first_event;
    struct buf b;

    if (json == NULL || (event == NULL && strpbrk(json, "%$") != NULL))
        return span_of(NULL, 0);
    buf_init_arena(&b, d->call->arena);
    for (const char *c = json; *c != '\0'; c++) {
        if (*c == '%')
            buf_add(&b, event->name);
        else if (*c == '$')
            add_sample(d, &b, resource_payload_shape(d->call->rest->resources, event));
        else
            buf_add_char(&b, *c);
    }
    return buf_span(&b);
}

void openapi_add_payload_example(struct openapi *d, const struct resource *event)
{
    buf_add_str(d->out, "\"example\":[");
    add_sample(d, d->out, resource_payload_shape(d->call->rest->resources, event));
    buf_add_char(d->out, ']');
}

static const struct own_example *own_of(const struct resource *resource, enum method method)
{
    for (size_t i = 0; i < ARRAY_LEN(own_examples); i++)
        if (own_examples[i].method == method && span_eq(own_examples[i].resource, resource->name))
            return &own_examples[i];
    return NULL;
}

/* The first event stands in the examples of Svc.Event. */
static bool can_be_sent(const struct openapi *d, const struct resource *resource)
{
    return d->first_event == NULL || openapi_is_raised(d->first_event) ||
           !span_eq(resource->name, SPAN("Svc.Event"));
}

/* What can be sent; the absent span when there is nothing. */
static struct span sent_example(struct openapi *d, const struct resource *resource,
                                enum method method)
{
    const struct own_example *own = own_of(resource, method);
    struct buf b;

    if (own == NULL && method == METHOD_PUT)
        own = own_of(resource, METHOD_POST);
    if (resource->declaration == NULL)
        return own == NULL || !can_be_sent(d, resource) ? span_of(NULL, 0)
                                                        : openapi_event_example(d, own->json);
    buf_init_arena(&b, d->call->arena);
    add_sample(d, &b, resource->shape);
    return buf_span(&b);
}

void openapi_add_example(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    struct span sent = sent_example(d, r->resource, method);

    if (sent.p == NULL)
        return;
    json_add_name(d->out, SPAN("example"));
    buf_add(d->out, sent);
}

/* ---- answers ---- */

static const char *own_value(const struct property *p)
{
    for (size_t i = 0; i < ARRAY_LEN(own_values); i++)
        if (span_eq(own_values[i].name, p->name))
            return own_values[i].json;
    return NULL;
}

static void add_value(struct buf *b, const struct property *p, struct json_value sent)
{
    bool is_own = (p->flags & PROPERTY_READ_ONLY) != 0;
    const char *own = own_value(p);

    if (json_exists(sent))
        json_add_compact(b, sent);
    else if (own != NULL)
        buf_add_str(b, own);
    else if (p->default_json.n > 0)
        buf_add(b, p->default_json);
    else if (p->values != NULL)
        json_add_string(b, p->values->values[0]);
    else if (is_own && p->type == TYPE_DATETIME)
        buf_add_str(b, EXAMPLE_TIME);
    else if (is_own || (p->flags & PROPERTY_REQUIRED) != 0)
        buf_add_str(b, samples[p->type]);
    else
        buf_add_str(b, "null");
}

static void add_shown(struct openapi *d, const struct shape *shape, struct json_value sent)
{
    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++) {
        const struct property *p = &shape->properties[i];

        if ((p->flags & (PROPERTY_HIDDEN | PROPERTY_UNSHOWN | PROPERTY_SENT)) != 0)
            continue;
        json_add_name(d->out, p->name);
        add_value(d->out, p, json_member(sent, p->name));
    }
}

/* An entity as it is shown, and with `answered` what is shown besides in the answer to a POST. */
static void add_shown_entity(struct openapi *d, const struct resource *resource,
                             const struct shape *answered)
{
    struct json_value none = {NULL, NULL};
    struct span sent = sent_example(d, resource, METHOD_POST);

    buf_add_char(d->out, '{');
    add_shown(d, resource->shape, sent.p != NULL ? entity_parse(sent, d->call->arena) : none);
    if (answered != NULL)
        add_shown(d, answered, none);
    buf_add_char(d->out, '}');
}

void openapi_add_answer_example(struct openapi *d, const struct openapi_resource *r,
                                enum method method)
{
    const struct resource *resource = r->resource;
    const struct own_example *own = own_of(resource, method);
    struct span answer = own == NULL ? span_of(NULL, 0) : openapi_event_example(d, own->answer);

    if (answer.p != NULL) {
        json_add_name(d->out, SPAN("example"));
        buf_add(d->out, answer);
    } else if (method == METHOD_POST && resource->ops->answered != NULL && !r->asks) {
        buf_add_str(d->out, ",\"example\":[");
        add_shown_entity(d, resource, resource->ops->answered);
        buf_add_char(d->out, ']');
    } else if (openapi_has(r, OPENAPI_ANSWER) && !r->asks) {
        buf_add_str(d->out, ",\"examples\":{\"one\":{\"$ref\":\"#/components/examples/");
        openapi_add_schema_name(d, OPENAPI_ANSWER, resource->name);
        buf_add_str(d->out, "\"}}");
    }
}

/* Is it referred to? */
static bool has_shared(const struct openapi_resource *r)
{
    const struct resource *resource = r->resource;
    unsigned shown = r->shown;

    if (!openapi_has(r, OPENAPI_ANSWER) || r->asks || resource->kind != KIND_ENTITY)
        return false;
    for (enum method method = 0; method < METHOD_COUNT; method++) {
        const struct own_example *own = own_of(resource, method);

        if ((own != NULL && own->answer != NULL) ||
            (method == METHOD_POST && resource->ops->answered != NULL))
            shown &= ~METHOD_BIT(method);
    }
    return shown != 0;
}

void openapi_add_answer_examples(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);) {
        if (!has_shared(&r))
            continue;
        json_add_comma(d->out);
        buf_add_char(d->out, '"');
        openapi_add_schema_name(d, OPENAPI_ANSWER, r.resource->name);
        buf_add_str(d->out, "\":{\"value\":[");
        add_shown_entity(d, r.resource, NULL);
        buf_add_str(d->out, "]}");
    }
}
