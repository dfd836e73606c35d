/* Events of others, checked attribute by attribute. Header fields and JSON differ in how a value is
 * written, and are alike from there on: each attribute is noted as its name and the JSON of its
 * value, and what is noted becomes the object that is kept.
 *
 * A field's value is percent-encoded UTF-8; older senders quote it instead (HTTP binding, section
 * 3.1.3.2). In fields names ignore case, as all of HTTP does; in JSON they do not. */
#include "protocol/cloudevents.h"

#include "base/datetime.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "base/text.h"
#include "protocol/negotiate.h"
#include "json/member.h"

#include <inttypes.h>

const struct span cloudevents_structured_type = SPAN_INIT("application/cloudevents+json");
const struct span cloudevents_batch_type = SPAN_INIT("application/cloudevents-batch+json");

/* Media types. ----------------------------------------------------------------------------- */

/* Without parameters. */
static struct span bare_type(struct span media_type)
{
    return span_trim(span_sub(media_type, 0, span_find_char(media_type, ';', 0)));
}

enum cloudevents_mode cloudevents_mode(struct span content_type)
{
    struct span type = bare_type(content_type);

    if (span_ieq(type, cloudevents_structured_type))
        return CLOUDEVENTS_STRUCTURED;
    if (span_ieq(type, cloudevents_batch_type))
        return CLOUDEVENTS_BATCH;
    return span_istarts(type, SPAN("application/cloudevents")) ? CLOUDEVENTS_UNREADABLE
                                                               : CLOUDEVENTS_BINARY;
}

bool cloudevents_is_json(struct span media_type)
{
    static const struct span suffix = SPAN_INIT("+json");
    struct span type = bare_type(media_type);
    struct span subtype = span_sub(type, span_find_char(type, '/', 0) + 1, type.n);

    return type.p == NULL || span_ieq(subtype, SPAN("json")) ||
           (subtype.n > suffix.n &&
            span_ieq(span_sub(subtype, subtype.n - suffix.n, subtype.n), suffix));
}

/* URIs. ------------------------------------------------------------------------------------ */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A character that a URI may have, but `%` and `#`. */
static bool is_uri_char(char c)
{
    static const struct span others = SPAN_INIT("-._~:/?[]@!$&'()*+,;=");

    return is_letter(c) || is_digit(c) || span_find_char(others, c, 0) < others.n;
}

/* Bytes of the scheme before its colon; 0: there is none; SIZE_MAX: what stands there is none. */
static size_t scheme_bytes(struct span uri)
{
    size_t n = 0;

    while (n < uri.n && span_find_char(SPAN(":/?#"), uri.p[n], 0) == 4)
        n++;
    if (n == uri.n || uri.p[n] != ':')
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(uri.p[i]) &&
            (i == 0 || (!is_digit(uri.p[i]) && span_find_char(SPAN("+-."), uri.p[i], 0) == 3)))
            return SIZE_MAX;
    return n == 0 ? SIZE_MAX : n;
}

bool cloudevents_is_source(struct span text)
{
    bool has_fragment = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_escape = c == '%' && i + 2 < text.n && text_hex_value(text.p[i + 1]) >= 0 &&
                         text_hex_value(text.p[i + 2]) >= 0;

        if (!is_escape && !is_uri_char(c) && (c != '#' || has_fragment))
            return false;
        has_fragment = has_fragment || c == '#';
    }
    return text.n > 0 && scheme_bytes(text) != SIZE_MAX;
}

struct span cloudevents_host(struct span source)
{
    size_t start = scheme_bytes(source) == 0 ? 0 : span_find_char(source, ':', 0) + 1, end;
    struct span rest = span_sub(source, start, source.n), host;

