/* The etcd of the simulation, as one linearizable store: keys with revisions, leases, what happened
 * since the last compaction, and a space quota. Which member is asked, and what becomes of requests
 * and answers on their way, is others' business (gateway.h, network.h).
 *
 * It keeps to etcd's rules: a lease lasts at least as long as was granted, counted from when the
 * last keepalive came. It may last longer. */
#ifndef SIMULATION_CLUSTER_ETCD_STORE_H
#define SIMULATION_CLUSTER_ETCD_STORE_H

#include "base/arena.h"
#include "fetch/etcd.h"

/* Faults that are put in on purpose. */
struct etcd_store_plants {
    bool epoch_unchecked; /* the comparison of one key that is there always holds */
    bool range_unchecked; /* that of a range always holds */
    bool forgets;         /* it loses a put that it has answered, now and then */
};

void etcd_store_open(uint64_t quota_bytes, const struct etcd_store_plants *plants);
void etcd_store_close(void);

/* As on the wire: DONE, REFUSED with the other branch's answers or, of a lease that is gone,
 * without; FULL; COMPACTED; INVALID. */
void etcd_store_txn(const struct etcd_txn *txn, struct arena *a, struct etcd_answer *out_answer);
void etcd_store_grant(int64_t ttl_s, struct etcd_answer *out_answer);
void etcd_store_keepalive(int64_t lease, struct etcd_answer *out_answer);
void etcd_store_revoke(int64_t lease, struct etcd_answer *out_answer);
void etcd_store_compact(int64_t revision, struct etcd_answer *out_answer);

/* Another etcd, made of what this one has now: it is further, and its log goes on with a batch that
 * nobody has appended. While it is entered, all calls here are of it. */
void etcd_store_make_other(void);
void etcd_store_enter_other(bool is_entered);
bool etcd_store_is_other(void);

int64_t etcd_store_revision(void);
int64_t etcd_store_compacted(void);
/* What happened after `revision` in the range, of one revision; *revision becomes that. False:
 * nothing has. */
bool etcd_store_next_events(struct span key, struct span range_end, int64_t *revision,
                            struct arena *a, struct etcd_event **out_events, size_t *out_count);

/* Leases whose time is up, by the true time, end, sooner or later. */
void etcd_store_pass(void);
/* The true time of the next end of a lease; UINT64_MAX: there is none. */
uint64_t etcd_store_next_end_ns(void);
/* etcd's own leader has changed: all leases begin anew. */
void etcd_store_restart_leases(void);
/* The operator makes room: what is compacted is given back, and the alarm is disarmed if there is
 * room then. */
void etcd_store_make_room(void);
/* And, where that is not enough, gives it more space. */
void etcd_store_give_space(void);
bool etcd_store_is_full(void);
/* Of the key; NULL: it is not there. Valid until something changes. */
const struct etcd_kv *etcd_store_find(struct span key);

#endif
