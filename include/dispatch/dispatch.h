/* The evaluation of a request, without sockets. HTTP, local destinations, custom payload requests,
 * Svc.Aggregator and the tests all come through dispatch_run: there is no second path. */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include "base/err.h"

struct request;
struct response;
struct rest;

/* Over what rest_init has made: makes evaluations, api_keys, passages and handover. */
void dispatch_init(struct rest *rest);
/* Before rest_done. No evaluation and no passage is left. */
void dispatch_done(struct rest *rest);

/* Evaluates; `response` is emptied first and always filled, but for one that
 * `gives_way`, which says that nothing has happened yet. Errors become problem answers, are stored
 * as Svc.Admin.Error (docs/specification.md, section 5), and nothing else has changed. Check order:
 * docs/specification.md, section 4, last line. */
void dispatch_run(struct rest *rest, const struct request *request, struct response *response);
/* What can be said of a request before its body has come: false when it is refused, or answered as
 * it is, and the answer is in `response`. Nobody then needs its body. */
bool dispatch_admit(struct rest *rest, const struct request *request, struct response *response);
/* Answers it with this error, as dispatch_run would. The error stays the caller's. */
void dispatch_fail(struct rest *rest, const struct request *request, const struct err *e,
                   struct response *response);
/* The answer to bytes that are no request, or that the server refuses to evaluate: a problem
 * answer, not stored. */
void dispatch_refuse(struct response *response, int status, enum err_code code, struct span message,
                     unsigned retry_after_s);

#endif
