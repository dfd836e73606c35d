/* One thing at a time runs, on one machine, whose clocks are then set: that is what makes several
 * of them possible in one process. */
#include "machine.h"

#include "../digest.h"
#include "../disk.h"
#include "directories.h"
#include "order.h"
#include "plants.h"
#include "serving.h"
#include "simulated.h"
#include "visit.h"

#include "access/access.h"
#include "admin/service.h"
#include "admin/service_options.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "dispatch/api_key.h"
#include "journal/join.h"
#include "journal/journal.h"
#include "journal/replica.h"
#include "resource/declaration.h"
#include "rest/cluster_view.h"
#include "store/change.h"
#include "store/turn.h"
#include "store/turn_log.h"
#include "json/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SEGMENT_BYTES = 65536, DRAIN_TURNS = 1000 };

#define UNIX_NS INT64_C(1800000000000000000)
#define DRAIN_NS NS_PER_S
#define DISK_LEAST_NS (NS_PER_MS / 20)
#define DISK_MOST_NS (20 * NS_PER_MS)
#define DISK_SLOW_NS (2 * NS_PER_S)

static const char declarations[] =
    "[{\"Name\":\"Sim.Item\",\"Kind\":\"EntityResource\",\"Description\":\"Items\","
    "\"Properties\":[{\"Name\":\"N\",\"Type\":\"integer\",\"Required\":true},"
    "{\"Name\":\"Padding\",\"Type\":\"string\"}],\"Indexes\":[\"N\"]},"
    "{\"Name\":\"Sim.Many\",\"Kind\":\"EntityResource\",\"Description\":\"Changed together\","
    "\"Properties\":[{\"Name\":\"N\",\"Type\":\"integer\"}]},"
    "{\"Name\":\"Sim.Raised\",\"Kind\":\"EventResource\",\"Description\":\"Events\"}]";

struct machine machines[NETWORK_NODES];
unsigned machine_count;
struct machine_counts machine_counts;

unsigned machine_of_loop(const struct loop *loop)
{
    for (unsigned i = 0; i < machine_count; i++)
        if (&machines[i].loop == loop)
            return i;
    MUST_NOT_REACH();
}

bool machine_is_up(unsigned i)
{
    return machines[i].is_up;
}

bool machine_is_stopped(unsigned i)
{
    return machines[i].is_up && machines[i].is_stopped;
}

enum replica_role machine_role(const struct machine *m)
{
    const struct cluster_view *view = m->service->rest.cluster;

    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].is_self)
            return view->nodes[i].role;
    return REPLICA_OFF;
}

uint64_t machine_serial(const struct machine *m)
{
    return journal_committed_serial(turn_journal(m->service->turn));
}

static void set_clocks(const struct machine *m)
{
    clock_fake(UNIX_NS + (int64_t)sim.now_ns + m->wall_offset_ns, sim.now_ns + m->mono_offset_ns);
}

bool machine_leads(struct machine *m)
{
    if (!m->is_up)
        return false;
    set_clocks(m);
    return cluster_may_deliver(m->cluster);
}

/* States. ----------------------------------------------------------------------------------- */

static void note_state(struct machine *m, uint64_t serial)
{
    if (m->state_count == m->state_size) {
        m->state_size = MAX(64, m->state_size * 2);
        m->states = mem_resize(m->states, m->state_size * sizeof(struct machine_state));
    }
    m->states[m->state_count++] = (struct machine_state){serial, sim_digest(m->service->store)};
    machine_counts.changes++;
}

/* That of a long change has come when all of it is applied. */
static void note_long(struct machine *m)
{
    if (m->long_serial == 0 || turn_is_applying(m->service->turn))
        return;
    note_state(m, m->long_serial);
    m->long_serial = 0;
}

static void look_at_states(struct machine *m)
{
    uint64_t committed = machine_serial(m);
    size_t done = 0;

    note_long(m);
    if (committed >= order_next())
        sim_broken(ONLY_CONFIRMED, "node %s has committed %" PRIu64 ", the log ends at %" PRIu64,
                   m->name, committed, order_next() - 1);
    while (done < m->state_count && m->states[done].serial <= committed) {
        order_note_state(m->name, m->states[done].serial, &m->states[done].digest);
        done++;
    }
    m->state_count -= done;
    if (done > 0)
        memmove(m->states, m->states + done, m->state_count * sizeof(struct machine_state));
}

