/* Record bodies as one line of JSON each, for `svc-journal dump`. */
#include "base/text.h"
#include "store/record.h"
#include "json/json.h"
#include "json/member.h"

#include <string.h>

static void dump_base64(struct buf *b, const char *name, struct span bytes)
{
    json_add_name(b, span_str(name));
    buf_add_str(b, "\"base64:");
    text_add_base64(b, bytes);
    buf_add_char(b, '"');
}

static void dump_hex(struct buf *b, const char *name, const uint8_t *bytes, size_t n)
{
    json_add_name(b, span_str(name));
    buf_add_char(b, '"');
    text_add_hex(b, span_of((const char *)bytes, n));
    buf_add_char(b, '"');
}

static void dump_text(struct buf *b, const char *name, struct span text)
{
    if (text_is_utf8(text))
        member_add_text(b, span_str(name), text);
    else
        dump_base64(b, name, text);
}

/* As it stands. What a damaged or foreign journal holds instead of JSON is shown as text. */
static void dump_json(struct buf *b, struct span text)
{
    static const struct json_limits limits = {JSON_DEPTH_MOST - 1, UINT32_MAX};
    bool is_line = span_find_char(text, '\n', 0) >= text.n, is_json;
    struct json_doc doc;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = json_parse(text, &limits, &a, &doc);
    is_json = e == NULL;
    err_free(e);
    arena_done(&a);
    if (!is_json || !is_line) {
        dump_text(b, "text", text);
        return;
    }
    json_add_name(b, SPAN("json"));
    buf_add(b, text);
}

static struct err *dump_entity(struct buf *b, struct span body)
{
    struct record_entity r;

    TRY(record_read_entity(body, &r));
    dump_text(b, "resource", r.resource);
    member_add_uuid(b, SPAN("id"), &r.id);
    member_add_u64(b, SPAN("object_no"), r.object_no);
    member_add_u64(b, SPAN("version"), r.version);
    dump_json(b, r.json);
    return NULL;
}

static struct err *dump_entity_gone(struct buf *b, struct span body)
{
    struct record_entity_gone r;

    TRY(record_read_entity_gone(body, &r));
    dump_text(b, "resource", r.resource);
    member_add_uuid(b, SPAN("id"), &r.id);
    return NULL;
}

static void dump_webhooks(struct buf *b, struct span ids)
{
    struct uuid id;

    json_add_name(b, SPAN("webhooks"));
    buf_add_char(b, '[');
    for (size_t at = 0; at < ids.n; at += sizeof(id)) {
        memcpy(&id, ids.p + at, sizeof(id));
        buf_add_str(b, at == 0 ? "\"" : ",\"");
        uuid_add(b, &id);
        buf_add_char(b, '"');
    }
    buf_add_char(b, ']');
}

static struct err *dump_event(struct buf *b, struct span body)
{
    struct record_event r;

    TRY(record_read_event(body, &r));
    member_add_uuid(b, SPAN("id"), &r.id);
    member_add_u64(b, SPAN("object_no"), r.object_no);
    member_add_time(b, SPAN("time"), r.time_unix_ns);
    member_add_u64(b, SPAN("depth"), r.depth);
    member_add_u64(b, SPAN("hidden"), r.is_hidden);
    member_add_u64(b, SPAN("matched"), r.matched);
    dump_text(b, "resource", r.resource);
    dump_text(b, "content_type", r.content_type);
    dump_webhooks(b, r.webhooks);
    dump_text(b, "payload", r.payload);
    if (r.tenant.n > 0)
        dump_text(b, "tenant", r.tenant);
    if (r.client_id.n > 0)
        dump_text(b, "client_id", r.client_id);
    if (r.ce.n > 0)
        dump_text(b, "ce", r.ce);
    return NULL;
}

static struct err *dump_object_no(struct buf *b, struct span body)
{
    uint64_t object_no;

