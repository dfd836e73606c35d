/* The log of a cluster, kept in etcd: one order of records for all nodes. One node leads: it alone
 * appends, batch by batch, one under way at a time; the others are handed each batch in order.
 * docs/design/cluster.md says how it works and why it is safe. What a record means is nobody's
 * business here, nor where records are kept on disk.
 *
 *   OFF --> ENTERING --> FOLLOWING <--> CANDIDATE --> TAKING_OVER --> LEADING
 *             |  ^         |  ^                            |             |
 *             v  |         v  |                            v             v
 *          REFUSED       JOINING                          ENDING <-------+
 *
 * ENTERING: the cluster's id is compared, a lease and the node's name are got. FOLLOWING: the log
 * is read, then watched. JOINING: what the node needs is not in the log any more; it takes another
 * node's copy. CANDIDATE: it asks to lead. TAKING_OVER: it leads, and reads the rest of the log.
 * LEADING: it appends. ENDING: it does not lead any more, or not for sure, and the batch under way
 * is not settled. REFUSED: it cannot take part, and says why; final.
 *
 * A serial is a record's place in the order. `next` serials are those of the record to come. */
#ifndef JOURNAL_REPLICA_H
#define JOURNAL_REPLICA_H

#include "base/macros.h"
#include "base/span.h"
#include "journal/replica_batch.h"
#include "journal/replica_state.h"

struct etcd;
struct loop;
struct replica;
struct replica_stats;

enum { REPLICA_SECRET_BYTES = 32 };

struct replica_options {
    const char *cluster, *node; /* 1 to 64 letters, digits, `_`, `-`, `.` */
    const char *url, *version;  /* of the node, for others to see */
    unsigned records;           /* likewise: what of records it knows, a number that only rises */
    unsigned lease_s;           /* 0: 5 */
    unsigned commit_ms;         /* 0: 10000. An append that takes longer is late */
    uint64_t tail_bytes;        /* 0: 256 MiB. Of the log that are kept at least */
    uint32_t value_bytes;       /* 0: 262144. What is longer is split */
    uint64_t batch_bytes;       /* 0: 256 MiB. Of a batch, at most */
    uint64_t window_bytes;      /* 0: 8 MiB. Of batches that are handed over and not taken */
    unsigned trim_ms;           /* 0: 10000. Between looks at the length of the log */
    const uint8_t *id; /* REPLICA_UUID_BYTES, of the cluster that the journal belongs to; NULL:
                          of none yet */
    bool adopt;        /* a journal of none, which is not empty, may begin a cluster */
    uint64_t next;     /* of the journal; 1: it is empty */
    bool is_witness;   /* it never asks to lead */
};

struct replica_batch {
    uint64_t first; /* serial */
    uint32_t count; /* serials */
    uint64_t epoch;
    struct span node, content; /* valid during the call */
};

/* All from the loop, never from inside a call of the replica's; replica_free is not allowed in
 * them. */
struct replica_callbacks {
    /* It takes part from now on: what the cluster is. Again when id or secret have
     * become others, as the log was restored. */
    void (*on_entered)(void *context, const uint8_t id[REPLICA_UUID_BYTES],
                       const uint8_t secret[REPLICA_SECRET_BYTES]);
    void (*on_role)(void *context, enum replica_role role);
    /* The next batch of others. The first one after replica_start may begin before options.next,
     * when the journal ends within it: what it has is passed over. replica_taken says when it is
     * dealt with. */
    void (*on_batch)(void *context, const struct replica_batch *batch);
    /* The log begins at `begins` only: JOINING, until replica_joined. */
    void (*on_missing)(void *context, uint64_t next, uint64_t begins);
    /* Something of replica_node_at has changed. */
    void (*on_nodes)(void *context);
    /* What keeps it from going on, or NO_TROUBLE: it does again. */
    void (*on_trouble)(void *context, enum replica_trouble trouble, const char *why);
    void *context;
};

