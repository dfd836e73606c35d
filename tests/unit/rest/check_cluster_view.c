/* What a node is shown as, in each state of its part in the log, and which of the nodes is this
 * one. */
#include "testing.h"

#include "query/shape.h"
#include "rest/cluster_view.h"

START_TEST(each_role_is_shown_as_one_of_four)
{
    static const char *const shown[REPLICA_ROLE_COUNT] = {
        [REPLICA_OFF] = "Joining",         [REPLICA_ENTERING] = "Joining",
        [REPLICA_FOLLOWING] = "Follower",  [REPLICA_JOINING] = "Joining",
        [REPLICA_CANDIDATE] = "Candidate", [REPLICA_TAKING_OVER] = "Candidate",
        [REPLICA_LEADING] = "Leader",      [REPLICA_ENDING] = "Follower",
        [REPLICA_REFUSED] = "Joining",
    };
    const struct cluster_node node = {.role = (enum replica_role)_i};

    ck_span_is(cluster_role_names.values[cluster_role_of(&node)], span_str(shown[_i]));
}
END_TEST

START_TEST(which_is_this_one)
{
    struct cluster_node nodes[2] = {{.name = SPAN("a")}, {.name = SPAN("b"), .is_self = true}};
    struct cluster_view view = {.nodes = nodes, .node_count = 2};

    ck_assert_ptr_eq(cluster_self(&view), &nodes[1]);
    view.node_count = 1;
    ck_assert_ptr_null(cluster_self(&view));
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, each_role_is_shown_as_one_of_four, 0, REPLICA_ROLE_COUNT);
    tcase_add_test(tc, which_is_this_one);
}
