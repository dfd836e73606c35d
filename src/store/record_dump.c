/* Record bodies as one line of JSON each, for `svc-journal dump`. */
#include "base/datetime.h"
#include "base/json.h"
#include "base/text.h"
#include "store/record.h"

#include <string.h>

static void dump_text(struct buf *b, const char *name, struct span text)
{
    json_add_name(b, span_str(name));
    if (text_is_utf8(text)) {
        json_add_string(b, text);
        return;
    }
    buf_add_str(b, "\"base64:");
    text_add_base64(b, text);
    buf_add_char(b, '"');
}

static void dump_number(struct buf *b, const char *name, uint64_t number)
{
    json_add_name(b, span_str(name));
    buf_add_u64(b, number);
}

static void dump_uuid(struct buf *b, const char *name, const struct uuid *u)
{
    json_add_name(b, span_str(name));
    buf_add_char(b, '"');
    uuid_add(b, u);
    buf_add_char(b, '"');
}

static void dump_time(struct buf *b, const char *name, int64_t unix_ns)
{
    json_add_name(b, span_str(name));
    if (unix_ns == 0) {
        buf_add_str(b, "null");
        return;
    }
    buf_add_char(b, '"');
    datetime_add(b, unix_ns);
    buf_add_char(b, '"');
}

static struct err *dump_entity(struct buf *b, struct span body)
{
    struct record_entity r;

    TRY(record_read_entity(body, &r));
    dump_text(b, "resource", r.resource);
    dump_uuid(b, "id", &r.id);
    dump_number(b, "object_no", r.object_no);
    dump_number(b, "version", r.version);
    json_add_name(b, SPAN("json"));
    buf_add(b, r.json);
    return NULL;
}

static struct err *dump_entity_gone(struct buf *b, struct span body)
{
    struct record_entity_gone r;

    TRY(record_read_entity_gone(body, &r));
    dump_text(b, "resource", r.resource);
    dump_uuid(b, "id", &r.id);
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
    dump_uuid(b, "id", &r.id);
    dump_number(b, "object_no", r.object_no);
    dump_time(b, "time", r.time_unix_ns);
    dump_number(b, "depth", r.depth);
    dump_number(b, "hidden", r.is_hidden);
    dump_number(b, "matched", r.matched);
    dump_text(b, "resource", r.resource);
    dump_text(b, "content_type", r.content_type);
    dump_webhooks(b, r.webhooks);
    dump_text(b, "payload", r.payload);
    return NULL;
}

static struct err *dump_object_no(struct buf *b, struct span body)
{
    uint64_t object_no;

    TRY(record_read_number(body, &object_no));
    dump_number(b, "object_no", object_no);
    return NULL;
}

static struct err *dump_delivery(struct buf *b, struct span body)
{
    struct record_delivery r;

    TRY(record_read_delivery(body, &r));
    dump_number(b, "object_no", r.object_no);
    dump_number(b, "event_no", r.event_no);
    dump_uuid(b, "webhook", &r.webhook);
    dump_number(b, "state", r.state);
    dump_number(b, "attempts", r.attempts);
    dump_number(b, "last_status", r.last_status);
    dump_time(b, "next", r.next_unix_ns);
    dump_number(b, "version", r.version);
    dump_text(b, "last_error", r.last_error);
    return NULL;
}

static struct err *dump_lane(struct buf *b, struct span body)
{
    struct record_lane r;

    TRY(record_read_lane(body, &r));
    dump_uuid(b, "webhook", &r.webhook);
    dump_time(b, "failing_since", r.failing_since_unix_ns);
    dump_time(b, "hold_until", r.hold_until_unix_ns);
    return NULL;
}

static struct err *dump_once(struct buf *b, struct span body)
{
    struct record_once r;

    TRY(record_read_once(body, &r));
    dump_time(b, "time", r.time_unix_ns);
    dump_number(b, "event_no", r.event_no);
    dump_uuid(b, "event", &r.event);
    dump_number(b, "webhooks", r.webhooks);
    dump_text(b, "resource", r.resource);
    return NULL;
}

typedef struct err *dump_fn(struct buf *b, struct span body);

static dump_fn *const dumpers[RECORD_KIND_END] = {
    [RECORD_ENTITY] = dump_entity,     [RECORD_ENTITY_GONE] = dump_entity_gone,
    [RECORD_EVENT] = dump_event,       [RECORD_EVENT_GONE] = dump_object_no,
    [RECORD_DELIVERY] = dump_delivery, [RECORD_DELIVERY_GONE] = dump_object_no,
    [RECORD_LANE] = dump_lane,         [RECORD_ONCE] = dump_once,
};

void record_add_dump(struct buf *b, unsigned kind, struct span body)
{
    struct err *e = NULL;

    buf_add_char(b, '{');
    json_add_name(b, SPAN("kind"));
    json_add_string(b, span_str(record_kind_name(kind)));
    if (kind < RECORD_KIND_END && dumpers[kind] != NULL)
        e = dumpers[kind](b, body);
    if (e != NULL || kind >= RECORD_KIND_END || dumpers[kind] == NULL) {
        json_add_name(b, SPAN("body"));
        buf_add_str(b, "\"base64:");
        text_add_base64(b, body);
        buf_add_char(b, '"');
    }
    err_free(e);
    buf_add_char(b, '}');
}
