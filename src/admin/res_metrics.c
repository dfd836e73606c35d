/* Svc.Metrics: what the service counts, as Prometheus reads it (docs/specification.md, section 8).
 * The text follows the table in rest/metrics.h: of each row its head, then the samples in the way
 * of its form. */
#include "admin/builtin.h"

#include "access/clients.h"
#include "admin/service.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/uuid.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/lane.h"
#include "hooks/retention.h"
#include "io/process.h"
#include "io/tcp.h"
#include "journal/journal.h"
#include "journal/replica_stats.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "rest/cluster_view.h"
#include "rest/evaluation.h"
#include "rest/handover.h"
#include "rest/metrics.h"
#include "rest/passage.h"
#include "rest/response.h"
#include "rest/stream.h"
#include "store/collection.h"
#include "store/store.h"
#include "store/turn.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

_Static_assert((int)METRIC_DELIVERY_STATE_COUNT == (int)DELIVERY_STATE_COUNT, "one each");
_Static_assert((int)METRIC_OUTCOME_COUNT == DELIVERY_STATE_COUNT - DELIVERY_DELIVERED, "one each");
_Static_assert((int)TCP_CLOSE_REASON_COUNT <= (int)METRIC_CLOSE_REASON_COUNT, "room for all");

/* What is being written. */
struct text {
    const struct service *service;
    const struct row *row;
    const void *member; /* of struct metrics, or of struct cluster_metrics */
    struct buf *out;
};

struct row {
    struct span name;
    const char *type;
    struct span labels, help;
    void (*add)(const struct text *t);
    size_t offset; /* of the member */
};

/* ---- collecting ---- */

/* Gauges, and counters that somebody else keeps, as they are now. */

static void collect_deliveries(const struct service *s, struct metrics *m)
{
    const struct delivery *oldest = deliveries_oldest_pending(s->hooks.deliveries);
    int64_t age_ns = oldest == NULL ? 0 : clock_unix_ns() - oldest->event->time_unix_ns;

    m->deliveries_pending = deliveries_pending(s->hooks.deliveries);
    for (unsigned i = 0; i < DELIVERY_STATE_COUNT; i++)
        m->deliveries_kept[i] = deliveries_count(s->hooks.deliveries, i);
    m->oldest_ns = (uint64_t)MAX(age_ns, 0);
    m->events_kept = events_count(s->hooks.events);
}

static void collect_journal(const struct service *s, struct metrics *m)
{
    struct journal_stats journal;

    journal_stats(turn_journal(s->turn), &journal);
    m->journal_commits = journal.commits;
    m->journal_appended = journal.appended_bytes;
    m->journal_bytes = journal.bytes;
    m->journal_live_bytes = store_live_bytes(s->store);
    m->journal_segments = journal.segments;
    m->journal_full = journal.full;
}

static void collect_entities(const struct service *s, struct metrics *m)
{
    m->store_entities = 0;
    for (size_t i = 0; i < s->rest.resources->count; i++)
        if (s->rest.resources->sorted[i]->collection != NULL)
            m->store_entities += collection_count(s->rest.resources->sorted[i]->collection);
}

static void collect_ledger(const struct service *s, struct metrics *m)
{
    m->ledger[METRIC_INCOMING] = m->incoming_bytes;
    m->ledger[METRIC_UNREAD] = m->unread_bytes;
    m->ledger[METRIC_BODIES] = deliveries_body_bytes(s->hooks.deliveries);
    m->ledger[METRIC_PAYLOADS] = payloads_bytes(events_payloads(s->hooks.events));
    m->ledger[METRIC_ERROR_LOG] = retention_error_bytes(s->hooks.retention);
    m->ledger[METRIC_ATTEMPT_LOG] = retention_log_bytes(s->hooks.retention);
    m->ledger[METRIC_EVENTS] = events_bytes(s->hooks.events);
    m->ledger[METRIC_STREAM_TEXTS] = streams_bytes(s->rest.streams);
}

static void collect(struct service *s)
{
    struct metrics *m = s->metrics;

    collect_deliveries(s, m);
    collect_journal(s, m);
    collect_entities(s, m);
    collect_ledger(s, m);
    metrics_note_turn(m, turn_longest_ns(s->turn));
    m->scans = evaluations_count(s->rest.evaluations);
    m->streams = streams_count(s->rest.streams);
    m->client_addresses = clients_count(s->rest.clients);
    m->resident_bytes = process_resident_bytes();
    m->heap_bytes = mem_bytes();
    m->cpu_ns = process_cpu_ns();
}

