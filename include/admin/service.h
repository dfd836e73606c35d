/* The service as a whole: the loop's one store, what evaluates requests over it, and what delivers
 * events. Made and unmade by service_new and service_free in exactly reverse order; nothing here is
 * global. */
#ifndef ADMIN_SERVICE_H
#define ADMIN_SERVICE_H

#include "base/limits.h"
#include "hooks/hooks.h"
#include "hooks/retention.h"
#include "rest/rest.h"

struct egress_rules;
struct fetcher;
struct metrics;
struct resolver;
struct service_options;
struct turn_options;

struct service {
    struct limits limits;
    struct retention_limits retention;
    struct egress_rules *egress;
    struct metrics *metrics;
    struct store *store;
    struct turn *turn;
    struct rest rest;
    struct resolver *resolver;
    struct fetcher *fetcher;
    struct hooks hooks;
    bool is_draining;
    char *failed; /* why nothing is acknowledged any more; NULL: all is well */
    /* Told once when that happens: the owner ends the process. */
    void (*on_failed)(void *context);
    void *on_failed_context;
};

/* Makes the service over an open loop. The store is empty until service_replay. */
struct err *service_new(struct loop *loop, struct service_options *options,
                        struct service **out_service) MUST_USE;
/* It is to be a node of a cluster, and has what there is on a node alone. Before service_replay. */
void service_join_cluster(struct service *s);
/* Opens the journal and replays it. What the configuration has is to be listed and declared next
 * (api_keys_list_configured, declarations_configure), by a node of a cluster once it leads. */
struct err *service_replay(struct service *s, const struct turn_options *options) MUST_USE;
/* Begins to deliver and to forget. */
void service_start(struct service *s);
/* No new deliveries start; those under way may finish, see deliveries_in_flight. */
void service_drain(struct service *s);
void service_free(struct service *s);

#endif
