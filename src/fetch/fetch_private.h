/* What the files of the module fetch share.
 *
 *   fetch.c           the way of a fetch: name, connection, exchange, who is called when
 *   fetch_origin.c    what is known of each scheme, host and port
 *   fetch_conn.c      connections: made, used, kept, closed; which are ours
 *   fetch_connect.c   libcurl makes them: the easy handle of each
 *   fetch_socket.c    libcurl's sockets and its timer on the loop
 *   fetch_tls.c       what OpenSSL is given that libcurl does not give it
 *   fetch_channel.c   bytes over a connection that is made, with TLS and without
 *   fetch_request.c   the head of a request
 *   fetch_exchange.c  a request out, its answer in
 *   fetch_answer.c    what the bytes of an answer amount to
 *   fetch_url.c       what a usable URL is */
#ifndef FETCH_FETCH_PRIVATE_H
#define FETCH_FETCH_PRIVATE_H

#include "fetch_answer.h"

#include "fetch/resolve.h"
#include "io/timer.h"

#include "base/map.h"
#include "fetch/egress.h"

#include <curl/curl.h>
#include <openssl/ssl.h>

#define FETCH_KIND_FETCHER 0x66746572u
#define FETCH_KIND_CONN 0x66636f6eu

#define FETCH_USER_AGENT "svcd/" SVCD_VERSION

#define NS_PER_MS 1000000u

/* Where to connect to. */
struct fetch_target {
    struct span name; /* as in the URL, without brackets */
    unsigned port;
    bool literal; /* the name is an address */
};

/* The target of `scheme://host` or `scheme://host:port`, nothing else. False: it is not usable. */
bool fetch_target_parse(struct span origin, struct fetch_target *out_target);
/* The target of a proxy's URL, which may hold a user name and a password, and must hold a port. */
bool fetch_proxy_parse(struct span url, struct fetch_target *out_target);
/* NULL, or why the address is refused. Of names only localhost's are known: both must be. */
const char *fetch_target_refused(const struct egress_rules *rules,
                                 const struct fetch_target *target, char out_why[EGRESS_WHY_BYTES]);

struct fetch_origin {
    struct fetcher *fetcher;
    unsigned refs;           /* callers', fetches', connections' */
    struct list_link unused; /* in the fetcher's list while there are none */
    void *user;
    bool is_usable; /* `target` is valid */
    bool is_tls;
    struct fetch_target target;
    bool has_address;
    bool hangs_up; /* it has ended a kept connection, which showed when that was used */
    struct in6_addr address;
    struct list kept; /* struct fetch_conn, idle, the one used last first */
    CURLSH *share;    /* its TLS sessions; NULL: none was needed */
    size_t bytes;
    char text[]; /* its key, with a NUL behind */
};

/* Each state is one list of the fetcher. */
enum fetch_state {
    FETCH_UNUSED,     /* kept for the next fetch */
    FETCH_RESOLVING,  /* waits for the resolver */
    FETCH_CONNECTING, /* waits for libcurl */
    FETCH_EXCHANGING, /* sends, waits for the answer, or reads it */
    FETCH_ENDED,      /* inside fetch_start: on_done is called at the end of the turn */
    FETCH_STATE_COUNT
};

/* One fetch under way. */
struct fetch_transfer {
    uint8_t state;         /* enum fetch_state */
    struct list_link link; /* in the list of its state */
    struct fetcher *fetcher;
    struct fetch *fetch; /* NULL when unused */
    struct fetch_origin *origin;
    struct resolve_query query;
    struct timer deadline; /* of the whole fetch */
    struct fetch_conn *conn;
    bool is_starting; /* inside fetch_start */
    bool is_paused;   /* its connection is not read */
    bool sends_body;
    struct buf head; /* of the request */
    size_t sent;     /* of head and body */
    uint64_t begun_ns;
    struct fetch_answer answer;
    struct fetch_result result; /* as far as it is known; whole when it has ended */
};

enum fetch_conn_state {
    FETCH_CONN_SPARE,  /* none: an easy handle, kept for the next */
    FETCH_CONN_MAKING, /* libcurl's */
    FETCH_CONN_BUSY,   /* has a transfer */
    FETCH_CONN_IDLE,   /* kept for the next of its origin */
    FETCH_CONN_STATE_COUNT
};

