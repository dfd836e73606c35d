#include "store/record.h"

#include "base/err.h"
#include "base/must.h"
#include "base/reader.h"

#include <string.h>

/* What a lane's record may have besides. */
#define LANE_AGREED 1u
#define LANE_TROUBLED 128u
#define EVENT_BINARY 1u
#define EVENT_HIDDEN 2u
#define EVENT_OF_TENANT 4u
#define EVENT_OF_CLIENT 8u
#define EVENT_OF_CLOUD 16u

const char *record_kind_name(unsigned kind)
{
#define RECORD_AS_NAME(symbol, number, name) [number] = (name),
    static const char *const names[RECORD_KIND_END] = {"?", RECORD_KINDS(RECORD_AS_NAME)};
#undef RECORD_AS_NAME

    return names[kind < RECORD_KIND_END ? kind : 0];
}

static void add_u8(struct buf *b, uint8_t v)
{
    buf_add_char(b, (char)v);
}

static void add_uuid(struct buf *b, const struct uuid *u)
{
    buf_add(b, uuid_key(u));
}

static void add_text16(struct buf *b, struct span s)
{
    MUST(s.n <= UINT16_MAX);
    buf_add_le16(b, (uint16_t)s.n);
    buf_add(b, s);
}

static void add_bytes32(struct buf *b, struct span s)
{
    MUST(s.n <= UINT32_MAX);
    buf_add_le32(b, (uint32_t)s.n);
    buf_add(b, s);
}

static struct span read_text16(struct reader *r)
{
    return reader_bytes(r, reader_le16(r));
}

static struct span read_bytes32(struct reader *r)
{
    return reader_bytes(r, reader_le32(r));
}

static inline void read_raw(struct reader *r, void *out, size_t n)
{
    struct span bytes = reader_bytes(r, n);

    if (bytes.n == n)
        memcpy(out, bytes.p, n);
}

static struct uuid read_uuid(struct reader *r)
{
    struct uuid u = {{0}};

    read_raw(r, u.b, sizeof(u.b));
    return u;
}

/* Longer than what this version reads it may be: later versions append members. */
static struct err *too_short(enum record_kind kind)
{
    return ERR(ERR_STORAGE_FAILURE, "journal record of kind '%s' is too short",
               record_kind_name(kind));
}

void record_add_entity(struct buf *b, const struct record_entity *r)
{
    add_text16(b, r->resource);
    add_uuid(b, &r->id);
    buf_add_le64(b, r->object_no);
    buf_add_le64(b, r->version);
    add_bytes32(b, r->json);
}

struct err *record_read_entity(struct span body, struct record_entity *out)
{
    struct reader r = {.rest = body};

    out->resource = read_text16(&r);
    out->id = read_uuid(&r);
    out->object_no = reader_le64(&r);
    out->version = reader_le64(&r);
    out->json = read_bytes32(&r);
    return r.failed ? too_short(RECORD_ENTITY) : NULL;
}

void record_add_entity_gone(struct buf *b, const struct record_entity_gone *r)
{
    add_text16(b, r->resource);
    add_uuid(b, &r->id);
}

struct err *record_read_entity_gone(struct span body, struct record_entity_gone *out)
{
    struct record_entity_gone e;
    struct reader r = {.rest = body};

    e.resource = read_text16(&r);
    e.id = read_uuid(&r);
    if (r.failed)
        return too_short(RECORD_ENTITY_GONE);
    *out = e;
    return NULL;
}

void record_add_event(struct buf *b, const struct record_event *r)
{
    MUST(r->webhooks.n % sizeof(struct uuid) == 0);
    add_uuid(b, &r->id);
    buf_add_le64(b, r->object_no);
    buf_add_le64(b, (uint64_t)r->time_unix_ns);
    add_u8(b, (uint8_t)((r->is_binary ? EVENT_BINARY : 0) | (r->is_hidden ? EVENT_HIDDEN : 0) |
                        (r->tenant.n > 0 ? EVENT_OF_TENANT : 0) |
                        (r->client_id.n > 0 ? EVENT_OF_CLIENT : 0) |
                        (r->ce.n > 0 ? EVENT_OF_CLOUD : 0)));
    add_u8(b, r->depth);
    buf_add_le32(b, r->matched);
    add_text16(b, r->resource);
    add_text16(b, r->content_type);
    buf_add_le32(b, (uint32_t)(r->webhooks.n / sizeof(struct uuid)));
    buf_add(b, r->webhooks);
    add_bytes32(b, r->payload);
    if (r->tenant.n > 0)
        add_text16(b, r->tenant);
    if (r->client_id.n > 0)
        add_text16(b, r->client_id);
    if (r->ce.n > 0)
        add_text16(b, r->ce);
}

struct err *record_read_event(struct span body, struct record_event *out)
{
    struct record_event e;
    struct reader r = {.rest = body};
    uint8_t flags;

