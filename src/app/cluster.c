/* What the log says becomes what the server does, in one place:
 *
 *   LEADING                 the turn takes changes; the owner begins to deliver
 *   no longer LEADING       nothing is taken or delivered; once the batch under way is settled, and
 *                           what is confirmed is on disk, the owner starts anew
 *   a change is lost        likewise, at once
 *   FOLLOWING               batches go to the turn; what was declared is compared by the owner
 *   JOINING                 a copy of another node's journal is taken; then the owner starts anew
 *   REFUSED                 the owner ends the process
 *
 * Memory that is ahead of the log is never mended, only forgotten. */
#include "app/cluster.h"

#include "admin/service.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "dispatch/handover.h"
#include "dispatch/passage.h"
#include "fetch/egress.h"
#include "fetch/etcd.h"
#include "hooks/delivery.h"
#include "hooks/retention.h"
#include "io/timer.h"
#include "journal/cluster_file.h"
#include "journal/join.h"
#include "journal/journal.h"
#include "journal/replica.h"
#include "journal/replica_stats.h"
#include "protocol/node_headers.h"
#include "resource/declaration.h"
#include "resource/resource.h"
#include "rest/cluster_view.h"
#include "store/record.h"
#include "store/turn.h"
#include "store/turn_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

enum {
    CHECK_MS = 5, /* between looks whether all is settled */
    WHY_BYTES = 320,
    MS_PER_S = 1000,
};

struct cluster {
    struct loop *loop;
    const struct cluster_config *config;
    const char *directory;
    struct service *service;
    struct cluster_callbacks callbacks;
    struct etcd *etcd;
    struct egress_rules rules;
    struct replica *replica;
    struct join *join; /* NULL: nothing has to be copied */
    const char *base_path;
    struct cluster_view view;
    struct arena nodes;         /* of view.nodes */
    struct replica_stats stats; /* view.stats */
    struct uuid id;
    uint8_t secret[REPLICA_SECRET_BYTES];
    bool has_id;    /* the journal belongs to a cluster */
    uint64_t epoch; /* that requests are passed on in */
    bool has_led, ends, is_leaving;
    char trouble_why[WHY_BYTES], stuck[WHY_BYTES], held_back[WHY_BYTES];
    char why[2 * WHY_BYTES]; /* it ends */
    int64_t since_unix_ns;   /* it has its role */
    struct loop_task led;
    struct loop_task stepping_down, restoring; /* of the operator: once the answer has left */
    struct timer check;   /* whether all is settled, for starting anew or leaving */
    uint64_t deadline_ms; /* of it */
    void (*on_left)(void *context);
    void *left_context;
    uint64_t declared; /* resources->changes when webhooks were settled */
};

/* ---- what requests see ---- */

static const struct cluster_node *node_named(const struct cluster *c, struct span name)
{
    for (size_t i = 0; i < c->view.node_count; i++)
        if (span_eq(c->view.nodes[i].name, name))
            return &c->view.nodes[i];
    return NULL;
}

static uint64_t own_serial(const struct cluster *c)
{
    return journal_committed_serial(turn_journal(c->service->turn));
}

static struct cluster_node view_of(const struct cluster *c, const struct replica_node *n,
                                   struct arena *a)
{
    const struct cluster_node *before = node_named(c, n->name);

    return (struct cluster_node){
        .name = arena_copy(a, n->name),
        .url = arena_copy(a, n->url),
        .version = arena_copy(a, n->version),
        .role = n->role,
        .applied = n->next - 1,
        .since_unix_ns =
            before != NULL && before->role == n->role ? before->since_unix_ns : clock_unix_ns(),
    };
}

static struct cluster_node view_of_self(const struct cluster *c)
{
    return (struct cluster_node){
        .name = c->view.node,
        .url = c->view.url,
        .version = SPAN(SVCD_VERSION),
        .role = replica_role(c->replica),
        .applied = own_serial(c),
        .since_unix_ns = c->since_unix_ns,
        .is_self = true,
    };
}

