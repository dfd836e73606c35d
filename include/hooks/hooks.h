/* What events, webhooks and deliveries need, in one place. The service sets it up
 * (admin/service.h); everything it points to outlives it. */
#ifndef HOOKS_HOOKS_H
#define HOOKS_HOOKS_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct deliveries;
struct egress_rules;
struct events;
struct fetcher;
struct forgotten;
struct limits;
struct loop;
struct metrics;
struct once;
struct rest;
struct retention;
struct retention_limits;
struct shares;
struct store;
struct turn;
struct webhook_lanes;
struct webhooks;
struct worst;

enum { HOOKS_CONNECTIONS_PER_HOST = 32, HOOKS_BODY_BYTES = 64 << 20 };

struct hooks_options {
    struct rest *rest;       /* evaluates requests to local destinations */
    struct fetcher *fetcher; /* sends the others */
    const struct egress_rules *egress;
    const struct retention_limits *retention;
    uint32_t in_flight_most;        /* attempts under way in all */
    unsigned connections_per_host;  /* attempts under way to one; 0: HOOKS_CONNECTIONS_PER_HOST */
    uint64_t body_bytes_most;       /* of attempts under way; 0: HOOKS_BODY_BYTES */
    uint32_t prompt_ms;             /* what takes as long is slow; 0: PACING_PROMPT_MS */
    struct span cloudevents_source; /* of events that came without one; empty: there is none */
};

struct hooks {
    struct rest *rest;
    /* The rest's own. */
    struct loop *loop;
    struct store *store;
    struct turn *turn;
    const struct limits *limits;
    struct metrics *metrics;
    struct fetcher *fetcher;
    const struct egress_rules *egress;
    const struct retention_limits *retention_limits;
    uint32_t in_flight_most;
    unsigned connections_per_host;
    uint64_t body_bytes_most;
    uint32_t prompt_ms;
    struct span cloudevents_source, cloudevents_origin; /* the latter: the host of the former */
    struct events *events;
    struct once *once;
    struct webhook_lanes *lanes; /* its own */
    struct webhooks *webhooks;
    struct shares *shares;
    struct deliveries *deliveries;
    struct forgotten *forgotten;
    struct retention *retention;
    struct worst *worst; /* its own; by the lanes' worst_entry */
    /* Asked before each attempt: in a cluster, whether this node leads. NULL: any may start. */
    bool (*may_deliver)(const void *context);
    const void *may_deliver_context;
};

/* Over an empty store, before the built-in resources are added: handlers are told of a replay in
 * the order in which they were registered. */
void hooks_init(struct hooks *hooks, const struct hooks_options *options);
/* To be called when the built-in resources are there: webhooks follow their collection, and the
 * rest's observer is set. */
void hooks_observe(struct hooks *hooks);
/* Begins to deliver and to forget. */
void hooks_start(struct hooks *hooks);
/* Ends what is under way; to be called before the fetcher is freed. */
void hooks_stop(struct hooks *hooks);
void hooks_done(struct hooks *hooks);

#endif
