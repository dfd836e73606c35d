/* Whatever is due happens, one thing at a time, in any order; when nothing is, the time moves on to
 * what comes next. A step is one thing: a message arrives, a job of a disk ends, a node's loop
 * turns, a client asks, a fault strikes. */
#include "script.h"

#include "../digest.h"
#include "clients.h"
#include "etcd_store.h"
#include "faults.h"
#include "gateway.h"
#include "operations.h"
#include "order.h"
#include "plants.h"
#include "receivers.h"
#include "simulated.h"
#include "visit.h"

#include "admin/service.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/rng.h"

#include <string.h>

enum { WELL_STEPS_MOST = 4000000, ACTORS = NETWORK_NODES + 5 };

#define TAKES_NS 20000 /* a step, at most */
#define QUOTA_LEAST (2 << 20)
#define QUOTA_TAILS 16 /* as docs/operations/cluster.md has it */
#define WELL_NS (600 * NS_PER_S)
#define LOOK_NS (NS_PER_S / 4)

static struct {
    uint64_t client_ns, fault_ns, look_ns; /* when the next one comes */
    uint64_t client_pause_ns;
    bool is_well;
    uint64_t well_since_ns;
} script;

/* What is true at every moment. ------------------------------------------------------------- */

static void check_leaders(void)
{
    const struct machine *leader = NULL;

    for (unsigned i = 0; i < machine_count; i++) {
        if (!machine_leads(&machines[i]))
            continue;
        if (leader != NULL)
            sim_broken(ONE_LEADER, "nodes %s and %s both lead", leader->name, machines[i].name);
        leader = &machines[i];
    }
}

/* Now and then. ----------------------------------------------------------------------------- */

static struct machine *running_machine(void)
{
    struct machine *m = &machines[rng_below(machine_count)];

    return m->is_up && !m->is_stopped && m->ending == MACHINE_STAYS ? m : NULL;
}

static void look(void)
{
    struct machine *m = running_machine();

    for (unsigned i = 0; i < machine_count; i++)
        visits_check(&machines[i]);
    if (script.is_well && sim.now_ns > script.well_since_ns + WELL_NS / 4)
        etcd_store_give_space(); /* nobody may trim what only the log has */
    else if (script.is_well)
        etcd_store_make_room();
    if (m != NULL && clients_webhook_serial() == 0 && machine_leads(m))
        clients_make_webhook(m);
    script.look_ns = sim.now_ns + LOOK_NS;
}

static void ask(void)
{
    struct machine *m = running_machine();

    if (m != NULL)
        clients_ask(m);
    script.client_ns = sim.now_ns + sim_delay(script.client_pause_ns / 8, script.client_pause_ns);
}

static void strike(void)
{
    faults_strike();
    script.fault_ns = sim.now_ns + faults_pause_ns();
}

/* A step. ----------------------------------------------------------------------------------- */

struct actor {
    uint64_t due_ns;
    void (*act)(void);       /* or */
    struct machine *machine; /* takes a step */
};

static void end_leases(void)
{
    etcd_store_pass();
    gateway_tell();
}

static size_t list_actors(struct actor actors[ACTORS])
{
    size_t count = 0;

    actors[count++] = (struct actor){network_next_ns(), network_step, NULL};
    if (gateway_has_quorum())
        actors[count++] = (struct actor){etcd_store_next_end_ns(), end_leases, NULL};
    actors[count++] = (struct actor){script.look_ns, look, NULL};
    if (!script.is_well) {
        actors[count++] = (struct actor){script.client_ns, ask, NULL};
        actors[count++] = (struct actor){script.fault_ns, strike, NULL};
    }
    for (unsigned i = 0; i < machine_count; i++)
        actors[count++] = (struct actor){machine_next_ns(&machines[i]), NULL, &machines[i]};
    return count;
}

/* One of those that are due; if none is, the time moves on. */
static const struct actor *choose(const struct actor *actors, size_t count)
{
    uint64_t next = UINT64_MAX;
    size_t due = 0, chosen;

    for (size_t i = 0; i < count; i++)
        next = MIN(next, actors[i].due_ns);
    sim.now_ns = MAX(sim.now_ns, next);
    for (size_t i = 0; i < count; i++)
        due += actors[i].due_ns <= sim.now_ns;
    chosen = (size_t)rng_below(due);
    for (size_t i = 0;; i++)
        if (actors[i].due_ns <= sim.now_ns && chosen-- == 0)
            return &actors[i];
}

static void step(void)
{
    struct actor actors[ACTORS];
    const struct actor *actor = choose(actors, list_actors(actors));

    sim.step++;
    if (actor->act != NULL)
        actor->act();
    else
        machine_step(actor->machine);
    sim.now_ns += rng_below(TAKES_NS);
    check_leaders();
}

