/* A client of etcd 3.4 and later, by its JSON gateway (`/v3/...`, HTTP/1.1). Callers say what they
 * want in the types below; what goes over the wire is etcd_wire.c's.
 *
 * Every call ends with one of the outcomes below. Only DONE and REFUSED tell what etcd holds;
 * UNKNOWN says nothing: the call may have been carried out, now or a moment later. And REFUSED may
 * be the effect of the call itself, when it was sent before and its answer was lost: whoever asks a
 * transaction to be done once looks at what there is instead. A call is sent
 * to one endpoint, and after a failure to the next one, with pauses that grow up to a bound and
 * have jitter; with a user, the client signs in first, and again when its token is not taken.
 *
 * Each answer says of which cluster of etcd's it is. Whoever has looked at one, and goes by it,
 * says so (etcd_keep_to): answers of others are UNKNOWN from then on, and `is_other`. */
#ifndef FETCH_ETCD_H
#define FETCH_ETCD_H

#include "base/buf.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "io/loop.h"
#include "io/timer.h"

struct etcd;

enum { ETCD_ENDPOINTS_MOST = 16, ETCD_URL_BYTES = 512, ETCD_WHY_BYTES = 256 };

/* Its texts outlive the client, but for the endpoints, which are copied. */
struct etcd_options {
    const char *const *endpoints; /* `http://host:port` or https; 1 to ETCD_ENDPOINTS_MOST */
    size_t endpoint_count;
    const char *ca_file;              /* NULL: the system's */
    const char *cert_file, *key_file; /* of a client's certificate, PEM; both or neither */
    const char *user;                 /* NULL: nobody signs in */
    const char *password_file;        /* its first line; read at each sign-in */
    unsigned attempt_ms;              /* 0: 3000. A call is given up at one endpoint after this */
    unsigned connect_ms;              /* 0: 1000 */
    unsigned pause_least_ms;          /* 0: 50 */
    unsigned pause_most_ms;           /* 0: 2000 */
    unsigned silence_ms;              /* 0: 5000. A watch that says nothing for so long is asked for
                                         anew, as its connection may be dead */
    size_t answer_bytes; /* 0: 16 MiB. Of an answer, and of what a watch says at once */
};

enum etcd_outcome {
    ETCD_DONE,
    ETCD_REFUSED,   /* a comparison did not hold; a lease that is gone */
    ETCD_UNKNOWN,   /* a time-out, a reset, a 5xx, an answer that is none */
    ETCD_DENIED,    /* no right, or a wrong password */
    ETCD_FULL,      /* NOSPACE: etcd takes no puts and grants no leases */
    ETCD_TOO_LARGE, /* more than etcd takes in a request */
    ETCD_COMPACTED, /* the revision is not there any more, or not yet */
    ETCD_INVALID    /* etcd does not understand the request, or is no etcd */
};

struct etcd_kv {
    struct span key, value; /* value is empty with keys_only */
    int64_t create_revision, mod_revision, lease;
};

/* Does the key have this create revision (0: is it absent)? With range_end: has every key from
 * `key` up to and without range_end? With 0: is there none? */
struct etcd_compare {
    struct span key, range_end;
    int64_t create_revision;
};

enum etcd_op_kind { ETCD_PUT, ETCD_GET, ETCD_DELETE };

/* A range goes from `key` up to and without range_end; absent: the one key. */
struct etcd_op {
    enum etcd_op_kind kind;
    struct span key, range_end;
    struct span value;          /* PUT */
    int64_t lease;              /* PUT; 0: none */
    int64_t limit;              /* GET; 0: no limit */
    int64_t revision;           /* GET; 0: the newest */
    bool keys_only, descending; /* GET; in the order of keys otherwise */
};

struct etcd_op_answer {
    enum etcd_op_kind kind;
    struct etcd_kv *kvs; /* GET */
    size_t kv_count;
    int64_t count;   /* GET: in the range whatever the limit */
    int64_t deleted; /* DELETE */
    bool more;       /* GET: the limit left some out */
};

struct etcd_txn {
    const struct etcd_compare *compares; /* all must hold */
    size_t compare_count;
    const struct etcd_op *then;
    size_t then_count;
    const struct etcd_op *otherwise; /* the outcome is REFUSED */
    size_t otherwise_count;
};

/* Valid during on_done. */
struct etcd_answer {
    enum etcd_outcome outcome;
    char why[ETCD_WHY_BYTES];   /* in words, "" when DONE; quotes etcd */
    int64_t revision;           /* of the store */
    uint64_t cluster_id;        /* that it is of; 0: it does not say */
    bool is_other;              /* UNKNOWN, for that is not what is kept to */
    struct etcd_op_answer *ops; /* txn: of the branch that was taken; range: one */
    size_t op_count;
    int64_t lease, ttl_s; /* grant, keepalive */
    uint64_t sent_ns;     /* monotonic: when the attempt was begun that this is the answer to */
    unsigned attempts;
};