/* Those that etcd says live, by name, and this one, whatever etcd says. */
static size_t list_nodes(const struct cluster *c, struct cluster_node *list, struct arena *a)
{
    size_t known = replica_node_count(c->replica), count = 0;
    bool has_self = false;

    for (size_t i = 0; i < known; i++) {
        const struct replica_node *n = replica_node_at(c->replica, i);

        if (!has_self && span_cmp(c->view.node, n->name) <= 0) {
            list[count++] = view_of_self(c);
            has_self = true;
        }
        if (!span_eq(c->view.node, n->name))
            list[count++] = view_of(c, n, a);
    }
    if (!has_self)
        list[count++] = view_of_self(c);
    return count;
}

/* The old ones are needed for the new: hence two arenas in turn. */
static void look_at_nodes(struct cluster *c)
{
    const struct cluster_node *leader;
    struct cluster_node *nodes;
    struct arena a;
    size_t count;

    arena_init(&a);
    nodes = ARENA_ARRAY(&a, struct cluster_node, replica_node_count(c->replica) + 1);
    count = list_nodes(c, nodes, &a);
    arena_done(&c->nodes);
    c->nodes = a;
    c->view.nodes = nodes;
    c->view.node_count = count;
    leader = node_named(c, replica_leader(c->replica));
    c->view.leader_url = leader == NULL || leader->is_self ? span_of(NULL, 0) : leader->url;
    if (replica_epoch(c->replica) != c->epoch)
        passages_led(c->service->rest.passages);
    c->epoch = replica_epoch(c->replica);
}

static void look_at_held_back(struct cluster *c)
{
    struct span node;
    unsigned kind = turn_log_holds_back(c->service->turn, &node);

    c->held_back[0] = '\0';
    if (kind != 0)
        snprintf(c->held_back, sizeof(c->held_back),
                 "node '%.*s' does not know records of kind %u: it needs a newer version",
                 SPAN_FMT(node), kind);
    c->view.held_back = span_str(c->held_back);
}

static void refresh(void *context)
{
    struct cluster *c = context;

    look_at_nodes(c);
    look_at_held_back(c);
    c->view.is_late = turn_log_is_late(c->service->turn);
    c->view.end = replica_next(c->replica) - 1;
    c->view.applied = own_serial(c);
    c->view.epoch = replica_epoch(c->replica);
    c->view.lease_ns = replica_lease_ns(c->replica);
    c->view.lag_ns = replica_lag_ms(c->replica) * NS_PER_MS;
    replica_stats(c->replica, &c->stats);
}

static void step_down(void *context)
{
    struct cluster *c = context;

    if (!loop_posted(&c->stepping_down))
        loop_post(c->loop, &c->stepping_down);
}

static void restore(void *context)
{
    struct cluster *c = context;

    if (!loop_posted(&c->restoring))
        loop_post(c->loop, &c->restoring);
}

static void on_restoring(struct loop_task *task)
{
    struct cluster *c = CONTAINER_OF(task, struct cluster, restoring);

    log_warn("cluster", "this node is told to begin the log anew behind serial %" PRIu64,
             own_serial(c));
    if (!c->ends)
        replica_restore(c->replica);
}

/* ---- ending ---- */

static void begin_checks(struct cluster *c)
{
    c->ends = true;
    c->view.leads = c->view.is_ready = false;
    deliveries_stop(c->service->hooks.deliveries);
    c->deadline_ms = loop_now_ms(c->loop) + (uint64_t)c->config->commit_seconds * MS_PER_S;
    if (!c->is_leaving && !timer_running(&c->check))
        timer_start(c->loop, &c->check, 0);
}

static void start_anew(struct cluster *c, const char *why)
{
    if (c->ends)
        return;
    snprintf(c->why, sizeof(c->why), "%s", why);
    turn_log_close(c->service->turn);
    begin_checks(c);
}

/* What was taken is confirmed first. */
static void on_stepping_down(struct loop_task *task)
{
    struct cluster *c = CONTAINER_OF(task, struct cluster, stepping_down);

    if (replica_role(c->replica) == REPLICA_LEADING)
        start_anew(c, "it was told to let another node lead");
}