    if (!span_starts(rest, SPAN("//")))
        return SPAN("");
    rest = span_sub(rest, 2, rest.n);
    end = MIN(span_find_char(rest, '/', 0), span_find_char(rest, '?', 0));
    host = span_sub(rest, 0, MIN(end, span_find_char(rest, '#', 0)));
    start = span_find_char(host, '@', 0);
    if (start < host.n)
        host = span_sub(host, start + 1, host.n);
    end = span_starts(host, SPAN("[")) ? MIN(span_find_char(host, ']', 0) + 1, host.n)
                                       : span_find_char(host, ':', 0);
    return span_sub(host, 0, end);
}

/* Texts. ----------------------------------------------------------------------------------- */

static const char *why_not_text(struct span text)
{
    size_t at = 0;

    while (at < text.n) {
        size_t n = text_utf8_bytes(span_sub(text, at, text.n));
        uint32_t scalar;

        if (n == 0)
            return "is not UTF-8";
        scalar = text_scalar(span_of(text.p + at, n));
        if (scalar < 0x20 || (scalar >= 0x7f && scalar <= 0x9f))
            return "has a control character";
        if ((scalar >= 0xfdd0 && scalar <= 0xfdef) || (scalar & 0xfffe) == 0xfffe)
            return "has a character that Unicode keeps for no use";
        at += n;
    }
    return NULL;
}

bool cloudevents_is_text(struct span text)
{
    return why_not_text(text) == NULL;
}

static int hex_unit(struct span text, size_t at)
{
    int unit = 0;

    for (size_t i = 0; i < 4; i++)
        unit = unit << 4 | text_hex_value(text.p[at + i]);
    return unit;
}

/* An escape of half a pair, in the text of a well-formed JSON string. */
static bool has_half_pair(struct span json)
{
    bool expects_low = false;

    for (size_t i = 0; i < json.n; i++) {
        bool is_escape = json.p[i] == '\\', is_unit = is_escape && json.p[i + 1] == 'u';
        int unit = is_unit ? hex_unit(json, i + 2) : 0;
        bool is_low = unit >= 0xdc00 && unit <= 0xdfff;

        if (expects_low != is_low)
            return true;
        expects_low = unit >= 0xd800 && unit <= 0xdbff;
        i += is_unit ? 5 : is_escape ? 1 : 0;
    }
    return expects_low;
}

/* `2026-11-23T01:02:03.5+01:00`: a time of ISO 8601 with all that RFC 3339 wants of it. */
static bool is_time(struct span text)
{
    struct instant at;
    char zone = (char)(text.n > 6 ? text.p[text.n - 6] : '\0');

    if (text.n < SPAN("2026-11-23T01:02:03Z").n || (text.p[10] | 0x20) != 't' ||
        text.p[16] != ':' || !datetime_parse(text, &at))
        return false;
    return (text.p[text.n - 1] | 0x20) == 'z' ||
           ((zone == '+' || zone == '-') && text.p[text.n - 3] == ':');
}

/* Attributes. ------------------------------------------------------------------------------ */

enum known {
    SPECVERSION,
    ID,
    SOURCE,
    TYPE,
    REQUIRED, /* so many, the first ones */
    DATACONTENTTYPE = REQUIRED,
    DATASCHEMA,
    SUBJECT,
    TIME,
    KNOWN
};

static const struct span known_names[KNOWN] = {
    [SPECVERSION] = SPAN_INIT("specversion"),
    [ID] = SPAN_INIT("id"),
    [SOURCE] = SPAN_INIT("source"),
    [TYPE] = SPAN_INIT("type"),
    [DATACONTENTTYPE] = SPAN_INIT("datacontenttype"),
    [DATASCHEMA] = SPAN_INIT("dataschema"),
    [SUBJECT] = SPAN_INIT("subject"),
    [TIME] = SPAN_INIT("time"),
};

struct attribute {
    struct span name;
    struct span json; /* absent: it is not there */
};

struct reading {
    struct arena *arena;
    const struct limits *limits;
    const char *prefix; /* of names in messages: "ce-", or "" */
    struct span known[KNOWN];
    struct attribute *all;
    size_t count;
};

/* Of an event with so many members or fields at most. */
static struct reading *reading_new(const struct limits *limits, const char *prefix, size_t most,
                                   struct arena *a)
{
    struct reading *r = ARENA_NEW(a, struct reading);

