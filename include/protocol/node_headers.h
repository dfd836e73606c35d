/* Header fields between the nodes of a cluster, and of clients that read their own writes there
 * (docs/specification.md, section 15), as text. Pure.
 *
 * A change that a follower passes on to the leader comes with `Svc-cluster`: whose request it is,
 * by address and key, which the leader believes because of an HMAC-SHA-256 by the cluster's secret.
 * It covers the request too (method, target, body), so that it is good for that request alone, and
 * the time, so that it is good for a moment only. Within that moment the same request could be sent
 * again by who has seen it: what must not happen twice is protected by ClientId and If-Match, and
 * what nobody may see by TLS. */
#ifndef PROTOCOL_NODE_HEADERS_H
#define PROTOCOL_NODE_HEADERS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum {
    PASSED_ON_SECONDS = 30,      /* how far the clocks of two nodes may be apart */
    PASSED_ON_SECRET_BYTES = 32, /* of the cluster's secret, at least */
    PASSED_ON_CLIENT_BYTES = 64, /* of an address, at most */
    PASSED_ON_KEY_BYTES = 512,   /* of a key's name as others tell it apart, at most */
    PASSED_ON_NODE_BYTES = 64,
};

/* The `client` of what a node asks for itself, which is nobody's address. */
#define PASSED_ON_ITSELF SPAN("node")

/* The names: Svc-cluster, Svc-serial, Svc-min-serial. */
extern const struct span node_headers_passed_on, node_headers_serial, node_headers_min_serial;

/* Who asks. */
struct passed_on {
    struct span node;   /* that passes it on: letters, digits, '-', '.' and '_' */
    struct span client; /* the client's address as text; visible characters but ';' */
    struct span key;    /* what tells the client's key from all others; absent: it has none */
    int64_t at_unix_ms;
};

/* What is asked, as it is sent. */
struct passed_request {
    struct span method, target, body;
};

/* Appends the value of `Svc-cluster`. */
void passed_on_add(struct buf *b, struct span secret, const struct passed_on *who,
                   const struct passed_request *request);
/* Reads one. ERR_NOT_AUTHORIZED: it is none, was made with another secret or for another request,
 * or at another time; the message does not tell which of the first ones. The spans lie in the value
 * and in the arena. */
struct err *passed_on_read(struct span value, struct span secret,
                           const struct passed_request *request, int64_t now_unix_ms,
                           struct arena *a, struct passed_on *out_who) MUST_USE;

/* `Svc-min-serial`: what the answer must have seen. Absent: 0. ERR_INVALID_CONDITION_VALUE, which
 * names it, when it is no serial. */
struct err *min_serial_read(struct span value, uint64_t *out_serial) MUST_USE;

#endif
