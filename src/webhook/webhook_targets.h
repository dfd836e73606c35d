/* The resources that a webhook's requests go to: a local Destination, a CustomPayloadRequest. */
#ifndef WEBHOOK_WEBHOOK_TARGETS_H
#define WEBHOOK_WEBHOOK_TARGETS_H

#include "protocol/method.h"
#include "json/json.h"

struct access_key;
struct resource;
struct resources;
struct rest;
struct uri;
struct webhook;

/* The resource that a local target leads to, which must have the method. Errors of uri_parse and
 * resource_find; ERR_INVALID_ENTITY. */
struct err *webhook_find_target(const struct resources *resources, struct span target,
                                enum method method, const struct access_key *key,
                                size_t max_conditions, struct arena *a, struct uri *out_uri,
                                struct resource **out_resource) MUST_USE;
/* Notes the targets that its text has. Errors of webhook_find_target, with the member's name in
 * front: some may be noted then. */
struct err *webhook_targets_add(struct webhook *w, struct rest *rest, struct json_value json,
                                struct arena *a) MUST_USE;
void webhook_targets_drop(struct webhook *w);
/* One of those whose requests go to the resource; NULL: there is none. */
struct webhook *webhook_targets_first(const struct resource *resource);

#endif
