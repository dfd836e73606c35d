/* What goes over the wire to etcd and back: requests as JSON, answers as data. Pure.
 *
 * The gateway's JSON is that of Protocol Buffers: 64-bit integers are strings, bytes are padded
 * base64, and what is false, 0 or empty is left out. Unknown members of a request are passed over
 * without a word, which is why nobody else writes them. */
#ifndef FETCH_ETCD_WIRE_H
#define FETCH_ETCD_WIRE_H

#include "fetch/etcd.h"

#define ETCD_CALLS(X)                                                                              \
    X(ETCD_CALL_TXN, "/v3/kv/txn")                                                                 \
    X(ETCD_CALL_RANGE, "/v3/kv/range")                                                             \
    X(ETCD_CALL_COMPACT, "/v3/kv/compaction")                                                      \
    X(ETCD_CALL_GRANT, "/v3/lease/grant")                                                          \
    X(ETCD_CALL_KEEPALIVE, "/v3/lease/keepalive")                                                  \
    X(ETCD_CALL_REVOKE, "/v3/lease/revoke")                                                        \
    X(ETCD_CALL_SIGN_IN, "/v3/auth/authenticate")                                                  \
    X(ETCD_CALL_WATCH, "/v3/watch")

enum etcd_call_kind {
#define ETCD_AS_ENUM(symbol, path) symbol,
    ETCD_CALLS(ETCD_AS_ENUM)
#undef ETCD_AS_ENUM
};

const char *etcd_wire_path(enum etcd_call_kind kind);

/* Requests. */
void etcd_wire_add_txn(struct buf *b, const struct etcd_txn *txn);
void etcd_wire_add_range(struct buf *b, const struct etcd_op *get);
/* `{"<name>":"<value>"}`, of the calls that take one number; 0 is left out. */
void etcd_wire_add_number(struct buf *b, struct span name, int64_t value);
void etcd_wire_add_sign_in(struct buf *b, struct span user, struct span password);
void etcd_wire_add_watch(struct buf *b, struct span key, struct span range_end, int64_t revision);

/* The answer with this status and body; everything in *out_answer is set, but what only the client
 * knows: sent_ns, attempts and so on. Spans are in the arena or in the body. `*out_token`: of a
 * sign-in. A 2xx whose body is not what it should be is UNKNOWN. */
void etcd_wire_read(enum etcd_call_kind kind, int status, struct span body, struct arena *a,
                    struct etcd_answer *out_answer, struct span *out_token);
/* Is it the token, and nothing else, that was not taken? */
bool etcd_wire_is_bad_token(int status, const struct etcd_answer *answer);

enum etcd_line_kind {
    ETCD_LINE_EVENTS,    /* also none: it was created, or all is well */
    ETCD_LINE_COMPACTED, /* also a revision that is not there any more */
    ETCD_LINE_CANCELLED,
    ETCD_LINE_DENIED,
    ETCD_LINE_BAD_TOKEN,
    ETCD_LINE_LOST /* an error that another member, or another try, may not have; or no JSON */
};

struct etcd_line {
    enum etcd_line_kind kind;
    struct etcd_event *events;
    size_t count;
    int64_t revision;         /* the header's; 0: none */
    uint64_t cluster_id;      /* the header's; 0: none */
    bool is_cut;              /* more events of the last revision come in the next line */
    char why[ETCD_WHY_BYTES]; /* "" with EVENTS */
};

/* One line of a watch. */
void etcd_wire_read_line(struct span line, struct arena *a, struct etcd_line *out_line);

#endif
