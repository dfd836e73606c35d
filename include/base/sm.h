/* State machines as data: a table of states with the moves that are allowed from each. A move
 * that the table does not allow is our bug and aborts, naming machine, state and move. */
#ifndef BASE_SM_H
#define BASE_SM_H

#include <stdbool.h>
#include <stdint.h>

struct sm_state {
    const char *name;
    uint32_t allowed; /* bit n: a move to state n is allowed */
};

struct sm_table {
    const char *machine;
    const struct sm_state *states;
    unsigned count; /* at most 32 */
};

#define SM_TO(state) (UINT32_C(1) << (state))

/* Moves *state to `next`. */
void sm_move(const struct sm_table *table, uint8_t *state, unsigned next);
bool sm_allows(const struct sm_table *table, unsigned state, unsigned next);
const char *sm_name(const struct sm_table *table, unsigned state);

#endif