    TRY(record_read_number(body, &object_no));
    member_add_u64(b, SPAN("object_no"), object_no);
    return NULL;
}

static struct err *dump_delivery(struct buf *b, struct span body)
{
    struct record_delivery r;

    TRY(record_read_delivery(body, &r));
    member_add_u64(b, SPAN("object_no"), r.object_no);
    member_add_u64(b, SPAN("event_no"), r.event_no);
    member_add_uuid(b, SPAN("webhook"), &r.webhook);
    member_add_u64(b, SPAN("state"), r.state);
    member_add_u64(b, SPAN("attempts"), r.attempts);
    member_add_u64(b, SPAN("last_status"), r.last_status);
    member_add_time(b, SPAN("next"), r.next_unix_ns);
    member_add_u64(b, SPAN("version"), r.version);
    dump_text(b, "last_error", r.last_error);
    return NULL;
}

static struct err *dump_lane(struct buf *b, struct span body)
{
    struct record_lane r;

    TRY(record_read_lane(body, &r));
    member_add_uuid(b, SPAN("webhook"), &r.webhook);
    member_add_time(b, SPAN("failing_since"), r.failing_since_unix_ns);
    member_add_time(b, SPAN("hold_until"), r.hold_until_unix_ns);
    member_add_bool(b, SPAN("troubled"), r.is_troubled);
    if (!r.has_consent)
        return NULL;
    dump_hex(b, "consent", r.consent, sizeof(r.consent));
    member_add_u64(b, SPAN("rate_per_minute"), r.rate_per_minute);
    return NULL;
}

static struct err *dump_once(struct buf *b, struct span body)
{
    struct record_once r;

    TRY(record_read_once(body, &r));
    dump_hex(b, "key", r.key, sizeof(r.key));
    member_add_time(b, SPAN("time"), r.time_unix_ns);
    member_add_u64(b, SPAN("event_no"), r.event_no);
    member_add_uuid(b, SPAN("event"), &r.event);
    member_add_u64(b, SPAN("webhooks"), r.webhooks);
    dump_text(b, "resource", r.resource);
    return NULL;
}

static struct err *dump_once_gone(struct buf *b, struct span body)
{
    struct record_once_gone r;

    TRY(record_read_once_gone(body, &r));
    dump_hex(b, "key", r.key, sizeof(r.key));
    return NULL;
}

typedef struct err *dump_fn(struct buf *b, struct span body);

static dump_fn *const dumpers[RECORD_KIND_END] = {
    [RECORD_ENTITY] = dump_entity,       [RECORD_ENTITY_GONE] = dump_entity_gone,
    [RECORD_EVENT] = dump_event,         [RECORD_EVENT_GONE] = dump_object_no,
    [RECORD_DELIVERY] = dump_delivery,   [RECORD_DELIVERY_GONE] = dump_object_no,
    [RECORD_LANE] = dump_lane,           [RECORD_ONCE] = dump_once,
    [RECORD_ONCE_GONE] = dump_once_gone,
};

static dump_fn *dumper_of(unsigned kind)
{
    return kind < RECORD_KIND_END ? dumpers[kind] : NULL;
}

struct err *record_check(unsigned kind, struct span body)
{
    struct buf b = {.max = BUF_NO_CAP};
    struct err *e;

    if (dumper_of(kind) == NULL)
        return ERR(ERR_STORAGE_FAILURE, "kind %u is not known", kind);
    e = dumper_of(kind)(&b, body);
    buf_done(&b);
    return e;
}

void record_add_dump(struct buf *b, unsigned kind, struct span body)
{
    struct err *e = record_check(kind, body);

    buf_add_char(b, '{');
    member_add_text(b, SPAN("kind"), span_str(record_kind_name(kind)));
    if (e == NULL)
        err_free(dumper_of(kind)(b, body));
    else
        dump_base64(b, "body", body);
    err_free(e);
    buf_add_char(b, '}');
}
