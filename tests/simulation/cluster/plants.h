/* Faults that are put in on purpose, one at a time, to see that the simulation finds them. */
#ifndef SIMULATION_CLUSTER_PLANTS_H
#define SIMULATION_CLUSTER_PLANTS_H

#include "simulated.h"

#include "base/span.h"

/* Symbol, name, what is wrong, the promise that it breaks, the seed that has found it: tried first,
 * as others take longer. */
#define PLANTS(X)                                                                                  \
    X(PLANT_NONE, "none", "nothing", NOTHING_LOST, 1)                                              \
    X(PLANT_EPOCH, "epoch", "etcd does not compare the epoch", ONE_ORDER, 9)                       \
    X(PLANT_RANGE, "range", "etcd does not look whether there is a log key above", ONE_ORDER, 1)   \
    X(PLANT_FORGETS, "forgets", "etcd loses a put that it has answered", NOTHING_LOST, 5)          \
    X(PLANT_ANSWERS, "answers", "an answer does not wait for the log: a deposed leader answers",   \
      NOTHING_LOST, 1)                                                                             \
    X(PLANT_REFUSES, "refuses", "a change that is not confirmed in time is said to be refused",    \
      NOTHING_REFUSED, 2)                                                                          \
    X(PLANT_LEASE, "lease", "who leads does not look at the clock", ONE_LEADER, 12)                \
    X(PLANT_JOURNAL, "journal", "the journal is written before the log has confirmed",             \
      ONLY_CONFIRMED, 1)                                                                           \
    X(PLANT_SERIAL, "serial", "a follower does not wait for Svc-min-serial", NO_STALE_READ, 1)     \
    X(PLANT_SAME, "same", "another etcd says that it is the one that is known", ONLY_CONFIRMED, 1) \
    X(PLANT_HANGS, "hangs", "nobody is told that the log has not confirmed", NOBODY_HANGS, 16)

enum plant {
#define PLANT_AS_ENUM(symbol, name, text, promise, seed) symbol,
    PLANTS(PLANT_AS_ENUM)
#undef PLANT_AS_ENUM
        PLANT_COUNT
};

struct plant_info {
    const char *name, *text;
    enum sim_promise promise;
    uint64_t seed;
};
extern const struct plant_info plant_infos[PLANT_COUNT];
/* The one of this run. */
extern enum plant planted;

bool plant_find(struct span name, enum plant *out_plant);

#endif
