/* Clients: each asks a node, any node, waits for the answer, and notes what it was told. */
#ifndef SIMULATION_CLUSTER_CLIENTS_H
#define SIMULATION_CLUSTER_CLIENTS_H

#include "machine.h"

/* One of them asks this node for something, by chance. */
void clients_ask(struct machine *m);
/* The webhook that all events go to. */
void clients_make_webhook(struct machine *m);
/* It was acknowledged, with this serial; 0: not yet. */
uint64_t clients_webhook_serial(void);
/* Requests that were not answered yet. */
size_t clients_waiting(void);
/* All entities, at a node that has all of the log. */
void clients_check_items(struct machine *m);

void clients_open(bool has_large, bool has_many);

#endif
