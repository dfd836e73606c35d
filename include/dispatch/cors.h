/* OPTIONS, and cross-origin requests of browsers (docs/specification.md, sections 4 and 6; the
 * Fetch standard, "CORS protocol"). */
#ifndef DISPATCH_CORS_H
#define DISPATCH_CORS_H

#include "base/err.h"

struct call;
struct rest;

/* Is the origin one of those configured? */
bool cors_allows(const struct rest *rest, struct span origin);
/* Of a call for OPTIONS, answers those that need no key: a preflight of an allowed origin, whatever
 * it names, with what a browser may send, and nothing of what there is; and on Svc.Event a sender
 * of CloudEvents that is allowed, which asks whether it may send (docs/specification.md, section
 * 13). False when the request is none of these. */
bool cors_answer_everybody(struct call *call);
/* Answers OPTIONS: the resource, its kind and methods. */
struct err *cors_answer_options(struct call *call) MUST_USE;
/* Adds what a browser needs to read the answer, on success and error alike, when the request's
 * Origin is allowed. */
void cors_add_headers(struct call *call);

#endif