void machine_enter(unsigned i)
{
    MUST(machines[i].is_up);
    machines[i].is_entered = true;
    set_clocks(&machines[i]);
}

void machine_leave(unsigned i)
{
    struct machine *m = &machines[i];

    m->is_entered = false;
    m->wants_turn = true;
    look_at_states(m);
}

static struct machine *machine_of_turn(const struct turn *t)
{
    for (unsigned i = 0; i < machine_count; i++)
        if (machines[i].service != NULL && machines[i].service->turn == t)
            return &machines[i];
    MUST_NOT_REACH();
}

/* Wrapped by the linker. -------------------------------------------------------------------- */

struct cleaner;

struct err *__real_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__wrap_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__real_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__wrap_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial);
bool __real_cleaner_step(struct cleaner *c);
bool __wrap_cleaner_step(struct cleaner *c);
bool __real_replica_leads(const struct replica *r);
bool __wrap_replica_leads(const struct replica *r);
void __real_replica_append(struct replica *r, struct replica_append *append);
void __wrap_replica_append(struct replica *r, struct replica_append *append);
uint64_t __wrap_clock_cpu_ns(void);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_time, uint64_t ms, uint64_t repeat);

static bool is_cleaning;

/* libuv goes by the real time, of which nothing here may know. */
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_time, uint64_t ms, uint64_t repeat)
{
    (void)timer, (void)on_time, (void)ms, (void)repeat;
    return 0;
}

/* Whenever a fiber looks at the clock the time of its turn is up; others take a random time, so
 * that what a follower does is now and then divided over turns. */
uint64_t __wrap_clock_cpu_ns(void)
{
    static uint64_t ns;

    if (budget_now.current != NULL && budget_now.current->is_on_fiber)
        ns += BUDGET_SLICE_NS + 1;
    else
        ns += rng_below(NS_PER_MS / 2);
    return ns;
}

struct err *__wrap_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct machine *m = machine_of_turn(t);
    uint64_t before = journal_next_serial(turn_journal(t));
    struct err *e;

    turn_settle(t);
    note_long(m);
    e = __real_turn_apply(t, c, out_serial);
    if (e == NULL && journal_next_serial(turn_journal(t)) != before && !is_cleaning)
        note_state(m, journal_next_serial(turn_journal(t)) - 1);
    return e;
}

struct err *__wrap_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct machine *m = machine_of_turn(t);
    struct err *e = __real_turn_apply_long(t, c, out_serial);

    if (e == NULL && *out_serial != 0) {
        MUST(m->long_serial == 0);
        m->long_serial = journal_next_serial(turn_journal(t)) - 1;
    }
    return e;
}

bool __wrap_cleaner_step(struct cleaner *c)
{
    bool more;

    is_cleaning = true;
    more = __real_cleaner_step(c);
    is_cleaning = false;
    return more;
}

bool __wrap_replica_leads(const struct replica *r)
{
    return planted == PLANT_LEASE ? replica_role(r) == REPLICA_LEADING : __real_replica_leads(r);
}

void __wrap_replica_append(struct replica *r, struct replica_append *append)
{
    for (unsigned i = 0; planted == PLANT_JOURNAL && i < machine_count; i++)
        if (machines[i].is_entered)
            journal_commit(turn_journal(machines[i].service->turn));
    __real_replica_append(r, append);
}

/* Starting. --------------------------------------------------------------------------------- */

static void must_work(const struct machine *m, struct err *e)
{
    if (e != NULL)
        sim_broken(RECOVERS, "node %s: %.*s", m->name, SPAN_FMT(err_message(e)));
}

static void end_soon(struct machine *m, enum machine_ending ending, uint64_t within_ns)
{
    m->ending = ending;
    m->ends_ns = sim.now_ns + rng_below(within_ns);
}

static struct err *declare(struct machine *m)
{
    struct err *e;
    struct arena a;
    struct json_doc doc;

    arena_init(&a);
    must_work(m, json_parse(span_str(declarations), NULL, &a, &doc));
    e = api_keys_list_configured(m->service->rest.api_keys);
    if (e == NULL)
        e = declarations_configure(m->service->rest.resources, json_root(&doc), ".", false);
    arena_done(&a);
    return e;
}

