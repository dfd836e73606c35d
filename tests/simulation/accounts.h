/* Whose webhooks are whose: what the server counts for accounts, and what it turns away. */
#ifndef SIMULATION_ACCOUNTS_H
#define SIMULATION_ACCOUNTS_H

#include "world.h"

/* This webhook is on one of a few accounts from now on, if there is room to say so. */
void accounts_own(struct world *w, const char *hook_id);
/* Of a new event, deliveries that there was no room for have ended. */
void accounts_note_dead(struct world *w, size_t event, uint64_t serial);
/* What is counted is what there is, and none has more than it may. */
void accounts_check(struct world *w);

#endif
