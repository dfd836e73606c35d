/* The simulation's network: io/fetch.h without sockets, in place of src/io/fetch.c. A request is
 * under way until the script answers it. */
#ifndef SIMULATION_NETWORK_H
#define SIMULATION_NETWORK_H

#include "io/fetch.h"

/* Called inside fetch_start, and when one is cancelled. */
void sim_network_watch(void (*on_start)(void *context, struct fetch *f),
                       void (*on_cancel)(void *context, struct fetch *f), void *context);
size_t sim_network_count(void);
struct fetch *sim_network_at(size_t place);
/* Ends one that is under way. */
void sim_network_answer(struct fetch *f, const struct fetch_result *result);

#endif
