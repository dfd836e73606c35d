/* Where events are delivered to. */
#ifndef SIMULATION_CLUSTER_RECEIVERS_H
#define SIMULATION_CLUSTER_RECEIVERS_H

#include "network.h"

/* A node is about to send one: it must lead, and the event be in the log. */
void receivers_check_start(const struct exchange *x);
/* A delivery comes. It is answered somehow; with 200 when all is well. */
void receivers_take(struct exchange *x);
void receivers_be_well(bool are_well);
uint64_t receivers_count(void);

#endif
