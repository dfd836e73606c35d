/* Metrics of a node of a cluster: what it is in it, how far it has come, and what it passes on. */
#include "admin/metrics_text.h"

#include "dispatch/handover.h"
#include "dispatch/passage.h"
#include "journal/replica_stats.h"
#include "query/shape.h"
#include "rest/cluster_view.h"
#include "rest/metrics.h"
#include "rest/rest.h"

/* ---- collecting ---- */

enum { TROUBLE_STUCK = REPLICA_OTHER_ETCD, TROUBLE_LATE, TROUBLE_HELD_BACK, TROUBLE_COUNT };

_Static_assert((int)METRIC_CLUSTER_TROUBLE_COUNT == (int)TROUBLE_COUNT, "one each");
_Static_assert((int)METRIC_CLUSTER_ROLE_COUNT == CLUSTER_JOINING + 1, "one each");

static void collect_position(const struct cluster_view *view, struct cluster_metrics *m)
{
    const struct cluster_node *self = cluster_self(view);

    m->role[self == NULL ? CLUSTER_JOINING : cluster_role_of(self)] = 1;
    if (view->trouble != REPLICA_NO_TROUBLE)
        m->trouble[view->trouble - 1] = 1;
    m->trouble[TROUBLE_STUCK] = view->stuck.n > 0;
    m->trouble[TROUBLE_LATE] = view->is_late;
    m->trouble[TROUBLE_HELD_BACK] = view->held_back.n > 0;
    m->epoch = view->epoch;
    m->nodes = view->node_count;
    m->lease_ns = view->lease_ns;
    m->end = view->end;
    m->applied = view->applied;
    m->lag = view->end > view->applied ? view->end - view->applied : 0;
    m->lag_ns = view->lag_ns;
}

static void collect_log(const struct replica_stats *stats, struct cluster_metrics *m)
{
    m->batches = stats->appended;
    m->batch_bytes = stats->appended_bytes;
    m->attempts = stats->attempts;
    m->commit_time = stats->append_time;
    m->read_batches = stats->read;
    m->read_bytes = stats->read_bytes;
    m->log_keys = stats->log_keys;
    m->log_bytes = stats->log_bytes;
}

static void collect_cluster(const struct rest *rest, struct cluster_metrics *m)
{
    const struct cluster_view *view = cluster_look(rest->cluster);

    *m = (struct cluster_metrics){.epoch = 0};
    collect_position(view, m);
    collect_log(view->stats, m);
    m->passed_on = passages_sent(rest->passages);
    m->passing_on = passages_under_way(rest->passages);
    m->passage_waiting = passages_in_line(rest->passages);
    m->handover_bytes = handover_bytes(rest->handover);
    m->handover_dropped = handover_dropped(rest->handover);
}

/* ---- the text ---- */

static const struct span trouble_names[METRIC_CLUSTER_TROUBLE_COUNT] = {
    [REPLICA_UNREACHABLE - 1] = SPAN_INIT("Unreachable"),
    [REPLICA_DENIED - 1] = SPAN_INIT("Denied"),
    [REPLICA_FULL - 1] = SPAN_INIT("Full"),
    [REPLICA_NAME_TAKEN - 1] = SPAN_INIT("NameTaken"),
    [REPLICA_OTHER_HISTORY - 1] = SPAN_INIT("OtherHistory"),
    [REPLICA_LOG_LOST - 1] = SPAN_INIT("LogLost"),
    [REPLICA_DAMAGED - 1] = SPAN_INIT("Damaged"),
    [REPLICA_MISUSED - 1] = SPAN_INIT("Misused"),
    [REPLICA_OTHER_ETCD - 1] = SPAN_INIT("OtherEtcd"),
    [TROUBLE_STUCK] = SPAN_INIT("Stuck"),
    [TROUBLE_LATE] = SPAN_INIT("Late"),
    [TROUBLE_HELD_BACK] = SPAN_INIT("HeldBack"),
};
static const struct enumeration troubles = {"trouble", trouble_names, ARRAY_LEN(trouble_names)};

const struct metrics_form metrics_text_by_role = {metrics_text_by_names, &cluster_role_names, 0};
const struct metrics_form metrics_text_by_trouble = {metrics_text_by_names, &troubles, 0};

void metrics_cluster_text(struct metrics_text *t)
{
    static const struct metrics_row rows[] = {
#define METRIC_AS_ROW(...) METRICS_TEXT_ROW(struct cluster_metrics, __VA_ARGS__)
        CLUSTER_METRICS(METRIC_AS_ROW)
#undef METRIC_AS_ROW
    };
    struct cluster_metrics of_node;

    if (t->rest->cluster == NULL)
        return;
    collect_cluster(t->rest, &of_node);
    metrics_text_rows(t, rows, ARRAY_LEN(rows), &of_node);
}
