/* The configuration's member `Cluster` (docs/specification.md, section 15): which node of which
 * cluster this is, and where its etcd is. */
#ifndef APP_CLUSTER_CONFIG_H
#define APP_CLUSTER_CONFIG_H

#include "journal/journal.h"
#include "journal/journal_options.h"
#include "json/json.h"

/* Name, default, least, most; the unit is in the name. */
#define CLUSTER_NUMBERS(X)                                                                         \
    X(lease_seconds, "LeaseSeconds", 5, 2, 60)                                                     \
    X(commit_seconds, "CommitSeconds", 10, 1, 300)                                                 \
    X(tail_bytes, "TailBytes", 268435456, 1048576, 1099511627776)

enum { CLUSTER_NAME_MOST = 64, CLUSTER_ETCD_MOST = 16, CLUSTER_PASSWORD_MOST = 1024 };

/* All texts end with NUL. */
struct cluster_config {
    const char *name; /* of the cluster */
    const char *node; /* of this one */
    const char *url;  /* where the other nodes reach it: scheme, host, port */
    const char *etcd[CLUSTER_ETCD_MOST];
    size_t etcd_count;                          /* at least 1 */
    const char *ca_file, *cert_file, *key_file; /* NULL: none; a certificate comes with its key */
    const char *user, *password_file;           /* NULL: none; they come together */
#define CLUSTER_AS_MEMBER(member, name, value, least, most) int64_t member;
    CLUSTER_NUMBERS(CLUSTER_AS_MEMBER)
#undef CLUSTER_AS_MEMBER
    bool redirects; /* changes are answered 307 instead of being passed on */
    bool adopts;    /* the journal that is there becomes the cluster's */
};

/* Reads and checks the member, which is an object: names, URLs, ranges, and whether the files that
 * it names are there to be read, secret ones by nobody else. It lives as long as the arena. The
 * message names the member, without `Cluster.`. */
struct err *cluster_config_read(struct json_value object, struct arena *a,
                                struct cluster_config *out_cluster) MUST_USE;
/* A confirmed change is on this node's disk too, so nothing but `always` is allowed. */
struct err *cluster_config_check_fsync(enum journal_fsync fsync) MUST_USE;

#endif
