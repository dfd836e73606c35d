/* What the files of the module fetch share.
 *
 *   fetch.c         queues, limits, the life of an attempt, who is called when
 *   fetch_plain.c   http:// without a proxy: see fetch_plain.h
 *   fetch_easy.c    an attempt as libcurl sees it: the easy handle and its request
 *   fetch_answer.c  what comes back: head, body, and what it all amounted to
 *   fetch_socket.c  libcurl's sockets and its timer on the loop
 *   fetch_tls.c     what OpenSSL is given that libcurl does not give it
 *   fetch_url.c     what a usable URL is */
#ifndef IO_FETCH_PRIVATE_H
#define IO_FETCH_PRIVATE_H

#include "io/fetch.h"
#include "io/timer.h"

#include "base/map.h"

#include <curl/curl.h>

#define FETCH_KIND_FETCHER 0x66746572u
#define FETCH_KIND_TRANSFER 0x66747261u

/* Where to connect to. */
struct fetch_target {
    struct span name; /* as in the URL, without brackets */
    unsigned port;
    bool literal; /* the name is an address */
};

/* Of `scheme://host` or `scheme://host:port` without anything else. False: not a usable one. */
bool fetch_target_parse(struct span origin, struct fetch_target *out_target);
/* Of a proxy's URL, which may have a user name and a password, and must have a port. */
bool fetch_proxy_parse(struct span url, struct fetch_target *out_target);
/* NULL, or why the address is refused. Of names only localhost's are known: both must be. */
const char *fetch_target_refused(const struct egress_rules *rules,
                                 const struct fetch_target *target, char out_why[EGRESS_WHY_BYTES]);

/* One scheme, host and port: what max_connections_per_host counts for. It exists while it has
 * fetches. */
struct fetch_host {
    struct list_link link; /* in the fetcher's `ready` */
    struct list queue;     /* struct fetch, not begun */
    unsigned busy;         /* transfers */
    bool usable;           /* `target` is valid */
    struct fetch_target target;
    size_t origin_bytes;
    char origin[]; /* its key, with a NUL behind */
};

/* Each state is one list of the fetcher. */
enum fetch_state {
    FETCH_IDLE,      /* has a handle, waits for work */
    FETCH_RESOLVING, /* waits for the resolver */
    FETCH_READY,     /* waits for its place in a turn */
    FETCH_RUNNING,   /* is libcurl's, or fetch_plain's */
    FETCH_STATE_COUNT
};

/* Why an answer was given up. */
enum fetch_stop {
    FETCH_GOES_ON,
    FETCH_BODY_READ,
    FETCH_HEAD_TOO_LONG,
    FETCH_TOO_MANY_INTERIM,
    FETCH_PACKED,
    FETCH_NUL,
    FETCH_NOISE /* see fetch_socket.c */
};

#define FETCH_HEAD_BYTES ((size_t)64 * 1024) /* of all heads and trailers of one fetch */

struct fetch_answer {
    int status; /* of the final head, 0 before it */
    bool http2;
    bool in_head;
    bool complete_head; /* of the final answer */
    unsigned interim;   /* heads of status 1xx */
    size_t head_bytes;  /* of all heads and trailers, as libcurl brings them */
    int64_t retry_after_s;
    struct buf body; /* the first bytes, up to its cap */
    uint64_t body_bytes;
    size_t read_bytes; /* how many of the body to read */
    enum fetch_stop stop;
};

/* To be tried in this order. An IPv4 address is in the front part of its item. */
struct fetch_addresses {
    struct sockaddr_in6 items[RESOLVE_MAX_ADDRESSES];
    unsigned count, next;
};

/* One attempt. Transfers are reused, with their easy handles. */
struct fetch_transfer {
    unsigned kind;
    uint8_t state;         /* enum fetch_state */
    struct list_link link; /* in the list of its state */
    struct fetcher *fetcher;
    struct fetch *fetch; /* NULL when idle */
    struct fetch_host *host;
    struct resolve_query query;
    struct timer deadline; /* of the whole attempt */
    uint64_t begun_ns, resolved_ns, launched_ns;
    bool is_plain; /* goes the way of fetch_plain.c, and the next members are in use: */
    bool sends_body;
    bool is_reused; /* its connection had been used before */
    struct fetch_addresses addresses;
    struct list conns;       /* struct plain_conn: the one in use, or those that are being made */
    struct timer connecting; /* until the next address, or the end of trying */
    uint64_t tried_ns, connected_ns, first_byte_ns;
    CURL *easy;
    bool prunes;       /* see fetch_easy_launch */
    struct buf memory; /* of what the request points to; a plain request's head */
    bool pinned;       /* `pin` is for libcurl to know the target's addresses by */
    struct curl_slist pin;
    struct buf pin_text;            /* of `pin` */
    struct list sockets;            /* struct fetch_socket, opened for it and not closed */
    struct list_link stalled;       /* in the fetcher's list */
    curl_socket_t fd;               /* the last that libcurl wanted watched for it, or -1 */
    const char *no_socket;          /* why the kernel gave none for an address; NULL */
    unsigned allowed_addresses;     /* sockets opened */
    char refused[EGRESS_WHY_BYTES]; /* why the first address was refused, "" when none was */
    char curl_text[CURL_ERROR_SIZE];
    struct fetch_answer answer;
};

/* The connections of fetch_plain.c. */
struct fetch_plain {
    struct list idle;   /* struct plain_conn, longest first */
    struct map origins; /* struct plain_origin */
    struct timer sweep;
    size_t open; /* idle or not */
};