    *r = (struct reading){.arena = a, .limits = limits, .prefix = prefix};
    r->all = ARENA_ARRAY(a, struct attribute, MIN(most, (size_t)limits->cloudevent_attributes));
    return r;
}

static struct err *bad(const struct reading *r, struct span name, const char *why)
{
    return ERR(ERR_INVALID_ENTITY, "%s%.*s: %s", r->prefix, SPAN_FMT(name), why);
}

static enum known find_known(struct span name)
{
    enum known known = SPECVERSION;

    while (known < KNOWN && !span_eq(known_names[known], name))
        known++;
    return known;
}

static struct err *check_name(const struct reading *r, struct span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!is_digit(name.p[i]) && !(name.p[i] >= 'a' && name.p[i] <= 'z'))
            return bad(r, name, "names of attributes are made of 'a' to 'z' and '0' to '9'");
    if (name.n == 0)
        return bad(r, name, "an attribute has no name");
    if (span_eq(name, SPAN("data")))
        return bad(r, name, "is no name of an attribute: it is what the event carries");
    return NULL;
}

static const char *why_not(enum known known, struct span text)
{
    switch (known) {
    case SPECVERSION:
        return span_eq(text, SPAN("1.0")) ? NULL : "must be 1.0, the version that is spoken here";
    case SOURCE:
        return cloudevents_is_source(text) ? NULL : "is no URI, nor a reference to one (RFC 3986)";
    case DATACONTENTTYPE:
        return negotiate_is_media_type(text) ? NULL : "is no media type";
    case DATASCHEMA:
        return cloudevents_is_source(text) && scheme_bytes(text) > 0
                   ? NULL
                   : "is no absolute URI (RFC 3986)";
    case TIME:
        return is_time(text) ? NULL : "is no time of RFC 3339, as 2026-11-23T09:30:00Z";
    default:
        return NULL;
    }
}

static struct err *check_text(const struct reading *r, struct span name, struct span text)
{
    enum known known = find_known(name);
    const char *why = why_not_text(text);

    if (why == NULL && known < KNOWN && text.n == 0)
        why = "is empty";
    if (why == NULL)
        why = why_not(known, text);
    return why == NULL ? NULL : bad(r, name, why);
}

static struct err *note(struct reading *r, struct span name, struct span json)
{
    if (r->count == (size_t)r->limits->cloudevent_attributes)
        return ERR(ERR_INVALID_ENTITY,
                   "the event has more than %" PRId64
                   " attributes, which is the limit CloudEventAttributes",
                   r->limits->cloudevent_attributes);
    r->all[r->count++] = (struct attribute){name, json};
    return NULL;
}

/* Of one that is a text, and good. */
static struct err *note_text(struct reading *r, struct span name, struct span text)
{
    enum known known = find_known(name);
    struct buf b;

    TRY(check_text(r, name, text));
    if (known < KNOWN)
        r->known[known] = text;
    buf_init_arena(&b, r->arena);
    json_add_string(&b, text);
    return note(r, name, buf_span(&b));
}

/* The required ones stand first, in their order; the others follow as they came. */
static struct err *finish(const struct reading *r, struct cloudevent *out)
{
    struct buf b;

    for (enum known known = SPECVERSION; known < REQUIRED; known++)
        if (r->known[known].p == NULL)
            return bad(r, known_names[known], "is missing, which every CloudEvent has");
    buf_init_arena(&b, r->arena);
    buf_add_char(&b, '{');
    for (enum known known = SPECVERSION; known < REQUIRED; known++)
        member_add_text(&b, known_names[known], r->known[known]);
    for (size_t i = 0; i < r->count; i++)
        if (find_known(r->all[i].name) >= REQUIRED)
            member_add_json(&b, r->all[i].name, r->all[i].json);
    buf_add_char(&b, '}');
    if (b.n > (size_t)r->limits->cloudevent_attribute_bytes)
        return ERR(ERR_INVALID_ENTITY,
                   "the attributes of the event take more than %" PRId64
                   " bytes, which is the limit CloudEventAttributeBytes",
                   r->limits->cloudevent_attribute_bytes);
    out->id = r->known[ID];
    out->source = r->known[SOURCE];
    out->type = r->known[TYPE];
    out->data_type = r->known[DATACONTENTTYPE];
    out->attributes = buf_span(&b);
    return NULL;
}

