/* An entry of the log a finished attempt: the table of its properties, and its text. What is
 * indexed stands in front: of an entry that is indexed anew no more is read, and of a new one
 * nothing. */
#include "webhook/webhook_log.h"

#include "protocol/method.h"
#include "protocol/status.h"
#include "query/shape.h"
#include "store/change.h"
#include "json/json.h"
#include "json/member.h"
#include "json/member_notes.h"

const struct span webhook_log_resource = SPAN_INIT("Svc.Admin.WebhookLog");

enum {
    USUAL_BYTES = 1023, /* of an entry; most are shorter */
    ERROR_BYTES = 2048,
};

static const struct property properties[] = {
    ID_PROPERTY("ID of the entry"),
    READ_ONLY_PROPERTY("WebhookId", TYPE_STRING, PROPERTY_INDEXED, "The webhook"),
    READ_ONLY_PROPERTY("DeliveryId", TYPE_STRING, PROPERTY_INDEXED, "The delivery"),
    READ_ONLY_PROPERTY("EventId", TYPE_STRING, PROPERTY_INDEXED, "The event"),
    READ_ONLY_PROPERTY("Tenant", TYPE_STRING, PROPERTY_INDEXED, "The webhook's tenant"),
    READ_ONLY_PROPERTY("Attempt", TYPE_INTEGER, 0, "Number of the attempt, from 1"),
    READ_ONLY_PROPERTY("Method", TYPE_STRING, 0, "Method of the request", .values = &method_names),
    READ_ONLY_PROPERTY("Destination", TYPE_STRING, 0, "Where it was sent"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When the attempt began"),
    READ_ONLY_PROPERTY("IsSuccess", TYPE_BOOLEAN, 0, "Was it answered with a 2xx status?"),
    READ_ONLY_PROPERTY("ResponseStatus", TYPE_STRING, 0, "Status of the answer in words"),
    READ_ONLY_PROPERTY("StatusCode", TYPE_INTEGER, 0, "Status of the answer, null without one"),
    READ_ONLY_PROPERTY("Error", TYPE_STRING, 0, "What went wrong, in words"),
    READ_ONLY_PROPERTY("BodyByteCount", TYPE_INTEGER, 0, "Bytes of the body sent"),
    READ_ONLY_PROPERTY("DurationMs", TYPE_INTEGER, 0, "Milliseconds of the whole attempt"),
    READ_ONLY_PROPERTY("DnsMs", TYPE_INTEGER, 0, "Milliseconds until the name was resolved"),
    READ_ONLY_PROPERTY("ConnectMs", TYPE_INTEGER, 0, "Milliseconds until connected"),
    READ_ONLY_PROPERTY("TlsMs", TYPE_INTEGER, 0, "Milliseconds until TLS was set up"),
    READ_ONLY_PROPERTY("FirstByteMs", TYPE_INTEGER, 0, "Milliseconds until the answer began"),
    READ_ONLY_PROPERTY("ResponseBody", TYPE_STRING, 0, "The first 4 KiB of the answer's body"),
    READ_ONLY_PROPERTY("RequestHeaders", TYPE_OBJECT, PROPERTY_HIDDEN,
                       "Header fields sent, secrets masked; shown when add asks for it"),
    READ_ONLY_PROPERTY("RequestBody", TYPE_STRING, PROPERTY_HIDDEN,
                       "The first 4 KiB of the body sent; shown when add asks for it"),
    OBJECT_NO_PROPERTY,
    READ_ONLY_PROPERTY("Sent", TYPE_STRING, 0, "What these two are told from: webhook_sent"),
};
enum { NEVER_SHOWN = 1 };

const struct shape webhook_log_shape = {.properties = properties,
                                        .count = ARRAY_LEN(properties) - NEVER_SHOWN,
                                        .name = SPAN_INIT("Svc.Admin.WebhookLog")};
const struct shape webhook_log_stored_shape = {.properties = properties,
                                               .count = ARRAY_LEN(properties),
                                               .name = SPAN_INIT("Svc.Admin.WebhookLog")};

/* As much of it as is written in so many bytes: what is escaped takes up to six times its own. */
static struct span cut(struct span text, size_t most)
{
    size_t written;

    return text.n == 0 ? text : json_cut_string(text, most, &written);
}

static void add_sent(struct buf *b, const struct webhook_log_entry *entry)
{
    struct span sent = entry->sent.p == NULL ? SPAN("null") : entry->sent;

    if (entry->signature.n == 0) {
        member_add_json(b, SPAN("Sent"), sent);
        return;
    }
    member_add_json(b, SPAN("Sent"), span_sub(sent, 0, sent.n - 1));
    buf_add(b, SPAN("webhook-signature: "));
    buf_add(b, entry->signature);
    buf_add(b, SPAN("\\n\""));
}

static void add_noted_id(struct buf *b, struct span name, const struct uuid *id,
                         struct member_notes *notes)
{
    size_t from = b->n;

    member_add_uuid(b, name, id);
    member_notes_add(notes, b, from);
}

/* Those that are indexed. */
static void add_noted(struct buf *b, const struct webhook_log_entry *entry,
                      struct member_notes *notes)
{
    size_t from;

    add_noted_id(b, SPAN("WebhookId"), &entry->webhook, notes);
    add_noted_id(b, SPAN("DeliveryId"), &entry->delivery, notes);
    add_noted_id(b, SPAN("EventId"), &entry->event, notes);
    from = b->n;
    member_add_text_or_null(b, SPAN("Tenant"), entry->tenant);
    member_notes_add(notes, b, from);
}

static void add_json(struct buf *b, const struct webhook_log_entry *entry, const struct uuid *id,
                     uint64_t object_no, struct member_notes *notes)
{
    const char *reason = entry->status == 0 ? NULL : status_reason(entry->status);

    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), id);
    add_noted(b, entry, notes);
    member_add_u64(b, SPAN("Attempt"), entry->attempt);
    member_add_text(b, SPAN("Method"), entry->method);
    member_add_text(b, SPAN("Destination"), entry->destination);
    member_add_time(b, SPAN("Time"), entry->time_unix_ns);
    member_add_bool(b, SPAN("IsSuccess"), entry->is_success);
    member_add_text_or_null(b, SPAN("ResponseStatus"), span_str(reason));
    member_add_u64_or_null(b, SPAN("StatusCode"), (uint64_t)entry->status);
    member_add_text_or_null(b, SPAN("Error"), cut(entry->error, ERROR_BYTES));
    member_add_u64(b, SPAN("BodyByteCount"), entry->body_bytes);
    member_add_u64(b, SPAN("DurationMs"), entry->duration_ms);
    member_add_u64(b, SPAN("DnsMs"), entry->dns_ms);
    member_add_u64(b, SPAN("ConnectMs"), entry->connect_ms);
    member_add_u64(b, SPAN("TlsMs"), entry->tls_ms);
    member_add_u64(b, SPAN("FirstByteMs"), entry->first_byte_ms);
    member_add_text_or_null(b, SPAN("ResponseBody"),
                            cut(entry->response_body, WEBHOOK_LOG_BODY_BYTES));
    add_sent(b, entry);
    member_add_u64(b, SPAN("ObjectNo"), object_no);
    buf_add_char(b, '}');
}

void webhook_log_add(struct change *change, const struct webhook_log_entry *entry)
{
    struct uuid id = uuid_new();
    uint64_t object_no = change_next_serial(change);
    struct member_notes *notes = ARENA_NEW(change->arena, struct member_notes);
    struct buf json;

    buf_init_arena(&json, change->arena);
    buf_reserve(&json, USUAL_BYTES);
    member_notes_init(notes);
    add_json(&json, entry, &id, object_no, notes);
    change_put_entity(change, webhook_log_resource, &id, object_no, buf_span(&json));
    change_entity_read(change, member_notes_end(notes, &json));
}
