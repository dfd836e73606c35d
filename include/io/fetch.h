/* Outgoing HTTP requests: libcurl's multi interface on the loop, names from `resolve`, addresses
 * checked by `egress` when the socket is opened, keep-alive, HTTP/2 over TLS where offered.
 * Redirects are not followed, signals and libcurl's own resolver are not used, compressed answers
 * are not unpacked. (design: performance.md, "libcurl"; architecture.md, "Deliveries".) */
#ifndef IO_FETCH_H
#define IO_FETCH_H

#include "io/egress.h"
#include "io/resolve.h"

#include "base/arena.h"
#include "base/blob.h"

struct fetcher;

struct fetch_options {
    unsigned connect_timeout_ms;       /* 0: 5000 */
    unsigned max_connections;          /* kept open in all; 0: 1024 */
    unsigned max_connections_per_host; /* at once; 0: 32 */
    unsigned starts_per_turn;          /* 0: 32 */
    const char *proxy;                 /* NULL: none; the environment is not read */
    const char *ca_file;               /* NULL: the system's */
    const char *user_agent;            /* NULL: svcd/<version> */
};

#define FETCH_ERRORS(X)                                                                            \
    X(FETCH_OK, "ok")                                                                              \
    X(FETCH_NAME, "name not resolved")                                                             \
    X(FETCH_REFUSED_ADDRESS, "address not allowed")                                                \
    X(FETCH_CONNECT, "not connected")                                                              \
    X(FETCH_TLS, "TLS failed")                                                                     \
    X(FETCH_TIMEOUT, "timed out")                                                                  \
    X(FETCH_PROTOCOL, "answer is not valid HTTP")                                                  \
    X(FETCH_CLOSED, "connection closed before the answer was complete")                            \
    X(FETCH_OTHER, "failed")

enum fetch_error {
#define FETCH_AS_ENUM(symbol, text) symbol,
    FETCH_ERRORS(FETCH_AS_ENUM)
#undef FETCH_AS_ENUM
};

struct fetch_header {
    struct span name, value;
};

struct fetch_result {
    enum fetch_error error;
    char why[192];         /* in words, names the address or host; "" when ok */
    int status;            /* 0: no answer */
    int64_t retry_after_s; /* of the Retry-After header, seconds or date; -1: none */
    struct span body;      /* the first keep_bytes; valid during on_done only */
    uint64_t body_bytes;   /* received in all */
    bool truncated;        /* read_bytes reached: the connection was given up, the status counts */
    uint32_t total_ms, dns_ms, connect_ms, tls_ms, first_byte_ms; /* phases, each from the start */
    bool reused; /* the connection had been used before */
};

struct fetch {
    /* Set by the caller before fetch_start; the memory stays in place until on_done. */
    struct span method;
    struct span url; /* absolute, http or https, normalised, without userinfo */
    const struct fetch_header *headers;
    size_t header_count;
    struct blob *body;   /* NULL: none; the fetch takes a reference of its own */
    unsigned timeout_ms; /* the whole attempt */
    size_t read_bytes;   /* of an answer's body; 0: 65536 */
    size_t keep_bytes;   /* 0: 4096 */
    void (*on_done)(struct fetch *f, const struct fetch_result *result);
    /* Private. */
    struct list_link link;
    struct fetch_transfer *transfer;
};

/* The resolver and the rules are borrowed and outlive the fetcher. */
struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher) MUST_USE;
/* Fetches under way are cancelled without their callbacks. */
void fetcher_free(struct fetcher *f);
/* Queues; on_done fires exactly once, from the loop, never from here, unless cancelled. */
void fetch_start(struct fetcher *fetcher, struct fetch *f);
void fetch_cancel(struct fetcher *fetcher, struct fetch *f);
/* Started and not done. */
size_t fetch_active(const struct fetcher *f);
const char *fetch_error_text(enum fetch_error error);
/* Is this text a usable destination? ERR_INVALID_ENTITY says what is wrong: scheme, userinfo,
 * host, port, control characters, length; a literal address that the rules refuse. The normal form
 * (lower-case scheme and host, default port and fragment dropped) goes into the arena. */
struct err *fetch_check_url(const struct egress_rules *rules, struct span url, struct arena *a,
                            struct span *out_normal) MUST_USE;

#endif
