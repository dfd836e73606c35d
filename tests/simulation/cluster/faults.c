/* Each run has a pace of its own, and a few kinds of fault that come more often than others, so
 * that some runs are nearly calm and some are all of one kind. */
#include "faults.h"

#include "etcd_store.h"
#include "gateway.h"
#include "machine.h"
#include "order.h"
#include "receivers.h"
#include "simulated.h"

#include "admin/service.h"
#include "base/rng.h"
#include "rest/cluster_view.h"

#define MINUTE_NS (60 * NS_PER_S)
#define LEASE_NS (5 * NS_PER_S)

static struct {
    uint64_t least_ns, most_ns, count;
    uint64_t liking; /* seed of the weights */
} faults;

/* Half of them, as those that hit whoever leads tell more. */
static struct machine *any_machine(void)
{
    struct machine *m = &machines[rng_below(machine_count)];

    if (sim_chance(2))
        return m;
    for (unsigned i = 0; i < machine_count; i++)
        if (machine_leads(&machines[i]))
            return &machines[i];
    return m;
}

static uint64_t a_while(void)
{
    return sim_delay(10 * NS_PER_MS, 40 * NS_PER_S);
}

static void kill_one(void)
{
    struct machine *m = any_machine();

    if (m->is_up)
        machine_kill(m, a_while());
}

static void lose_power(void)
{
    struct machine *m = any_machine();

    if (m->is_up)
        machine_lose_power(m, a_while());
}

/* Somebody else must have what the log does not have any more. */
static void lose_disk(void)
{
    struct machine *m = any_machine();
    bool is_spared = true;

    for (unsigned i = 0; i < machine_count; i++) {
        const struct machine *other = &machines[i];

        if (other != m && other->is_up && machine_serial(other) + 1 >= order_begins() &&
            machine_serial(other) > 0)
            is_spared = false;
    }
    if (m->is_up && !is_spared)
        machine_lose_disk(m, a_while());
}

static void stop_one(void)
{
    struct machine *m = any_machine();

    if (m->is_up && !m->is_stopped)
        machine_stop(m, sim_chance(3) ? sim_delay(LEASE_NS, 8 * LEASE_NS) : a_while());
}

static void leave(void)
{
    struct machine *m = any_machine();

    if (m->is_up && !m->is_stopped)
        machine_tell_to_leave(m);
}

static void step_down(void)
{
    struct machine *m = any_machine();
    const struct cluster_view *view;

    if (!m->is_up || m->is_stopped)
        return;
    sim_note("%s: told to step down", m->name);
    machine_enter(m->index);
    view = m->service->rest.cluster;
    view->step_down(view->context);
    machine_leave(m->index);
}

static void fail_job(void)
{
    struct machine *m = any_machine();

    if (m->is_up && !m->is_stopped)
        machine_fail_job(m);
}

static void slow_disk(void)
{
    struct machine *m = any_machine();

    m->disk_is_slow = !m->disk_is_slow;
}

static void set_clock(void)
{
    struct machine *m = any_machine();
    uint64_t by_ns = sim_delay(NS_PER_MS, 24 * 60 * MINUTE_NS);

    m->wall_offset_ns = sim_chance(2) ? 0 : sim_chance(2) ? (int64_t)by_ns : -(int64_t)by_ns;
    sim_note("%s: its clock is set, %lld ms from the true time", m->name,
             (long long)(m->wall_offset_ns / (int64_t)NS_PER_MS));
}

/* From all members or from some. */
static void cut_off(void)
{
    struct machine *m = any_machine();
    unsigned which = 1 + (unsigned)rng_below(3); /* requests, answers, both */
    bool all = sim_chance(2);

    sim_note("network: node %s and etcd are cut (%u, %s)", m->name, which, all ? "all" : "some");
    for (unsigned i = 0; i < NETWORK_MEMBERS; i++)
        if (all || sim_chance(2))
            network_cut(m->index, AT_ETCD, i, (which & 1) != 0, (which & 2) != 0);
}

static void cut_between(void)
{
    unsigned from = (unsigned)rng_below(machine_count), to = (unsigned)rng_below(machine_count);
    unsigned which = 1 + (unsigned)rng_below(3);

    sim_note("network: node %s and node %s are cut (%u)", machines[from].name, machines[to].name,
             which);
    network_cut(from, AT_NODE, to, (which & 1) != 0, (which & 2) != 0);
}

static void heal(void)
{
    sim_note("network: healed");
    network_heal();
}

static void spoil(void)
{
    for (uint64_t i = rng_below(10); i > 0; i--)
        network_spoil_one();
}

static void end_member(void)
{
    gateway_set((unsigned)rng_below(NETWORK_MEMBERS),
                sim_chance(2) ? GATEWAY_DOWN : GATEWAY_FROZEN);
}

/* There is a log by then: nobody would begin one there. */
static void exchange_member(void)
{
    if (order_batches() < 2)
        return;
    etcd_store_make_other();
    gateway_set((unsigned)rng_below(NETWORK_MEMBERS), GATEWAY_OTHER);
}

static void open_members(void)
{
    for (unsigned i = 0; i < NETWORK_MEMBERS; i++)
        gateway_set(i, GATEWAY_OPEN);
}

static void lose_quorum(void)
{
    gateway_set_quorum(false);
}

static void find_quorum(void)
{
    gateway_set_quorum(true);
}

static void restart_leases(void)
{
    sim_note("etcd: another member leads");
    etcd_store_restart_leases();
}

static void make_late(void)
{
    network_set_late(sim_chance(3) ? 0 : 1u << rng_below(9));
}

static const struct fault {
    unsigned weight;
    void (*strike)(void);
} list[] = {
    {10, kill_one},       {10, lose_power},    {3, lose_disk},     {14, stop_one},
    {6, leave},           {4, step_down},      {2, fail_job},      {3, slow_disk},
    {3, set_clock},       {12, cut_off},       {6, cut_between},   {20, heal},
    {10, spoil},          {6, end_member},     {12, open_members}, {4, lose_quorum},
    {12, find_quorum},    {3, restart_leases}, {8, make_late},     {6, etcd_store_make_room},
    {5, exchange_member},
};

/* Some are liked by this run. */
static unsigned weight_of(size_t i)
{
    return list[i].weight * ((faults.liking >> (2 * i) & 3) == 0 ? 4 : 1);
}

void faults_strike(void)
{
    unsigned sum = 0;
    uint64_t at;

    faults.count++;
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        sum += weight_of(i);
    at = rng_below(sum);
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        if (at < weight_of(i)) {
            list[i].strike();
            return;
        }
        at -= weight_of(i);
    }
}

void faults_open(void)
{
    faults.count = 0;
    faults.liking = rng_u64();
    faults.least_ns = sim_delay(200 * NS_PER_MS, 8 * NS_PER_S);
    faults.most_ns = faults.least_ns * (1 + rng_below(30));
}

uint64_t faults_pause_ns(void)
{
    return sim_delay(faults.least_ns, faults.most_ns);
}

uint64_t faults_count(void)
{
    return faults.count;
}

void faults_end(void)
{
    sim_note("all is well");
    network_heal();
    network_set_late(0);
    open_members();
    find_quorum();
    receivers_be_well(true);
    for (unsigned i = 0; i < machine_count; i++) {
        struct machine *m = &machines[i];

        m->wall_offset_ns = 0;
        m->disk_is_slow = false;
        if (m->is_up && m->is_stopped)
            m->goes_on_ns = sim.now_ns;
        if (!m->is_up)
            m->starts_ns = sim.now_ns;
    }
}
