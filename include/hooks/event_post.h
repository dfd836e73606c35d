/* POST on Svc.Event: res_event.c's own. */
#ifndef HOOKS_EVENT_POST_H
#define HOOKS_EVENT_POST_H

#include "json/json.h"

struct arena;
struct call;
struct event;
struct events;
struct hooks;
struct resource;
struct uri;
struct webhook;
struct webhooks;

/* The event resource of that name, on which the key must have some right. Errors of resource_find,
 * ERR_WRONG_RESOURCE_KIND, ERR_NOT_AUTHORIZED. */
struct err *event_resource_find(struct call *call, struct span name,
                                struct resource **out_resource) MUST_USE;
/* The same, to be raised: those of notices are ERR_NOT_AUTHORIZED. */
struct err *event_post_find(struct call *call, struct span name,
                            struct resource **out_resource) MUST_USE;
/* The webhook of this Id: ERR_NOT_AUTHORIZED for a key that may not read webhooks, `unknown` where
 * there is none that it may see. */
struct err *event_webhook_find(const struct call *call, const struct webhooks *webhooks,
                               struct span id, enum err_code unknown,
                               const struct webhook **out_webhook) MUST_USE;
/* An object, or an array of them, as the resource declares its payload? As schema_check, with its
 * errors. */
struct err *event_post_check(struct call *call, const struct resource *resource,
                             struct json_value payload) MUST_USE;

/* Of a POST whose conditions could not be read: ERR_INVALID_CONDITION_SYNTAX where one is none of
 * those that describe an event. */
struct err *event_post_check_conditions(const struct uri *uri) MUST_USE;

/* What conditions look at of an event that is kept: its entities, in the arena, with the attributes
 * of a CloudEvent beside them; absent for one of bytes alone. Errors of payload_get. */
struct err *event_cloud_entities(struct events *events, struct event *event, struct arena *a,
                                 struct json_value *out_entities) MUST_USE;

/* Raises the event, or events, that the request describes or carries; those that it repeats are
 * answered as they were (idempotency.h). All or none. */
struct err *event_post(struct hooks *hooks, struct call *call) MUST_USE;

#endif
