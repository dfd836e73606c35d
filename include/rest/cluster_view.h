/* What the evaluation of requests sees of the cluster that the server is a node of
 * (docs/design/cluster.md). `app/cluster` keeps it up to date, always between two requests; a
 * server that is alone has none, and rest.cluster is NULL. Texts and nodes are valid until the loop
 * goes on. */
#ifndef REST_CLUSTER_VIEW_H
#define REST_CLUSTER_VIEW_H

#include "base/span.h"
#include "journal/replica_state.h"

#include <stdbool.h>
#include <stdint.h>

struct enumeration;
struct fetcher;
struct replica_stats;

/* A node that lives: its lease lasts, as etcd says. */
struct cluster_node {
    struct span name, url, version;
    enum replica_role role; /* of this node as it knows it; of others LEADING, FOLLOWING, JOINING */
    uint64_t applied;       /* serial of the last record that it has taken, as told last */
    int64_t since_unix_ns;  /* when it took this role, or was first seen in it */
    bool is_self;
};

/* As operators see it. */
enum cluster_role { CLUSTER_LEADER, CLUSTER_FOLLOWER, CLUSTER_CANDIDATE, CLUSTER_JOINING };

extern const struct enumeration cluster_role_names; /* Leader, ... */
enum cluster_role cluster_role_of(const struct cluster_node *node);

struct cluster_view {
    struct span name; /* of the cluster */
    struct span node; /* of this one */
    struct span url;
    struct span secret;     /* that nodes share; empty: it is not known yet */
    unsigned commit_ms;     /* Cluster.CommitSeconds */
    bool redirects;         /* Cluster.Redirect */
    bool leads;             /* changes are carried out here; else they are the leader's */
    bool is_ready;          /* it takes part, and may be asked */
    bool is_late;           /* it leads, and the log has not confirmed for CommitSeconds */
    struct span leader_url; /* empty: no leader is known. Scheme, host, port */
    const struct cluster_node *nodes; /* by name; this one is among them */
    size_t node_count;
    uint64_t end;     /* serial of the last record of the log, as far as it is known here */
    uint64_t applied; /* that of this node's journal */
    uint64_t epoch;   /* of the leader that it knows; 0: none */
    uint64_t lease_ns, lag_ns; /* replica_lease_ns, replica_lag_ms */
    enum replica_trouble trouble;
    struct span trouble_why; /* in words, or empty */
    struct span stuck;       /* why what the log has is not taken, in words; empty: it is */
    struct span held_back;   /* which node keeps the leader from writing what; empty: none */
    const struct replica_stats *stats;
    /* Does it lead at this moment, by the clock? What it reads is the newest then. NULL: `leads`.
     */
    bool (*leads_now)(const void *context);
    /* Brings what changes all the time up to date (nodes, end, is_late, stats): to be called before
     * it is shown. NULL: it is. */
    void (*refresh)(void *context);
    /* For what a follower sends to the leader: requests that are passed on, records of its own. It
     * goes after the rest that sees this view. */
    struct fetcher *fetcher;
    /* Of the operator, by `svc cluster`; NULL: not now. */
    void (*step_down)(void *context);
    void (*restore)(void *context);
    void *context;
};

/* The view, with what changes by itself as it is now. */
const struct cluster_view *cluster_look(const struct cluster_view *view);
/* This node; NULL: nothing is known of it yet. */
const struct cluster_node *cluster_self(const struct cluster_view *view);

#endif
