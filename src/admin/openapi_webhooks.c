/* What webhooks send, a `webhooks` entry an event resource; and examples of bodies, which can be
 * sent as they stand. */
#include "base/json.h"
#include "hooks/webhook.h"
#include "openapi.h"
#include "query/shape.h"
#include "rest/rest.h"

/* ---- webhooks ---- */

static const struct field {
    struct span name;
    const char *type, *meaning;
    bool always;
} fields[] = {
    {SPAN_INIT("webhook-id"), "string", "Id of the event, the same on every attempt", true},
    {SPAN_INIT("webhook-timestamp"), "integer", "Seconds since 1970, of this attempt", true},
    {SPAN_INIT("webhook-signature"), "string", "Signatures, when the webhook has secrets", false},
    {SPAN_INIT("Svc-webhook-id"), "string", "Id of the webhook", true},
    {SPAN_INIT("Svc-event"), "string", "The event resource", true},
    {SPAN_INIT("Svc-attempt"), "integer", "1 for the first attempt", true},
    {SPAN_INIT("Svc-depth"), "integer", "How many events led to this one", true},
};

void openapi_add_webhook_parameters(struct openapi *d)
{
    if (!d->has_events)
        return;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        json_add_name(d->out, fields[i].name);
        buf_printf(d->out,
                   "{\"name\":\"%.*s\",\"in\":\"header\",\"required\":%s,\"description\":\"%s\","
                   "\"schema\":{\"type\":\"%s\"}}",
                   SPAN_FMT(fields[i].name), fields[i].always ? "true" : "false", fields[i].meaning,
                   fields[i].type);
    }
}

/* The object itself as data when the payload is one. */
static void add_standard(struct openapi *d, const struct resource *event)
{
    struct buf *b = d->out;

    buf_add_str(b, "{\"title\":\"");
    buf_add(b, webhook_format_names.values[WEBHOOK_STANDARD]);
    buf_add_str(b, "\",\"type\":\"object\",\"required\":[\"type\",\"timestamp\",\"data\"],"
                   "\"properties\":{\"type\":{\"const\":");
    json_add_string(b, event->name);
    buf_add_str(b, "},\"timestamp\":{\"type\":\"string\",\"format\":\"date-time\"},\"data\":{"
                   "\"oneOf\":[");
    openapi_add_reference(d, OPENAPI_PAYLOAD, event->name);
    buf_add_str(b, ",{\"type\":\"array\",\"items\":");
    openapi_add_reference(d, OPENAPI_PAYLOAD, event->name);
    buf_add_str(b, "}]}}}");
}

static void add_sent_body(struct openapi *d, const struct resource *event)
{
    struct buf *b = d->out;

    buf_add_str(b, ",\"requestBody\":{\"required\":true,\"content\":{");
    if (event->is_binary_event) {
        json_add_string(b, event->content_type.n > 0 ? event->content_type : SPAN("*/*"));
        buf_add_str(b, ":{}}}");
        return;
    }
    buf_add_str(b, "\"application/json\":{\"schema\":{\"oneOf\":[{\"title\":\"");
    buf_add(b, webhook_format_names.values[WEBHOOK_ARRAY]);
    buf_add_str(b, "\",\"type\":\"array\",\"items\":");
    openapi_add_reference(d, OPENAPI_PAYLOAD, event->name);
    buf_add_str(b, "},");
    add_standard(d, event);
    buf_add_str(b, "]}},\"application/x-ndjson\":{\"schema\":{\"type\":\"string\"}},"
                   "\"text/csv\":{\"schema\":{\"type\":\"string\"}}}}");
}

static void add_webhook(struct openapi *d, const struct resource *event)
{
    struct buf *b = d->out;

    json_add_name(b, event->name);
    buf_printf(b,
               "{\"post\":{\"operationId\":\"webhook_%.*s\",\"tags\":[\"%.*s\"],"
               "\"summary\":\"A delivery of an event\",\"security\":[]",
               SPAN_FMT(event->name), SPAN_FMT(event->name));
    json_add_name(b, SPAN("description"));
    json_add_string(b, event->description.n > 0 ? event->description : event->name);
    buf_add_str(b, ",\"parameters\":[");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        buf_printf(b, "%s{\"$ref\":\"#/components/parameters/%.*s\"}", i > 0 ? "," : "",
                   SPAN_FMT(fields[i].name));
    buf_add_char(b, ']');
    add_sent_body(d, event);
    buf_add_str(b, ",\"responses\":{\"2XX\":{\"description\":\"It is delivered\"},"
                   "\"410\":{\"description\":\"The webhook is paused, the delivery is dead\"},"
                   "\"429\":{\"description\":\"The webhook waits as long as Retry-After says\"},"
                   "\"default\":{\"description\":\"It is sent again, by the schedule\"}}}}");
}

