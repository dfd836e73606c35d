/* What receivers see: every request that is sent is checked against the ledger, and answered in any
 * way. */
#ifndef SIMULATION_RECEIVERS_H
#define SIMULATION_RECEIVERS_H

#include "world.h"

void receivers_watch(struct world *w);
/* A connection is made for one request under way. */
void receivers_connect(struct world *w);
/* One request under way ends somehow; with 200 when all is to be well. */
void receivers_answer(struct world *w, bool is_well);
/* Outcomes that found no room when they came: are they recorded by now? */
void receivers_look(struct world *w);
/* Each event that exists was delivered, or given up as its webhook says. */
void receivers_check_end(struct world *w);

#endif
