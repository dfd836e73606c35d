/* The steps of an evaluation once it is known that the caller may ask at all. */
#ifndef DISPATCH_STEPS_H
#define DISPATCH_STEPS_H

#include "base/macros.h"

struct call;
struct err;

/* From the caller's key, which the call has, to the answer: URI, resource, method, rights,
 * conditions, negotiation, and the resource's own work. The first error ends them; what has changed
 * until then is not applied. */
struct err *steps_take(struct call *call) MUST_USE;

#endif
