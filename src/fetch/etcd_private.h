/* What the files of the module etcd share.
 *
 *   etcd.c        calls: their way over endpoints, signing in
 *   etcd_watch.c  watches
 *   etcd_wire.c   what goes over the wire */
#ifndef FETCH_ETCD_PRIVATE_H
#define FETCH_ETCD_PRIVATE_H

#include "etcd_wire.h"

enum etcd_state {
    ETCD_OFF,      /* not started, or done */
    ETCD_UNSIGNED, /* waits for the token */
    ETCD_SENT,     /* waits for the answer */
    ETCD_PAUSED,   /* waits to be sent again */
    ETCD_READING,  /* of a watch: what came, and is not dealt with, is the last of this attempt */
    ETCD_STATE_COUNT
};

struct etcd {
    struct loop *loop;
    struct fetcher *fetcher;
    struct egress_rules rules;
    struct fetch_origin *origins[ETCD_ENDPOINTS_MOST];
    char *urls[ETCD_ENDPOINTS_MOST]; /* without a slash at the end */
    size_t endpoint_count;
    size_t endpoint; /* the one that calls use */
    const char *user, *password_file;
    char *token;     /* NULL: not signed in */
    unsigned tokens; /* so far: the number of this one */
    struct etcd_call sign_in;
    uint64_t cluster_id; /* that is kept to; 0: any */
    unsigned attempt_ms, pause_least_ms, pause_most_ms, silence_ms;
    size_t answer_bytes;
    struct list calls, watches; /* struct etcd_call, struct etcd_watch, that are started */
    struct arena arena;         /* of the answer that is being told */
};

/* How long to wait after so many failures in a row. */
uint64_t etcd_pause_ms(const struct etcd *e, unsigned failures);
/* Is a token needed that is not there? Then signing in begins, and all that wait for it are told
 * later. */
bool etcd_needs_token(struct etcd *e);
/* The token of this number was not taken. */
void etcd_drop_token(struct etcd *e, unsigned number);
/* Fills url, origin, method and headers, for which there is room for 3. */
void etcd_fill_fetch(struct etcd *e, enum etcd_call_kind kind, size_t endpoint, struct fetch *fetch,
                     char *url, struct header_field *headers);

/* Is it another cluster's than is kept to? *out_why says so then. */
bool etcd_is_other(const struct etcd *e, uint64_t cluster_id, char out_why[ETCD_WHY_BYTES]);

/* etcd_watch.c: the token is there; or, with `why`, it is denied. */
void etcd_watches_signed_in(struct etcd *e, const char *why);

#endif
