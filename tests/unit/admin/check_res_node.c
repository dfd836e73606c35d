/* Svc.Admin.Node: what it shows of a view that tests make, and what it asks of a node, or refuses
 * to ask. Nodes that live: ../app/check_cluster.c, and tests/cluster. */
#include "asking.h"

#include "rest/cluster_view.h"

#define SINCE_NS (INT64_C(1800000000) * 1000000000)
#define NODE "/Svc.Admin.Node"

static struct cluster_node nodes[] = {
    {.name = SPAN_INIT("a"),
     .url = SPAN_INIT("http://a:1"),
     .version = SPAN_INIT("1.2"),
     .role = REPLICA_LEADING,
     .applied = 40,
     .since_unix_ns = SINCE_NS,
     .is_self = true},
    {.name = SPAN_INIT("b"),
     .url = SPAN_INIT("http://b:1"),
     .version = SPAN_INIT("1.1"),
     .role = REPLICA_FOLLOWING,
     .applied = 38,
     .since_unix_ns = SINCE_NS + 1000000000},
    {.name = SPAN_INIT("c"),
     .url = SPAN_INIT("http://c:1"),
     .version = SPAN_INIT("1.2"),
     .role = REPLICA_JOINING,
     .applied = 0,
     .since_unix_ns = SINCE_NS},
};

static struct cluster_view view;
static unsigned refreshed, stepped_down, restored;

static void refresh(void *context)
{
    (void)context;
    refreshed++;
}

static void step_down(void *context)
{
    (void)context;
    stepped_down++;
}

static void restore(void *context)
{
    (void)context;
    restored++;
}

/* Node `a` is asked, which leads. */
static void begin(void)
{
    asking_open(NULL);
    service_join_cluster(asking.service);
    nodes[0].role = REPLICA_LEADING;
    nodes[1].role = REPLICA_FOLLOWING;
    nodes[2].role = REPLICA_JOINING;
    refreshed = stepped_down = restored = 0;
    view = (struct cluster_view){
        .name = SPAN("prod"),
        .node = SPAN("a"),
        .url = SPAN("http://a:1"),
        .leads = true,
        .is_ready = true,
        .nodes = nodes,
        .node_count = ARRAY_LEN(nodes),
        .end = 41,
        .refresh = refresh,
        .step_down = step_down,
        .restore = restore,
    };
    asking.service->rest.cluster = &view;
}

static void end(void)
{
    asking.service->rest.cluster = NULL;
    asking_close();
}

#define A                                                                                          \
    "{\"Name\":\"a\",\"Url\":\"http://a:1\",\"Role\":\"Leader\",\"Applied\":40,\"Lag\":1,"         \
    "\"Since\":\"2027-01-15T08:00:00.0000000Z\",\"Version\":\"1.2\"}"
#define B                                                                                          \
    "{\"Name\":\"b\",\"Url\":\"http://b:1\",\"Role\":\"Follower\",\"Applied\":38,\"Lag\":3,"       \
    "\"Since\":\"2027-01-15T08:00:01.0000000Z\",\"Version\":\"1.1\"}"
#define C                                                                                          \
    "{\"Name\":\"c\",\"Url\":\"http://c:1\",\"Role\":\"Joining\",\"Applied\":0,\"Lag\":41,"        \
    "\"Since\":\"2027-01-15T08:00:00.0000000Z\",\"Version\":\"1.2\"}"

static const struct {
    const char *method, *conditions, *body;
    int status;
} asked[] = {
    {"GET", "", "[" A "," B "," C "]", 200},
    {"GET", "/Role=Leader", "[" A "]", 200},
    {"GET", "/Role!=Leader&Lag<10", "[" B "]", 200},
    {"GET", "/Role=Candidate", "", 204},
    {"GET", "/Since>2027-01-15T08:00:00.5Z/select=Name", "[{\"Name\":\"b\"}]", 200},
    {"GET", "/_/order_desc=Applied&limit=2&select=Name", "[{\"Name\":\"a\"},{\"Name\":\"b\"}]",
     200},
    {"GET", "/_/offset=1&limit=1&select=Name", "[{\"Name\":\"b\"}]", 200},
    {"REPORT", "", "[{\"Count\":3}]", 200},
    {"REPORT", "/Version=1.1", "[{\"Count\":1}]", 200},
    {"HEAD", "/Name=a", "", 200},
};

START_TEST(nodes_are_shown)
{
    ck_asks(asked[_i].status, asked[_i].method, asking_printf(NODE "%s", asked[_i].conditions),
            NULL);
    ck_assert_uint_eq(refreshed, 1);
    if (asked[_i].body[0] != '\0')
        ck_span_is(answered_body(), span_str(asked[_i].body));
}
END_TEST

