/* POST on Svc.Event: res_event.c's own. */
#ifndef HOOKS_EVENT_POST_H
#define HOOKS_EVENT_POST_H

#include "base/json.h"

struct call;
struct hooks;
struct resource;

/* To the message of an ERR_UNKNOWN_RESOURCE, how the event resource of that name is declared. Takes
 * the error over. */
struct err *event_say_how_to_declare(struct err *e, struct span name);
/* The event resource of that name, on which the key must have some right. Errors of resource_find,
 * ERR_WRONG_RESOURCE_KIND, ERR_NOT_AUTHORIZED. */
struct err *event_post_find(struct call *call, struct span name,
                            struct resource **out_resource) MUST_USE;
/* An object, or an array of them, as the resource declares its payload? As schema_check, with its
 * errors. */
struct err *event_post_check(struct call *call, const struct resource *resource,
                             struct json_value payload) MUST_USE;

/* Raises the event, or events, that the request describes or carries; those that it repeats are
 * answered as they were (idempotency.h). All or none. */
struct err *event_post(struct hooks *hooks, struct call *call) MUST_USE;

#endif