/* What it cannot do then, it could not do in the next moment either: its disk is full. */
static void on_leads(void *context)
{
    struct machine *m = context;
    struct err *e = declare(m);

    machine_counts.leaderships++;
    sim_note("%s: leads", m->name);
    if (e == NULL) {
        service_start(m->service);
        return;
    }
    sim_note("%s: cannot begin to lead: %.*s", m->name, SPAN_FMT(err_message(e)));
    err_free(e);
    end_soon(m, MACHINE_FAILS, NS_PER_S);
}

static void on_anew(void *context, const char *why)
{
    struct machine *m = context;

    sim_note("%s: starts anew: %s", m->name, why);
    service_drain(m->service);
    end_soon(m, MACHINE_ANEW, DRAIN_NS);
}

static void on_refused(void *context, const char *why)
{
    const struct machine *m = context;

    sim_broken(RECOVERS, "node %s is refused: %s", m->name, why);
}

static void make_service(struct machine *m)
{
    struct service_options options = {
        .retention = {.error_days = 30,
                      .errors = 20,
                      .log_days = 14,
                      .log_entries = 60,
                      .error_bytes = 1 << 24,
                      .log_bytes = 1 << 24,
                      .event_bytes = 1 << 24,
                      .event_days = 1,
                      .events = 60,
                      .idempotency_seconds = 86400,
                      .idempotency_keys = 200},
        .base_path = "/",
        .delivery_in_flight = 8,
        .connections_per_host = 4,
    };

    limits_init(&options.limits);
    options.limits.request_cpu_ms = 3600000;
    options.limits.failed_sign_ins_per_minute = 1000000;
    egress_init(&options.egress);
    access_init(&options.access);
    must_work(m, service_new(&m->loop, &options, &m->service));
}

static void open_journal(struct machine *m)
{
    const struct journal_options journal = {
        .directory = m->directory,
        .fsync = JOURNAL_ALWAYS,
        .segment_bytes = SEGMENT_BYTES,
    };
    bool is_refused;

    must_work(m, join_settle(m->directory, &is_refused));
    if (is_refused)
        sim_broken(RECOVERS, "node %s: the copy of another node's journal is no journal", m->name);
    must_work(m, service_replay(m->service, &(struct turn_options){.journal = &journal,
                                                                   .clean_slice_bytes = 8192}));
}

static void open_cluster(struct machine *m)
{
    const struct cluster_options options = {
        .config = &m->config,
        .directory = m->directory,
        .base_path = "/",
        .service = m->service,
        .callbacks = {on_leads, on_anew, on_refused, m},
    };

    must_work(m, cluster_new(&m->loop, &options, &m->cluster));
    cluster_start(m->cluster);
}

void machine_start(struct machine *m)
{
    struct store_digest digest;

    MUST(!m->is_up);
    m->is_up = true;
    m->is_stopped = false;
    m->ending = MACHINE_STAYS;
    m->disk_ns = 0;
    m->boots++;
    machine_counts.boots++;
    sim_disk_set_full(&m->loop, false);
    machine_enter(m->index);
    make_service(m);
    open_journal(m);
    digest = sim_digest_read(m->service->store);
    sim_note("%s: starts, serial %" PRIu64 ", digest %" PRIx64, m->name, machine_serial(m),
             (uint64_t)digest.sum);
    if (machine_serial(m) > 0)
        order_note_state(m->name, machine_serial(m), &digest);
    open_cluster(m);
    machine_leave(m->index);
}

/* Ending. ----------------------------------------------------------------------------------- */

static void free_all(struct machine *m)
{
    machine_enter(m->index);
    visits_end(m);
    servings_end(m);
    cluster_free(TAKE(m->cluster));
    sim_digest_check(m->service->store);
    sim_digest_forget();
    service_free(m->service);
    m->service = NULL;
    for (unsigned i = 0; uv_loop_alive(&m->loop.uv); i++) {
        MUST(i < DRAIN_TURNS);
        loop_run_once(&m->loop);
    }
    m->is_entered = m->is_up = m->is_stopped = m->wants_turn = false;
    m->state_count = 0;
    m->long_serial = 0;
}