START_TEST(it_is_listed_and_described)
{
    ck_asks(200, "GET", "/AvailableResource/Name=Svc.Admin.Node", NULL);
    ck_member_eq("0.Methods", "[\"GET\",\"PATCH\",\"REPORT\",\"HEAD\"]");
    ck_asks(200, "OPTIONS", NODE, NULL);
    ck_asks(405, "DELETE", NODE "/Name=b", NULL);
    ck_asks(405, "POST", NODE, "{}");
    ck_asks(200, "GET", "/openapi.json", NULL);
    ck_assert_ptr_nonnull(answered("components.schemas").p);
    ck_assert(span_find(answered_body(), SPAN("\"Svc.Patch.Svc.Admin.Node\"")) != SIZE_MAX);
    ck_assert(span_find(answered_body(), SPAN("\"202\"")) != SIZE_MAX);
}
END_TEST

START_TEST(there_is_none_on_a_server_that_is_alone)
{
    asking.service->rest.cluster = NULL;
    asking_reload();
    ck_refuses(ERR_UNKNOWN_RESOURCE, "Svc.Admin.Node", "GET", NODE, NULL);
    ck_refuses(ERR_UNKNOWN_RESOURCE, "Svc.Admin.Node", "PATCH", NODE "/Name=a",
               "{\"Role\":\"Follower\"}");
    ck_asks(200, "GET", "/openapi.json", NULL);
    ck_assert(span_find(answered_body(), SPAN("Svc.Admin.Node")) == SIZE_MAX);
    ck_assert(span_find(answered_body(), SPAN("\"202\"")) == SIZE_MAX);
}
END_TEST

