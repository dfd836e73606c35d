/* What a service is made with. */
#ifndef ADMIN_SERVICE_OPTIONS_H
#define ADMIN_SERVICE_OPTIONS_H

#include "access/access_keys.h"
#include "base/limits.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "hooks/retention.h"

struct service_options {
    struct limits limits;
    struct retention_limits retention;
    const char *base_path;            /* "/" or "/x" */
    const char **cors_origins;        /* NULL-terminated; NULL: none */
    const char **hosts;               /* as in struct rest */
    const char **secret_headers;      /* Limits.SecretHeaders, likewise */
    const char *cloudevents_source;   /* CloudEventsSource; NULL: none */
    const char **cloudevents_origins; /* as in struct rest */
    uint32_t delivery_in_flight;      /* attempts under way in all */
    unsigned connections_per_host;    /* attempts under way to one; 0: HOOKS_CONNECTIONS_PER_HOST */
    uint64_t body_bytes_in_flight;    /* of attempts under way; 0: HOOKS_BODY_BYTES */
    uint32_t prompt_ms;               /* what takes as long is slow; 0: PACING_PROMPT_MS */
    struct fetch_options fetch;
    struct resolve_options resolve;
    struct egress_rules egress; /* moved into the service */
    struct access access;       /* moved into the service */
};

#endif
