/* What webhooks send: a `webhooks` entry an event resource. */
#include "openapi/openapi_inner.h"
#include "query/shape.h"
#include "resource/resource.h"
#include "webhook/webhook_settings.h"
#include "json/json.h"

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
    if (!d->has_webhooks)
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
    buf_add_str(b, "},\"timestamp\":{\"type\":\"string\",\"format\":\"date-time\"},\"data\":");
    openapi_add_one_or_several(d, OPENAPI_PAYLOAD, event->name);
    buf_add_str(b, "}}");
}

/* In structured mode. */
static void add_cloudevent(struct openapi *d, const struct resource *event)
{
    struct buf *b = d->out;

    buf_add_str(b, "{\"title\":\"");
    buf_add(b, webhook_format_names.values[WEBHOOK_CLOUD_STRUCTURED]);
    buf_add_str(b, "\",\"type\":\"object\",\"required\":[\"specversion\",\"id\",\"source\","
                   "\"type\"],\"properties\":{\"specversion\":{\"const\":\"1.0\"},\"id\":{\"type\":"
                   "\"string\"},\"source\":{\"type\":\"string\",\"format\":\"uri-reference\"},"
                   "\"type\":{\"const\":");
    json_add_string(b, event->cloudevents_type.p != NULL ? event->cloudevents_type : event->name);
    buf_add_str(b, "},\"time\":{\"type\":\"string\",\"format\":\"date-time\"},\"data\":");
    openapi_add_one_or_several(d, OPENAPI_PAYLOAD, event->name);
    buf_add_str(b, "}}");
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
    buf_add_str(b, "]},");
    openapi_add_payload_example(d, event);
    buf_add_str(b, "},\"application/cloudevents+json\":{\"schema\":");
    add_cloudevent(d, event);
    buf_add_str(b, "},\"application/x-ndjson\":{\"schema\":{\"type\":\"string\"}},"
                   "\"text/csv\":{\"schema\":{\"type\":\"string\"}}}}");
}

static void add_webhook(struct openapi *d, const struct resource *event)
{
    struct span mark = openapi_mark(d, event->name);
    struct buf *b = d->out;

    json_add_name(b, event->name);
    buf_printf(b,
               "{\"post\":{\"operationId\":\"webhook%.*s_%.*s\",\"tags\":[\"%.*s\"],"
               "\"summary\":\"A delivery of an event\",\"security\":[]",
               SPAN_FMT(mark), SPAN_FMT(event->name), SPAN_FMT(event->name));
    json_add_name(b, SPAN("description"));
    json_add_string(b, event->description.n > 0 ? event->description : event->name);
    buf_add_str(b, ",\"parameters\":[");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        openapi_refer_to_parameter(b, fields[i].name);
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
