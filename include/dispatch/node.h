/* What a request meets on a node of a cluster (docs/specification.md, section 15), besides what it
 * meets on a server that is alone. Nothing of it is called where rest->cluster is NULL.
 *
 * In the order in which a request meets it: whose it is, if another node passed it on; the record
 * that it is to have seen; and, once its key and its resource are known, whether it is the leader's
 * to answer. That is so by resource and method alone (resource_may_change), before anything of it
 * is evaluated. */
#ifndef DISPATCH_NODE_H
#define DISPATCH_NODE_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct call;
struct passed_on;
struct request;
struct response;
struct rest;

/* Does it say that a node passes it on? */
bool node_is_passed_on(const struct request *request);
/* Of one that does, as soon as it is there whole: believes it, and notes from whom it comes, and
 * its client's address; both live in the arena. False: it is refused, and the answer is there.
 * Whoever tries and is not believed counts as one whose key is wrong. */
bool node_believe(struct rest *rest, struct request *request, struct arena *a,
                  struct response *response);
/* The key of a request that a node passed on, which is that of its client. One that a node asks for
 * itself, as a copy of the journal, has none: call->is_node. */
struct err *node_sign_in(struct call *call) MUST_USE;
/* Of the latter: may a node have it? ERR_NOT_AUTHORIZED. */
struct err *node_check(const struct call *call) MUST_USE;

/* Sets call->passage when the request has to wait for what it is to have seen. Errors of
 * min_serial_read; ERR_OVERLOADED: it has to, and cannot. What a node hands over in its own name is
 * taken (handover.h), with its errors. *out_answered: the request has come to its end in either. */
struct err *node_enter(struct call *call, bool *out_answered) MUST_USE;
/* The request's resource was looked for, and that came to `found`. Changes on a node that does not
 * lead: sets call->passage, or answers with a redirection, and *out_answered tells; or
 * ERR_NO_LEADER. Else `found`, which is taken over. */
struct err *node_route(struct call *call, struct err *found, bool *out_answered) MUST_USE;
/* Adds Svc-serial to the answer to a change. */
void node_add_serial(struct call *call);

#endif
