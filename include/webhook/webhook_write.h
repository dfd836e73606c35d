/* Writes of webhooks: the checks at each of them, and what its answer shows
 * (docs/specification.md, section 8). */
#ifndef WEBHOOK_WEBHOOK_WRITE_H
#define WEBHOOK_WEBHOOK_WRITE_H

#include "base/span.h"

struct buf;
struct call;
struct draft;
struct egress_rules;
struct entity;
struct webhook_lanes;

enum { WEBHOOK_SELECTORS_MOST = 64 };

/* For resource_ops.check of Svc.Admin.Webhook. Each error is 400 and names the member, but for
 * ERR_TOO_MANY_REQUESTS: a wrong key in Headers.Authorization counts as a failed sign-in. */
struct err *webhook_check(const struct egress_rules *egress, const struct webhook_lanes *lanes,
                          struct call *call, struct draft *draft,
                          const struct entity *old) MUST_USE;
/* What its Format and Verify need: a CloudEventsSource (`source`; its host: `origin`); and, as
 * CloudEvents, data that is JSON or bytes; of Verify, a host that is asked. For a draft that has
 * passed webhook_check. Each error is 400 and names the member. */
struct err *webhook_check_cloud(struct span source, struct span origin, struct call *call,
                                const struct draft *draft) MUST_USE;
/* Limits.AccountWebhooks. Notes a draft that has passed webhook_check, if it is one more of its
 * account; and looks at all that the request adds, before it is carried out: ERR_CONFLICT. */
void webhook_note_account(struct call *call, const struct draft *draft, const struct entity *old);
struct err *webhook_check_accounts(const struct call *call) MUST_USE;
/* Stored secrets do not travel: `kept`, the paths of those that a write keeps, may go along with
 * what leads elsewhere only when the one who writes is the webhook's owner and has written them.
 * ERR_INVALID_ENTITY names them. */
struct err *webhook_check_kept(bool are_own, bool leads_elsewhere, struct span kept) MUST_USE;

/* Has the request made secrets, which are shown in its answer and never again? */
bool webhook_made_secrets(const struct call *call);
/* Appends a stored webhook as the answer to that request shows it. */
void webhook_add_answer(struct call *call, struct span json, struct buf *b);

#endif