START_TEST(rights)
{
    asking_add_key("all", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("reads", "[{\"Resources\":[\"Svc.Admin.Node\"],\"Methods\":[\"GET\"]}]");
    asking_add_key("acts", "[{\"Resources\":[\"Svc.Admin.*\"],\"Methods\":[\"PATCH\"]}]");
    ask_with("Authorization: apikey reads", "GET", NODE, NULL);
    ck_status(200);
    ask_with("Authorization: apikey reads", "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_problem(ERR_NOT_AUTHORIZED, "PATCH");
    ask_with("Authorization: apikey acts", "GET", NODE, NULL);
    ck_problem(ERR_NOT_AUTHORIZED, "GET");
    ck_assert_uint_eq(stepped_down, 0);
    ask_with("Authorization: apikey acts", "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_status(202);
    ck_body_eq(""); /* it may not GET */
    ck_assert_uint_eq(stepped_down, 1);
}
END_TEST

START_TEST(a_leader_steps_down)
{
    struct span tag;

    ck_asks(200, "GET", NODE "/Name=a", NULL);
    tag = arena_copy(&asking.arena, answered_header("ETag"));
    ck_asks(202, "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_body_eq("[" A "]");
    ck_header_eq("Svc-info", "node 'a' lets another node lead");
    ck_span_is(answered_header("ETag"), tag);
    ck_assert_uint_eq(stepped_down, 1);
    ck_asks(202, "PATCH", NODE "/Role=Leader", "{\"role\":\"follower\",\"Name\":\"a\"}");
    ck_assert_uint_eq(stepped_down, 2);
    ask_with("If-Match: \"x\"", "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_problem(ERR_PRECONDITION_FAILED, "");
    ask_with("Prefer: return=minimal", "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_status(202);
    ck_body_eq("");
    ck_assert_uint_eq(stepped_down, 3);
    ck_assert_uint_eq(restored, 0);
}
END_TEST

START_TEST(who_follows_has_nothing_to_do)
{
    ck_asks(200, "PATCH", NODE "/Name=b", "{\"Role\":\"Follower\"}");
    ck_body_eq("[" B "]");
    ck_header_eq("Svc-info", "node 'b' does not lead: nothing was done");
    ck_assert_uint_eq(stepped_down, 0);
}
END_TEST

static const struct {
    const char *conditions, *body;
    enum err_code code;
    const char *text;
} refused[] = {
    {"/Name=c", "{\"Role\":\"Follower\"}", ERR_CONFLICT, "node 'c' is Joining"},
    {"/Name=d", "{\"Role\":\"Follower\"}", ERR_UNKNOWN_ENTITY, "no node that lives"},
    {"/_/unsafe=true", "{\"Role\":\"Follower\"}", ERR_AMBIGUOUS_MATCH, "3 nodes match"},
    {"/Name=b", "{\"Role\":\"Leader\"}", ERR_INVALID_ENTITY, "Role can only be written as"},
    {"/Name=b", "{\"Role\":\"King\"}", ERR_INVALID_ENUM_VALUE, "Follower"},
    {"/Name=b", "{\"Role\":null}", ERR_INVALID_ENTITY, "Role can only be written as"},
    {"/Name=a", "{}", ERR_INVALID_ENTITY, "none of the two is there"},
    {"/Name=a", "{\"Version\":\"2\"}", ERR_INVALID_ENTITY, "none of the two is there"},
    {"/Name=a", "{\"Role\":\"Follower\",\"RestoreFrom\":40}", ERR_INVALID_ENTITY, "each of the"},
    {"/Name=a", "{\"Rolle\":\"Follower\"}", ERR_UNKNOWN_MEMBER, "Role"},
    {"/Name=a", "{\"RestoreFrom\":-1}", ERR_INVALID_ENTITY, "RestoreFrom"},
    {"/Name=a", "{\"RestoreFrom\":\"40\"}", ERR_INVALID_ENTITY, "RestoreFrom"},
    {"/Name=a", "{\"RestoreFrom\":null}", ERR_INVALID_ENTITY, "RestoreFrom"},
    {"/Name=a", "{\"RestoreFrom\":40}", ERR_CONFLICT, "the log in etcd is not lost"},
    {"/Name=a", "[]", ERR_DATA_SOURCE_FORMAT, "one JSON object"},
    {"/Name=a", "", ERR_NO_DATA_SOURCE, "body"},
};

START_TEST(what_is_refused)
{
    ck_refuses(refused[_i].code, refused[_i].text, "PATCH",
               asking_printf(NODE "%s", refused[_i].conditions), refused[_i].body);
    ck_assert_uint_eq(stepped_down + restored, 0);
}
END_TEST

START_TEST(somebody_has_to_lead_then)
{
    nodes[1].role = REPLICA_JOINING;
    ck_refuses(ERR_CONFLICT,
               "no other node follows 'a' that could lead then: 'b' is Joining, 'c' is Joining",
               "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_header_eq("Retry-After", "2");
    view.node_count = 1;
    ck_refuses(ERR_CONFLICT, "no other one lives", "PATCH", NODE "/Name=a",
               "{\"Role\":\"Follower\"}");
    ck_assert_uint_eq(answered_header("Retry-After").n, 0);
    view.node_count = ARRAY_LEN(nodes);
    nodes[1].role = REPLICA_FOLLOWING;
    view.step_down = NULL;
    ck_refuses(ERR_CONFLICT, "just now", "PATCH", NODE "/Name=a", "{\"Role\":\"Follower\"}");
    ck_assert_uint_eq(stepped_down, 0);
}
END_TEST

START_TEST(a_node_that_follows_leaves_it_to_the_leader)
{
    view.leads = false;
    view.leader_url = SPAN("http://b:1");
    ck_refuses(ERR_NO_LEADER, "at the cluster's leader", "PATCH", NODE "/Name=b",
               "{\"Role\":\"Follower\"}");
    view.redirects = true;
    ck_asks(307, "PATCH", NODE "/Name=b", "{\"Role\":\"Follower\"}");
    ck_header_eq("Location", "http://b:1" NODE "/Name=b");
    ck_asks(200, "GET", NODE, NULL);
}
END_TEST

/* etcd has lost the log, nobody leads: the node itself is asked. */
START_TEST(a_lost_log_goes_on_from_a_node)
{
    view.leads = false;
    nodes[0].role = REPLICA_ENTERING;
    ck_refuses(ERR_CONFLICT, "the log in etcd is not lost", "PATCH", NODE "/Name=a",
               "{\"RestoreFrom\":40}");
    view.trouble = REPLICA_LOG_LOST;
    ck_refuses(ERR_CONFLICT, "node 'a' is at 40, and RestoreFrom is 39", "PATCH", NODE "/Name=a",
               "{\"RestoreFrom\":39}");
    ck_refuses(ERR_CONFLICT, "this is node 'a'", "PATCH", NODE "/Name=b", "{\"RestoreFrom\":38}");
    ck_problem(ERR_CONFLICT, "'b' at http://b:1");
    ck_refuses(ERR_CONFLICT, "node 'a' is Joining", "PATCH", NODE "/Name=a",
               "{\"Role\":\"Follower\"}");
    nodes[1].applied = 41;
    ck_refuses(ERR_CONFLICT, "node 'b' lives and is at 41, which is further", "PATCH",
               NODE "/Name=a", "{\"RestoreFrom\":40}");
    nodes[1].applied = 38;
    ck_assert_uint_eq(restored, 0);
    ck_asks(202, "PATCH", NODE "/Name=a", "{\"RestoreFrom\":40}");
    ck_assert_str_eq(answered_text("0.Role"), "Joining");
    ck_header_eq("Svc-info", "node 'a' begins the cluster's log anew behind its journal");
    ck_assert_uint_eq(restored, 1);
    ck_assert_uint_eq(stepped_down, 0);
    /* Other changes are nobody's. */
    ck_refuses(ERR_NO_LEADER, "no leader", "POST", "/Svc.Admin.Webhook", "{}");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, nodes_are_shown, 0, ARRAY_LEN(asked));
    tcase_add_test(tc, it_is_listed_and_described);
    tcase_add_test(tc, there_is_none_on_a_server_that_is_alone);
    tcase_add_test(tc, rights);
    tcase_add_test(tc, a_leader_steps_down);
    tcase_add_test(tc, who_follows_has_nothing_to_do);
    tcase_add_loop_test(tc, what_is_refused, 0, ARRAY_LEN(refused));
    tcase_add_test(tc, somebody_has_to_lead_then);
    tcase_add_test(tc, a_node_that_follows_leaves_it_to_the_leader);
    tcase_add_test(tc, a_lost_log_goes_on_from_a_node);
}
