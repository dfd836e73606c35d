#include "world.h"
#include "dispatch/api_key.h"

#include "digest.h"
#include "disk.h"
#include "network.h"
#include "json/json.h"

#include "access/access.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "resource/declaration.h"
#include "store/change.h"
#include "store/turn_wait.h"
#include "webhook/webhook.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SETTLE_TURNS_MOST = 100000 };

static const char declarations[] =
    "[{\"Name\":\"Sim.Item\",\"Kind\":\"EntityResource\",\"Description\":\"Items\","
    "\"Properties\":[{\"Name\":\"N\",\"Type\":\"integer\",\"Required\":true},"
    "{\"Name\":\"Padding\",\"Type\":\"string\"}],\"Indexes\":[\"N\"]},"
    "{\"Name\":\"Sim.Many\",\"Kind\":\"EntityResource\",\"Description\":\"Changed together\","
    "\"Properties\":[{\"Name\":\"N\",\"Type\":\"integer\"}],\"Indexes\":[\"N\"]},"
    "{\"Name\":\"Sim.Sink\",\"Kind\":\"EntityResource\",\"Description\":\"Local deliveries\"},"
    "{\"Name\":\"Sim.Raised\",\"Kind\":\"EventResource\",\"Description\":\"Events\"}]";

struct cleaner;

static struct world *the_world; /* for the wrappers below */
static bool is_cleaning;

/* Every change goes through turn_apply; the linker leads all callers here first (--wrap). Moves of
 * the cleaner change nothing, as the comparison with the moment before them shows. */
struct err *__real_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__wrap_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__real_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial);
struct err *__wrap_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial);
uint64_t __wrap_clock_cpu_ns(void);
bool __real_cleaner_step(struct cleaner *c);
bool __wrap_cleaner_step(struct cleaner *c);

uint64_t world_serial(const struct world *w)
{
    return journal_next_serial(turn_journal(w->service->turn)) - 1;
}

static void note_moment(struct world *w, uint64_t serial)
{
    MUST(w->moment_count < WORLD_MOMENTS);
    w->moments[w->moment_count++] = (struct moment){serial, sim_digest(w->service->store)};
}

/* That of a change of very many has come when all of it is applied, and before the next one's. */
static void note_long(struct world *w)
{
    if (w->long_serial == 0 || turn_is_applying(w->service->turn))
        return;
    note_moment(w, w->long_serial);
    w->long_serial = 0;
}

/* Whenever a fiber looks at the clock, the time of its turn is up. */
uint64_t __wrap_clock_cpu_ns(void)
{
    static uint64_t ns;

    if (budget_now.current != NULL && budget_now.current->is_on_fiber)
        ns += BUDGET_SLICE_NS + 1;
    return ns;
}

static void note_many(uint64_t serial)
{
    struct many *m = &the_world->many;

    MUST(m->count < WORLD_MANY_VERSIONS);
    m->next.serial = serial;
    m->versions[m->count++] = m->next;
}

struct err *__wrap_turn_apply_long(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct err *e = __real_turn_apply_long(t, c, out_serial);

    if (e != NULL || *out_serial == 0)
        return e;
    MUST(the_world->long_serial == 0);
    the_world->long_serial = *out_serial;
    note_many(*out_serial);
    return NULL;
}

static bool is_changing_many(const struct change *c)
{
    const struct evaluation *changing = the_world->many.evaluation;

    return c->count == WORLD_MANY && changing != NULL &&
           changing == the_world->service->rest.running;
}

struct err *__wrap_turn_apply(struct turn *t, struct change *c, uint64_t *out_serial)
{
    struct err *e;

    turn_settle(t);
    note_long(the_world);
    e = __real_turn_apply(t, c, out_serial);
    if (e == NULL && c->count > 0 && !is_cleaning)
        note_moment(the_world, world_serial(the_world));
    if (e == NULL && is_changing_many(c)) /* at once, as it has begun anew too often */
        note_many(*out_serial);
    return e;
}

bool __wrap_cleaner_step(struct cleaner *c)
{
    bool more;

    note_long(the_world);
    is_cleaning = true;
    more = __real_cleaner_step(c);
    is_cleaning = false;
    return more;
}

/* Starting. --------------------------------------------------------------------------------- */

static void must_work(struct err *e)
{
    if (e == NULL)
        return;
    fprintf(stderr, "%.*s\n", SPAN_FMT(err_message(e)));
    err_free(e);
    MUST_NOT_REACH();
}