/* As exec does: connections close. */
static void end_in_order(struct machine *m)
{
    sim_note("%s: ends", m->name);
    network_node_ended(m->index, true);
    free_all(m);
}

/* What a process that is gone did not do must not be done when its memory is freed: the files are
 * copied before. */
static void end_at_once(struct machine *m, bool is_seen)
{
    char next[MACHINE_PATH_BYTES + 32];

    snprintf(next, sizeof(next), "%s/%s-%u", m->parent, m->name, m->boots);
    directory_copy(m->directory, next);
    network_node_ended(m->index, is_seen);
    free_all(m);
    directory_remove(m->directory);
    snprintf(m->directory, sizeof(m->directory), "%.*s", MACHINE_PATH_BYTES - 1, next);
}

static void come_back_after(struct machine *m, uint64_t for_ns)
{
    m->starts_ns = sim.now_ns + for_ns;
}

void machine_kill(struct machine *m, uint64_t for_ns)
{
    sim_note("%s: killed", m->name);
    machine_counts.kills++;
    sim_disk_kill(&m->loop);
    end_at_once(m, true);
    come_back_after(m, for_ns);
}

void machine_lose_power(struct machine *m, uint64_t for_ns)
{
    sim_note("%s: loses its power", m->name);
    machine_counts.losses_of_power++;
    sim_disk_lose_power(&m->loop);
    end_at_once(m, false);
    come_back_after(m, for_ns);
}

void machine_lose_disk(struct machine *m, uint64_t for_ns)
{
    sim_note("%s: loses its disk", m->name);
    machine_counts.losses_of_disk++;
    sim_disk_lose_power(&m->loop);
    end_at_once(m, false);
    directory_remove(m->directory);
    come_back_after(m, for_ns);
}

void machine_stop(struct machine *m, uint64_t for_ns)
{
    sim_note("%s: stopped for %" PRIu64 " ms", m->name, for_ns / NS_PER_MS);
    m->is_stopped = true;
    m->goes_on_ns = sim.now_ns + for_ns;
}

void machine_go_on(struct machine *m)
{
    sim_note("%s: goes on", m->name);
    m->is_stopped = false;
    m->wants_turn = true;
    network_node_goes_on(m->index);
}

static void on_left(void *context)
{
    struct machine *m = context;

    service_drain(m->service);
    end_soon(m, MACHINE_LEAVES, DRAIN_NS);
}

void machine_tell_to_leave(struct machine *m)
{
    if (m->ending != MACHINE_STAYS)
        return;
    sim_note("%s: told to leave", m->name);
    m->ending = MACHINE_LEAVES;
    m->ends_ns = UINT64_MAX;
    machine_enter(m->index);
    cluster_leave(m->cluster, on_left, m);
    machine_leave(m->index);
}

void machine_fail_job(struct machine *m)
{
    static const int errors[] = {-EIO, -ENOSPC};

    if (sim_disk_jobs(&m->loop) == 0)
        return;
    sim_note("%s: its disk fails", m->name);
    machine_enter(m->index);
    sim_disk_finish(&m->loop, (size_t)rng_below(sim_disk_jobs(&m->loop)),
                    errors[rng_below(ARRAY_LEN(errors))]);
    machine_leave(m->index);
    if (m->service->failed != NULL)
        machine_kill(m, sim_delay(NS_PER_MS, 2 * NS_PER_S));
}

/* Steps. ------------------------------------------------------------------------------------ */

static uint64_t next_timer_ns(const struct machine *m)
{
    const struct heap_node *first = heap_first(m->loop.timers);
    uint64_t at_ns;

    if (first == NULL)
        return UINT64_MAX;
    at_ns = CONTAINER_OF_CONST(first, struct timer, node)->deadline_ms * NS_PER_MS;
    return MAX(at_ns, m->mono_offset_ns) - m->mono_offset_ns;
}

static bool is_busy(const struct machine *m)
{
    return m->wants_turn || !list_empty(&m->loop.tasks) ||
           uv_is_active((const uv_handle_t *)&m->loop.busy);
}

static void look_at_disk(struct machine *m)
{
    if (sim_disk_jobs(&m->loop) == 0)
        m->disk_ns = 0;
    else if (m->disk_ns == 0)
        m->disk_ns =
            sim.now_ns + sim_delay(DISK_LEAST_NS, m->disk_is_slow ? DISK_SLOW_NS : DISK_MOST_NS);
}

