/* The answer to a request that ended with an error (docs/specification.md, section 5). */
#ifndef DISPATCH_PROBLEM_H
#define DISPATCH_PROBLEM_H

#include <stdbool.h>

struct call;
struct err;

/* Is the error stored with its answer? That is a change. */
bool problem_is_stored(const struct call *call, const struct err *e);
/* Replaces what there is of the answer. The error stays the caller's. */
void problem_answer(struct call *call, const struct err *e);

#endif
