/* Svc.Health: each reason alone, and together. */
#include "asking.h"

#include "base/clock.h"
#include "io/fault.h"
#include "rest/cluster_view.h"

static void begin(void)
{
    clock_fake(INT64_C(1800000000) * 1000000000, UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
}

static void is_healthy(void)
{
    ck_asks(200, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"ok\"}");
    ck_span_eq(asking.answer.content_type, "application/json");
}

START_TEST(all_is_well)
{
    size_t errors = asking_count("Svc.Admin.Error");

    is_healthy();
    ck_asks(200, "HEAD", "/Svc.Health", NULL);
    ck_assert_uint_eq(asking.answer.serial, 0);
    asking.service->is_draining = true;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_asks(503, "HEAD", "/Svc.Health", NULL);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), errors); /* that is no error of a request */
}
END_TEST

START_TEST(it_says_what_is_wrong)
{
    service_drain(asking.service);
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"shutting down\"]}");
    asking.service->limits.memory_bytes = 1;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"shutting down\","
               "\"the limit MemoryBytes is reached\"]}");
    asking.service->is_draining = false;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"the limit MemoryBytes is reached\"]}");
    asking.service->limits.memory_bytes = INT64_MAX;
    is_healthy();
    asking.service->limits.memory_bytes = 0; /* none */
    is_healthy();
}
END_TEST

/* What changes meet is a reason; who leads is told in any case. */
START_TEST(a_node_tells_of_its_cluster)
{
    const struct cluster_node nodes[] = {
        {.name = SPAN("a"), .role = REPLICA_LEADING},
        {.name = SPAN("b"), .role = REPLICA_FOLLOWING, .is_self = true},
    };
    struct cluster_view view = {.name = SPAN("prod"),
                                .node = SPAN("b"),
                                .url = SPAN("http://b:1"),
                                .leader_url = SPAN("http://a:1"),
                                .is_ready = true,
                                .nodes = nodes,
                                .node_count = 2};

    asking.service->rest.cluster = &view;
    ck_asks(200, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"ok\",\"Cluster\":{\"Name\":\"prod\",\"Node\":\"b\","
               "\"Role\":\"Follower\",\"Leader\":\"http://a:1\",\"Trouble\":\"\"}}");
    view.leader_url = SPAN("");
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"no leader of the cluster is known\"],"
               "\"Cluster\":{\"Name\":\"prod\",\"Node\":\"b\",\"Role\":\"Follower\","
               "\"Leader\":\"\",\"Trouble\":\"\"}}");
    view.leads = true;
    view.node_count = 0;
    ck_asks(200, "GET", "/Svc.Health", NULL);
    ck_member_eq("Cluster.Leader", "\"http://b:1\"");
    ck_member_eq("Cluster.Role", "\"Entering\"");
    view.held_back = SPAN("node 'c' does not know records of kind 10");
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_member_eq("Reasons.0", "\"a node does not know what the leader is to write\"");
    ck_member_eq("Cluster.Trouble", "\"node 'c' does not know records of kind 10\"");
    view.held_back = span_of(NULL, 0);
    view.is_late = true;
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_member_eq("Reasons.0", "\"the cluster's log does not confirm changes\"");
    view.trouble = REPLICA_FULL;
    view.trouble_why = SPAN("mvcc: database space exceeded");
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_member_eq("Reasons.0", "\"etcd is full\"");
    ck_member_eq("Cluster.Trouble", "\"mvcc: database space exceeded\"");
    asking.service->rest.cluster = NULL;
    is_healthy();
}
END_TEST

#ifdef SVCD_FAULTS

START_TEST(a_full_disk_is_told_until_there_is_room)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add_str(&b, "{\"Text\":\"");
    for (int i = 0; i < 60000; i++)
        buf_add_char(&b, 'x');
    buf_add(&b, SPAN("\"}\0"));
    ck_assert(fault_set("disk.allocate:1+"));
    ask("POST", "/Person", b.p);
    ask("POST", "/Person", b.p);
    ck_problem(ERR_STORAGE_FAILURE, "");
    ck_asks(503, "GET", "/Svc.Health", NULL);
    ck_body_eq("{\"Status\":\"failing\",\"Reasons\":[\"the disk is full\"]}");
    ck_assert(fault_set(NULL));
    clock_advance(UINT64_C(2000000000)); /* it is not tried more often than each second */
    asking_turn();
    ck_asks(201, "POST", "/Person", b.p);
    asking_commit();
    is_healthy();
}
END_TEST

#endif

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, all_is_well);
    tcase_add_test(tc, it_says_what_is_wrong);
    tcase_add_test(tc, a_node_tells_of_its_cluster);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, a_full_disk_is_told_until_there_is_room);
#endif
}