static void make_service(struct world *w)
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
    options.limits.payload_bytes = 2000;
    options.limits.pending_deliveries = 400;
    options.limits.webhook_pending_deliveries = 60;
    egress_init(&options.egress);
    access_init(&options.access);
    must_work(service_new(&w->loop, &options, &w->service));
}

static void declare(struct world *w)
{
    struct arena a;
    struct json_doc doc;

    arena_init(&a);
    must_work(json_parse(span_str(declarations), NULL, &a, &doc));
    must_work(declarations_configure(w->service->rest.resources, json_root(&doc), ".", false));
    arena_done(&a);
}

static void boot(struct world *w)
{
    const struct journal_options journal = {
        .directory = w->directory,
        .fsync = w->fsync,
        .segment_bytes = WORLD_SEGMENT_BYTES,
    };
    const struct turn_options options = {.journal = &journal, .clean_slice_bytes = 8192};

    make_service(w);
    must_work(service_replay(w->service, &options));
    must_work(api_keys_list_configured(w->service->rest.api_keys));
    w->boots++;
}

/* What is left of the changes must be a run of them from the first on, and all that was
 * acknowledged. */
static void check_recovered(struct world *w, uint64_t least)
{
    uint64_t recovered = world_serial(w);
    struct store_digest digest = sim_digest_read(w->service->store);
    size_t at = w->moment_count;

    MUST(recovered >= least);
    while (at > 0 && w->moments[at - 1].serial > recovered)
        at--;
    if (at == 0)
        MUST(recovered == 0);
    else
        MUST(digest.sum == w->moments[at - 1].digest.sum &&
             digest.objects == w->moments[at - 1].digest.objects);
    w->moment_count = at;
}

static void start(struct world *w)
{
    declare(w);
    w->acknowledged = w->synced = 0;
    sim_disk_set_full(&w->loop, false);
    service_start(w->service);
}

void world_begin(struct world *w, const char *parent)
{
    the_world = w;
    snprintf(w->parent, sizeof(w->parent), "%s", parent);
    snprintf(w->directory, sizeof(w->directory), "%s/0", parent);
    clock_fake(INT64_C(1800000000000000000) + (int64_t)rng_below(1000000) * 1000000, 1000000000);
    w->ledger = ledger_new();
    w->moments = mem_alloc(WORLD_MOMENTS * sizeof(struct moment));
    response_init(&w->response, 4 << 20);
    must_work(loop_init(&w->loop));
    boot(w);
    start(w);
}

/* Running. ---------------------------------------------------------------------------------- */

void world_turn(struct world *w)
{
    loop_wake(&w->loop); /* it must not sleep: nothing happens by itself */
    loop_run_once(&w->loop);
    note_long(w);
    if (sim_disk_is_synced(&w->loop))
        w->synced = journal_committed_serial(turn_journal(w->service->turn));
}

static void on_committed(struct turn_wait *wait)
{
    struct held_answer *held = CONTAINER_OF(wait, struct held_answer, wait);

    held->is_waiting = false;
    MUST(held->world->service->failed == NULL);
    MUST(held->world->acknowledged <= wait->serial);
    held->world->acknowledged = wait->serial;
}

void world_hold_answer(struct world *w)
{
    world_hold_serial(w, w->response.serial);
}

void world_hold_serial(struct world *w, uint64_t serial)
{
    if (turn_is_committed(w->service->turn, serial)) {
        w->acknowledged = MAX(w->acknowledged, serial);
        return;
    }
    for (size_t i = 0; i < WORLD_WAITS; i++) {
        struct held_answer *held = &w->held[i];

        if (held->is_waiting)
            continue;
        *held = (struct held_answer){
            .wait = {.on_committed = on_committed}, .world = w, .is_waiting = true};
        turn_wait(w->service->turn, &held->wait, serial);
        return;
    }
}

void world_settle(struct world *w)
{
    for (unsigned turns = 0;
         sim_disk_jobs(&w->loop) > 0 || !journal_idle(turn_journal(w->service->turn)) ||
         turn_is_held(w->service->turn);
         turns++) {
        MUST(turns < SETTLE_TURNS_MOST);
        if (sim_disk_jobs(&w->loop) > 0)
            sim_disk_finish(&w->loop, 0, 0);
        world_turn(w);
    }
}

/* Ending. ----------------------------------------------------------------------------------- */

static void drop_held(struct world *w)
{
    for (size_t i = 0; i < WORLD_WAITS; i++) {
        if (w->held[i].is_waiting)
            turn_unwait(w->service->turn, &w->held[i].wait);
        w->held[i].is_waiting = false;
    }
}

