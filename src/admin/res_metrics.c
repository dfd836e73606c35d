/* Svc.Metrics: what the service counts, as Prometheus reads it (docs/specification.md, section 8).
 * The text follows the table in rest/metrics.h: of each row its head, then the samples in the way
 * of its form. */
#include "admin/builtin.h"
#include "admin/metrics_text.h"

#include "access/clients.h"
#include "base/mem.h"
#include "io/process.h"
#include "journal/journal.h"
#include "protocol/schema.h"
#include "rest/evaluation.h"
#include "rest/metrics.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "rest/stream.h"
#include "store/collection.h"
#include "store/store.h"
#include "store/turn.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* ---- collecting ---- */

/* Gauges, and counters that somebody else keeps, as they are now. */

static void collect_journal(const struct rest *rest, struct metrics *m)
{
    struct journal_stats journal;

    journal_stats(turn_journal(rest->turn), &journal);
    m->journal_commits = journal.commits;
    m->journal_appended = journal.appended_bytes;
    m->journal_bytes = journal.bytes;
    m->journal_live_bytes = store_live_bytes(rest->store);
    m->journal_segments = journal.segments;
    m->journal_full = journal.full;
}

static void collect_entities(const struct rest *rest, struct metrics *m)
{
    m->store_entities = 0;
    for (size_t i = 0; i < rest->resources->count; i++)
        if (rest->resources->sorted[i]->collection != NULL)
            m->store_entities += collection_count(rest->resources->sorted[i]->collection);
}

static void collect_ledger(const struct rest *rest, struct metrics *m)
{
    m->ledger[METRIC_INCOMING] = m->incoming_bytes;
    m->ledger[METRIC_UNREAD] = m->unread_bytes;
    m->ledger[METRIC_STREAM_TEXTS] = streams_bytes(rest->streams);
}

static void collect(const struct rest *rest, struct metrics *m)
{
    collect_journal(rest, m);
    collect_entities(rest, m);
    collect_ledger(rest, m);
    metrics_note_turn(m, turn_longest_ns(rest->turn));
    m->scans = evaluations_count(rest->evaluations);
    m->streams = streams_count(rest->streams);
    m->client_addresses = clients_count(rest->clients);
    m->resident_bytes = process_resident_bytes();
    m->heap_bytes = mem_bytes();
    m->cpu_ns = process_cpu_ns();
}

/* ---- the text ---- */

/* Of the service's own resources, or of the application's. Returns how many were told apart. */
static size_t add_entities_of(const struct metrics_text *t, bool own, size_t most, uint64_t *others)
{
    const struct resources *resources = t->rest->resources;
    size_t told_apart = 0;

    for (size_t i = 0; i < resources->count && told_apart < most; i++) {
        const struct resource *resource = resources->sorted[i];

        if (resource->collection == NULL || own != span_istarts(resource->name, SPAN("Svc.")))
            continue;
        metrics_text_labelled(t, resource->name, collection_count(resource->collection));
        *others -= collection_count(resource->collection);
        told_apart++;
    }
    return told_apart;
}

static void add_entities(const struct metrics_text *t)
{
    uint64_t others = *(const uint64_t *)t->member;
    size_t most = METRICS_MAX_RESOURCES;

    most -= add_entities_of(t, true, most, &others);
    most -= add_entities_of(t, false, most, &others);
    if (most == 0)
        metrics_text_labelled(t, SPAN("_other"), others);
}

const struct metrics_form metrics_text_entities = {.add = add_entities};

static void add_text(const struct call *call, struct buf *b)
{
    static const struct metrics_row rows[] = {
#define METRIC_AS_ROW(...) METRICS_TEXT_ROW(struct metrics, __VA_ARGS__)
        METRICS(METRIC_AS_ROW)
#undef METRIC_AS_ROW
    };
    struct metrics_text text = {.rest = call->rest, .hooks = hooks_of(call), .out = b};
    struct metrics *m = call->rest->metrics;

    collect(text.rest, m);
    metrics_hooks_collect(text.hooks, m);
    metrics_text_rows(&text, rows, ARRAY_LEN(rows), m);
    metrics_cluster_text(&text);
}

static struct err *get(struct call *call)
{
    struct response *response = call->response;

    response->status = 200;
    response->content_type = SPAN(METRICS_TYPE);
    add_text(call, &response->body);
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