struct fetcher {
    unsigned kind;
    struct loop *loop;
    struct resolver *resolver;
    const struct egress_rules *rules;
    unsigned connect_timeout_ms, max_connections, max_connections_per_host, starts_per_turn;
    char *proxy, *ca_file, *user_agent; /* NULL: see struct fetch_options */
    bool only_libcurl;
    struct fetch_plain plain;
    struct fetch_target proxy_target; /* valid with a proxy */
    size_t active;
    struct map hosts;                         /* struct fetch_host by origin */
    struct list ready;                        /* hosts with a queue and room, in turns */
    struct list transfers[FETCH_STATE_COUNT]; /* struct fetch_transfer */
    struct loop_task turn;                    /* starts transfers, and sees to `due` */
    bool in_turn;
    CURLM *multi;
    CURLSH *share;
    struct timer timer; /* libcurl's */
    bool due;           /* libcurl's timer is at zero */
    uint64_t prune_at_ms;
    struct list stalled;           /* transfers whose address failed */
    struct list rested;            /* struct fetch_socket, idle since the last turn's task */
    struct fetch_socket **sockets; /* by descriptor */
    size_t socket_count;
};

/* fetch.c */

/* Has something to do in this turn's task. */
void fetch_wake(struct fetcher *f);
/* libcurl is done with it. */
void fetch_finish(struct fetch_transfer *t, CURLcode code);

/* fetch_plain.c, fetch_plain_pool.c */

bool fetch_plain_suits(const struct fetcher *f, struct span url);
void fetch_plain_attach(struct fetcher *f);
void fetch_plain_detach(struct fetcher *f);
/* A transfer is made. */
void fetch_plain_begin(struct fetch_transfer *t);
/* As fetch_easy_prepare and _pin. */
const char *fetch_plain_prepare(struct fetch_transfer *t);
void fetch_plain_pin(struct fetch_transfer *t, const struct fetch_target *target,
                     const struct resolve_result *addresses);
/* The transfer is running, and may be over before this returns. */
void fetch_plain_launch(struct fetch_transfer *t);
/* Closes its connections. */
void fetch_plain_stop(struct fetch_transfer *t);

/* fetch_easy.c */

/* ERR_UNKNOWN: libcurl has not got what is needed. */
struct err *fetch_easy_open(struct fetch_transfer *t) MUST_USE;
/* NULL is allowed: of a transfer that has none. */
void fetch_easy_close(struct fetch_transfer *t);
/* Makes the request of t->fetch, all but the addresses. NULL, or why it cannot be sent. */
const char *fetch_easy_prepare(struct fetch_transfer *t);
void fetch_easy_pin(struct fetch_transfer *t, const struct fetch_target *target,
                    const struct resolve_result *addresses);
bool fetch_easy_launch(struct fetch_transfer *t);
/* Takes it back from libcurl. */
void fetch_easy_stop(struct fetch_transfer *t);
/* It cannot be in a request's header. */
bool fetch_breaks_line(struct span s);
/* RFC 9110, section 8.6: with this method a missing body is an empty one. */
bool fetch_means_a_body(struct span method);

/* fetch_answer.c */

void fetch_answer_init(struct fetch_answer *a, const struct fetch *fetch);
void fetch_answer_done(struct fetch_answer *a);
/* The parts of an answer as they come: a head, interim or final, its fields, its end; the body.
 * Then `stop` says whether to go on. */
void fetch_answer_begin(struct fetch_answer *a, int status);
void fetch_answer_field(struct fetch_answer *a, struct span name, struct span value);
void fetch_answer_end_head(struct fetch_answer *a);
void fetch_answer_body(struct fetch_answer *a, struct span bytes);
/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION, with the transfer as their data. */
size_t fetch_answer_on_head(char *p, size_t size, size_t n, void *data);
size_t fetch_answer_on_body(char *p, size_t size, size_t n, void *data);
/* After libcurl's verdict. */
void fetch_answer_judge(struct fetch_transfer *t, CURLcode code, struct fetch_result *out_result);
/* After ours: no answer came, or none that counts. */
void fetch_answer_fail(struct fetch_transfer *t, enum fetch_error error,
                       struct fetch_result *out_result, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* fetch_socket.c */

void fetch_socket_attach(struct fetcher *f);
void fetch_socket_detach(struct fetcher *f);
/* CURLOPT_OPENSOCKETFUNCTION with the transfer, CURLOPT_CLOSESOCKETFUNCTION with the fetcher. */
curl_socket_t fetch_socket_on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address);
int fetch_socket_on_close(void *data, curl_socket_t fd);
/* A transfer begins / is over: from then on sockets that were opened for it are nobody's. */
void fetch_socket_begin(struct fetch_transfer *t);
void fetch_socket_forget(struct fetch_transfer *t);
/* That on which the transfer's connection is being made; NULL: none. */
struct fetch_socket *fetch_socket_of(const struct fetch_transfer *t);
/* OpenSSL has read a message or a record's head from it. */
void fetch_socket_note_message(struct fetch_socket *s);
/* Before a turn's starts; `starts`: there will be any. */
void fetch_socket_settle(struct fetcher *f, bool starts);
/* Lets libcurl do what is due, and finishes what it has completed. */
void fetch_socket_run_due(struct fetcher *f);

/* fetch_tls.c */

/* CURLOPT_SSL_CTX_FUNCTION with the transfer as its data. */
CURLcode fetch_tls_on_context(CURL *easy, void *context, void *data);

#endif
