/* The digest of the state, after every change of it. What a change leaves alone is not read again:
 * payloads of events, and collections that nothing was put into or taken out of. */
#ifndef SIMULATION_DIGEST_H
#define SIMULATION_DIGEST_H

#include "store/store.h"

struct store_digest sim_digest(struct store *s);
/* All is read, and what was remembered must be the same. */
void sim_digest_check(struct store *s);
/* The store is about to be freed. */
void sim_digest_forget(void);

#endif
