/* Bodies of attempts under way, and how many bytes they take together: BodyBytesInFlight bounds
 * that. Equal ones are held once. An event's payload is the same for all attempts that send it as
 * it is; what was made for one attempt (a format, the answer to a custom payload request) is
 * compared by content. A body that is larger than all of the bound goes when nothing else does. */
#ifndef HOOKS_BODY_H
#define HOOKS_BODY_H

#include "base/err.h"

struct attempt;
struct buf;
struct body;
struct deliveries;
struct delivery;
struct lane;

/* May this delivery, the lane's next, have its body? Of one that is yet to be made the last one's
 * length is expected. */
bool body_has_room(const struct lane *lane, const struct delivery *next);
/* The event's payload as it is. Errors of payload_get. */
struct err *body_take_payload(struct attempt *attempt) MUST_USE;
/* A copy of what was made; or the attempt has_no_room: the lane knows its length, and the delivery
 * is to wait its turn. */
void body_take_made(struct attempt *attempt, struct span made);
/* The same of what is in a buffer, and empty afterwards if it was long: to copy that takes long. */
void body_take_answer(struct attempt *attempt, struct buf *answer);
/* It has none any more; lanes that wait for room are looked at soon. */
void body_leave(struct attempt *attempt);
void bodies_init(struct deliveries *d);
void bodies_done(struct deliveries *d);

#endif
