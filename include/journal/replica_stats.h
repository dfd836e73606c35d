/* What a node's part in the log of a cluster has come to since it started: see replica.h. */
#ifndef JOURNAL_REPLICA_STATS_H
#define JOURNAL_REPLICA_STATS_H

#include "base/metric.h"

struct replica_stats {
    uint64_t appended, appended_bytes; /* batches, of content */
    uint64_t attempts;                 /* of transactions that append */
    uint64_t read, read_bytes;         /* batches of others */
    uint64_t trimmed;                  /* runs that deleted */
    uint64_t elected;
    struct histogram append_time; /* from replica_append to the confirmation */
    /* Of the log in etcd, as a leader saw it last when it looked at its length; else 0. */
    uint64_t log_keys, log_bytes;
};

#endif