uint64_t machine_next_ns(const struct machine *m)
{
    uint64_t next;

    if (!m->is_up)
        return m->starts_ns;
    if (m->is_stopped)
        return m->goes_on_ns;
    next = is_busy(m) ? sim.now_ns : next_timer_ns(m);
    if (m->disk_ns != 0)
        next = MIN(next, m->disk_ns);
    return m->ending == MACHINE_STAYS ? next : MIN(next, m->ends_ns);
}

static void come_to_end(struct machine *m)
{
    enum machine_ending ending = m->ending;

    if (ending == MACHINE_FAILS) {
        machine_kill(m, sim_delay(NS_PER_MS, 2 * NS_PER_S));
        return;
    }
    end_in_order(m);
    if (ending == MACHINE_ANEW)
        machine_start(m);
    else
        come_back_after(m, sim_delay(NS_PER_MS, 10 * NS_PER_S));
}

static void finish_job(struct machine *m)
{
    m->disk_ns = 0;
    machine_enter(m->index);
    sim_disk_finish(&m->loop, (size_t)rng_below(sim_disk_jobs(&m->loop)), 0);
    machine_leave(m->index);
}

static void turn_around(struct machine *m)
{
    m->wants_turn = false;
    machine_enter(m->index);
    loop_wake(&m->loop); /* it must not sleep: nothing happens by itself */
    loop_run_once(&m->loop);
    machine_leave(m->index);
    m->wants_turn = false;
}

void machine_step(struct machine *m)
{
    if (!m->is_up)
        machine_start(m);
    else if (m->is_stopped)
        machine_go_on(m);
    else if (m->ending != MACHINE_STAYS && m->ends_ns <= sim.now_ns)
        come_to_end(m);
    else if (m->disk_ns != 0 && m->disk_ns <= sim.now_ns)
        finish_job(m);
    else
        turn_around(m);
    if (m->is_up)
        look_at_disk(m);
}

bool machine_is_settled(const struct machine *m)
{
    return m->is_up && !m->is_stopped && m->ending == MACHINE_STAYS && list_empty(&m->visits) &&
           machine_serial(m) + 1 == order_next() &&
           journal_next_serial(turn_journal(m->service->turn)) == order_next() &&
           journal_idle(turn_journal(m->service->turn));
}

/* All of them. ------------------------------------------------------------------------------ */

static void open_machine(struct machine *m, unsigned i, const char *parent, uint64_t tail_bytes)
{
    *m = (struct machine){.index = i, .starts_ns = UINT64_MAX};
    snprintf(m->name, sizeof(m->name), "%c", 'a' + (char)i);
    snprintf(m->parent, sizeof(m->parent), "%s", parent);
    snprintf(m->directory, sizeof(m->directory), "%s/%s", parent, m->name);
    m->mono_offset_ns = (1 + rng_below(1000)) * NS_PER_S;
    m->config = (struct cluster_config){
        .name = ORDER_CLUSTER,
        .node = m->name,
        .url = network_node_url(i),
        .etcd_count = NETWORK_MEMBERS,
        .lease_seconds = 5,
        .commit_seconds = 2 + (int64_t)rng_below(9),
        .tail_bytes = (int64_t)tail_bytes,
    };
    for (unsigned k = 0; k < NETWORK_MEMBERS; k++)
        m->config.etcd[k] = network_member_url((i + k) % NETWORK_MEMBERS);
    list_init(&m->visits);
    list_init(&m->servings);
    response_init(&m->response, 4 << 20);
    must_work(m, loop_init(&m->loop));
}

void machines_open(unsigned count, const char *parent, uint64_t tail_bytes)
{
    machine_count = count;
    memset(&machine_counts, 0, sizeof(machine_counts));
    clock_fake(UNIX_NS, 0);
    for (unsigned i = 0; i < count; i++)
        open_machine(&machines[i], i, parent, tail_bytes);
}

void machines_close(void)
{
    for (unsigned i = 0; i < machine_count; i++) {
        struct machine *m = &machines[i];

        if (m->is_up)
            end_in_order(m);
        loop_done(&m->loop);
        response_done(&m->response);
        mem_free(m->states);
        directory_remove(m->directory);
    }
}
