/* One table drives writing, reading and dumping: for each kind of record its members, in the order
 * of their bytes, each with its form and its place in the struct. A body that is longer than its
 * kind's members is read all the same: later versions append some. A dump is for people and
 * scripts (`svc-journal dump`): what is not text is shown as base64, what is not of its kind too.
 */
#include "store/record.h"

#include "base/err.h"
#include "base/json.h"
#include "base/member.h"
#include "base/must.h"
#include "base/text.h"

#include <endian.h>
#include <string.h>

/* How a member is written, and what it is in the struct. */
enum form {
    FORM_U8,
    FORM_U16,
    FORM_U32,
    FORM_U64,
    FORM_TIME,  /* int64_t, nanoseconds since 1970 */
    FORM_FLAGS, /* two bool, one behind the other: bits 0 and 1 of a byte. The second is dumped */
    FORM_UUID,
    FORM_KEY,   /* RECORD_ONCE_KEY_BYTES */
    FORM_BODY,  /* RECORD_ONCE_BODY_BYTES */
    FORM_TEXT,  /* struct span: text16 */
    FORM_BYTES, /* struct span: bytes32 */
    FORM_JSON,  /* the same, dumped as JSON */
    FORM_UUIDS, /* struct span of n x 16 bytes: u32 n and these */
};

static const struct {
    uint8_t number_bytes, raw_bytes; /* in the record as in the struct */
    uint8_t count_bytes, unit;       /* of a span: its length, in units */
} forms[] = {
    [FORM_U8] = {.number_bytes = 1},
    [FORM_U16] = {.number_bytes = 2},
    [FORM_U32] = {.number_bytes = 4},
    [FORM_U64] = {.number_bytes = 8},
    [FORM_TIME] = {.number_bytes = 8},
    [FORM_UUID] = {.raw_bytes = sizeof(struct uuid)},
    [FORM_KEY] = {.raw_bytes = RECORD_ONCE_KEY_BYTES},
    [FORM_BODY] = {.raw_bytes = RECORD_ONCE_BODY_BYTES},
    [FORM_TEXT] = {.count_bytes = 2, .unit = 1},
    [FORM_BYTES] = {.count_bytes = 4, .unit = 1},
    [FORM_JSON] = {.count_bytes = 4, .unit = 1},
    [FORM_UUIDS] = {.count_bytes = 4, .unit = sizeof(struct uuid)},
};

struct member {
    enum form form;
    size_t at;
    const char *name; /* in dumps; NULL: not shown */
};

static const struct member entity_members[] = {
    {FORM_TEXT, offsetof(struct record_entity, resource), "resource"},
    {FORM_UUID, offsetof(struct record_entity, id), "id"},
    {FORM_U64, offsetof(struct record_entity, object_no), "object_no"},
    {FORM_U64, offsetof(struct record_entity, version), "version"},
    {FORM_JSON, offsetof(struct record_entity, json), "json"},
};

static const struct member entity_gone_members[] = {
    {FORM_TEXT, offsetof(struct record_entity_gone, resource), "resource"},
    {FORM_UUID, offsetof(struct record_entity_gone, id), "id"},
};

static const struct member event_members[] = {
    {FORM_UUID, offsetof(struct record_event, id), "id"},
    {FORM_U64, offsetof(struct record_event, object_no), "object_no"},
    {FORM_TIME, offsetof(struct record_event, time_unix_ns), "time"},
    {FORM_FLAGS, offsetof(struct record_event, is_binary), "hidden"},
    {FORM_U8, offsetof(struct record_event, depth), "depth"},
    {FORM_U32, offsetof(struct record_event, matched), "matched"},
    {FORM_TEXT, offsetof(struct record_event, resource), "resource"},
    {FORM_TEXT, offsetof(struct record_event, content_type), "content_type"},
    {FORM_UUIDS, offsetof(struct record_event, webhooks), "webhooks"},
    {FORM_BYTES, offsetof(struct record_event, payload), "payload"},
};

static const struct member number_members[] = {{FORM_U64, 0, "object_no"}};

static const struct member delivery_members[] = {
    {FORM_U64, offsetof(struct record_delivery, object_no), "object_no"},
    {FORM_U64, offsetof(struct record_delivery, event_no), "event_no"},
    {FORM_UUID, offsetof(struct record_delivery, webhook), "webhook"},
    {FORM_U8, offsetof(struct record_delivery, state), "state"},
    {FORM_U16, offsetof(struct record_delivery, attempts), "attempts"},
    {FORM_U16, offsetof(struct record_delivery, last_status), "last_status"},
    {FORM_TIME, offsetof(struct record_delivery, next_unix_ns), "next"},
    {FORM_U64, offsetof(struct record_delivery, version), "version"},
    {FORM_TEXT, offsetof(struct record_delivery, last_error), "last_error"},
};

