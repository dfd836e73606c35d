/* A server as a node: what its owner is told, and when changes are taken. */
#include "app/cluster.h"

#include "../journal/etcd_playing.h"
#include "../testing.h"

#include "access/access.h"
#include "admin/service.h"
#include "admin/service_options.h"
#include "base/clock.h"
#include "journal/cluster_file.h"
#include "journal/journal.h"
#include "journal/replica.h"
#include "rest/cluster_view.h"
#include "store/change.h"
#include "store/turn.h"
#include "store/turn_log.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

enum { STEP_MS = 10 };

static struct {
    struct loop loop;
    struct service *service;
    struct cluster *cluster;
    struct cluster_config config;
    char directory[32];
    unsigned leads, anew, refused, left;
    char why[256];
} node;

static void on_leads(void *context)
{
    (void)context;
    node.leads++;
}

static void on_anew(void *context, const char *why)
{
    (void)context;
    node.anew++;
    snprintf(node.why, sizeof(node.why), "%s", why);
}

static void on_refused(void *context, const char *why)
{
    (void)context;
    node.refused++;
    snprintf(node.why, sizeof(node.why), "%s", why);
}

static void on_left(void *context)
{
    (void)context;
    node.left++;
}

static void pass(uint64_t ms)
{
    for (uint64_t at = 0; at <= ms; at += STEP_MS) {
        for (unsigned i = 0; i < 8; i++) {
            loop_wake(&node.loop);
            loop_run_once(&node.loop);
        }
        clock_advance(STEP_MS * NS_PER_MS);
    }
}

#define WAIT_FOR(condition)                                                                        \
    for (unsigned steps_ = 0; !(condition); steps_++) {                                            \
        testing_await(steps_);                                                                     \
        pass(0);                                                                                   \
    }

static void open_service(void)
{
    const struct journal_options journal = {.directory = node.directory};
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 1,
        .connections_per_host = 1,
        .fetch = {.max_connections = 1},
    };

    limits_init(&options.limits);
    egress_init(&options.egress);
    access_init(&options.access);
    ck_ok(service_new(&node.loop, &options, &node.service));
    ck_ok(service_replay(node.service, &(struct turn_options){.journal = &journal}));
}

static void open_node(void)
{
    const struct cluster_options options = {
        .config = &node.config,
        .directory = node.directory,
        .base_path = "/",
        .service = node.service,
        .callbacks = {on_leads, on_anew, on_refused, NULL},
    };

    ck_ok(cluster_new(&node.loop, &options, &node.cluster));
    cluster_start(node.cluster);
}

static void begin(void)
{
    memset(&node, 0, sizeof(node));
    clock_fake(0, UINT64_C(1000000000000));
    strcpy(node.directory, "/tmp/svc-node-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(node.directory));
    ck_ok(loop_init(&node.loop));
    etcd_play_begin(&node.loop);
    node.config = (struct cluster_config){
        .name = "prod",
        .node = "a",
        .url = "http://127.0.0.1:1",
        .etcd = {"http://127.0.0.1:2"},
        .etcd_count = 1,
        .lease_seconds = 5,
        .commit_seconds = 10,
        .tail_bytes = 1 << 20,
    };
    open_service();
}

static void end(void)
{
    DIR *d;
    const struct dirent *entry;

    cluster_free(node.cluster);
    service_free(node.service);
    etcd_play_end();
    clock_real();
    loop_run(&node.loop);
    loop_done(&node.loop);
    d = opendir(node.directory);
    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL)
        unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(node.directory);
}

static const struct cluster_view *view(void)
{
    return node.service->rest.cluster;
}

START_TEST(it_leads_and_hands_over)
{
    struct uuid id;
    bool found;

    open_node();
    ck_assert(!view()->is_ready && !view()->leads);
    WAIT_FOR(node.leads == 1);
    ck_assert(view()->is_ready && view()->leads);
    ck_assert(cluster_may_deliver(node.cluster));
    ck_assert_uint_eq(view()->secret.n, REPLICA_SECRET_BYTES);
    ck_ok(cluster_file_read(node.directory, &id, &found));
    ck_assert(found);
    WAIT_FOR(view()->node_count == 1);
    view()->refresh(view()->context);
    ck_span_eq(view()->nodes[0].name, "a");
    ck_assert(view()->nodes[0].is_self);
    cluster_leave(node.cluster, on_left, NULL);
    ck_assert(!turn_takes_changes(node.service->turn));
    ck_assert(!cluster_may_deliver(node.cluster));
    WAIT_FOR(node.left == 1);
    ck_assert_uint_eq(etcd_count("/svcd/prod/leader"), 0);
    ck_assert_uint_eq(etcd_count("/svcd/prod/node/"), 0);
    ck_assert_uint_eq(node.anew + node.refused, 0);
}
END_TEST

