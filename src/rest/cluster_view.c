/* What a node is shown as: the machine of its part in the log has more states than an operator
 * needs to know. */
#include "rest/cluster_view.h"

#include "query/shape.h"

static const struct span roles[] = {[CLUSTER_LEADER] = SPAN_INIT("Leader"),
                                    [CLUSTER_FOLLOWER] = SPAN_INIT("Follower"),
                                    [CLUSTER_CANDIDATE] = SPAN_INIT("Candidate"),
                                    [CLUSTER_JOINING] = SPAN_INIT("Joining")};
const struct enumeration cluster_role_names = {"Role", roles, ARRAY_LEN(roles)};

enum cluster_role cluster_role_of(const struct cluster_node *node)
{
    static const uint8_t shown[] = {
        [REPLICA_OFF] = CLUSTER_JOINING,         [REPLICA_ENTERING] = CLUSTER_JOINING,
        [REPLICA_FOLLOWING] = CLUSTER_FOLLOWER,  [REPLICA_JOINING] = CLUSTER_JOINING,
        [REPLICA_CANDIDATE] = CLUSTER_CANDIDATE, [REPLICA_TAKING_OVER] = CLUSTER_CANDIDATE,
        [REPLICA_LEADING] = CLUSTER_LEADER,      [REPLICA_ENDING] = CLUSTER_FOLLOWER,
        [REPLICA_REFUSED] = CLUSTER_JOINING,
    };

    return (enum cluster_role)shown[node->role];
}

const struct cluster_view *cluster_look(const struct cluster_view *view)
{
    if (view->refresh != NULL)
        view->refresh(view->context);
    return view;
}

const struct cluster_node *cluster_self(const struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].is_self)
            return &view->nodes[i];
    return NULL;
}