/* Zeroed, then set by the caller; stays in place until on_done. */
struct etcd_call {
    void (*on_done)(struct etcd_call *call, const struct etcd_answer *answer);
    bool repeats;        /* until the outcome is another than UNKNOWN, or it is cancelled */
    bool any_cluster;    /* whatever is kept to: the caller looks at cluster_id */
    unsigned attempt_ms; /* 0: as the options say */
    /* Private. */
    struct etcd *etcd;
    struct list_link link;
    uint8_t state, kind;
    unsigned attempts, sign_ins, token;
    size_t endpoint;
    bool is_denied;
    uint64_t sent_ns;
    struct blob *body;
    struct fetch fetch;
    struct header_field headers[2];
    struct timer pause;
    char url[ETCD_URL_BYTES];
};

/* The resolver is borrowed. ERR_UNKNOWN: a URL, a file or a certificate cannot be used, naming it.
 */
struct err *etcd_new(struct loop *loop, struct resolver *resolver,
                     const struct etcd_options *options, struct etcd **out_etcd) MUST_USE;
/* Calls and watches are cancelled without their callbacks. Not from a callback. NULL is allowed. */
void etcd_free(struct etcd *e);

/* Answers are of this cluster of etcd's from now on, or UNKNOWN; and what other endpoints say on a
 * watch ends it. 0, as at first: of any. */
void etcd_keep_to(struct etcd *e, uint64_t cluster_id);
uint64_t etcd_kept_to(const struct etcd *e);
/* The next endpoint from now on: what this one says is of no use. */
void etcd_leave_endpoint(struct etcd *e);

/* Each of these starts a call; on_done fires exactly once, from the loop, never from here, unless
 * it is cancelled. What is given is copied. */
void etcd_txn(struct etcd *e, struct etcd_call *call, const struct etcd_txn *txn);
void etcd_range(struct etcd *e, struct etcd_call *call, const struct etcd_op *get);
void etcd_lease_grant(struct etcd *e, struct etcd_call *call, int64_t ttl_s);
/* REFUSED: the lease is gone. */
void etcd_lease_keepalive(struct etcd *e, struct etcd_call *call, int64_t lease);
void etcd_lease_revoke(struct etcd *e, struct etcd_call *call, int64_t lease);
/* COMPACTED: it has been done before, or the revision is not there yet. */
void etcd_compact(struct etcd *e, struct etcd_call *call, int64_t revision);
/* Started, done or neither (zeroed). What was sent may still be carried out. */
void etcd_cancel(struct etcd *e, struct etcd_call *call);
bool etcd_is_started(const struct etcd_call *call);

struct etcd_event {
    bool is_delete;
    struct etcd_kv kv; /* of a delete only key and mod_revision */
};

/* A watch goes on by itself over lost connections, silence, members without a leader and 5xx: what
 * it yields is gapless until one of these ends it. */
enum etcd_watch_end {
    ETCD_WATCH_COMPACTED, /* what comes next is not there any more */
    ETCD_WATCH_DENIED,
    ETCD_WATCH_CANCELLED, /* by etcd, for another reason */
    ETCD_WATCH_TOO_LARGE, /* more at once than answer_bytes: read it by range */
    ETCD_WATCH_OTHER      /* of another cluster than is kept to */
};

struct etcd_watch {
    /* Zeroed, then set by the caller. `events` are valid during the call; all changes of one
     * revision come in one call or, when etcd cut them, in several. The watch may be stopped in
     * both. After on_end it is stopped. */
    void (*on_events)(struct etcd_watch *watch, const struct etcd_event *events, size_t count);
    void (*on_end)(struct etcd_watch *watch, enum etcd_watch_end end, const char *why);
    /* Read only: when etcd last said anything on it (monotonic), how often it was asked for. */
    uint64_t heard_ns;
    unsigned attempts;
    /* Private. */
    struct etcd *etcd;
    struct list_link link;
    uint8_t state;
    unsigned failures, sign_ins, token;
    size_t endpoint;
    int64_t next_revision; /* what is asked for next */
    size_t taken;          /* events of it that were yielded, when it was cut */
    size_t skip;           /* of these, still to come again */
    bool heard_now;        /* anything, by this attempt */
    bool is_silent;        /* this attempt: it ended for that */
    bool is_over;          /* this attempt: more than answer_bytes at once */
    struct buf key, range_end, lines;
    struct blob *body;
    struct fetch fetch;
    struct header_field headers[3];
    struct loop_task read;
    struct timer pause, denial;
    char url[ETCD_URL_BYTES];
};

/* From this revision on, which must not be in the future: that would be silence. Key and range_end
 * are copied. */
void etcd_watch_start(struct etcd *e, struct etcd_watch *watch, struct span key,
                      struct span range_end, int64_t revision);
/* Started or not (zeroed). */
void etcd_watch_stop(struct etcd *e, struct etcd_watch *watch);

#endif