/* Fields. ---------------------------------------------------------------------------------- */

/* What a quoted value means; false when its quotes do not fit. */
static bool unquote(struct span *value, struct arena *a)
{
    struct span text = *value;
    struct buf b;

    if (!span_starts(text, SPAN("\"")))
        return true;
    if (text.n < 2 || text.p[text.n - 1] != '"')
        return false;
    buf_init_arena(&b, a);
    for (size_t i = 1; i + 1 < text.n; i++) {
        if (text.p[i] == '"')
            return false;
        i += text.p[i] == '\\';
        if (i + 1 == text.n)
            return false;
        buf_add_char(&b, text.p[i]);
    }
    *value = b.n == 0 ? SPAN("") : buf_span(&b);
    return true;
}

static bool is_noted(const struct reading *r, struct span name)
{
    for (size_t i = 0; i < r->count; i++)
        if (span_eq(r->all[i].name, name))
            return true;
    return false;
}

static struct err *read_field(struct reading *r, const struct header_field *field)
{
    struct span name = text_fold(r->arena, field->name), value = span_trim(field->value);

    TRY(check_name(r, name));
    if (span_eq(name, known_names[DATACONTENTTYPE]))
        return bad(r, name, "in binary mode it is the header field Content-Type");
    if (is_noted(r, name))
        return bad(r, name, "is there twice");
    if (!unquote(&value, r->arena))
        return bad(r, name, "its quotes do not fit");
    if (!text_from_percent(value, r->arena, &value))
        return bad(r, name, "has a '%' that is not followed by two hexadecimal digits");
    return note_text(r, name, value);
}

struct err *cloudevent_from_fields(const struct header_field *fields, size_t count,
                                   struct span content_type, const struct limits *limits,
                                   struct arena *a, struct cloudevent *out_event)
{
    struct reading *r = reading_new(limits, "ce-", count + 1, a);
    struct cloudevent event = {.data = {NULL, NULL}};

    for (size_t i = 0; i < count; i++)
        TRY(read_field(r, &fields[i]));
    if (content_type.p != NULL) {
        r->prefix = "";
        if (!negotiate_is_media_type(content_type))
            return ERR(ERR_INVALID_ENTITY, "Content-Type: '%.*s' is no media type",
                       SPAN_FMT(content_type));
        TRY(note_text(r, known_names[DATACONTENTTYPE], content_type));
        r->prefix = "ce-";
    }
    TRY(finish(r, &event));
    *out_event = event;
    return NULL;
}

/* JSON. ------------------------------------------------------------------------------------ */

static bool is_integer(struct span json)
{
    int64_t value;

    return span_to_i64(json, &value) && value >= INT32_MIN && value <= INT32_MAX;
}

static struct err *read_text(struct reading *r, struct span name, struct json_value value)
{
    if (has_half_pair(json_text(value)))
        return bad(r, name, "has half of a surrogate pair");
    return note_text(r, name, json_string(value, r->arena));
}

static struct err *read_value(struct reading *r, struct span name, struct json_value value)
{
    enum json_type type = json_type(value);

    if (type == JSON_STRING)
        return read_text(r, name, value);
    if (type == JSON_NULL) /* as if it were not there */
        return NULL;
    if (find_known(name) < KNOWN)
        return bad(r, name, "must be a string");
    if (type == JSON_NUMBER && !is_integer(json_text(value)))
        return bad(r, name, "a number must be an integer of 32 bits");
    if (type == JSON_OBJECT || type == JSON_ARRAY)
        return bad(r, name, "must be a string, a boolean or an integer");
    return note(r, name, json_text(value));
}

