/* The member Status of a webhook, how it is doing and why (docs/specification.md, section 8). */
#ifndef WEBHOOK_WEBHOOK_STATUS_H
#define WEBHOOK_WEBHOOK_STATUS_H

#include "base/macros.h"
#include "base/span.h"

#include <stddef.h>
#include <stdint.h>

struct buf;
struct enumeration;
struct shape;

#define WEBHOOK_STATES(X)                                                                          \
    X(WEBHOOK_ACTIVE, "Active")                                                                    \
    X(WEBHOOK_PAUSED, "Paused")                                                                    \
    X(WEBHOOK_UNVERIFIED, "Unverified")                                                            \
    X(WEBHOOK_HELD_BACK, "HeldBack")                                                               \
    X(WEBHOOK_FAILING, "Failing")                                                                  \
    X(WEBHOOK_THROTTLED, "Throttled")

enum webhook_state { WEBHOOK_STATES(AS_SYMBOL) };

/* Times are in nanoseconds since 1970; 0: none. */
struct webhook_status {
    enum webhook_state state;
    struct span reason; /* absent: it is active */
    int64_t held_until_unix_ns, failing_since_unix_ns;
    size_t pending, waiting; /* deliveries that could be attempted now, and that wait for a time */
    uint32_t in_flight;
    int64_t oldest_unix_ns; /* when the event of the oldest that has not ended was raised */
    int64_t next_attempt_unix_ns;
    uint64_t recent;       /* one bit an attempt, the last one lowest: was it a success? */
    unsigned recent_count; /* of these */
    int64_t success_unix_ns, failure_unix_ns; /* the last of each */
    struct span error;                        /* of the last failure; absent: none */
};

extern const struct enumeration webhook_state_names;

/* The table of its members. */
extern const struct shape webhook_status_shape;
void webhook_status_add(const struct webhook_status *status, struct buf *b);

#endif
