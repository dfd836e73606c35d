/* OPTIONS, and cross-origin requests of browsers (docs/specification.md, sections 4 and 6; the
 * Fetch standard, "CORS protocol"). */
#ifndef REST_CORS_H
#define REST_CORS_H

#include "base/err.h"

struct call;

/* Answers OPTIONS: the resource, its kind and methods; on a preflight of an allowed origin what the
 * browser may send. */
struct err *cors_answer_options(struct call *call) MUST_USE;
/* Adds what a browser needs to read the answer, on success and error alike, when the request's
 * Origin is allowed; Vary: Origin whenever origins are configured. */
void cors_add_headers(struct call *call);

#endif