/* The end. ---------------------------------------------------------------------------------- */

static bool is_settled(void)
{
    bool leads = false;

    for (unsigned i = 0; i < machine_count; i++) {
        if (!machine_is_settled(&machines[i]))
            return false;
        leads = leads || machine_leads(&machines[i]);
    }
    return leads && clients_waiting() == 0 && operations_are_delivered(clients_webhook_serial());
}

static void why_not_settled(void)
{
    uint64_t from = clients_webhook_serial();

    if (clients_waiting() > 0)
        sim_broken(NOBODY_HANGS, "%zu requests have no answer", clients_waiting());
    for (unsigned i = 0; i < machine_count; i++)
        if (!machine_is_settled(&machines[i]))
            sim_broken(RECOVERS, "node %s is at %llu, the log at %llu", machines[i].name,
                       machines[i].is_up ? (unsigned long long)machine_serial(&machines[i]) : 0,
                       (unsigned long long)order_next() - 1);
    if (from != 0)
        operations_check_delivered(from);
    sim_broken(RECOVERS, "nobody leads");
}

static void be_well(void)
{
    uint64_t until_ns = sim.now_ns + WELL_NS, until_step = sim.step + WELL_STEPS_MOST;

    script.is_well = true;
    script.well_since_ns = sim.now_ns;
    faults_end();
    do {
        if (sim.now_ns > until_ns || sim.step > until_step)
            why_not_settled();
        step();
    } while (!is_settled());
}

static void check_machine(struct machine *m)
{
    struct store_digest digest = sim_digest_read(m->service->store);

    order_note_state(m->name, machine_serial(m), &digest);
    clients_check_items(m);
}

static void check_end(void)
{
    for (unsigned i = 0; i < machine_count; i++)
        check_machine(&machines[i]);
    while (clients_waiting() > 0)
        step();
    for (unsigned i = 0; i < machine_count; i++) {
        machine_kill(&machines[i], 0);
        machine_start(&machines[i]);
    }
}

/* A run. ------------------------------------------------------------------------------------ */

static void begin(uint64_t seed, const char *directory)
{
    const struct etcd_store_plants plants = {
        .epoch_unchecked = planted == PLANT_EPOCH,
        .range_unchecked = planted == PLANT_RANGE,
        .forgets = planted == PLANT_FORGETS,
    };
    uint64_t tail_bytes;

    rng_seed(seed);
    hash_set_key(seed, 0);
    memset(&script, 0, sizeof(script));
    sim.now_ns = NS_PER_S;
    sim.seed = seed;
    sim.step = 0;
    sim.fingerprint = seed;
    tail_bytes = UINT64_C(16384) << rng_below(4);
    etcd_store_open((QUOTA_LEAST + QUOTA_TAILS * tail_bytes) << rng_below(3), &plants);
    gateway_open();
    network_open();
    order_open();
    operations_open();
    receivers_be_well(false);
    clients_open(sim_chance(3), sim_chance(4));
    machines_open(sim_chance(2) ? 3 : 1 + (unsigned)rng_below(NETWORK_NODES), directory,
                  tail_bytes);
    faults_open();
    network_set_late(sim_chance(2) ? 0 : 200);
    script.client_pause_ns = sim_delay(50 * NS_PER_MS, 2 * NS_PER_S);
    script.fault_ns = sim.now_ns + 5 * NS_PER_S + faults_pause_ns();
    script.client_ns = sim.now_ns;
    for (unsigned i = 0; i < machine_count; i++)
        machines[i].starts_ns = sim.now_ns + sim_delay(NS_PER_MS, 8 * NS_PER_S);
}

static void end(void)
{
    machines_close();
    gateway_close();
    network_close();
    etcd_store_close();
    operations_close();
    order_close();
    clock_real();
}

struct script_counts script_run(uint64_t seed, uint64_t steps, const char *directory)
{
    struct script_counts counts;

    begin(seed, directory);
    while (sim.step < steps)
        step();
    be_well();
    check_end();
    counts = (struct script_counts){
        .steps = sim.step,
        .seconds = sim.now_ns / NS_PER_S,
        .acknowledged = operations_count(OPERATION_ACKNOWLEDGED),
        .refused = operations_count(OPERATION_REFUSED),
        .unknown = operations_count(OPERATION_UNKNOWN),
        .batches = order_batches(),
        .epochs = order_epochs(),
        .faults = faults_count(),
        .boots = machine_counts.boots,
        .deliveries = receivers_count(),
        .fingerprint = sim.fingerprint,
    };
    end();
    return counts;
}
