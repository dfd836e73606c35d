/* What all parts of the simulation of a cluster share: the true time, which nobody in it can read,
 * what has been promised, and how a promise that was broken ends the run. */
#ifndef SIMULATION_CLUSTER_SIMULATED_H
#define SIMULATION_CLUSTER_SIMULATED_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define SIM_PROMISES(X)                                                                            \
    X(NOTHING_LOST, "what was acknowledged is in the log, once")                                   \
    X(NOTHING_REFUSED, "what was refused is not in the log")                                       \
    X(NOTHING_HALF, "a change is in the log whole, or not at all")                                 \
    X(ONE_ORDER, "the log grows at its end, in the epoch that lasts")                              \
    X(SAME_STATE, "nodes that are at one serial have the same state, that of the log")             \
    X(ONLY_CONFIRMED, "a journal holds nothing that the log does not have")                        \
    X(ONE_LEADER, "one node at most leads at any moment")                                          \
    X(NO_STALE_READ, "what a leader reads is the newest, what a follower reads is what was asked") \
    X(DELIVERED, "what is delivered is in the log, by who leads; and all is, in the end")          \
    X(NOBODY_HANGS, "each request is answered")                                                    \
    X(RECOVERS, "when all is well again, all nodes take part, and have all of the log")

enum sim_promise {
#define SIM_AS_ENUM(symbol, text) symbol,
    SIM_PROMISES(SIM_AS_ENUM)
#undef SIM_AS_ENUM
        SIM_PROMISE_COUNT
};

/* The exit status of a run in which a promise was broken is its number and this. */
enum { SIM_BROKEN = 16 };

struct simulated {
    uint64_t now_ns; /* the true time, monotonic */
    uint64_t seed, step;
    uint64_t fingerprint; /* of all that has happened */
    bool is_told;         /* what happens, in words */
};
extern struct simulated sim;

const char *sim_promise_text(enum sim_promise promise);
/* Says which, with seed, step and how, and ends the process. */
_Noreturn void sim_broken(enum sim_promise promise, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Goes into the fingerprint; said when all is told. */
void sim_note(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* One time in so many. */
bool sim_chance(uint64_t in);
/* Nanoseconds, each order of magnitude between as likely. */
uint64_t sim_delay(uint64_t least_ns, uint64_t most_ns);

#endif
