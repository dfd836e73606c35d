/* One table says what a machine may do; every move is looked up in it, in release builds too. A
 * move that is not in it aborts and names the machine and both states. */
#include "base/sm.h"

#include "base/must.h"

#include <stdio.h>

bool sm_allows(const struct sm_table *table, unsigned state, unsigned next)
{
    MUST(state < table->count && next < table->count);
    return (table->states[state].allowed & SM_TO(next)) != 0;
}

const char *sm_name(const struct sm_table *table, unsigned state)
{
    MUST(state < table->count);
    return table->states[state].name;
}

void sm_move(const struct sm_table *table, uint8_t *state, unsigned next)
{
    char what[160];

    if (!sm_allows(table, *state, next)) {
        snprintf(what, sizeof(what), "%s may move from %s to %s", table->machine,
                 sm_name(table, *state), sm_name(table, next));
        must_fail(what, __func__, __FILE__, __LINE__);
    }
    *state = (uint8_t)next;
}
