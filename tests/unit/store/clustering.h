/* A store whose changes go to a log: over a fixture's journal, an etcd that is played, and a clock
 * that the test moves. Beside it a second node, without a store, which can take the lead or append
 * what the first one is to follow. */
#ifndef CLUSTERING_H
#define CLUSTERING_H

#include "journal/etcd_playing.h"
#include "journal/replica.h"
#include "store_testing.h"

struct clustering {
    struct store_fixture f;
    struct replica *replica, *other;
    struct replica_append append; /* of the other one */
    struct buf content;           /* of it */
    unsigned lost, followed, settled;
    uint8_t id[REPLICA_UUID_BYTES]; /* of the cluster, once known */
    bool is_stuck;
    bool takes_nothing; /* the other one */
};
extern struct clustering clustering;

/* The store's node and etcd; nothing is started. */
void clustering_begin(void);
void clustering_end(void);
/* The store's node takes part from now on. */
void clustering_start(void);
void clustering_start_other(void);
/* Until it leads. */
void clustering_lead(struct replica *r);
void clustering_pass(uint64_t ms);
/* The content that was gathered is appended by the other node, which leads. */
void clustering_append(uint64_t first, uint32_t count);
/* A record of a new entity of Shop.Person, for the content. */
void clustering_add_entity(uint64_t serial, const char *name, bool more);

#endif
