/* CloudEvents 1.0 (docs/specification.md, section 13): an event's attributes, from header fields or
 * from JSON and back. Pure. What comes in is checked by the specification's own rules: names of
 * `a` to `z` and digits; texts without controls and noncharacters; URIs of RFC 3986, times of
 * RFC 3339, media types; values that are strings, booleans or integers of 32 bits. */
#ifndef PROTOCOL_CLOUDEVENTS_H
#define PROTOCOL_CLOUDEVENTS_H

#include "json/json.h"

struct header_field;
struct limits;

/* Of `<source> <id>`. */
enum { CLOUDEVENT_CLIENT_ID_MOST = 1024 };

/* How a request carries events, by its Content-Type. */
enum cloudevents_mode {
    CLOUDEVENTS_BINARY,     /* if at all: any other type, or none */
    CLOUDEVENTS_STRUCTURED, /* application/cloudevents+json */
    CLOUDEVENTS_BATCH,      /* application/cloudevents-batch+json */
    CLOUDEVENTS_UNREADABLE  /* application/cloudevents in another format */
};
enum cloudevents_mode cloudevents_mode(struct span content_type);
/* The media types of the modes that have one. */
extern const struct span cloudevents_structured_type, cloudevents_batch_type;
/* Is a media type JSON: its subtype `json`, or one that ends in `+json`? The absent span is. */
bool cloudevents_is_json(struct span media_type);

/* Does the name of a header field begin with `ce-`? */
static inline bool cloudevents_is_field(struct span name)
{
    return name.n > 3 && (name.p[0] | 0x20) == 'c' && (name.p[1] | 0x20) == 'e' && name.p[2] == '-';
}

/* Spans live in the arena, or in what was read. */
struct cloudevent {
    struct span id, source, type;
    struct span data_type;  /* datacontenttype; absent: none */
    struct span attributes; /* all of them, as an object of JSON: what is kept of the event */
    /* Of JSON: at most one of these is there. */
    struct json_value data; /* absent: none, or null */
    struct span bytes;      /* of data_base64; absent: none */
};

/* An event in binary mode, but for its data, which is the body. Of fields that begin with `ce-` the
 * names are without that, in any case. `content_type` may be absent.
 * ERR_INVALID_ENTITY names the field, and what is wrong, or the limit that is passed:
 * CloudEventAttributes or CloudEventAttributeBytes. */
struct err *cloudevent_from_fields(const struct header_field *fields, size_t count,
                                   struct span content_type, const struct limits *limits,
                                   struct arena *a, struct cloudevent *out_event) MUST_USE;
/* An event as an object of JSON, whose members have been found to be unique. Errors in the same
 * way: they name the attribute. */
struct err *cloudevent_from_json(struct json_value object, const struct limits *limits,
                                 struct arena *a, struct cloudevent *out_event) MUST_USE;
/* `<source> <id>`, which no other ClientId is like, as neither a source nor those have a blank.
 * ERR_INVALID_ENTITY: it is too long. */
struct err *cloudevent_client_id(const struct cloudevent *event, struct arena *a,
                                 struct span *out_client_id) MUST_USE;
/* UTF-8 without controls and noncharacters? */
bool cloudevents_is_text(struct span text);
/* Is it what `source` may be: a URI, or a reference to one (RFC 3986, section 4.1)? Not empty. */
bool cloudevents_is_source(struct span text);
/* The host of such a source: `events.example.com` of `https://events.example.com/shop`; empty when
 * it has none. */
struct span cloudevents_host(struct span source);

/* What selectors are put to: the entities of a payload, each with the attributes as its member `ce`
 * in the place of any that it has of this name. One entity of them alone when the payload has none,
 * or is absent. JSON text of an array. */
struct span cloudevents_entities(struct span attributes, struct json_value payload,
                                 struct arena *a);

/* An event on its way out. */
struct cloudevent_out {
    struct span kept; /* attributes that it came with, an object of JSON; absent: none */
    /* Where they are not kept; absent source: there is none, and it must be kept. */
    struct span id, source;
    struct span time;
    struct span type;      /* in any case */
    struct span data_type; /* in any case; absent: none is told */
    bool is_other_data;    /* than what it came with, and dataschema tells of */
};

/* Calls `add` with each header field but Content-Type: names with their `ce-`, values
 * percent-encoded, all in the arena. */
typedef void cloudevents_add_fn(void *context, struct span name, struct span value);
void cloudevents_each_field(const struct cloudevent_out *event, struct arena *a,
                            cloudevents_add_fn *add, void *context);
/* Appends the event as an object of JSON. Data is `json`, or, when that is absent, `bytes` as
 * base64. */
void cloudevents_add_structured(struct buf *b, const struct cloudevent_out *event, struct span json,
                                struct span bytes, struct arena *a);

#endif