/* Lease and name are given back, or cannot be. */
static void on_left(void *context)
{
    struct cluster *c = context;

    if (c->on_left != NULL)
        c->on_left(c->left_context);
    else
        c->callbacks.on_anew(c->callbacks.context, c->why);
}

/* Once: who is told to leave while that is done, for starting anew, is told when it is. */
static void give_back(struct cluster *c)
{
    c->is_leaving = true;
    replica_leave(c->replica, on_left, c);
}

/* Confirmed changes are written, and whoever waits for others is told, before memory goes. */
static void on_check(struct timer *timer)
{
    struct cluster *c = CONTAINER_OF(timer, struct cluster, check);
    bool is_late = loop_now_ms(c->loop) >= c->deadline_ms;

    if (!turn_log_is_settled(c->service->turn) && !is_late)
        timer_start(c->loop, timer, CHECK_MS);
    else if (turn_log_is_under_way(c->service->turn))
        on_left(c); /* the lease ends by itself */
    else
        give_back(c);
}

void cluster_leave(struct cluster *c, void (*on_left_fn)(void *context), void *context)
{
    c->on_left = on_left_fn;
    c->left_context = context;
    turn_log_close(c->service->turn);
    begin_checks(c);
}

/* ---- what the log says ---- */

static void on_entered(void *context, const uint8_t id[REPLICA_UUID_BYTES],
                       const uint8_t secret[REPLICA_SECRET_BYTES])
{
    struct cluster *c = context;
    struct err *e;

    memcpy(c->secret, secret, REPLICA_SECRET_BYTES);
    c->view.secret = span_of((const char *)c->secret, REPLICA_SECRET_BYTES);
    if (c->has_id && memcmp(c->id.b, id, REPLICA_UUID_BYTES) == 0)
        return;
    memcpy(c->id.b, id, REPLICA_UUID_BYTES);
    e = cluster_file_write(c->directory, &c->id);
    c->has_id = e == NULL;
    if (e != NULL) {
        snprintf(c->why, sizeof(c->why), "%.*s", SPAN_FMT(err_message(e)));
        err_free(e);
        c->callbacks.on_refused(c->callbacks.context, c->why);
    }
}

/* What led does not any more; the batch that was under way is settled. */
static void on_led(struct loop_task *task)
{
    struct cluster *c = CONTAINER_OF(task, struct cluster, led);

    turn_log_led(c->service->turn);
    start_anew(c, "it does not lead any more");
}

static bool is_part(enum replica_role role)
{
    return role == REPLICA_FOLLOWING || role == REPLICA_CANDIDATE || role == REPLICA_TAKING_OVER ||
           role == REPLICA_LEADING || role == REPLICA_ENDING;
}

static void on_role(void *context, enum replica_role role)
{
    struct cluster *c = context;

    c->since_unix_ns = clock_unix_ns();
    c->view.leads = role == REPLICA_LEADING && !c->ends;
    c->view.is_ready = is_part(role) && !c->ends;
    if (role == REPLICA_REFUSED) {
        snprintf(c->why, sizeof(c->why), "%s: %s", replica_trouble_text(c->view.trouble),
                 c->trouble_why);
        c->callbacks.on_refused(c->callbacks.context, c->why);
    } else if (role == REPLICA_LEADING) {
        c->has_led = true;
        c->callbacks.on_leads(c->callbacks.context);
    } else if (c->has_led) {
        deliveries_stop(c->service->hooks.deliveries);
        if (role != REPLICA_ENDING && !c->ends)
            loop_post(c->loop, &c->led);
    }
}

static void on_batch(void *context, const struct replica_batch *batch)
{
    struct cluster *c = context;

    if (!c->has_led && !c->ends) /* else memory may be ahead, and is about to be forgotten */
        turn_log_take(c->service->turn, batch);
}