    e.id = read_uuid(&r);
    e.object_no = reader_le64(&r);
    e.time_unix_ns = (int64_t)reader_le64(&r);
    flags = reader_u8(&r);
    e.is_binary = (flags & EVENT_BINARY) != 0;
    e.is_hidden = (flags & EVENT_HIDDEN) != 0;
    e.depth = reader_u8(&r);
    e.matched = reader_le32(&r);
    e.resource = read_text16(&r);
    e.content_type = read_text16(&r);
    e.webhooks = reader_bytes(&r, (size_t)reader_le32(&r) * sizeof(struct uuid));
    e.payload = read_bytes32(&r);
    e.tenant = (flags & EVENT_OF_TENANT) != 0 ? read_text16(&r) : span_of(NULL, 0);
    e.client_id = (flags & EVENT_OF_CLIENT) != 0 ? read_text16(&r) : span_of(NULL, 0);
    e.ce = (flags & EVENT_OF_CLOUD) != 0 ? read_text16(&r) : span_of(NULL, 0);
    if (r.failed)
        return too_short(RECORD_EVENT);
    *out = e;
    return NULL;
}

void record_add_number(struct buf *b, uint64_t object_no)
{
    buf_add_le64(b, object_no);
}

struct err *record_read_number(struct span body, uint64_t *out_object_no)
{
    struct reader r = {.rest = body};
    uint64_t number;

    number = reader_le64(&r);
    if (r.failed)
        return too_short(RECORD_EVENT_GONE);
    *out_object_no = number;
    return NULL;
}

void record_add_delivery(struct buf *b, const struct record_delivery *r)
{
    buf_add_le64(b, r->object_no);
    buf_add_le64(b, r->event_no);
    add_uuid(b, &r->webhook);
    add_u8(b, r->state);
    buf_add_le16(b, r->attempts);
    buf_add_le16(b, r->last_status);
    buf_add_le64(b, (uint64_t)r->next_unix_ns);
    buf_add_le64(b, r->version);
    add_text16(b, r->last_error);
}

struct err *record_read_delivery(struct span body, struct record_delivery *out)
{
    struct record_delivery d;
    struct reader r = {.rest = body};

    d.object_no = reader_le64(&r);
    d.event_no = reader_le64(&r);
    d.webhook = read_uuid(&r);
    d.state = reader_u8(&r);
    d.attempts = reader_le16(&r);
    d.last_status = reader_le16(&r);
    d.next_unix_ns = (int64_t)reader_le64(&r);
    d.version = reader_le64(&r);
    d.last_error = read_text16(&r);
    if (r.failed)
        return too_short(RECORD_DELIVERY);
    *out = d;
    return NULL;
}

void record_add_lane(struct buf *b, const struct record_lane *r)
{
    uint8_t flags =
        (uint8_t)((r->has_consent ? LANE_AGREED : 0u) | (r->is_troubled ? LANE_TROUBLED : 0u));

    add_uuid(b, &r->webhook);
    buf_add_le64(b, (uint64_t)r->failing_since_unix_ns);
    buf_add_le64(b, (uint64_t)r->hold_until_unix_ns);
    if (flags != 0) /* as older versions write it */
        add_u8(b, flags);
    if (!r->has_consent)
        return;
    buf_add(b, span_of((const char *)r->consent, sizeof(r->consent)));
    buf_add_le32(b, r->rate_per_minute);
}

struct err *record_read_lane(struct span body, struct record_lane *out)
{
    struct record_lane lane = {.has_consent = false};
    struct reader r = {.rest = body};
    uint8_t flags;

    lane.webhook = read_uuid(&r);
    lane.failing_since_unix_ns = (int64_t)reader_le64(&r);
    lane.hold_until_unix_ns = (int64_t)reader_le64(&r);
    flags = r.rest.n > 0 ? reader_u8(&r) : 0;
    if ((flags & ~(LANE_AGREED | LANE_TROUBLED)) != 0)
        flags = 0; /* it is none of this version */
    lane.is_troubled = (flags & LANE_TROUBLED) != 0;
    lane.has_consent = (flags & LANE_AGREED) != 0;
    if (lane.has_consent) {
        read_raw(&r, lane.consent, sizeof(lane.consent));
        lane.rate_per_minute = reader_le32(&r);
    }
    if (r.failed)
        return too_short(RECORD_LANE);
    *out = lane;
    return NULL;
}

void record_add_once(struct buf *b, const struct record_once *r)
{
    buf_add(b, span_of((const char *)r->key, sizeof(r->key)));
    buf_add(b, span_of((const char *)r->body, sizeof(r->body)));
    buf_add_le64(b, (uint64_t)r->time_unix_ns);
    buf_add_le64(b, r->event_no);
    add_uuid(b, &r->event);
    buf_add_le32(b, r->webhooks);
    add_text16(b, r->resource);
}

struct err *record_read_once(struct span body, struct record_once *out)
{
    struct record_once once = {.event_no = 0};
    struct reader r = {.rest = body};

    read_raw(&r, once.key, sizeof(once.key));
    read_raw(&r, once.body, sizeof(once.body));
    once.time_unix_ns = (int64_t)reader_le64(&r);
    once.event_no = reader_le64(&r);
    once.event = read_uuid(&r);
    once.webhooks = reader_le32(&r);
    once.resource = read_text16(&r);
    if (r.failed)
        return too_short(RECORD_ONCE);
    *out = once;
    return NULL;
}

void record_add_once_gone(struct buf *b, const struct record_once_gone *r)
{
    buf_add(b, span_of((const char *)r->key, sizeof(r->key)));
}

struct err *record_read_once_gone(struct span body, struct record_once_gone *out)
{
    struct record_once_gone gone = {{0}};
    struct reader r = {.rest = body};

    read_raw(&r, gone.key, sizeof(gone.key));
    if (r.failed)
        return too_short(RECORD_ONCE_GONE);
    *out = gone;
    return NULL;
}
