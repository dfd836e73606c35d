/* The server as a node of a cluster: it makes the client of etcd and the node's part in the log,
 * hands batches to the turn (store/turn_log.h), and keeps what requests see (rest/cluster_view.h).
 * docs/design/cluster.md tells the whole. */
#ifndef APP_CLUSTER_H
#define APP_CLUSTER_H

#include "app/cluster_config.h"

#include <stdbool.h>

struct cluster;
struct loop;
struct service;

/* All from the loop, none from inside a request. */
struct cluster_callbacks {
    /* It leads from now on, and has all that the log has: changes are carried out, deliveries may
     * start. */
    void (*on_leads)(void *context);
    /* Memory is to be forgotten: it led and does not any more, or a copy of another node's journal
     * is there. Once; nothing else comes after it. */
    void (*on_anew)(void *context, const char *why);
    /* It can be no node of this cluster, and says why. Once. */
    void (*on_refused)(void *context, const char *why);
    void *context;
};

struct cluster_options {
    const struct cluster_config *config; /* outlives it */
    const char *directory;               /* of the journal */
    const char *base_path;               /* of the nodes' resources */
    struct service *service;             /* whose journal has been replayed */
    struct cluster_callbacks callbacks;
};

/* Reads which cluster the journal belongs to, and takes the turn over: nothing is changed before
 * this node leads. Errors name the member of the configuration, or the file. */
struct err *cluster_new(struct loop *loop, const struct cluster_options *options,
                        struct cluster **out_cluster) MUST_USE;
/* Nothing is given back: see cluster_leave. NULL is allowed. */
void cluster_free(struct cluster *c);
void cluster_start(struct cluster *c);

/* May a delivery start? Looks at the clock. For hooks; `cluster` is the struct. */
bool cluster_may_deliver(const void *cluster);

/* It follows a leader, and has all that it knows of the log. */
bool cluster_follows(const struct cluster *c);

/* The process is to end: no change is taken any more; when what was taken is confirmed or cannot
 * be, leadership and name are given back, so that others need not wait for the lease. Then on_left,
 * within CommitSeconds and a lease. */
void cluster_leave(struct cluster *c, void (*on_left)(void *context), void *context);

#endif