/* The client is borrowed and outlives it, the texts are copied. ERR_UNKNOWN: an option cannot be.
 */
struct err *replica_new(struct loop *loop, struct etcd *etcd, const struct replica_options *options,
                        const struct replica_callbacks *callbacks,
                        struct replica **out_replica) MUST_USE;
/* Nothing is revoked: see replica_leave. NULL is allowed. */
void replica_free(struct replica *r);
void replica_start(struct replica *r);

/* Everything below `next` is journaled and applied. */
void replica_taken(struct replica *r, uint64_t next);
/* JOINING: a copy was taken, which ends before `next`. */
void replica_joined(struct replica *r, uint64_t next);

/* LOG_LOST, and nobody leads: what the log still holds is deleted, and it begins anew behind this
 * journal, whose cluster it is from now on. Other nodes take a copy. What another journal has
 * beyond this one is lost: it is for people to say which node is furthest. Nothing otherwise. */
void replica_restore(struct replica *r);

enum replica_role replica_role(const struct replica *r);
/* May a delivery start, is what is read here the newest? Looks at the clock: the lease counts from
 * the sending of the last keepalive that was answered. It does not protect the log. */
bool replica_leads(const struct replica *r);
uint64_t replica_epoch(const struct replica *r); /* of the leader it knows; 0: none */
/* Name of the node that leads; empty: none is known. Valid until the loop goes on. */
struct span replica_leader(const struct replica *r);
uint64_t replica_next(const struct replica *r); /* of the log, as far as it is known here */

/* A node that lives: its lease lasts, as etcd said when it was read last. That is at each keepalive
 * and when another node leads. What could not be read again for two leases is forgotten. */
struct replica_node {
    struct span name, url, version;
    enum replica_role role; /* as it said last; LEADING is the leader alone */
    uint64_t next;          /* of its journal, as it said last */
    unsigned records;       /* replica_options.records; 0: it does not say */
};

/* By name; this node is among them. Valid until the loop goes on. */
size_t replica_node_count(const struct replica *r);
const struct replica_node *replica_node_at(const struct replica *r, size_t i);
/* The least `records` of those that live, and a node whose it is; 0 and no name: nobody is known.
 */
unsigned replica_records(const struct replica *r, struct span *out_node);

enum replica_settlement {
    REPLICA_CONFIRMED, /* it is in the log */
    REPLICA_DECLINED,  /* it is not, and never will be; the node does not lead any more */
    REPLICA_UNCERTAIN, /* the node does not lead any more, and the log has been trimmed past it */
};

struct replica_append {
    /* Set by the caller; the memory and `content` stay in place until it is settled. */
    uint64_t first; /* replica_next */
    uint32_t count;
    struct span content;
    /* Exactly once. The node's memory may hold what was declined: what follows from that is the
     * caller's. */
    void (*on_settled)(struct replica_append *append, enum replica_settlement settlement,
                       const char *why);
    /* commit_ms have passed and it is not settled; at most once. It goes on. NULL is allowed. */
    void (*on_late)(struct replica_append *append, const char *why);
};

/* LEADING, and nothing else is under way. */
bool replica_can_append(const struct replica *r);
void replica_append(struct replica *r, struct replica_append *append);

/* A leader lets go, once what is under way is settled, and does not ask to lead again for two
 * leases. Nothing otherwise. */
void replica_step_down(struct replica *r);
/* Gives the lease back, and with it name and leadership; then, or when it could not be done within
 * a lease, on_left. Nothing else is done from then on; nothing may be under way. */
void replica_leave(struct replica *r, void (*on_left)(void *context), void *context);

void replica_stats(const struct replica *r, struct replica_stats *out_stats);
/* What is left of its lease; 0: nothing. */
uint64_t replica_lease_ns(const struct replica *r);
/* For how long the oldest batch has been here that was read and not taken; 0: there is none. */
uint64_t replica_lag_ms(const struct replica *r);

#endif