static void change(void)
{
    struct change c;
    struct arena a;
    uint64_t serial;

    arena_init(&a);
    change_init(&c, node.service->turn, &a);
    change_delete_entity(&c, SPAN("Svc.Admin.Webhook"), &(struct uuid){{0}});
    ck_ok(turn_apply(node.service->turn, &c, &serial));
    change_done(&c);
    arena_done(&a);
}

static void look(void)
{
    view()->refresh(view()->context);
}

/* It is there, whatever etcd says. */
START_TEST(a_node_knows_itself)
{
    const struct cluster_node *self;

    etcd_fate_of_all(FATE_UNSENT);
    open_node();
    pass(1000);
    look();
    ck_assert_uint_eq(view()->node_count, 1);
    self = &view()->nodes[0];
    ck_assert(self->is_self);
    ck_span_eq(self->name, "a");
    ck_span_eq(self->url, "http://127.0.0.1:1");
    ck_span_eq(self->version, SVCD_VERSION);
    ck_assert_int_eq(self->role, REPLICA_ENTERING);
    ck_assert_uint_eq(self->applied, 0);
}
END_TEST

static void store_node(const char *key, const char *role, unsigned next)
{
    char value[256];

    snprintf(value, sizeof(value),
             "%032d {\"Url\":\"http://x\",\"Version\":\"9\",\"Next\":%u,\"Role\":\"%s\"}", 0, next,
             role);
    etcd_store(key, span_str(value), 0);
}

START_TEST(nodes_are_listed_by_name_with_when_they_changed)
{
    int64_t led_ns, since_ns;

    open_node();
    WAIT_FOR(node.leads == 1);
    look();
    led_ns = view()->nodes[0].since_unix_ns;
    ck_assert_int_gt(led_ns, 0);
    store_node("/svcd/prod/node/A", "Follower", 7);
    store_node("/svcd/prod/node/b", "Joining", 1);
    WAIT_FOR(view()->node_count == 3);
    ck_span_eq(view()->nodes[0].name, "A");
    ck_span_eq(view()->nodes[1].name, "a");
    ck_span_eq(view()->nodes[2].name, "b");
    ck_assert_uint_eq(view()->nodes[0].applied, 6);
    ck_assert(view()->nodes[1].is_self);
    ck_assert_int_eq(view()->nodes[1].since_unix_ns, led_ns);
    since_ns = view()->nodes[2].since_unix_ns;
    store_node("/svcd/prod/node/b", "Follower", 7);
    WAIT_FOR(view()->nodes[2].role == REPLICA_FOLLOWING);
    ck_assert_int_gt(view()->nodes[2].since_unix_ns, since_ns);
    since_ns = view()->nodes[2].since_unix_ns;
    store_node("/svcd/prod/node/b", "Follower", 8);
    WAIT_FOR(view()->nodes[2].applied == 7);
    ck_assert_int_eq(view()->nodes[2].since_unix_ns, since_ns);
}
END_TEST

/* What is asked inside a request is done when that has ended. */
START_TEST(it_steps_down_when_it_is_told_to)
{
    open_node();
    WAIT_FOR(node.leads == 1);
    etcd_fate("/svcd/prod/log/", FATE_HELD, 1);
    change();
    pass(100);
    view()->step_down(view()->context);
    view()->step_down(view()->context);
    ck_assert(view()->leads);
    pass(100);
    ck_assert(!view()->leads);
    ck_assert_uint_eq(node.anew, 0);
    etcd_let_go();
    WAIT_FOR(node.anew == 1);
    ck_assert(!view()->leads);
    ck_assert_uint_eq(etcd_count("/svcd/prod/leader"), 0);
    ck_assert_str_eq(node.why, "it was told to let another node lead");
    ck_assert_uint_eq(etcd_count("/svcd/prod/log/"), 2); /* what it had taken */
    view()->step_down(view()->context);                  /* and is freed before it runs */
}
END_TEST

static void close_node(void)
{
    cluster_free(node.cluster);
    node.cluster = NULL;
    service_free(node.service);
}

START_TEST(a_lost_log_is_restored_when_it_is_told_to)
{
    open_node();
    WAIT_FOR(node.leads == 1);
    change();
    WAIT_FOR(journal_committed_serial(turn_journal(node.service->turn)) == 1);
    close_node();
    etcd_remove("/svcd/");
    open_service();
    open_node();
    WAIT_FOR(view()->trouble == REPLICA_LOG_LOST);
    look();
    ck_assert_uint_eq(view()->nodes[0].applied, 1);
    pass(10000);
    ck_assert_uint_eq(node.leads, 1);
    view()->restore(view()->context);
    WAIT_FOR(node.leads == 2);
    ck_assert_int_eq(view()->trouble, REPLICA_NO_TROUBLE);
    ck_assert_uint_eq(etcd_count("/svcd/prod/log/"), 1);
    ck_assert_uint_eq(node.anew + node.refused, 0);
}
END_TEST