/* As a node that asks for itself. */
static void authorize(void *context, struct span method, struct span target, struct buf *out_value)
{
    const struct cluster *c = context;
    const struct passed_on who = {
        .node = c->view.node,
        .client = PASSED_ON_ITSELF,
        .at_unix_ms = clock_unix_ns() / 1000000,
    };
    const struct passed_request request = {.method = method, .target = target};

    passed_on_add(out_value, c->view.secret, &who, &request);
}

static void on_copy_failed(void *context, const char *why)
{
    (void)context;
    log_warn("cluster", "a copy of another node's journal is not there yet: %s", why);
}

static void on_joined(void *context, uint64_t next)
{
    (void)next;
    start_anew(context, "a copy of another node's journal is there");
}

static void on_missing(void *context, uint64_t next, uint64_t begins)
{
    struct cluster *c = context;

    log_info("cluster",
             "the log begins with serial %" PRIu64 ", the journal ends before %" PRIu64
             ": a copy of another node's journal is taken",
             begins, next);
    if (c->join == NULL)
        c->join = join_start(c->loop, &(struct join_options){
                                          .directory = c->directory,
                                          .replica = c->replica,
                                          .fetcher = c->view.fetcher,
                                          .node = c->config->node,
                                          .base_path = c->base_path,
                                          .cluster = c->id,
                                          .begins = begins,
                                          .authorize = authorize,
                                          .on_failed = on_copy_failed,
                                          .on_joined = on_joined,
                                          .context = c,
                                      });
}

static void on_nodes(void *context)
{
    look_at_nodes(context);
}

static void on_trouble(void *context, enum replica_trouble trouble, const char *why)
{
    struct cluster *c = context;

    snprintf(c->trouble_why, sizeof(c->trouble_why), "%s", why);
    c->view.trouble = trouble;
    c->view.trouble_why = span_str(c->trouble_why);
}

/* ---- what the turn says ---- */

static void on_lost(void *context, const char *why)
{
    start_anew(context, why);
}

/* What webhooks refer to may have changed. Those that do not fit are paused by the leader, whose
 * change comes, so that it is no matter that none can be made here. */
static void on_followed(void *context)
{
    struct cluster *c = context;
    struct resources *resources = c->service->rest.resources;
    uint64_t serial;
    struct arena a;

    retention_wake(c->service->hooks.retention); /* it gives memory back here, no more */
    if (resources->changes == c->declared)
        return;
    c->declared = resources->changes;
    arena_init(&a);
    err_free(declarations_changed(resources, &a, &serial));
    arena_done(&a);
}

static void on_stuck(void *context, const char *why)
{
    struct cluster *c = context;

    snprintf(c->stuck, sizeof(c->stuck), "%s", why == NULL ? "" : why);
    c->view.stuck = span_str(c->stuck);
}

/* ---- made and freed ---- */

static struct err *make_etcd(struct cluster *c)
{
    const struct cluster_config *config = c->config;
    const struct etcd_options options = {
        .endpoints = config->etcd,
        .endpoint_count = config->etcd_count,
        .ca_file = config->ca_file,
        .cert_file = config->cert_file,
        .key_file = config->key_file,
        .user = config->user,
        .password_file = config->password_file,
    };

    return etcd_new(c->loop, c->service->resolver, &options, &c->etcd);
}

/* Nodes are the operator's choice: no rule for outgoing addresses is applied to them. */
static struct err *make_fetcher(struct cluster *c)
{
    const struct fetch_options options = {.ca_file = c->config->ca_file};

    TRY(ip_ranges_add(&c->rules.allow, SPAN("0.0.0.0/0")));
    TRY(ip_ranges_add(&c->rules.allow, SPAN("::/0")));
    return fetcher_new(c->loop, c->service->resolver, &c->rules, &options, &c->view.fetcher);
}