void openapi_add_webhooks(struct openapi *d)
{
    struct openapi_resource r;

    json_add_name(d->out, SPAN("webhooks"));
    buf_add_char(d->out, '{');
    for (size_t place = 0; openapi_next(d, &place, &r);)
        if (r.resource->kind == KIND_EVENT)
            add_webhook(d, r.resource);
    buf_add_char(d->out, '}');
}

/* ---- examples ---- */

/* Of built-in resources; `%` stands for an event resource, and `$` for an example of its payload.
 */
static const struct own_example {
    struct span resource;
    enum method method;
    const char *json;
} own_examples[] = {
    {SPAN_INIT("Svc.Admin.ApiKey"), METHOD_POST,
     "{\"Name\":\"example\",\"AllowAccess\":[{\"Resources\":[\"Svc.AvailableResource\"],"
     "\"Methods\":[\"GET\"]}]}"},
    {SPAN_INIT("Svc.Admin.Delivery"), METHOD_PATCH, "{\"State\":\"Pending\"}"},
    {SPAN_INIT("Svc.Admin.Resource"), METHOD_POST,
     "{\"Name\":\"Example.Animal\",\"Kind\":\"EntityResource\",\"Properties\":[{\"Name\":\"Name\","
     "\"Type\":\"string\",\"Required\":true}]}"},
    {SPAN_INIT("Svc.Admin.Resource"), METHOD_PATCH, "{\"Description\":\"Animals\"}"},
    {SPAN_INIT("Svc.Admin.Webhook"), METHOD_POST,
     "{\"Destination\":\"http://127.0.0.1:9000/hook\",\"EventSelector\":\"/%\"}"},
    {SPAN_INIT("Svc.Admin.Webhook"), METHOD_PATCH, "{\"IsPaused\":true}"},
    {SPAN_INIT("Svc.Aggregator"), METHOD_POST, "{\"Resources\":\"REPORT /_\"}"},
    {SPAN_INIT("Svc.Echo"), METHOD_POST, "{\"Answer\":42}"},
    {SPAN_INIT("Svc.Event"), METHOD_POST, "{\"Resource\":\"%\",\"Payload\":$}"},
    {SPAN_INIT("Svc.Explain"), METHOD_POST,
     "{\"EventSelector\":\"/%\",\"Resource\":\"%\",\"Payload\":$}"},
};

static const char *const samples[TYPE_COUNT] = {
    [TYPE_ANY] = "\"text\"", [TYPE_STRING] = "\"text\"",
    [TYPE_INTEGER] = "1",    [TYPE_NUMBER] = "1.5",
    [TYPE_BOOLEAN] = "true", [TYPE_DATETIME] = "\"2026-01-31T12:00:00Z\"",
    [TYPE_OBJECT] = "{}",    [TYPE_ARRAY] = "[]",
};

/* A value for each property that a client writes. Whose it is, the key says. */
static void add_sample(struct openapi *d, const struct shape *shape)
{
    buf_add_char(d->out, '{');
    for (size_t i = 0; i < shape->count && openapi_may_go_on(d); i++) {
        const struct property *p = &shape->properties[i];

        if ((p->flags & PROPERTY_READ_ONLY) != 0 || span_ieq(p->name, SPAN("Tenant")))
            continue;
        json_add_name(d->out, p->name);
        buf_add_str(d->out, samples[p->type]);
    }
    buf_add_char(d->out, '}');
}

static const struct resource *first_event(struct openapi *d)
{
    struct openapi_resource r;

    for (size_t place = 0; openapi_next(d, &place, &r);)
        if (openapi_has(&r, OPENAPI_PAYLOAD))
            return r.resource;
    return NULL;
}

static void add_own(struct openapi *d, const char *json)
{
    const struct resource *event = NULL;
    bool needs_event = strpbrk(json, "%$") != NULL;

    if (needs_event && d->has_entity_events)
        event = first_event(d);
    if (needs_event && event == NULL)
        return;
    json_add_name(d->out, SPAN("example"));
    for (const char *c = json; *c != '\0'; c++) {
        if (*c == '%' && event != NULL)
            buf_add(d->out, event->name);
        else if (*c == '$' && event != NULL)
            add_sample(d, resource_payload_shape(d->call->rest->resources, event));
        else
            buf_add_char(d->out, *c);
    }
}

void openapi_add_example(struct openapi *d, const struct openapi_resource *r, enum method method)
{
    const struct resource *resource = r->resource;

    for (size_t i = 0; i < ARRAY_LEN(own_examples); i++)
        if (own_examples[i].method == method && span_eq(own_examples[i].resource, resource->name))
            add_own(d, own_examples[i].json);
    if (resource->declaration == NULL)
        return;
    json_add_name(d->out, SPAN("example"));
    add_sample(d, resource->shape);
}
