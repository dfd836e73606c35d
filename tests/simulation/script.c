#include "script.h"

#include "accounts.h"
#include "clients.h"
#include "disk.h"
#include "network.h"
#include "receivers.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/macros.h"
#include "base/must.h"
#include "base/rng.h"

#include <errno.h>

enum { WELL_TURNS_MOST = 200000, WELL_HOURS_MOST = 24 * 30, CHECK_STEPS = 16 };

#define MS UINT64_C(1000000)
#define HOUR (3600000 * MS)

/* What may happen. -------------------------------------------------------------------------- */

static void finish_job(struct world *w)
{
    if (sim_disk_jobs(&w->loop) > 0)
        sim_disk_finish(&w->loop, (size_t)rng_below(sim_disk_jobs(&w->loop)), 0);
}

/* The last breath of a process whose journal has failed. */
static void fail_job(struct world *w)
{
    static const int errors[] = {-EIO, -ENOSPC};

    if (sim_disk_jobs(&w->loop) == 0)
        return;
    sim_disk_finish(&w->loop, (size_t)rng_below(sim_disk_jobs(&w->loop)),
                    errors[rng_below(ARRAY_LEN(errors))]);
    if (w->service->failed != NULL)
        world_lose_power(w);
}

static void fill_disk(struct world *w)
{
    w->has_been_full = true;
    sim_disk_set_full(&w->loop, true);
}

static void make_room(struct world *w)
{
    sim_disk_set_full(&w->loop, false);
}

/* From a millisecond to hours: each order of magnitude as often. */
static void pass_time(struct world *w)
{
    static const uint64_t most[] = {2 * MS, 20 * MS, 1000 * MS, 5000 * MS, 60000 * MS, HOUR};

    (void)w;
    clock_advance(rng_below(most[rng_below(rng_below(4) == 0 ? ARRAY_LEN(most) : 4)]));
}

/* The wall clock, up to a day either way. */
static void set_clock(struct world *w)
{
    int64_t by = (int64_t)(rng_below(48 * HOUR)) - (int64_t)(24 * HOUR);

    if (w->clock_jumps)
        clock_fake(clock_unix_ns() + by, clock_mono_ns());
}

static void answer(struct world *w)
{
    receivers_answer(w, false);
}

static const struct happening {
    unsigned weight;
    void (*happen)(struct world *w);
} happenings[] = {
    {100, client_writes_item},
    {20, client_deletes_item},
    {120, client_raises_event},
    {20, client_raises_again},
    {6, client_makes_webhook},
    {8, client_changes_webhook},
    {2, client_deletes_webhook},
    {10, client_sends_again},
    {3, client_forgets_delivery},
    {6, client_makes_mistake},
    {6, client_reads},
    {20, client_changes_many},
    {400, finish_job},
    {60, receivers_connect},
    {200, answer},
    {100, pass_time},
    {2, set_clock},
    {2, fill_disk},
    {10, make_room},
    {1, fail_job},
    {2, world_restart},
    {6, world_lose_power},
};

static const struct happening *choose(void)
{
    unsigned sum = 0;
    uint64_t at;

    for (size_t i = 0; i < ARRAY_LEN(happenings); i++)
        sum += happenings[i].weight;
    at = rng_below(sum);
    for (size_t i = 0;; i++) {
        if (at < happenings[i].weight)
            return &happenings[i];
        at -= happenings[i].weight;
    }
}

/* The end. ---------------------------------------------------------------------------------- */

/* Until nothing is left to do; what waits must come, whatever happened before. */
static void be_well(struct world *w)
{
    unsigned hours = 0;

    sim_disk_set_full(&w->loop, false);
    clock_advance(2000 * MS);
    world_turn(w);
    world_settle(w);
    receivers_look(w);
    clients_resume_all(w);
    for (unsigned turns = 0; deliveries_pending(w->service->hooks.deliveries) > 0; turns++) {
        MUST(turns < WELL_TURNS_MOST && hours < WELL_HOURS_MOST);
        world_turn(w);
        world_settle(w);
        receivers_look(w);
        if (sim_network_count() > 0) {
            receivers_answer(w, true);
        } else if (turns % 8 == 0) {
            clients_resume_all(w); /* an outcome that was recorded late may have paused one */
            clock_advance(HOUR);
            hours++;
        }
    }
    world_settle(w);
    receivers_look(w);
}

/* When cleaning has come to its end, the journal takes no more than twice what is alive and two
 * segments, and what is ready for a change near the end of a segment. */
static void check_size(struct world *w)
{
    struct journal_stats stats;

    for (unsigned i = 0; i < 1000; i++) {
        world_turn(w);
        world_settle(w);
    }
    journal_stats(turn_journal(w->service->turn), &stats);
    MUST(stats.bytes - stats.reserve_bytes <=
         store_live_bytes(w->service->store) * 2 + 2 * WORLD_SEGMENT_MOST);
}

struct script_counts script_run(uint64_t seed, unsigned steps, const char *directory)
{
    static struct world w;
    struct script_counts counts = {0};

    rng_seed(seed);
    hash_set_key(seed, 0);
    w.fsync = rng_below(4) > 0 ? JOURNAL_ALWAYS : rng_below(2) > 0 ? JOURNAL_EVERYSEC : JOURNAL_NO;
    w.clock_jumps = rng_below(4) == 0;
    receivers_watch(&w);
    world_begin(&w, directory);
    for (; counts.steps < steps && ledger_has_room(w.ledger); counts.steps++) {
        choose()->happen(&w);
        if (rng_below(3) > 0)
            world_turn(&w);
        receivers_look(&w);
        if (counts.steps % CHECK_STEPS == 0)
            accounts_check(&w);
    }
    be_well(&w);
    accounts_check(&w);
    receivers_check_end(&w);
    check_size(&w);
    clients_check_items(&w);
    clients_check_many(&w);
    world_restart(&w);
    clients_check_items(&w);
    clients_check_many(&w);
    accounts_check(&w);
    counts.changes = w.moment_count;
    counts.losses_of_power = w.losses_of_power;
    counts.attempts = w.attempts;
    counts.dead_at_once = w.dead_at_once;
    world_end(&w);
    return counts;
}
