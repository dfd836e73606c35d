/* Svc.Metrics: that the text says what has happened, in the form that Prometheus reads. */
#include "asking.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "dispatch/handover.h"
#include "journal/replica_stats.h"
#include "rest/cluster_view.h"
#include "rest/metrics.h"

#define NOW_S INT64_C(1800000000)

static void begin(void)
{
    clock_fake(NOW_S * 1000000000, UINT64_C(1000000000));
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"},"
                "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}]");
}

static struct span text(void)
{
    ck_asks(200, "GET", "/Svc.Metrics", NULL);
    ck_span_eq(asking.answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
    return answered_body();
}

/* The value behind a name with its labels, as it stands there; absent: there is no such line. */
static struct span value_of(const char *name)
{
    struct span rest = text();

    while (rest.p != NULL) {
        struct span line = span_split(&rest, '\n');
        struct span value = line;

        if (span_starts(line, SPAN("#")))
            continue;
        if (span_eq(span_split(&value, ' '), span_str(name)))
            return arena_copy(&asking.arena, value);
    }
    return (struct span){NULL, 0};
}

#define ck_metric(name, literal) ck_span_eq(value_of(name), literal)

/* ---- the form ---- */

static const struct span names[] = {
#define METRIC_AS_NAME(member, form, type, name, labels, help) SPAN_INIT(name),
    METRICS(METRIC_AS_NAME)
#undef METRIC_AS_NAME
};

/* The name up to `{` or a blank. */
static struct span name_of(struct span line)
{
    size_t n = 0;

