/* The bucket holds one token and RATE_SLACK of a second's more, and fills more slowly than the rate
 * by as much: starts that timers bring late are made up for, and still no second has more of them
 * than the rate says. */
#include "webhook/pacing.h"

#include "base/macros.h"

#include <math.h>

enum { FIRST_WINDOW = 4 };

#define RATE_SLACK 0.01
#define WAIT_MOST_MS 86400000.0

void pacing_init(struct pacing *p)
{
    *p = (struct pacing){.window = FIRST_WINDOW, .prompt_ms = PACING_PROMPT_MS};
}

void pacing_fill(struct pacing *p, bool is_full, uint64_t now_ms)
{
    p->tokens = is_full;
    p->tokens_at_ms = now_ms;
}

uint32_t pacing_most(const struct pacing *p)
{
    return MIN(p->window, p->max_in_flight);
}

static double tokens_at(const struct pacing *p, uint64_t now_ms)
{
    double passed_s = (double)(now_ms - p->tokens_at_ms) / 1000;

    return fmin(1 + p->rate_per_second * RATE_SLACK,
                p->tokens + passed_s * p->rate_per_second * (1 - RATE_SLACK));
}

uint64_t pacing_wait_ms(const struct pacing *p, uint64_t now_ms)
{
    double rate = p->rate_per_second * (1 - RATE_SLACK);
    double missing = rate > 0 ? 1 - tokens_at(p, now_ms) : 0;

    return missing <= 0 ? 0 : (uint64_t)fmin(ceil(missing / rate * 1000), WAIT_MOST_MS);
}

void pacing_start(struct pacing *p, uint64_t now_ms)
{
    if (p->rate_per_second <= 0)
        return;
    p->tokens = tokens_at(p, now_ms) - 1;
    p->tokens_at_ms = now_ms;
}

void pacing_end(struct pacing *p, const struct pacing_outcome *outcome)
{
    p->pace = outcome->took_ms < p->prompt_ms ? PACE_PROMPT : PACE_SLOW;
    if (outcome->is_aborted)
        return;
    if (outcome->is_success)
        p->window = (uint32_t)MIN((uint64_t)pacing_most(p) * 2, p->max_in_flight);
    else
        p->window = MAX(pacing_most(p) / 2, 1);
}

size_t pacing_slots(enum pace pace, size_t all)
{
    size_t kept = pace == PACE_SLOW ? all / 4 : pace == PACE_UNPROVED ? all / 8 : 0;

    return kept == 0 ? SIZE_MAX : all - kept;
}

/* Half of what slow ones may have, for the others that are not prompt too: else who has made no
 * attempt yet would take the slow ones' part. */
size_t pacing_half(enum pace pace, size_t all)
{
    size_t whole = pace == PACE_PROMPT ? all : MIN(all, pacing_slots(PACE_SLOW, all));

    return MAX(whole / 2, 1);
}

size_t pacing_spare(size_t all)
{
    return MAX(all / 8, 1);
}
