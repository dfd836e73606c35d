/* Outgoing HTTP/1.1 requests, one way for http and https, directly or through a proxy: names from
 * `resolve`; connections made by libcurl (addresses in their order and beside each other, proxies
 * and tunnels, TLS verified and resumed), each address let pass by `egress` when its socket is
 * opened; requests written and answers read here. Redirects are not followed, HTTP/2 is not
 * offered, compressed answers are not unpacked, the environment is not read.
 *
 * Connections are kept open and used again, for five minutes at most. The egress rules are applied
 * to the address that a connection is opened to, of all that the name has in their order: refused
 * ones are passed over, and only when none is left is the fetch refused. A kept connection goes on
 * leading to the address that was checked when it was opened, also when the name has moved.
 *
 * When a kept connection turns out to be closed before a byte of the answer came, the request is
 * sent again at once on a new connection, inside the same fetch. The receiver may then have seen it
 * twice: deliveries are at least once, and carry an id; what must not be done twice says so
 * (`is_once`). Bytes that come behind an answer are not taken for the next one: they end the
 * connection, when they are there before the next request goes out, or in the turn of the answer,
 * when that has been read.
 *
 * With a proxy the rules judge no address but literal ones in URLs (and localhost): the proxy is
 * the operator's choice, and names are resolved by it. */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include "base/err.h"
#include "base/header_field.h"
#include "base/list.h"

#include <netinet/in.h>

struct blob;
struct egress_rules;
struct fetcher;
struct ip_ends;
struct loop;
struct resolver;

/* Its texts are borrowed, and outlive the fetcher. */
struct fetch_options {
    unsigned connect_timeout_ms; /* 0: 5000 */
    /* Open in all: kept ones make room for new ones, those in use are the caller's to bound. 0:
     * 1024. */
    unsigned max_connections;
    /* `http://host:port`, `https://...`, `socks5h://...`, with `user:password@` where needed. NULL:
     * none; the environment is not read. */
    const char *proxy;
    const char *ca_file; /* also for a proxy's certificate; NULL: the system's */
    /* PEM, of the certificate that receivers are shown who ask for one; both or neither. */
    const char *cert_file, *key_file;
};

enum fetch_error {
    FETCH_OK,
    FETCH_NAME,            /* it is not resolved */
    FETCH_REFUSED_ADDRESS, /* by the rules */
    FETCH_CONNECT,
    FETCH_TLS,
    FETCH_TIMEOUT,
    FETCH_PROTOCOL, /* the answer is not valid HTTP */
    FETCH_CLOSED,   /* before the answer was complete */
    FETCH_OTHER
};

enum { FETCH_WANTED_MOST = 2 };

struct fetch_result {
    enum fetch_error error;
    char why[192]; /* in words, names the address or host; "" when ok */
    int status; /* of the final answer; 0: none. With FETCH_CLOSED and the like it may be there too
                 */
    int64_t
        retry_after_s; /* of the Retry-After header, seconds or date; at most a year; -1: none */
    /* Of each of `wanted` the answer's field, several with commas between; absent, or more than 256
     * bytes long: none. Valid during on_done only. */
    struct span found[FETCH_WANTED_MOST];
    struct span body;    /* the first keep_bytes; valid during on_done only */
    uint64_t body_bytes; /* received in all */
    bool truncated;      /* read_bytes reached: the connection was given up, the status counts */
    /* When each phase ended, from the start. 0: it was not reached, or, of a connection that was
     * used again, took place before. */
    uint32_t total_ms, dns_ms, connect_ms, tls_ms, first_byte_ms;
    bool reused;   /* the connection had been used before */
    bool was_sent; /* bytes of the request have gone out: the receiver may have seen it */
};

struct fetch {
    /* Zeroed, then set by the caller before fetch_start; the memory, also that which is pointed to,
     * stays in place until on_done. */
    struct fetch_origin *origin; /* of the URL; the fetch takes a reference of its own */
    struct span method;
    struct span url; /* absolute, http or https, normalised, without userinfo */
    const struct header_field *headers;
    size_t header_count;
    struct blob *body; /* NULL: none; the fetch takes a reference of its own. HEAD sends none */
    unsigned
        timeout_ms;    /* from the start (see total_ms) to the end, resolving included; 0: 30000 */
    size_t read_bytes; /* of an answer's body; 0: 65536 */
    size_t keep_bytes; /* 0: 4096 */
    /* NULL, or: the answer is a stream. The body of a 2xx goes here as it comes, and nothing of it
     * is kept or counts against read_bytes; timeout_ms begins anew with each piece. Nothing may be
     * started or cancelled in it; fetch_pause may. False: no more is wanted, and on_done says
     * truncated. */
    bool (*on_body)(struct fetch *f, struct span bytes);
    /* It is not sent again once a byte of it has gone out, whatever became of its connection. */
    bool is_once;
    /* NULL, or: called with each field of the final answer's head, as it comes. Nothing may be
     * started or cancelled in it. */
    void (*on_field)(struct fetch *f, struct span name, struct span value);
    /* Names of fields of the answer that are to be found. */
    const struct span *wanted;
    size_t wanted_count; /* at most FETCH_WANTED_MOST */
    /* NULL is allowed. A connection was made for it, to the address that fetch_origin_address gives
     * from now on; the request is sent next. Nothing may be started or cancelled in it. */
    void (*on_connected)(struct fetch *f);
    void (*on_done)(struct fetch *f, const struct fetch_result *result);
    /* Private. */
    struct list_link link;
    struct fetch_transfer *transfer;
};

/* Scheme, host and port of a URL: what connections are kept by and TLS sessions resumed by. The
 * fetcher keeps it for a while after the last reference is put back. */
struct fetch_origin;

/* The origin of a URL as fetch_check_url gives it; to be put back. */
struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url);
/* NULL is allowed. */
void fetch_origin_put(struct fetch_origin *origin);
/* `https://example.com:8443`; valid as long as the origin. */
struct span fetch_origin_text(const struct fetch_origin *origin);
/* A place for the caller's own pointer, NULL at first. Who fills it holds a reference, and empties
 * it before that is put back. */
void **fetch_origin_user(struct fetch_origin *origin);
/* Where connections to it lead: the address of the last that was made, an IPv4 address as
 * IPv4-mapped. False: none was made yet, or a proxy makes them. */
bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address);

/* The resolver and the rules are borrowed and outlive the fetcher; the rules do not change. Error
 * ERR_UNKNOWN: the proxy or the CA file cannot be used, or libcurl lacks what is needed. */
struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher) MUST_USE;
/* Fetches under way are cancelled without their callbacks. Not from inside a callback. NULL is
 * allowed. */
void fetcher_free(struct fetcher *f);
/* Starts at once: how many may be under way, in all and to one host, is the caller's to decide.
 * on_done fires exactly once, from the loop, never from here, unless cancelled. */
void fetch_start(struct fetcher *fetcher, struct fetch *f);
/* Of a stream that has begun: nothing is read until fetch_resume, and its time stands still; what
 * has been read already, 64 KiB at most, still comes. In on_body too. Nothing when it is done. */
void fetch_pause(struct fetch *f);
void fetch_resume(struct fetch *f);
/* Started, done or neither; its connection is closed if it has one. */
void fetch_cancel(struct fetcher *fetcher, struct fetch *f);
/* Started and not done. */
size_t fetch_active(const struct fetcher *f);
/* Was the connection, of which this process has the other end too, made by the fetcher? */
bool fetch_is_own(const struct fetcher *f, const struct ip_ends *ends);

#endif
