/* The digest of the state, after every change of it. What a change leaves alone is not read again:
 * payloads of events, and entities. */
#ifndef SIMULATION_DIGEST_H
#define SIMULATION_DIGEST_H

#include "store/store.h"

struct store_digest sim_digest(struct store *s);
/* The same, and all is read. */
struct store_digest sim_digest_read(struct store *s);
/* All is read, and what was remembered must be the same. */
void sim_digest_check(struct store *s);
/* A store is about to be freed: all of every store is read again. */
void sim_digest_forget(void);

#endif
