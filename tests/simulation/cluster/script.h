/* One run: a cluster whose clients, faults and timing follow from the seed; then all is well for
 * long enough, and everything must be as was promised. */
#ifndef SIMULATION_CLUSTER_SCRIPT_H
#define SIMULATION_CLUSTER_SCRIPT_H

#include <stdint.h>

struct script_counts {
    uint64_t steps, seconds, acknowledged, refused, unknown, batches, epochs, faults, boots,
        deliveries, fingerprint;
};

/* In a directory that exists and is empty. A broken promise ends the process (sim_broken). */
struct script_counts script_run(uint64_t seed, uint64_t steps, const char *directory);

#endif
