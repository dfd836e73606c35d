/* The service: everything a request may need, in one place. Made and unmade by service_new and
 * service_free in exactly reverse order; nothing here is global. */
#ifndef ADMIN_SERVICE_H
#define ADMIN_SERVICE_H

#include "admin/metrics.h"
#include "base/limits.h"
#include "fetch/fetch.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/webhook.h"
#include "io/timer.h"
#include "rest/access.h"
#include "rest/clients.h"
#include "rest/error_log.h"
#include "rest/request.h"
#include "rest/resource.h"
#include "rest/scan.h"
#include "store/once.h"
#include "store/turn.h"

/* Retention: member, configuration name, default, unit. */
#define RETENTIONS(X)                                                                              \
    X(error_days, "ErrorDays", 30, "days")                                                         \
    X(errors, "Errors", 10000, "entities")                                                         \
    X(log_days, "WebhookLogDays", 14, "days")                                                      \
    X(log_entries, "WebhookLogEntries", 100000, "entities")                                        \
    X(event_days, "EventDays", 1, "days")                                                          \
    X(events, "Events", 100000, "events")                                                          \
    X(idempotency_seconds, "IdempotencySeconds", 86400, "seconds")                                 \
    X(idempotency_keys, "IdempotencyKeys", 1000000, "keys")

struct retention {
#define RETENTION_AS_MEMBER(member, name, value, unit) int64_t member;
    RETENTIONS(RETENTION_AS_MEMBER)
#undef RETENTION_AS_MEMBER
};

enum { CONNECTIONS_PER_HOST = 32 };

struct service_options {
    struct limits limits;
    struct retention retention;
    const char *base_path;         /* "/" or "/x" */
    const char **cors_origins;     /* NULL-terminated; NULL: none */
    uint32_t delivery_in_flight;   /* attempts under way in all */
    unsigned connections_per_host; /* attempts under way to one; 0: CONNECTIONS_PER_HOST */
    struct fetch_options fetch;
    struct resolve_options resolve;
    struct egress_rules egress; /* moved into the service */
    struct access access;       /* moved into the service */
};

struct service {
    struct loop *loop;
    struct store *store;
    struct turn *turn;
    struct limits limits;
    struct retention retention;
    struct span base_path;
    const char **cors_origins;
    uint32_t delivery_in_flight;
    unsigned connections_per_host;
    struct access access;
    struct clients *clients;
    struct egress_rules egress;
    struct resources resources;
    struct resolver *resolver;
    struct fetcher *fetcher;
    struct events *events;
    struct once *once;
    struct webhooks *webhooks;
    struct deliveries *deliveries;
    struct scans scans;
    struct metrics metrics;
    struct collection *stored_errors, *stored_log; /* what retention looks at each time */
    struct timer retention_timer;
    bool retention_is_soon; /* the timer runs and is about to fire */
    bool is_draining;
    char *failed; /* why nothing is acknowledged any more; NULL: all is well */
    /* Told once when that happens: the owner ends the process. */
    void (*on_failed)(void *context);
    void *on_failed_context;
};

/* Makes the service over an open loop. The store is empty until service_open. */
struct err *service_new(struct loop *loop, struct service_options *options,
                        struct service **out_service) MUST_USE;
/* Opens the journal and replays it. Resources are to be declared next (declarations_configure). */
struct err *service_open(struct service *s, const struct turn_options *options) MUST_USE;
/* Begins to deliver and to forget. */
void service_start(struct service *s);
/* No new deliveries start; those under way may finish, see deliveries_in_flight. */
void service_drain(struct service *s);
void service_free(struct service *s);

#endif
