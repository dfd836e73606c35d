/* POST on Svc.Event: res_event.c's own. */
#ifndef HOOKS_EVENT_POST_H
#define HOOKS_EVENT_POST_H

#include "base/err.h"

struct call;
struct hooks;

/* Raises the event, or events, that the request describes or carries; those that it repeats are
 * answered as they were (repeat.h). All or none. */
struct err *event_post(struct hooks *hooks, struct call *call) MUST_USE;

#endif
