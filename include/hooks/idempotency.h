/* Tells an event that is raised again from a new one (docs/specification.md, section 7,
 * "Svc.Event"; docs/design/decisions.md, "Repeated events"): by its own Id, or by the request's
 * Idempotency-Key and its place in the request. Either is kept, together with what was sent, as
 * digests: store/once.h. */
#ifndef HOOKS_IDEMPOTENCY_H
#define HOOKS_IDEMPOTENCY_H

#include "base/map.h"
#include "store/record.h"

struct json_value;
struct call;
struct once;

/* What an event is remembered by. */
struct repeat_name {
    bool is_given; /* false: every such event is a new one */
    uint8_t key[RECORD_ONCE_KEY_BYTES];
    uint8_t body[RECORD_ONCE_BODY_BYTES];
};

/* Of one request. */
struct repeats {
    struct call *call;
    const struct once *once;                      /* what earlier requests raised */
    struct span request_key;                      /* Idempotency-Key, or absent */
    uint8_t request_body[RECORD_ONCE_BODY_BYTES]; /* with it: of the request as a whole */
    struct map added;                             /* struct record_once: of this request itself */
};

/* ERR_INVALID_ENTITY: the header's value is no key. Call repeats_done, also after an error. */
struct err *repeats_init(struct repeats *r, const struct once *once, struct call *call) MUST_USE;
void repeats_done(struct repeats *r);

/* `event` is the object that describes the event, its Id a string if it has one; absent when the
 * request's body is the payload itself. ERR_INVALID_ENTITY: the Id is no key, or comes on top of
 * the request's. */
struct err *repeats_name(const struct repeats *r, struct json_value event, size_t place,
                         struct repeat_name *out_name) MUST_USE;
/* What the event of this name was answered, NULL when it is a new one. This request's answer then
 * waits for the disk as that one does. ERR_CONFLICT: something else was sent under the name. */
struct err *repeats_find(const struct repeats *r, const struct repeat_name *name,
                         const struct record_once **out_answer) MUST_USE;
/* The request raises the event of this name: adds its answer to the call's change. Nothing without
 * a name. */
void repeats_remember(struct repeats *r, const struct repeat_name *name,
                      const struct record_once *answer);

#endif