static struct err *read_base64(struct json_value value, struct arena *a, struct span *out_bytes)
{
    if (json_type(value) == JSON_NULL)
        return NULL;
    if (json_type(value) != JSON_STRING)
        return ERR(ERR_INVALID_ENTITY, "data_base64: must be a string");
    if (!text_from_base64(json_string(value, a), a, out_bytes))
        return ERR(ERR_INVALID_ENTITY, "data_base64: is not base64");
    return NULL;
}

static struct err *read_member(struct reading *r, struct json_member m, struct cloudevent *event)
{
    struct span name = json_string(m.name, r->arena);

    if (span_eq(name, SPAN("data"))) {
        if (json_type(m.value) != JSON_NULL)
            event->data = m.value;
        return NULL;
    }
    if (span_eq(name, SPAN("data_base64")))
        return read_base64(m.value, r->arena, &event->bytes);
    TRY(check_name(r, name));
    return read_value(r, name, m.value);
}

struct err *cloudevent_from_json(struct json_value object, const struct limits *limits,
                                 struct arena *a, struct cloudevent *out_event)
{
    struct cloudevent event = {.data = {NULL, NULL}};
    struct reading *r;

    if (json_type(object) != JSON_OBJECT)
        return ERR(ERR_INVALID_ENTITY, "a CloudEvent is an object of JSON");
    r = reading_new(limits, "", json_count(object), a);
    for (struct json_member m = json_first_member(object); json_exists(m.name);
         m = json_next_member(object, m))
        TRY(read_member(r, m, &event));
    TRY(finish(r, &event));
    if (json_exists(event.data) && event.bytes.p != NULL)
        return ERR(ERR_INVALID_ENTITY, "data_base64: there is data too, and an event has one");
    if (json_exists(event.data) && !cloudevents_is_json(event.data_type) &&
        json_type(event.data) != JSON_STRING)
        return ERR(ERR_INVALID_ENTITY,
                   "data: must be a string, as datacontenttype '%.*s' is not JSON",
                   SPAN_FMT(event.data_type));
    *out_event = event;
    return NULL;
}

struct err *cloudevent_client_id(const struct cloudevent *event, struct arena *a,
                                 struct span *out_client_id)
{
    if (event->source.n + 1 + event->id.n > CLOUDEVENT_CLIENT_ID_MOST)
        return ERR(ERR_INVALID_ENTITY,
                   "id: source and id take more than %d bytes together, with a blank between them",
                   CLOUDEVENT_CLIENT_ID_MOST);
    *out_client_id = arena_printf(a, "%.*s %.*s", SPAN_FMT(event->source), SPAN_FMT(event->id));
    return NULL;
}

/* Entities with attributes. ---------------------------------------------------------------- */

static void add_entity(struct buf *b, struct span attributes, struct json_value entity,
                       struct arena *a)
{
    static const struct span own = SPAN_INIT("ce");

    json_add_comma(b);
    buf_add_char(b, '{');
    member_add_json(b, own, attributes);
    for (struct json_member m = json_first_member(entity); json_exists(m.name);
         m = json_next_member(entity, m)) {
        if (span_ieq(json_string(m.name, a), own))
            continue;
        json_add_written_name(b, m.name);
        buf_add(b, json_text(m.value));
    }
    buf_add_char(b, '}');
}

struct span cloudevents_entities(struct span attributes, struct json_value payload, struct arena *a)
{
    const struct json_value none = {NULL, NULL};
    struct buf b;

    buf_init_arena(&b, a);
    buf_add_char(&b, '[');
    if (json_type(payload) == JSON_OBJECT)
        add_entity(&b, attributes, payload, a);
    else if (json_count(payload) == 0)
        add_entity(&b, attributes, none, a);
    else
        for (struct json_value v = json_first(payload); json_exists(v); v = json_next(payload, v))
            add_entity(&b, attributes, v, a);
    buf_add_char(&b, ']');
    return buf_span(&b);
}
