/* What was sent with an attempt, as the log keeps and tells it (docs/specification.md, section 8):
 * the hidden properties RequestHeaders and RequestBody of an entry. What the entry, its delivery
 * and its event tell anyway is not kept once more: header fields that each attempt has, and a body
 * that is the event's payload as it was raised. */
#ifndef HOOKS_WEBHOOK_SENT_H
#define HOOKS_WEBHOOK_SENT_H

#include "base/span.h"

struct attempt;
struct buf;
struct entity;
struct hooks;

/* Fills sent and signature of the attempt's outcome: of what was sent, what is kept. They live as
 * long as the attempt. */
void webhook_sent(struct attempt *attempt);
/* What a receiver answers may have what it was sent: of its body, or of an error, what is kept, in
 * the attempt's arena. */
struct span webhook_sent_keep_answer(struct attempt *attempt, struct span body);
struct span webhook_sent_keep_error(struct attempt *attempt, struct span error);
/* Appends the object of the header fields, or the body as text; null when it is not known, or not
 * any more. */
void webhook_sent_add_headers(struct hooks *hooks, const struct entity *entry, struct buf *b);
void webhook_sent_add_body(struct hooks *hooks, const struct entity *entry, struct buf *b);

#endif
