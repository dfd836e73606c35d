/* One run: a number of steps, each chosen at random from what clients, receivers, the disk, the
 * clock and the power may do; then all is well for long enough, and everything must be as the
 * ledger says. The same seed gives the same run. */
#ifndef SIMULATION_SCRIPT_H
#define SIMULATION_SCRIPT_H

#include <stdint.h>

struct script_counts {
    uint64_t steps, losses_of_power, dead_at_once, attempts, changes;
};

/* In a directory that exists and is empty. A broken expectation aborts the process. */
struct script_counts script_run(uint64_t seed, unsigned steps, const char *directory);

#endif
