/* The one order of records, as it comes to stand in etcd, and what must be true of it at every
 * moment: it grows at its end, in the epoch that lasts, by whole changes; and each node's state is
 * the same at the same serial. */
#ifndef SIMULATION_CLUSTER_ORDER_H
#define SIMULATION_CLUSTER_ORDER_H

#include "fetch/etcd.h"
#include "store/store.h"

#define ORDER_CLUSTER "prod"

void order_open(void);
void order_close(void);

/* What etcd holds has changed. */
void order_note_put(const struct etcd_kv *kv);
void order_note_delete(struct span key);
bool order_is_log_key(struct span key);

/* Serial of the record to come; 1: there is no log yet. */
uint64_t order_next(void);
/* No batch that begins below this serial is in the log any more. */
uint64_t order_begins(void);
uint64_t order_batches(void);
uint64_t order_epochs(void);

/* A node's state just after the change that ended with this serial, which the node takes for
 * confirmed. */
void order_note_state(const char *node, uint64_t serial, const struct store_digest *digest);

#endif