static const struct member lane_members[] = {
    {FORM_UUID, offsetof(struct record_lane, webhook), "webhook"},
    {FORM_TIME, offsetof(struct record_lane, failing_since_unix_ns), "failing_since"},
    {FORM_TIME, offsetof(struct record_lane, hold_until_unix_ns), "hold_until"},
};

static const struct member once_members[] = {
    {FORM_KEY, offsetof(struct record_once, key), "key"},
    {FORM_BODY, offsetof(struct record_once, body), NULL},
    {FORM_TIME, offsetof(struct record_once, time_unix_ns), "time"},
    {FORM_U64, offsetof(struct record_once, event_no), "event_no"},
    {FORM_UUID, offsetof(struct record_once, event), "event"},
    {FORM_U32, offsetof(struct record_once, webhooks), "webhooks"},
    {FORM_TEXT, offsetof(struct record_once, resource), "resource"},
};

static const struct member once_gone_members[] = {
    {FORM_KEY, offsetof(struct record_once_gone, key), "key"},
};

union any_record {
    struct record_entity entity;
    struct record_entity_gone entity_gone;
    struct record_event event;
    uint64_t number;
    struct record_delivery delivery;
    struct record_lane lane;
    struct record_once once;
    struct record_once_gone once_gone;
};

#define KIND(members, member)                                                                      \
    {                                                                                              \
        members, ARRAY_LEN(members), sizeof(((union any_record *)0)->member)                       \
    }

static const struct kind {
    const struct member *members;
    size_t count;
    size_t bytes; /* of the struct */
} kinds[RECORD_KIND_END] = {
    [RECORD_ENTITY] = KIND(entity_members, entity),
    [RECORD_ENTITY_GONE] = KIND(entity_gone_members, entity_gone),
    [RECORD_EVENT] = KIND(event_members, event),
    [RECORD_EVENT_GONE] = KIND(number_members, number),
    [RECORD_DELIVERY] = KIND(delivery_members, delivery),
    [RECORD_DELIVERY_GONE] = KIND(number_members, number),
    [RECORD_LANE] = KIND(lane_members, lane),
    [RECORD_ONCE] = KIND(once_members, once),
    [RECORD_ONCE_GONE] = KIND(once_gone_members, once_gone),
};

const char *record_kind_name(unsigned kind)
{
    static const char *const names[RECORD_KIND_END] = {"?",
#define RECORD_AS_NAME(symbol, number, name) [number] = name,
                                                       RECORD_KINDS(RECORD_AS_NAME)
#undef RECORD_AS_NAME
    };

    return names[kind < RECORD_KIND_END ? kind : 0];
}

static struct span span_at(const char *from)
{
    struct span s;

    memcpy(&s, from, sizeof(s));
    return s;
}

/* From the order of this machine to little-endian, and back. */
static void copy_number(char *to, const char *from, size_t n)
{
    if (htole16(1) == 1)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[n - 1 - i];
}

static uint64_t number_at(const char *from, size_t n)
{
    uint64_t number = 0;

    copy_number((char *)&number, from, n);
    return le64toh(number);
}

/* ---- writing ---- */

static void add_number(struct buf *b, const void *from, size_t n)
{
    char bytes[sizeof(uint64_t)];

    copy_number(bytes, from, n);
    buf_add(b, span_of(bytes, n));
}

static void add_counted(struct buf *b, struct span s, size_t unit, size_t count_bytes)
{
    uint64_t le = htole64(s.n / unit);

    MUST(s.n % unit == 0 && s.n / unit < UINT64_C(1) << 8 * count_bytes);
    buf_add(b, span_of((const char *)&le, count_bytes));
    buf_add(b, s);
}

static void add_member(struct buf *b, enum form form, const char *from)
{
    if (forms[form].number_bytes > 0)
        add_number(b, from, forms[form].number_bytes);
    else if (forms[form].raw_bytes > 0)
        buf_add(b, span_of(from, forms[form].raw_bytes));
    else if (forms[form].count_bytes > 0)
        add_counted(b, span_at(from), forms[form].unit, forms[form].count_bytes);
    else
        buf_add_char(b, (char)(from[0] | from[1] << 1));
}

void record_add(struct buf *b, enum record_kind kind, const void *record)
{
    const struct kind *k = &kinds[kind];

    for (size_t i = 0; i < k->count; i++)
        add_member(b, k->members[i].form, (const char *)record + k->members[i].at);
}

/* ---- reading ---- */

/* Cuts n bytes off the front of *rest; false when there are not so many. */
static bool take(struct span *rest, size_t n, struct span *out_bytes)
{
    *out_bytes = span_sub(*rest, 0, n);
    *rest = span_sub(*rest, n, rest->n);
    return out_bytes->n == n;
}