static struct err *make_replica(struct cluster *c)
{
    const struct replica_callbacks callbacks = {
        .on_entered = on_entered,
        .on_role = on_role,
        .on_batch = on_batch,
        .on_missing = on_missing,
        .on_nodes = on_nodes,
        .on_trouble = on_trouble,
        .context = c,
    };
    const struct replica_options options = {
        .cluster = c->config->name,
        .node = c->config->node,
        .url = c->config->url,
        .version = SVCD_VERSION,
        .records = RECORD_KIND_END,
        .lease_s = (unsigned)c->config->lease_seconds,
        .commit_ms = (unsigned)c->config->commit_seconds * MS_PER_S,
        .tail_bytes = (uint64_t)c->config->tail_bytes,
        .id = c->has_id ? c->id.b : NULL,
        .adopt = c->config->adopts,
        .next = journal_next_serial(turn_journal(c->service->turn)),
    };

    return replica_new(c->loop, c->etcd, &options, &callbacks, &c->replica);
}

static void join_turn(struct cluster *c)
{
    const struct turn_log_callbacks callbacks = {
        .on_lost = on_lost,
        .on_followed = on_followed,
        .on_stuck = on_stuck,
        .context = c,
    };

    turn_log_begin(c->service->turn, c->replica, &callbacks);
    c->service->rest.cluster = &c->view;
    c->service->hooks.may_deliver = cluster_may_deliver;
    c->service->hooks.may_deliver_context = c;
}

struct err *cluster_new(struct loop *loop, const struct cluster_options *options,
                        struct cluster **out_cluster)
{
    struct cluster *c = NEW(struct cluster);
    struct err *e;

    c->loop = loop;
    c->config = options->config;
    c->directory = options->directory;
    c->base_path = options->base_path;
    c->service = options->service;
    c->callbacks = options->callbacks;
    c->view = (struct cluster_view){
        .name = span_str(c->config->name),
        .node = span_str(c->config->node),
        .url = span_str(c->config->url),
        .redirects = c->config->redirects,
        .commit_ms = (unsigned)c->config->commit_seconds * MS_PER_S,
        .stats = &c->stats,
        .leads_now = cluster_may_deliver,
        .refresh = refresh,
        .step_down = step_down,
        .restore = restore,
        .context = c,
    };
    c->since_unix_ns = clock_unix_ns();
    c->led.run = on_led;
    c->stepping_down.run = on_stepping_down;
    c->restoring.run = on_restoring;
    timer_init(&c->check, on_check);
    arena_init(&c->nodes);
    egress_init(&c->rules);
    TRY_GOTO(e, cluster_file_read(c->directory, &c->id, &c->has_id), failed);
    TRY_GOTO(e, make_etcd(c), failed);
    TRY_GOTO(e, make_fetcher(c), failed);
    TRY_GOTO(e, make_replica(c), failed);
    join_turn(c);
    *out_cluster = c;
    return NULL;

failed:
    cluster_free(c);
    return e;
}

void cluster_start(struct cluster *c)
{
    replica_start(c->replica);
}

/* Before the service, whose name resolution it uses. */
void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    if (c->service->rest.cluster == &c->view) {
        turn_log_end(c->service->turn);
        c->service->rest.cluster = NULL;
        c->service->hooks.may_deliver = NULL;
    }
    timer_stop(c->loop, &c->check);
    loop_unpost(c->loop, &c->led);
    loop_unpost(c->loop, &c->stepping_down);
    loop_unpost(c->loop, &c->restoring);
    join_free(c->join);
    replica_free(c->replica);
    handover_stop(c->service->rest.handover);
    fetcher_free(c->view.fetcher);
    etcd_free(c->etcd);
    egress_done(&c->rules);
    arena_done(&c->nodes);
    mem_wipe(c->secret, sizeof(c->secret));
    mem_free(c);
}

bool cluster_may_deliver(const void *cluster)
{
    const struct cluster *c = cluster;

    return !c->ends && replica_leads(c->replica);
}

bool cluster_follows(const struct cluster *c)
{
    uint64_t next = journal_next_serial(turn_journal(c->service->turn));

    return replica_role(c->replica) == REPLICA_FOLLOWING && replica_epoch(c->replica) != 0 &&
           next == replica_next(c->replica);
}
