/* Svc.Admin.WebhookLog: one entry an attempt (protocol.md, section 8). */
#include "base/datetime.h"
#include "base/json.h"
#include "service/builtin.h"
#include "service/status.h"
#include "service/webhook_log.h"

#define READ_ONLY(property_name, property_type, more_flags, text)                                  \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type,                                   \
        .flags = PROPERTY_READ_ONLY | (more_flags), .meaning = SPAN_INIT(text)                     \
    }

static const struct property properties[] = {
    READ_ONLY("Id", TYPE_STRING, PROPERTY_ENTITY, "ID of the entry"),
    READ_ONLY("WebhookId", TYPE_STRING, PROPERTY_INDEXED, "The webhook"),
    READ_ONLY("DeliveryId", TYPE_STRING, PROPERTY_INDEXED, "The delivery"),
    READ_ONLY("EventId", TYPE_STRING, PROPERTY_INDEXED, "The event"),
    READ_ONLY("Attempt", TYPE_INTEGER, 0, "Number of the attempt, from 1"),
    READ_ONLY("Method", TYPE_STRING, 0, "Method of the request"),
    READ_ONLY("Destination", TYPE_STRING, 0, "Where it was sent"),
    READ_ONLY("Time", TYPE_DATETIME, 0, "When the attempt began"),
    READ_ONLY("IsSuccess", TYPE_BOOLEAN, 0, "Was it answered with a 2xx status?"),
    READ_ONLY("ResponseStatus", TYPE_STRING, 0, "Status of the answer in words"),
    READ_ONLY("StatusCode", TYPE_INTEGER, 0, "Status of the answer, null without one"),
    READ_ONLY("Error", TYPE_STRING, 0, "What went wrong, in words"),
    READ_ONLY("BodyByteCount", TYPE_INTEGER, 0, "Bytes of the body sent"),
    READ_ONLY("DurationMs", TYPE_INTEGER, 0, "Milliseconds of the whole attempt"),
    READ_ONLY("DnsMs", TYPE_INTEGER, 0, "Milliseconds until the name was resolved"),
    READ_ONLY("ConnectMs", TYPE_INTEGER, 0, "Milliseconds until connected"),
    READ_ONLY("TlsMs", TYPE_INTEGER, 0, "Milliseconds until TLS was set up"),
    READ_ONLY("FirstByteMs", TYPE_INTEGER, 0, "Milliseconds until the answer began"),
    READ_ONLY("ResponseBody", TYPE_STRING, 0, "The first 4 KiB of the answer's body"),
    READ_ONLY("ObjectNo", TYPE_INTEGER, PROPERTY_ENTITY, "Serial number in the store"),
};

static const struct shape shape = {properties, ARRAY_LEN(properties), false};
static const struct resource_ops ops = {.open = NULL};

const struct resource_definition res_webhook_log = {
    .name = SPAN_INIT("Svc.Admin.WebhookLog"),
    .description = SPAN_INIT("Attempts to deliver events, and how they went"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_DELETE),
    .shape = &shape,
    .ops = &ops,
    .is_stored = true,
};

static void add_id(struct buf *b, struct span name, const struct uuid *id)
{
    json_add_name(b, name);
    buf_add_char(b, '"');
    uuid_add(b, id);
    buf_add_char(b, '"');
}

static void add_text(struct buf *b, struct span name, struct span text)
{
    json_add_name(b, name);
    if (text.n == 0)
        buf_add_str(b, "null");
    else
        json_add_string(b, text);
}

static void add_number(struct buf *b, struct span name, uint64_t number)
{
    json_add_name(b, name);
    buf_add_u64(b, number);
}

static void add_answer(struct buf *b, const struct webhook_log_entry *entry)
{
    json_add_name(b, SPAN("IsSuccess"));
    buf_add_str(b, entry->is_success ? "true" : "false");
    if (entry->status == 0) {
        buf_add_str(b, ",\"ResponseStatus\":null,\"StatusCode\":null");
    } else {
        add_text(b, SPAN("ResponseStatus"), span_str(status_reason(entry->status)));
        add_number(b, SPAN("StatusCode"), (uint64_t)entry->status);
    }
    add_text(b, SPAN("Error"), entry->error);
}

static void add_json(struct buf *b, const struct webhook_log_entry *entry, const struct uuid *id,
                     uint64_t object_no)
{
    buf_add_char(b, '{');
    add_id(b, SPAN("Id"), id);
    add_id(b, SPAN("WebhookId"), &entry->webhook);
    add_id(b, SPAN("DeliveryId"), &entry->delivery);
    add_id(b, SPAN("EventId"), &entry->event);
    add_number(b, SPAN("Attempt"), entry->attempt);
    add_text(b, SPAN("Method"), entry->method);
    add_text(b, SPAN("Destination"), entry->destination);
    json_add_name(b, SPAN("Time"));
    buf_add_char(b, '"');
    datetime_add(b, entry->time_unix_ns);
    buf_add_char(b, '"');
    add_answer(b, entry);
    add_number(b, SPAN("BodyByteCount"), entry->body_bytes);
    add_number(b, SPAN("DurationMs"), entry->duration_ms);
    add_number(b, SPAN("DnsMs"), entry->dns_ms);
    add_number(b, SPAN("ConnectMs"), entry->connect_ms);
    add_number(b, SPAN("TlsMs"), entry->tls_ms);
    add_number(b, SPAN("FirstByteMs"), entry->first_byte_ms);
    add_text(b, SPAN("ResponseBody"), entry->response_body);
    add_number(b, SPAN("ObjectNo"), object_no);
    buf_add_char(b, '}');
}

void webhook_log_add(struct change *change, const struct webhook_log_entry *entry)
{
    struct uuid id = uuid_new();
    uint64_t object_no = change_next_serial(change);
    struct buf json;

    buf_init(&json, BUF_NO_CAP);
    add_json(&json, entry, &id, object_no);
    change_put_entity(change, res_webhook_log.name, &id, object_no, buf_span(&json));
    buf_done(&json);
}