static bool take_counted(struct span *rest, size_t unit, size_t count_bytes, char *to)
{
    struct span s;
    uint64_t le = 0;

    if (!take(rest, count_bytes, &s))
        return false;
    memcpy(&le, s.p, s.n);
    if (!take(rest, le64toh(le) * unit, &s))
        return false;
    memcpy(to, &s, sizeof(s));
    return true;
}

static bool take_member(struct span *rest, enum form form, char *to)
{
    struct span bytes;

    if (forms[form].count_bytes > 0)
        return take_counted(rest, forms[form].unit, forms[form].count_bytes, to);
    if (!take(rest, MAX(1, forms[form].number_bytes + forms[form].raw_bytes), &bytes))
        return false;
    if (form == FORM_FLAGS) {
        to[0] = bytes.p[0] & 1;
        to[1] = bytes.p[0] >> 1 & 1;
    } else if (forms[form].raw_bytes > 0) {
        memcpy(to, bytes.p, bytes.n);
    } else {
        copy_number(to, bytes.p, bytes.n);
    }
    return true;
}

struct err *record_read(enum record_kind kind, struct span body, void *out)
{
    const struct kind *k = &kinds[kind];
    union any_record record;

    for (size_t i = 0; i < k->count; i++)
        if (!take_member(&body, k->members[i].form, (char *)&record + k->members[i].at))
            return ERR(ERR_STORAGE_FAILURE, "journal record of kind '%s' is too short",
                       record_kind_name(kind));
    memcpy(out, &record, k->bytes);
    return NULL;
}

static struct err *read_any(unsigned kind, struct span body, union any_record *out)
{
    if (kind == 0 || kind >= RECORD_KIND_END)
        return ERR(ERR_STORAGE_FAILURE, "kind %u is not known", kind);
    return record_read(kind, body, out);
}

struct err *record_check(unsigned kind, struct span body)
{
    union any_record record;

    return read_any(kind, body, &record);
}

/* ---- dumping ---- */

static void dump_base64(struct buf *b, struct span name, struct span bytes)
{
    json_add_name(b, name);
    buf_add_str(b, "\"base64:");
    text_add_base64(b, bytes);
    buf_add_char(b, '"');
}

static void dump_text(struct buf *b, struct span name, struct span text)
{
    if (text_is_utf8(text))
        member_add_text(b, name, text);
    else
        dump_base64(b, name, text);
}

/* As it stands. What a damaged or foreign journal holds instead of JSON is shown as text. */
static void dump_json(struct buf *b, struct span name, struct span text)
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
        dump_text(b, SPAN("text"), text);
        return;
    }
    json_add_name(b, name);
    buf_add(b, text);
}

static void dump_uuids(struct buf *b, struct span name, struct span ids)
{
    struct uuid id;

    json_add_name(b, name);
    buf_add_char(b, '[');
    for (size_t at = 0; at < ids.n; at += sizeof(id)) {
        memcpy(&id, ids.p + at, sizeof(id));
        buf_add_str(b, at == 0 ? "\"" : ",\"");
        uuid_add(b, &id);
        buf_add_char(b, '"');
    }
    buf_add_char(b, ']');
}

static void dump_key(struct buf *b, struct span name, struct span key)
{
    json_add_name(b, name);
    buf_add_char(b, '"');
    text_add_hex(b, key);
    buf_add_char(b, '"');
}

static void dump_member(struct buf *b, const struct member *m, const char *from)
{
    struct span name = span_str(m->name);

    switch (m->form) {
    case FORM_TEXT:
    case FORM_BYTES:
        dump_text(b, name, span_at(from));
        break;
    case FORM_JSON:
        dump_json(b, name, span_at(from));
        break;
    case FORM_UUIDS:
        dump_uuids(b, name, span_at(from));
        break;
    case FORM_UUID:
        member_add_uuid(b, name, (const struct uuid *)from);
        break;
    case FORM_KEY:
        dump_key(b, name, span_of(from, RECORD_ONCE_KEY_BYTES));
        break;
    case FORM_TIME:
        member_add_time(b, name, (int64_t)number_at(from, sizeof(int64_t)));
        break;
    case FORM_FLAGS:
        member_add_u64(b, name, (uint64_t)from[1]);
        break;
    default:
        member_add_u64(b, name, number_at(from, forms[m->form].number_bytes));
    }
}

void record_add_dump(struct buf *b, unsigned kind, struct span body)
{
    union any_record record;
    struct err *e = read_any(kind, body, &record);

    buf_add_char(b, '{');
    member_add_text(b, SPAN("kind"), span_str(record_kind_name(kind)));
    if (e != NULL)
        dump_base64(b, SPAN("body"), body);
    for (size_t i = 0; e == NULL && i < kinds[kind].count; i++) {
        const struct member *m = &kinds[kind].members[i];

        if (m->name != NULL)
            dump_member(b, m, (const char *)&record + m->at);
    }
    err_free(e);
    buf_add_char(b, '}');
}
