/* What the journal's records mean: their kinds and bodies, byte by byte. Pure encoding and
 * decoding; the frame around a body is io/segment's. All numbers little-endian; `text16` is a u16
 * length and that many bytes, `bytes32` the same with a u32.
 *
 * Procedure for a change: a new member goes at the end of a body and decodes to its default when it
 * is missing; a new kind gets the next number; nothing is ever renumbered. Anything else raises
 * SEGMENT_FORMAT_VERSION. */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "base/uuid.h"

/* symbol, number, name in dumps */
#define RECORD_KINDS(X)                                                                            \
    X(RECORD_ENTITY, 1, "entity")           /* an entity was inserted or changed */                \
    X(RECORD_ENTITY_GONE, 2, "entity-gone") /* an entity was deleted */                            \
    X(RECORD_EVENT, 3, "event")             /* an event, and the webhooks it is to be sent to */   \
    X(RECORD_EVENT_GONE, 4, "event-gone")   /* an event is no longer kept */                       \
    X(RECORD_DELIVERY, 5, "delivery")       /* a delivery's whole state */                         \
    X(RECORD_DELIVERY_GONE, 6, "delivery-gone")                                                    \
    X(RECORD_LANE, 7, "lane")           /* what a webhook's queue remembers across restarts */     \
    X(RECORD_ONCE, 8, "once")           /* an idempotency key with its answer */                   \
    X(RECORD_ONCE_GONE, 9, "once-gone") /* an idempotency key is no longer remembered */

enum record_kind {
#define RECORD_AS_ENUM(symbol, number, name) symbol = number,
    RECORD_KINDS(RECORD_AS_ENUM)
#undef RECORD_AS_ENUM
        RECORD_KIND_END = 10
};

/* Kinds below this one are known to every version that can be a node of a cluster. A later one is
 * written once each node that lives knows it (store/turn_log.h). It never changes. */
enum { RECORD_KIND_COMMON_END = 10 };

const char *record_kind_name(unsigned kind); /* "?" for an unknown one */

/* RECORD_ENTITY: text16 resource, 16 id, u64 object_no, u64 version, bytes32 json. */
struct record_entity {
    struct span resource; /* full name in declared spelling */
    struct uuid id;
    uint64_t object_no; /* serial of the record that inserted it: never changes */
    uint64_t version;   /* serial of the record that changed it last; a moved record keeps it */
    struct span json;   /* the whole entity, Id first and ObjectNo last */
};

/* RECORD_ENTITY_GONE: text16 resource, 16 id. */
struct record_entity_gone {
    struct span resource;
    struct uuid id;
};

/* RECORD_EVENT: 16 id, u64 object_no, i64 time, u8 flags (1 binary, 2 hidden, 4 of a tenant, 8 with
 * a client's Id, 16 a CloudEvent), u8 depth, u32 matched, text16 resource, text16 content_type, u32
 * n, n x 16 webhook ids, bytes32 payload; with the flag 4 text16 tenant, with the flag 8 text16
 * client_id, with the flag 16 text16 attributes of a CloudEvent. The deliveries to the n webhooks
 * have object_no + 1 ... object_no + n; the record takes 1 + n serials. A moved event names no
 * webhooks (n is 0): its deliveries have records of their own. */
struct record_event {
    struct uuid id;
    uint64_t object_no;
    int64_t time_unix_ns;
    bool is_binary; /* payload is a byte stream of `content_type`, else a JSON array of entities */
    bool is_hidden; /* no longer kept; only its deliveries still need it */
    uint8_t depth;  /* how many events caused one another before it */
    uint32_t matched; /* webhooks when it was raised */
    struct span resource;
    struct span content_type;
    struct span webhooks; /* n x 16 bytes */
    struct span payload;
    struct span tenant;    /* empty: none */
    struct span client_id; /* empty: none */
    struct span ce;        /* attributes of a CloudEvent, an object of JSON; empty: it is none */
};

/* RECORD_EVENT_GONE, RECORD_DELIVERY_GONE: u64 object_no. */

/* RECORD_DELIVERY: u64 object_no, u64 event_no, 16 webhook, u8 state, u16 attempts, u16 status,
 * i64 next, u64 version, text16 error. */
struct record_delivery {
    uint64_t object_no;
    uint64_t event_no; /* the event's object_no */
    struct uuid webhook;
    uint8_t state; /* enum delivery_state */
    uint16_t attempts;
    uint16_t last_status;
    int64_t next_unix_ns; /* of the next attempt; of one that has ended, of its end; 0: none */
    uint64_t version;
    struct span last_error;
};

#define RECORD_CONSENT_BYTES 16

/* RECORD_LANE: 16 webhook, i64 failing_since, i64 hold_until, u8 has its receiver agreed, 16 digest
 * of whom and what, u32 rate. */
struct record_lane {
    struct uuid webhook;
    int64_t failing_since_unix_ns; /* 0: the last attempt succeeded */
    int64_t hold_until_unix_ns;
    bool is_troubled; /* its next success is told */
    bool has_consent; /* else the following are 0 */
    uint8_t consent[RECORD_CONSENT_BYTES];
    uint32_t rate_per_minute; /* that it has agreed to; 0: any */
};

#define RECORD_ONCE_KEY_BYTES 16
#define RECORD_ONCE_BODY_BYTES 32

/* RECORD_ONCE: 16 key digest, 32 body digest, i64 time, u64 event object_no, 16 event id, u32
 * webhooks, text16 resource. */
struct record_once {
    uint8_t key[RECORD_ONCE_KEY_BYTES];
    uint8_t body[RECORD_ONCE_BODY_BYTES];
    int64_t time_unix_ns;
    uint64_t event_no;
    struct uuid event;
    uint32_t webhooks;
    struct span resource;
};

/* RECORD_ONCE_GONE: 16 key digest. */
struct record_once_gone {
    uint8_t key[RECORD_ONCE_KEY_BYTES];
};

void record_add_entity(struct buf *b, const struct record_entity *r);
void record_add_entity_gone(struct buf *b, const struct record_entity_gone *r);
void record_add_event(struct buf *b, const struct record_event *r);
void record_add_number(struct buf *b, uint64_t object_no);
void record_add_delivery(struct buf *b, const struct record_delivery *r);
void record_add_lane(struct buf *b, const struct record_lane *r);
void record_add_once(struct buf *b, const struct record_once *r);
void record_add_once_gone(struct buf *b, const struct record_once_gone *r);

/* Spans point into `body`. ERR_STORAGE_FAILURE when the body is not of that form. */
struct err *record_read_entity(struct span body, struct record_entity *out) MUST_USE;
struct err *record_read_entity_gone(struct span body, struct record_entity_gone *out) MUST_USE;
struct err *record_read_event(struct span body, struct record_event *out) MUST_USE;
struct err *record_read_number(struct span body, uint64_t *out_object_no) MUST_USE;
struct err *record_read_delivery(struct span body, struct record_delivery *out) MUST_USE;
struct err *record_read_lane(struct span body, struct record_lane *out) MUST_USE;
struct err *record_read_once(struct span body, struct record_once *out) MUST_USE;
struct err *record_read_once_gone(struct span body, struct record_once_gone *out) MUST_USE;

/* Can this version read the body? ERR_STORAGE_FAILURE: an unknown kind, or not of its form. */
struct err *record_check(unsigned kind, struct span body) MUST_USE;

/* One line of JSON for people and scripts: the members above; payloads that are text as text, other
 * bytes as base64. Unknown kinds and malformed bodies are shown as base64. */
void record_add_dump(struct buf *b, unsigned kind, struct span body);

#endif
