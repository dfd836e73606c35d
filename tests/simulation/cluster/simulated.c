/* The fingerprint is of every word that is noted, whether it is said or not, so that two runs of
 * one seed can be compared. */
#include "simulated.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOTE_BYTES = 512 };

struct simulated sim;

const char *sim_promise_text(enum sim_promise promise)
{
    static const char *const texts[] = {
#define SIM_AS_TEXT(symbol, text) [symbol] = text,
        SIM_PROMISES(SIM_AS_TEXT)
#undef SIM_AS_TEXT
    };

    return texts[promise];
}

static double seconds(void)
{
    return (double)sim.now_ns / (double)NS_PER_S;
}

void sim_broken(enum sim_promise promise, const char *fmt, ...)
{
    char why[NOTE_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    printf("seed %" PRIu64 ", step %" PRIu64 ", %.6f s: broken: %s: %s\n", sim.seed, sim.step,
           seconds(), sim_promise_text(promise), why);
    fflush(stdout);
    _exit(SIM_BROKEN + (int)promise);
}

void sim_note(const char *fmt, ...)
{
    char text[NOTE_BYTES];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (int i = 0; i < n && i < NOTE_BYTES - 1; i++)
        sim.fingerprint = (sim.fingerprint ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    sim.fingerprint ^= sim.now_ns;
    if (sim.is_told)
        printf("%12.6f %s\n", seconds(), text);
}

bool sim_chance(uint64_t in)
{
    return rng_below(in) == 0;
}

uint64_t sim_delay(uint64_t least_ns, uint64_t most_ns)
{
    uint64_t most = least_ns;

    while (most < most_ns && rng_below(3) > 0)
        most *= 2;
    most = most < most_ns ? most : most_ns;
    return least_ns + rng_below(most - least_ns + 1);
}