/* ---- of a node of a cluster ---- */

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
    const struct cluster_view *view = rest->cluster;

    if (view->refresh != NULL)
        view->refresh(view->context);
    *m = (struct cluster_metrics){.epoch = 0};
    collect_position(view, m);
    collect_log(view->stats, m);
    m->passed_on = passages_sent(rest->passages);
    m->passing_on = passages_under_way(rest->passages);
    m->passage_waiting = passages_in_line(rest->passages);
    m->handover_bytes = handover_bytes(rest->handover);
    m->handover_dropped = handover_dropped(rest->handover);
}

/* ---- forms ---- */

static uint64_t value_of(const struct text *t)
{
    return *(const uint64_t *)t->member;
}

static void add_count(const struct text *t)
{
    metric_add(t->out, t->row->name, NULL, 0, value_of(t));
}

static void add_seconds(const struct text *t)
{
    metric_add_seconds(t->out, t->row->name, value_of(t));
}

static void add_histogram(const struct text *t)
{
    metric_add_histogram(t->out, t->row->name, t->member);
}

static void add_labelled(const struct text *t, struct span label, uint64_t value)
{
    const struct metric_label labels[] = {{t->row->labels, label}};

    metric_add(t->out, t->row->name, labels, ARRAY_LEN(labels), value);
}

static void add_by_names(const struct text *t, const struct span *names, size_t count)
{
    const uint64_t *values = t->member;

    for (size_t i = 0; i < count; i++)
        add_labelled(t, names[i], values[i]);
}

/* Those that have occurred: most pairs of method and status never do. */
static void add_requests(const struct text *t)
{
    static const struct span statuses[] = {[METRIC_STATUS_OTHER] = SPAN_INIT("other"),
#define METRIC_STATUS_AS_TEXT(status) [METRIC_STATUS_##status] = SPAN_INIT(#status),
                                           METRIC_STATUSES(METRIC_STATUS_AS_TEXT)
#undef METRIC_STATUS_AS_TEXT
    };
    const uint64_t(*counts)[METRIC_STATUS_COUNT] = t->member;
    struct span second = t->row->labels;
    struct span first = span_split(&second, ',');

    for (unsigned i = 0; i < METRIC_METHOD_COUNT; i++) {
        struct span method = i == METRIC_METHOD_OTHER ? SPAN("other") : method_name(i);

        for (unsigned j = 0; j < METRIC_STATUS_COUNT; j++) {
            const struct metric_label labels[] = {{first, method}, {second, statuses[j]}};

            if (counts[i][j] > 0)
                metric_add(t->out, t->row->name, labels, ARRAY_LEN(labels), counts[i][j]);
        }
    }
}

/* Of all rows of the table of errors with this number: together they are one ErrorCode. */
static uint64_t sum_of_number(const uint64_t *counts, int number)
{
    uint64_t sum = 0;

    for (enum err_code code = 0; code < ERR_CODE_COUNT; code++)
        if (err_info(code)->number == number)
            sum += counts[code];
    return sum;
}

static bool is_first_of_number(enum err_code code)
{
    for (enum err_code before = 0; before < code; before++)
        if (err_info(before)->number == err_info(code)->number)
            return false;
    return true;
}

static void add_by_error(const struct text *t)
{
    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++)
        if (is_first_of_number(code))
            add_labelled(t, err_info(code)->name, sum_of_number(t->member, err_info(code)->number));
}

static void add_by_limit(const struct text *t)
{
    static const struct span names[] = {
#define METRIC_LIMIT_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_LIMITS(METRIC_LIMIT_AS_NAME)
#undef METRIC_LIMIT_AS_NAME
    };

    add_by_names(t, names, ARRAY_LEN(names));
}

static void add_by_close_reason(const struct text *t)
{
    static const struct span names[] = {
#define TCP_REASON_AS_NAME(symbol, text) SPAN_INIT(text),
        TCP_CLOSE_REASONS(TCP_REASON_AS_NAME)
#undef TCP_REASON_AS_NAME
    };

    add_by_names(t, names, ARRAY_LEN(names));
}

static void add_by_outcome(const struct text *t)
{
    add_by_names(t, &delivery_state_names.values[DELIVERY_DELIVERED], METRIC_OUTCOME_COUNT);
}

static void add_by_result(const struct text *t)
{
    static const struct span names[] = {
#define METRIC_RESULT_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_RESULTS(METRIC_RESULT_AS_NAME)
#undef METRIC_RESULT_AS_NAME
    };

    add_by_names(t, names, ARRAY_LEN(names));
}

static void add_by_webhook(const struct text *t, uint64_t (*value)(struct worst_entry *entry))
{
    const struct worst *worst = &t->service->hooks.worst;

    for (size_t i = 0; i < worst->count; i++) {
        char id[UUID_TEXT_BYTES + 1];

        uuid_text(lane_webhook_id(lane_of_worst(worst->entries[i])), id);
        add_labelled(t, span_str(id), value(worst->entries[i]));
    }
}