START_TEST(what_it_took_is_confirmed_before_it_leaves)
{
    size_t batches;

    open_node();
    WAIT_FOR(node.leads == 1);
    batches = etcd_count("/svcd/prod/log/");
    etcd_fate("/svcd/prod/log/", FATE_HELD, 1);
    change();
    pass(100);
    cluster_leave(node.cluster, on_left, NULL);
    pass(100);
    ck_assert_uint_eq(node.left, 0);
    ck_assert_uint_eq(etcd_count("/svcd/prod/leader"), 1);
    etcd_let_go();
    WAIT_FOR(node.left == 1);
    ck_assert_uint_eq(etcd_count("/svcd/prod/log/"), batches + 1);
    ck_assert_uint_eq(etcd_count("/svcd/prod/leader"), 0);
}
END_TEST

/* The batch that was under way goes on to be settled; what was never sent is forgotten. */
START_TEST(a_change_that_is_lost_means_starting_anew)
{
    open_node();
    WAIT_FOR(node.leads == 1);
    etcd_fate("/svcd/prod/log/", FATE_HELD, 1);
    change();
    pass(100);
    change();
    etcd_remove("/svcd/prod/leader");
    pass(100);
    ck_assert_uint_eq(node.anew, 0);
    etcd_let_go();
    WAIT_FOR(node.anew == 1);
    ck_assert(!turn_takes_changes(node.service->turn));
}
END_TEST

START_TEST(who_led_starts_anew)
{
    open_node();
    WAIT_FOR(node.leads == 1);
    etcd_remove("/svcd/prod/leader");
    WAIT_FOR(node.anew == 1);
    ck_assert(!view()->leads && !view()->is_ready);
    ck_assert_str_eq(node.why, "it does not lead any more");
    pass(20000);
    ck_assert_uint_eq(node.anew, 1);
    ck_assert_uint_eq(node.leads, 1);
}
END_TEST

static bool has_given_back(void)
{
    view()->refresh(view()->context);
    return view()->node_count == 1 && view()->nodes[0].role == REPLICA_OFF;
}

/* In the turn between its giving everything back and its owner's hearing of it. */
START_TEST(who_starts_anew_may_be_told_to_leave)
{
    open_node();
    WAIT_FOR(node.leads == 1 && view()->node_count == 1);
    etcd_fate_of_all(FATE_HELD);
    for (unsigned turns = 0; !has_given_back(); turns++) {
        testing_await(turns);
        clock_advance(STEP_MS * NS_PER_MS);
        loop_wake(&node.loop);
        loop_run_once(&node.loop);
    }
    ck_assert_uint_eq(node.anew, 0);
    cluster_leave(node.cluster, on_left, NULL);
    WAIT_FOR(node.left == 1);
    pass(100);
    ck_assert_uint_eq(node.left, 1);
    ck_assert_uint_eq(node.anew, 0);
}
END_TEST

START_TEST(another_history_is_refused)
{
    struct uuid other = uuid_new();

    open_node();
    WAIT_FOR(node.leads == 1);
    cluster_free(node.cluster);
    ck_assert_ptr_null(node.service->rest.cluster);
    node.cluster = NULL;
    service_free(node.service);
    ck_ok(cluster_file_write(node.directory, &other));
    open_service();
    open_node();
    WAIT_FOR(node.refused == 1);
    ck_assert_ptr_nonnull(strstr(node.why, "history"));
    ck_assert(!view()->is_ready);
}
END_TEST

START_TEST(trouble_is_shown)
{
    etcd_fate_of_all(FATE_UNSENT);
    open_node();
    WAIT_FOR(view()->trouble == REPLICA_UNREACHABLE);
    ck_assert_uint_gt(view()->trouble_why.n, 0);
    ck_assert(!view()->is_ready);
    etcd_fate_of_all(FATE_DONE);
    WAIT_FOR(node.leads == 1);
    ck_assert_int_eq(view()->trouble, REPLICA_NO_TROUBLE);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, it_leads_and_hands_over);
    tcase_add_test(tc, what_it_took_is_confirmed_before_it_leaves);
    tcase_add_test(tc, a_change_that_is_lost_means_starting_anew);
    tcase_add_test(tc, who_led_starts_anew);
    tcase_add_test(tc, who_starts_anew_may_be_told_to_leave);
    tcase_add_test(tc, another_history_is_refused);
    tcase_add_test(tc, trouble_is_shown);
    tcase_add_test(tc, a_node_knows_itself);
    tcase_add_test(tc, nodes_are_listed_by_name_with_when_they_changed);
    tcase_add_test(tc, it_steps_down_when_it_is_told_to);
    tcase_add_test(tc, a_lost_log_is_restored_when_it_is_told_to);
}
