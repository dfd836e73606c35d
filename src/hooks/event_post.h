/* POST on Svc.Event: res_event.c's own. */
#ifndef HOOKS_EVENT_POST_H
#define HOOKS_EVENT_POST_H

#include "rest/request.h"

/* Raises the event, or events, that the request describes or carries; those that it repeats are
 * answered as they were (repeat.h). All or none. */
struct err *event_post(struct call *call) MUST_USE;

#endif