struct fetch_conn {
    unsigned kind;
    uint8_t state;         /* enum fetch_conn_state */
    struct list_link link; /* in the fetcher's list of the state; idle ones longest first */
    struct list_link kept; /* IDLE: in its origin's */
    struct fetcher *fetcher;
    struct fetch_origin *origin;
    struct fetch_transfer *transfer;
    CURL *easy;                  /* which keeps the connection open */
    struct fetch_socket *socket; /* the connection's; NULL while it is being made */
    SSL *ssl;       /* NULL: no TLS, or through a proxy that is spoken to over TLS itself */
    bool is_direct; /* bytes go past libcurl: see fetch_channel.c */
    bool was_used;  /* has brought an answer */
    bool has_early; /* `early` came before anything was asked */
    char early;
    bool is_drained;  /* when its answer was read nothing more was there */
    bool has_hung_up; /* its end was seen before that was read */
    uint64_t opened_ms, idle_since_turn, idle_since_wait;
    struct ip_ends ends;    /* of the socket, while it is there */
    unsigned messages;      /* of TLS, since the loop last called */
    struct loop_task again; /* more may be there to be read */
    /* While it is being made. */
    uint64_t launched_ns;
    struct list sockets;      /* struct fetch_socket, opened for it and not closed */
    struct list_link stalled; /* in the fetcher's list */
    bool is_noisy;            /* was ended for what it sent */
    struct curl_slist pin;    /* for libcurl to know the target's addresses by */
    struct buf pin_text;
    unsigned allowed_addresses;     /* sockets opened */
    const char *no_socket;          /* why the kernel gave none for an address; NULL */
    char refused[EGRESS_WHY_BYTES]; /* why the first address was refused, "" when none was */
    char text[CURL_ERROR_SIZE];     /* libcurl's or OpenSSL's words for what went wrong */
};

struct fetcher {
    unsigned kind;
    struct loop *loop;
    struct resolver *resolver;
    const struct egress_rules *rules;
    struct fetch_options options;     /* numbers that were 0 are what that means */
    struct fetch_target proxy_target; /* valid with a proxy */
    bool sends_url;                   /* the proxy is asked for http:// by the whole URL */
    struct buf proxy_authorization;   /* the header field's value; empty: none */
    size_t active;
    struct map own;             /* struct fetch_conn with a socket, by its ends */
    struct map origins;         /* struct fetch_origin */
    struct list unused_origins; /* longest first */
    struct list transfers[FETCH_STATE_COUNT];
    struct list conns[FETCH_CONN_STATE_COUNT];
    struct timer sweep; /* of idle connections */
    struct loop_task turn;
    CURLM *multi;
    CURLSH *share;      /* of handles that have no origin of TLS */
    struct timer timer; /* libcurl's */
    bool due;           /* libcurl's timer is at zero */
    uint64_t prune_at_ms;
    struct list stalled;           /* connections whose address failed */
    struct list woken;             /* struct fetch_socket: libcurl is to be called for them */
    struct fetch_socket **sockets; /* by descriptor */
    size_t socket_count;
};

/* fetch.c */

/* Its connection is made; it took so long from its beginning to be connected, and to the end of the
 * handshake (0: none). The request goes out, and on_done may be called before this returns. */
void fetch_on_connected(struct fetch_transfer *t, uint32_t connect_ms, uint32_t tls_ms);
/* How long ago it began. */
uint32_t fetch_age_ms(const struct fetch_transfer *t);
/* More of a stream has come: its time begins anew. */
void fetch_go_on(struct fetch_transfer *t);
/* Ends it: FETCH_OK with `why` "", which is copied. on_done may be called before this returns. */
void fetch_end(struct fetch_transfer *t, enum fetch_error error, const char *why);
/* Its kept connection had ended before it was used: it goes on a new one. */
void fetch_try_again(struct fetch_transfer *t);

/* fetch_origin.c */

struct fetch_origin *fetch_origin_ref(struct fetch_origin *origin);
void fetch_origins_init(struct fetcher *f);
/* Nothing may refer to any. */
void fetch_origins_done(struct fetcher *f);

/* fetch_conn.c */

void fetch_conns_init(struct fetcher *f);
void fetch_conns_done(struct fetcher *f);
/* One for the transfer to be made, with an easy handle; the oldest idle one makes room for it.
 * NULL: libcurl has no memory. */
