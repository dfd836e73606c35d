/* Tells an event that is raised again from a new one (docs/specification.md, section 7,
 * "Svc.Event"; docs/design/decisions.md, "Repeated events"): by its ClientId, or by the request's
 * Idempotency-Key and its place in the request. Either is kept, together with what was sent, as
 * digests: store/once.h. */
#ifndef REST_IDEMPOTENCY_H
#define REST_IDEMPOTENCY_H

#include "base/map.h"
#include "store/record.h"

struct call;
struct once;

/* What an event is remembered by. */
struct idempotency_name {
    bool is_given; /* false: every such event is a new one */
    uint8_t key[RECORD_ONCE_KEY_BYTES];
    uint8_t body[RECORD_ONCE_BODY_BYTES];
    struct span resource; /* as it was asked for; absent: `body` covers it */
};

/* What a client sent of one event, as it stood there; each may be absent. */
struct idempotency_event {
    struct span client_id;
    struct span cloud_type; /* of a CloudEvent, whose ClientId is checked: stands for resource */
    struct span resource, tenant, webhook;
    struct span content_type; /* of bytes */
    struct span payload;
};

/* Of one request. */
struct idempotency {
    struct call *call;
    const struct once *once;                      /* what earlier requests raised */
    struct span request_key;                      /* Idempotency-Key, or absent */
    uint8_t request_body[RECORD_ONCE_BODY_BYTES]; /* with it: of the request as a whole */
    struct map added;                             /* struct record_once: of this request itself */
};

/* ERR_INVALID_ENTITY: the header's value is no key. Call idempotency_done, also after an error. */
struct err *idempotency_init(struct idempotency *r, const struct once *once,
                             struct call *call) MUST_USE;
void idempotency_done(struct idempotency *r);

/* ERR_INVALID_ENTITY: the ClientId is no key, or comes on top of the request's. What the name
 * refers to is the event's. */
struct err *idempotency_name(const struct idempotency *r, const struct idempotency_event *event,
                             size_t place, struct idempotency_name *out_name) MUST_USE;
/* What the event of this name was answered, NULL when it is a new one. This request's answer then
 * waits for the disk as that one does. ERR_CONFLICT: something else was sent under the name. */
struct err *idempotency_find(const struct idempotency *r, const struct idempotency_name *name,
                             const struct record_once **out_answer) MUST_USE;
/* The request raises the event of this name: adds its answer to the call's change. Nothing without
 * a name. */
void idempotency_remember(struct idempotency *r, const struct idempotency_name *name,
                          const struct record_once *answer);

#endif
