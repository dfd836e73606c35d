/* OPTIONS, and cross-origin requests of browsers (docs/specification.md, sections 4 and 6; the
 * Fetch standard, "CORS protocol"). */
#ifndef REST_CORS_H
#define REST_CORS_H

#include "base/err.h"

struct call;
struct rest;

/* Is the origin one of those configured? */
bool cors_allows(const struct rest *rest, struct span origin);
/* Answers a preflight of an allowed origin, whatever it names: what a browser may send, and nothing
 * of what there is. False when the request is none. */
bool cors_answer_preflight(struct call *call);
/* Answers OPTIONS: the resource, its kind and methods. */
struct err *cors_answer_options(struct call *call) MUST_USE;
/* Adds what a browser needs to read the answer, on success and error alike, when the request's
 * Origin is allowed. */
void cors_add_headers(struct call *call);

#endif
