/* The simulation's network: io/fetch.h without sockets, in place of src/fetch/fetch.c. A request is
 * under way until the script answers it, on a new connection or on one that was kept. There are
 * more receivers than addresses, and some move. */
#ifndef SIMULATION_NETWORK_H
#define SIMULATION_NETWORK_H

#include "fetch/fetch.h"

enum { SIM_RECEIVERS = 5 };

/* Of a receiver, by its number. */
const char *sim_network_url(unsigned receiver);
/* Called inside fetch_start, and when one is cancelled. */
void sim_network_watch(void (*on_start)(void *context, struct fetch *f),
                       void (*on_cancel)(void *context, struct fetch *f), void *context);
size_t sim_network_count(void);
struct fetch *sim_network_at(size_t place);
/* A connection is made for one that is under way. */
void sim_network_connect(struct fetch *f);
/* How many are under way to where it goes, as far as connections have told, itself included. */
size_t sim_network_count_beside(const struct fetch *f);
/* Ends one that is under way. */
void sim_network_answer(struct fetch *f, const struct fetch_result *result);

#endif