static uint64_t attempts_of(struct worst_entry *entry)
{
    return entry->attempts;
}

static uint64_t failures_of(struct worst_entry *entry)
{
    return entry->failures;
}

static uint64_t pending_of(struct worst_entry *entry)
{
    return lane_unended(lane_of_worst(entry));
}

static void add_worst_attempts(const struct text *t)
{
    add_by_webhook(t, attempts_of);
}

static void add_worst_failures(const struct text *t)
{
    add_by_webhook(t, failures_of);
}

static void add_worst_pending(const struct text *t)
{
    add_by_webhook(t, pending_of);
}

static void add_by_holder(const struct text *t)
{
    static const struct span names[] = {
#define METRIC_HOLDER_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_HOLDERS(METRIC_HOLDER_AS_NAME)
#undef METRIC_HOLDER_AS_NAME
    };

    add_by_names(t, names, ARRAY_LEN(names));
}

static void add_by_state(const struct text *t)
{
    add_by_names(t, delivery_state_names.values, DELIVERY_STATE_COUNT);
}

/* Of the service's own resources, or of the application's. Returns how many were told apart. */
static size_t add_entities_of(const struct text *t, bool own, size_t most, uint64_t *others)
{
    const struct resources *resources = t->service->rest.resources;
    size_t told_apart = 0;

    for (size_t i = 0; i < resources->count && told_apart < most; i++) {
        const struct resource *resource = resources->sorted[i];

        if (resource->collection == NULL || own != span_istarts(resource->name, SPAN("Svc.")))
            continue;
        add_labelled(t, resource->name, collection_count(resource->collection));
        *others -= collection_count(resource->collection);
        told_apart++;
    }
    return told_apart;
}

static void add_entities(const struct text *t)
{
    uint64_t others = value_of(t);
    size_t most = METRICS_MAX_RESOURCES;

    most -= add_entities_of(t, true, most, &others);
    most -= add_entities_of(t, false, most, &others);
    if (most == 0)
        add_labelled(t, SPAN("_other"), others);
}

static void add_by_role(const struct text *t)
{
    add_by_names(t, cluster_role_names.values, METRIC_CLUSTER_ROLE_COUNT);
}

static void add_by_trouble(const struct text *t)
{
    static const struct span names[METRIC_CLUSTER_TROUBLE_COUNT] = {
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

    add_by_names(t, names, ARRAY_LEN(names));
}

static void add_build(const struct text *t)
{
    add_labelled(t, SPAN(SVCD_VERSION), value_of(t));
}

/* ---- the whole ---- */

/* `counts` is what the offsets are in. */
static void add_rows(const struct service *service, const struct row *rows, size_t count,
                     const void *counts, struct buf *b)
{
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        const void *member = (const char *)counts + row->offset;

        metric_add_head(b, row->name, row->type, row->help);
        row->add(&(struct text){service, row, member, b});
    }
}

#define AS_ROW(in, member, form, type, name, labels, help)                                         \
    {SPAN_INIT(name), type, SPAN_INIT(labels), SPAN_INIT(help), add_##form, offsetof(in, member)},

static void add_text(struct service *service, struct buf *b)
{
    static const struct row rows[] = {
#define METRIC_AS_ROW(...) AS_ROW(struct metrics, __VA_ARGS__)
        METRICS(METRIC_AS_ROW)
#undef METRIC_AS_ROW
    };
    static const struct row cluster_rows[] = {
#define METRIC_AS_ROW(...) AS_ROW(struct cluster_metrics, __VA_ARGS__)
        CLUSTER_METRICS(METRIC_AS_ROW)
#undef METRIC_AS_ROW
    };
    struct cluster_metrics of_node;

    collect(service);
    add_rows(service, rows, ARRAY_LEN(rows), service->metrics, b);
    if (service->rest.cluster == NULL)
        return;
    collect_cluster(&service->rest, &of_node);
    add_rows(service, cluster_rows, ARRAY_LEN(cluster_rows), &of_node, b);
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;

    response->status = 200;
    response->content_type = SPAN(METRICS_TYPE);
    add_text(service_of(call), &response->body);
    return NULL;
}

static const struct resource_ops ops = {.get = get};

const struct resource_definition res_metrics = {
    .name = SPAN_INIT("Svc.Metrics"),
    .description = SPAN_INIT("Measurements, in the text format of Prometheus"),
    .kind = KIND_BINARY,
    .content_type = SPAN_INIT(METRICS_TYPE),
    .methods = METHOD_BIT(METHOD_GET),
    .shape = &schema_dynamic,
    .ops = &ops,
};