/* What the journal has of a change is applied, whether anybody waits for it or not. */
static void drop_many(struct world *w)
{
    evaluation_free(TAKE(w->many.evaluation));
    buf_done(&w->many.body);
    turn_settle(w->service->turn);
    note_long(w);
}

static void rewind_many(struct many *m, uint64_t serial)
{
    while (m->count > 0 && m->versions[m->count - 1].serial > serial)
        m->count--;
}

static void free_service(struct world *w)
{
    drop_held(w);
    drop_many(w);
    sim_digest_forget();
    service_free(TAKE(w->service));
    while (uv_loop_alive(&w->loop.uv))
        loop_run_once(&w->loop);
}

static void each_file(const char *directory,
                      void (*visit)(const char *path, const char *name, const char *arg),
                      const char *arg)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    char path[2 * WORLD_PATH_BYTES + 256];

    MUST(d != NULL);
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        visit(path, entry->d_name, arg);
    }
    closedir(d);
}

static void copy_file(const char *path, const char *name, const char *to)
{
    char target[2 * WORLD_PATH_BYTES + 256];
    int in = open(path, O_RDONLY | O_CLOEXEC), out;
    struct stat status;

    snprintf(target, sizeof(target), "%s/%s", to, name);
    out = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    MUST(in >= 0 && out >= 0 && fstat(in, &status) == 0);
    MUST(sendfile(out, in, NULL, (size_t)status.st_size) == status.st_size);
    close(in);
    close(out);
}

static void remove_file(const char *path, const char *name, const char *arg)
{
    (void)name, (void)arg;
    MUST(unlink(path) == 0);
}

static void remove_directory(const char *path)
{
    each_file(path, remove_file, NULL);
    MUST(rmdir(path) == 0);
}

void world_end(struct world *w)
{
    free_service(w);
    loop_done(&w->loop);
    response_done(&w->response);
    remove_directory(w->directory);
    mem_free(w->moments);
    ledger_free(w->ledger);
}

/* Requests under way are gone with the process. */
static void forget_flights(struct ledger *l)
{
    for (size_t i = 0; i < l->pair_count; i++) {
        l->pairs[i].fetch = NULL;
        l->pairs[i].is_late = false;
    }
    for (size_t i = 0; i < l->hook_count; i++)
        l->hooks[i].in_flight = 0;
}

/* Of an outcome that was recorded late the ledger knows only a bound of its serial, so that it may
 * have taken back that its webhook was paused by it, though a loss of power left that. */
static void learn_pauses(struct world *w)
{
    for (size_t i = 0; i < w->ledger->hook_count; i++) {
        struct hook *hook = &w->ledger->hooks[i];
        const struct webhook *webhook;
        struct uuid id;

        if (!hook->was_late || !hook->now.exists)
            continue;
        MUST(uuid_parse(span_str(hook->id), &id));
        webhook = webhook_find(w->service->hooks.webhooks, &id);
        if (webhook != NULL)
            hook->now.is_paused = hook->now.is_paused || webhook->is_paused;
    }
}

/* A journal that is there is opened on a full disk too; a new one needs room. */
static void come_back(struct world *w, uint64_t least)
{
    if (least == 0)
        sim_disk_set_full(&w->loop, false);
    boot(w);
    check_recovered(w, least);
    forget_flights(w->ledger);
    ledger_rewind(w->ledger, world_serial(w));
    learn_pauses(w);
    rewind_many(&w->many, world_serial(w));
    start(w);
}

void world_restart(struct world *w)
{
    uint64_t serial;

    world_settle(w);
    sim_digest_check(w->service->store);
    serial = world_serial(w);
    free_service(w);
    come_back(w, serial);
}

void world_lose_power(struct world *w)
{
    uint64_t least = w->fsync == JOURNAL_ALWAYS ? w->acknowledged : w->synced;
    char next[WORLD_PATH_BYTES + 16];

    w->losses_of_power++;
    sim_digest_check(w->service->store);
    sim_disk_lose_power(&w->loop);
    snprintf(next, sizeof(next), "%s/%u", w->parent, w->boots);
    MUST(mkdir(next, 0700) == 0);
    each_file(w->directory, copy_file, next);
    free_service(w);
    remove_directory(w->directory);
    snprintf(w->directory, sizeof(w->directory), "%.*s", WORLD_PATH_BYTES - 1, next);
    come_back(w, least);
}