struct fetch_conn *fetch_conn_new(struct fetch_transfer *t);
/* One that can be used at once; NULL: there is none. */
struct fetch_conn *fetch_conn_take(struct fetch_transfer *t);
/* It is made: its socket, from now on. */
void fetch_conn_made(struct fetch_conn *c, struct fetch_socket *socket);
/* Keeps it for the next request to its origin. */
void fetch_conn_keep(struct fetch_conn *c);
/* In any state but SPARE. */
void fetch_conn_close(struct fetch_conn *c);
/* Its socket has something, or has ended. */
void fetch_conn_on_event(struct fetch_conn *c, int status, int events);

/* fetch_connect.c */

/* A place for TLS sessions. NULL: libcurl has no memory. */
CURLSH *fetch_connect_share(void);
/* ERR_UNKNOWN: libcurl lacks what is needed. */
struct err *fetch_connect_open(struct fetch_conn *c) MUST_USE;
/* NULL is allowed: of a connection that has none. */
void fetch_connect_close(struct fetch_conn *c);
/* `addresses`: NULL when the target needs none. False: libcurl does not take it. */
bool fetch_connect_launch(struct fetch_conn *c, const struct resolve_result *addresses);
/* Ends what it makes, or has made: its sockets are closed. */
void fetch_connect_stop(struct fetch_conn *c);
/* libcurl is done with it; the transfer is told. */
void fetch_connect_finish(struct fetch_conn *c, CURLcode code);

/* fetch_socket.c */

void fetch_sockets_init(struct fetcher *f);
void fetch_sockets_done(struct fetcher *f);
/* CURLOPT_OPENSOCKETFUNCTION with the connection, CURLOPT_CLOSESOCKETFUNCTION with the fetcher. */
curl_socket_t fetch_socket_on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address);
int fetch_socket_on_close(void *data, curl_socket_t fd);
/* The socket with this descriptor; NULL: it is not libcurl's. */
struct fetch_socket *fetch_socket_at(const struct fetcher *f, curl_socket_t fd);
curl_socket_t fetch_socket_fd(const struct fetch_socket *s);
/* The sockets opened for the connection, except `but`, belong to nobody from now on. */
void fetch_sockets_forget(struct fetch_conn *c, const struct fetch_socket *but);
/* Far more has come for the connection than it can have asked for: its sockets end. */
void fetch_sockets_end_noise(struct fetch_conn *c);
/* UV_READABLE, UV_DISCONNECT, UV_WRITABLE. */
void fetch_socket_watch(struct fetch_socket *s, int events);
/* Lets libcurl do what is due, for a bounded time, and finishes what it has completed. */
void fetch_sockets_run(struct fetcher *f);

/* fetch_tls.c */

/* CURLOPT_SSL_CTX_FUNCTION with the connection as its data. */
CURLcode fetch_tls_on_context(CURL *easy, void *context, void *data);

/* fetch_channel.c */

/* A connection was made. False: it has ended already. */
bool fetch_channel_open(struct fetch_conn *c);
/* It has brought an answer, and is about to be kept. */
void fetch_channel_settle(struct fetch_conn *c);
/* Bytes; 0 at the end; or a negative errno: -EAGAIN none now, -EPROTO for TLS and libcurl, whose
 * words are in c->text. */
ssize_t fetch_channel_read(struct fetch_conn *c, char *p, size_t size);
/* How many bytes were taken, of the first and then of the second, or a negative errno. What was not
 * taken comes again next time. */
ssize_t fetch_channel_write(struct fetch_conn *c, struct span first, struct span second);
/* Nobody has sent anything since the last answer, and the connection has not ended. */
bool fetch_channel_is_quiet(struct fetch_conn *c);
/* Bytes have been read from the socket that nobody has asked for yet. */
bool fetch_channel_holds_bytes(const struct fetch_conn *c);

/* fetch_request.c */

/* The head of t->fetch's request into t->head. NULL, or why it cannot be sent. */
const char *fetch_request_write(struct fetch_transfer *t);

/* fetch_exchange.c */

/* What has become of is_paused. */
void fetch_exchange_pause(struct fetch_conn *c);
/* Sends the transfer's request over its connection. */
void fetch_exchange_begin(struct fetch_conn *c);
void fetch_exchange_on_event(struct fetch_conn *c, int status, int events);
void fetch_exchange_read(struct fetch_conn *c);

#endif