    while (n < line.n && line.p[n] != '{' && line.p[n] != ' ')
        n++;
    return span_of(line.p, n);
}

START_TEST(each_metric_has_its_head_and_then_its_samples)
{
    struct span rest = text();
    size_t metric = 0;

    ck_assert(span_ends(rest, SPAN("\n")));
    rest.n--;
    while (rest.p != NULL) {
        struct span line = span_split(&rest, '\n');
        struct span head = arena_printf(&asking.arena, "# HELP %.*s ", SPAN_FMT(names[metric]));

        if (metric + 1 < ARRAY_LEN(names)) {
            struct span next =
                arena_printf(&asking.arena, "# HELP %.*s ", SPAN_FMT(names[metric + 1]));

            if (span_starts(line, next)) {
                metric++;
                continue;
            }
        }
        if (span_starts(line, head) || span_starts(line, SPAN("# TYPE ")))
            continue;
        ck_assert_msg(span_starts(name_of(line), names[metric]), "%.*s among %.*s", SPAN_FMT(line),
                      SPAN_FMT(names[metric]));
    }
    ck_assert_uint_eq(metric, ARRAY_LEN(names) - 1); /* all of the table, in its order */
}
END_TEST

/* ---- what has happened ---- */

START_TEST(entities_are_counted_by_resource)
{
    ck_metric("svc_store_entities{resource=\"Shop.Person\"}", "0");
    ck_asks(201, "POST", "/Person", "[{},{}]");
    ck_asks(404, "GET", "/Nobody", NULL);
    ck_metric("svc_store_entities{resource=\"Shop.Person\"}", "2");
    ck_metric("svc_store_entities{resource=\"Svc.Admin.Error\"}", "1");
    ck_metric("svc_store_entities{resource=\"Svc.Admin.Resource\"}", "2");
    ck_assert_ptr_null(value_of("svc_store_entities{resource=\"_other\"}").p);
    ck_assert_ptr_null(value_of("svc_store_entities{resource=\"Shop.Placed\"}").p);
}
END_TEST

START_TEST(many_resources_are_one)
{
    enum { MANY = METRICS_MAX_RESOURCES + 10 };
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    for (int i = 0; i < MANY; i++)
        buf_printf(&b, "%s{\"Name\":\"A.R%03d\",\"Kind\":\"EntityResource\"}", i == 0 ? "[" : ",",
                   i);
    buf_add(&b, SPAN("]\0"));
    ck_asks(201, "POST", "/Svc.Admin.Resource", b.p);
    ck_asks(201, "POST", "/A.R000", "{}");
    ck_asks(201, "POST", "/A.R209", "[{},{},{}]");
    ck_asks(201, "POST", "/Person", "[{},{}]");
    ck_metric("svc_store_entities{resource=\"A.R000\"}", "1");
    ck_assert_ptr_null(value_of("svc_store_entities{resource=\"A.R209\"}").p);
    ck_metric("svc_store_entities{resource=\"_other\"}", "5");
    ck_metric("svc_store_entities{resource=\"Svc.Admin.Resource\"}", "212");
}
END_TEST

START_TEST(events_and_deliveries_are_counted)
{
    ck_asks(
        201, "POST", "/Webhook",
        "[{\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed\"},"
        "{\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed/a=1\"},"
        "{\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Placed\",\"IsPaused\":true}]");
    ck_metric("svc_delivery_oldest_seconds", "0.000000000");
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", "{\"a\":1}");
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", "{\"a\":2}");
    clock_advance(UINT64_C(2500000000));
    ck_metric("svc_events_total", "2");
    ck_metric("svc_events_kept", "2");
    ck_metric("svc_matches_total", "3");
    ck_metric("svc_deliveries_pending", "3");
    ck_metric("svc_deliveries_kept{state=\"Pending\"}", "3");
    ck_metric("svc_deliveries_kept{state=\"Dead\"}", "0");
    ck_metric("svc_deliveries_total{outcome=\"Delivered\"}", "0");
    ck_metric("svc_delivery_oldest_seconds", "2.500000000");
    ck_metric("svc_webhooks_paused", "1");
    ck_asks(200, "DELETE", "/Svc.Event/_/limit=1", NULL);
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/_/limit=1", NULL);
    ck_metric("svc_events_total", "2");
    ck_metric("svc_events_kept", "1");
    ck_metric("svc_deliveries_pending", "2");
}
END_TEST

START_TEST(limits_are_counted_by_name)
{
    asking.service->limits.memory_bytes = 1;
    ck_asks(503, "POST", "/Person", "{}");
    ck_metric("svc_limit_hits_total{limit=\"MemoryBytes\"}", "1");
    ck_metric("svc_limit_hits_total{limit=\"BodyBytes\"}", "0");
}
END_TEST

/* Rows of one ErrorCode are one line. */
START_TEST(errors_are_counted_by_code)
{
    uint64_t *errors = asking.service->metrics->errors;
    struct span rest;
    size_t lines = 0;

    errors[ERR_UNKNOWN_PROPERTY] = 3;
    errors[ERR_UNKNOWN_MEMBER] = 4;
    errors[ERR_CONFLICT] = 1;
    ck_metric("svc_errors_total{code=\"UnknownProperty\"}", "7");
    ck_metric("svc_errors_total{code=\"Conflict\"}", "1");
    ck_assert_ptr_null(value_of("svc_errors_total{code=\"NoError\"}").p);
    rest = text();
    while (rest.p != NULL)
        lines += span_starts(span_split(&rest, '\n'),
                             SPAN("svc_errors_total{code=\"UnknownProperty\"}"));
    ck_assert_uint_eq(lines, 1);
}
END_TEST

START_TEST(requests_are_counted_where_there_were_any)
{
    uint64_t(*requests)[METRIC_STATUS_COUNT] = asking.service->metrics->requests;

    requests[METHOD_GET][METRIC_STATUS_200] = 5;
    requests[METRIC_METHOD_OTHER][METRIC_STATUS_501] = 1;
    requests[METHOD_PUT][METRIC_STATUS_OTHER] = 2;
    ck_metric("svc_requests_total{method=\"GET\",status=\"200\"}", "5");
    ck_metric("svc_requests_total{method=\"other\",status=\"501\"}", "1");
    ck_metric("svc_requests_total{method=\"PUT\",status=\"other\"}", "2");
    ck_assert_ptr_null(value_of("svc_requests_total{method=\"GET\",status=\"201\"}").p);
}
END_TEST

START_TEST(the_journal_tells_of_itself)
{
    struct span before = value_of("svc_journal_commits_total"), live;

    ck_asks(201, "POST", "/Person", "{}");
    live = value_of("svc_journal_live_bytes");
    asking_commit();
    ck_assert(!span_eq(value_of("svc_journal_commits_total"), before));
    ck_asks(200, "DELETE", "/Person", NULL);
    ck_assert(!span_eq(value_of("svc_journal_live_bytes"), live));
    ck_metric("svc_journal_segments", "1");
    ck_metric("svc_journal_full", "0");
}
END_TEST

START_TEST(the_process_tells_of_itself)
{
    ck_metric("svc_build_info{version=\"" SVCD_VERSION "\"}", "1");
    ck_metric("svc_start_time_seconds", "1800000000.000000000");
    ck_assert_uint_gt(value_of("svc_resident_bytes").n, 6);
    ck_assert_uint_gt(value_of("svc_heap_bytes").n, 4);
}
END_TEST

/* Reading them is no change, and waits for nothing. */
START_TEST(asking_again_says_the_same)
{
    uint64_t serial = asking_serial();

    text();
    ck_assert_uint_eq(asking.answer.serial, 0);
    ck_asks(200, "HEAD", "/Svc.Metrics", NULL);
    ck_assert_uint_eq(asking_serial(), serial);
    ck_refuses(ERR_METHOD_NOT_ALLOWED, "", "REPORT", "/Svc.Metrics", NULL);
}
END_TEST

/* ---- of a node of a cluster ---- */

START_TEST(a_node_tells_where_it_stands)
{
    const struct cluster_node nodes[] = {
        {.name = SPAN("a"), .role = REPLICA_LEADING},
        {.name = SPAN("b"), .role = REPLICA_FOLLOWING, .is_self = true},
    };
    struct replica_stats stats = {.appended = 3,
                                  .appended_bytes = 300,
                                  .attempts = 4,
                                  .read = 5,
                                  .read_bytes = 500,
                                  .log_keys = 6,
                                  .log_bytes = 600};
    struct cluster_view view = {
        .nodes = nodes,
        .node_count = 2,
        .end = 40,
        .applied = 38,
        .epoch = 7,
        .lease_ns = 2500000000,
        .lag_ns = 1500000000,
        .trouble = REPLICA_FULL,
        .stuck = SPAN("x"),
        .stats = &stats,
    };

    ck_assert(span_find(text(), SPAN("svc_cluster_")) == SIZE_MAX);
    histogram_add(&stats.append_time, 3000000);
    asking.service->rest.cluster = &view;
    ck_metric("svc_cluster_role{role=\"Follower\"}", "1");
    ck_metric("svc_cluster_role{role=\"Leader\"}", "0");
    ck_metric("svc_cluster_trouble{trouble=\"Full\"}", "1");
    ck_metric("svc_cluster_trouble{trouble=\"Stuck\"}", "1");
    ck_metric("svc_cluster_trouble{trouble=\"Late\"}", "0");
    ck_metric("svc_cluster_trouble{trouble=\"Unreachable\"}", "0");
    ck_metric("svc_cluster_epoch", "7");
    ck_metric("svc_cluster_nodes", "2");
    ck_metric("svc_cluster_lease_seconds", "2.500000000");
    ck_metric("svc_cluster_log_serial", "40");
    ck_metric("svc_cluster_applied_serial", "38");
    ck_metric("svc_cluster_lag_records", "2");
    ck_metric("svc_cluster_lag_seconds", "1.500000000");
    ck_metric("svc_cluster_batches_total", "3");
    ck_metric("svc_cluster_batch_bytes_total", "300");
    ck_metric("svc_cluster_attempts_total", "4");
    ck_metric("svc_cluster_commit_seconds_bucket{le=\"0.0025\"}", "0");
    ck_metric("svc_cluster_commit_seconds_bucket{le=\"0.005\"}", "1");
    ck_metric("svc_cluster_read_batches_total", "5");
    ck_metric("svc_cluster_read_bytes_total", "500");
    ck_metric("svc_cluster_log_keys", "6");
    ck_metric("svc_cluster_log_bytes", "600");
    ck_metric("svc_cluster_passed_on_total", "0");
    ck_metric("svc_cluster_handover_dropped_total", "0");
    ck_assert(handover_add_use(asking.service->rest.handover, &(struct uuid){{1}}, 3600));
    ck_assert(!span_eq(value_of("svc_cluster_handover_bytes"), SPAN("0")));
    view.trouble = REPLICA_UNREACHABLE;
    view.node_count = 0;
    ck_metric("svc_cluster_trouble{trouble=\"Unreachable\"}", "1");
    ck_metric("svc_cluster_role{role=\"Joining\"}", "1");
    asking.service->rest.cluster = NULL;
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, each_metric_has_its_head_and_then_its_samples);
    tcase_add_test(tc, entities_are_counted_by_resource);
    tcase_add_test(tc, many_resources_are_one);
    tcase_add_test(tc, events_and_deliveries_are_counted);
    tcase_add_test(tc, limits_are_counted_by_name);
    tcase_add_test(tc, errors_are_counted_by_code);
    tcase_add_test(tc, requests_are_counted_where_there_were_any);
    tcase_add_test(tc, the_journal_tells_of_itself);
    tcase_add_test(tc, the_process_tells_of_itself);
    tcase_add_test(tc, asking_again_says_the_same);
    tcase_add_test(tc, a_node_tells_where_it_stands);
}
