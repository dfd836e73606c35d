/* Svc.Admin.WebhookLog: one entry an attempt (docs/specification.md, section 8). */
#ifndef WEBHOOK_WEBHOOK_LOG_H
#define WEBHOOK_WEBHOOK_LOG_H

#include "base/uuid.h"

struct change;
struct shape;

extern const struct span webhook_log_resource;
extern const struct shape webhook_log_shape, webhook_log_stored_shape;

struct webhook_log_entry {
    struct uuid webhook, delivery, event;
    unsigned attempt; /* from 1 */
    struct span method, destination;
    int64_t time_unix_ns; /* when it began */
    bool is_success;
    int status;        /* 0: no answer */
    struct span error; /* in words; empty: none */
    size_t body_bytes; /* sent */
    uint32_t duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms;
    struct span response_body; /* kept as far as WEBHOOK_LOG_BODY_BYTES go */
    struct span tenant;        /* the webhook's; empty: none */
    /* Of what was sent, a JSON string: a header field a line, and behind an empty line the body, as
     * far as they are kept; absent: nothing was sent. And the value of webhook-signature, when that
     * is one more, the last. */
    struct span sent, signature;
};

/* Of a body, as it is written: with what is escaped. */
enum { WEBHOOK_LOG_BODY_BYTES = 4096 };

/* Adds the entry to a change. */
void webhook_log_add(struct change *change, const struct webhook_log_entry *entry);

#endif
