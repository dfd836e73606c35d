/* An etcd that a test plays: a store with revisions, leases and watches in memory, and a fate for
 * each call. It stands in for src/fetch/etcd.c and etcd_watch.c at link time. There is one at a
 * time. */
#ifndef ETCD_PLAYING_H
#define ETCD_PLAYING_H

#include "fetch/etcd.h"

enum fate {
    FATE_DONE,   /* it is carried out and answered */
    FATE_LOST,   /* it is carried out, the answer is lost */
    FATE_UNSENT, /* it never arrives, and nobody says so */
    FATE_LATER,  /* as that, but it is carried out when etcd_play_late says so */
    FATE_HELD,   /* nothing happens until etcd_let_go */
    FATE_FULL,   /* as FATE_DONE without puts and grants */
    FATE_DENIED,
};

void etcd_play_begin(struct loop *loop);
void etcd_play_end(void);
/* Another client of it each time. */
struct etcd *etcd_played(void);

/* The next `count` calls that put a key with this prefix, or, with "", any: in this order. */
void etcd_fate(const char *prefix, enum fate fate, unsigned count);
/* All calls from now on, but those with a fate of their own. */
void etcd_fate_of_all(enum fate fate);
void etcd_play_late(void);
void etcd_let_go(void);

/* What is stored. */
size_t etcd_count(const char *prefix);
/* NULL: there is none. */
const struct etcd_kv *etcd_find(const char *key);
void etcd_store(const char *key, struct span value, int64_t lease);
void etcd_remove(const char *prefix);
int64_t etcd_compacted(void);
int64_t etcd_revision(void);
unsigned etcd_keepalives(void);
void etcd_end_lease(int64_t lease);
/* Another one, with nothing in it, takes its place; its revision is the next after `revision`. */
void etcd_lose_all(void);
void etcd_lose_all_at(int64_t revision);
/* What its answers say of it; the one that plays first is of cluster 1. */
void etcd_play_cluster(uint64_t cluster_id);
/* What was a watch's connection ends, and it asks again. */
void etcd_cut_watches(void);

#endif
