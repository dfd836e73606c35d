/* What is kept for a while only: errors, log entries, ended deliveries, events, idempotency keys.
 * Looked at a little at a time, soon after something was stored (docs/specification.md, section 9).
 * When the heap comes near to MemoryBytes, logs make room before their time. */
#ifndef HOOKS_RETENTION_H
#define HOOKS_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

/* Retention: member, configuration name, default, unit. */
#define RETENTIONS(X)                                                                              \
    X(error_days, "ErrorDays", 30, "days")                                                         \
    X(errors, "Errors", 10000, "entities")                                                         \
    X(error_bytes, "ErrorBytes", 67108864, "bytes")                                                \
    X(log_days, "WebhookLogDays", 14, "days")                                                      \
    X(log_entries, "WebhookLogEntries", 100000, "entities")                                        \
    X(log_bytes, "WebhookLogBytes", 268435456, "bytes")                                            \
    X(event_days, "EventDays", 1, "days")                                                          \
    X(events, "Events", 100000, "events")                                                          \
    X(event_bytes, "EventBytes", 268435456, "bytes")                                               \
    X(idempotency_seconds, "IdempotencySeconds", 86400, "seconds")                                 \
    X(idempotency_keys, "IdempotencyKeys", 1000000, "keys")

struct retention_limits {
#define RETENTION_AS_MEMBER(member, name, value, unit) int64_t member;
    RETENTIONS(RETENTION_AS_MEMBER)
#undef RETENTION_AS_MEMBER
};

struct hooks;
struct retention;

struct retention *retention_new(struct hooks *hooks);
/* NULL is allowed. */
void retention_free(struct retention *r);
/* Something was stored that may have to go one day, or the service starts. Cheap. */
void retention_wake(struct retention *r);
/* The heap is beyond MemoryBytes: takes out at once what logs can spare, a slice. Nothing else may
 * be under way (store/change.h). */
void retention_make_room(struct retention *r);
/* Has nothing to take out now, or no room to do so. */
bool retention_idle(const struct retention *r);

#endif
