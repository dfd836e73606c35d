/* What a node is asked by another: changes that are passed on, records that are handed over, a copy
 * of the journal. */
#ifndef SIMULATION_CLUSTER_SERVING_H
#define SIMULATION_CLUSTER_SERVING_H

#include "network.h"

struct machine;

/* A request has come, at a node that runs. */
void serving_take(struct exchange *x);
/* Nobody waits for its answer any more. */
void serving_forget(struct exchange *x);
/* Of a node that ends, after network_node_ended. */
void servings_end(struct machine *m);

#endif
