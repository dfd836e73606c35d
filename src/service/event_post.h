/* POST on Svc.Event: res_event.c's own. */
#ifndef SERVICE_EVENT_POST_H
#define SERVICE_EVENT_POST_H

#include "service/request.h"

/* Raises the event, or events, that the request describes or carries; those that it repeats are
 * answered as they were (repeat.h). All or none. */
struct err *event_post(struct call *call) MUST_USE;

#endif
