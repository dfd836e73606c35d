#include "testing.h"

#include "base/metric.h"

#include <stdlib.h>

/* ---- histograms ---- */

static const struct {
    uint64_t ns;
    size_t bucket;
} durations[] = {
    {0, 0},
    {1, 0},
    {9999, 0},
    {10000, 0}, /* an edge belongs to the bucket below it */
    {10001, 1},
    {25000, 1},
    {25001, 2},
    {1000000, 6},
    {1000001, 7},
    {UINT64_C(86399999999999), METRIC_EDGE_COUNT - 1},
    {UINT64_C(86400000000000), METRIC_EDGE_COUNT - 1},
    {UINT64_C(86400000000001), METRIC_EDGE_COUNT},
    {UINT64_C(1) << 62, METRIC_EDGE_COUNT},
};

START_TEST(durations_find_their_bucket)
{
    for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
        struct histogram h = {.sum_ns = 0};

        histogram_add(&h, durations[i].ns);
        for (size_t at = 0; at <= METRIC_EDGE_COUNT; at++)
            ck_assert_msg(h.counts[at] == (at == durations[i].bucket), "%llu ns, bucket %zu",
                          (unsigned long long)durations[i].ns, at);
        ck_assert_uint_eq(h.sum_ns, durations[i].ns);
    }
}
END_TEST

/* The two columns of the table say the same, and the edges rise. */
START_TEST(edges_are_in_order)
{
    static const struct {
        uint64_t ns;
        const char *seconds;
    } edges[] = {
#define METRIC_EDGE_AS_ROW(ns, text) {UINT64_C(ns), text},
        METRIC_EDGES(METRIC_EDGE_AS_ROW)
#undef METRIC_EDGE_AS_ROW
    };

    ck_assert_uint_eq(ARRAY_LEN(edges), METRIC_EDGE_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        double seconds = strtod(edges[i].seconds, NULL);

        ck_assert_msg(seconds * 1e9 > (double)edges[i].ns - 0.5 &&
                          seconds * 1e9 < (double)edges[i].ns + 0.5,
                      "%s", edges[i].seconds);
        ck_assert_msg(i == 0 || edges[i].ns > edges[i - 1].ns, "%s", edges[i].seconds);
    }
}
END_TEST

/* ---- text ---- */

static struct buf text;

static void expect(const char *expected)
{
    ck_span_is(buf_span(&text), span_str(expected));
    buf_clear(&text);
}

START_TEST(samples_are_written)
{
    const struct metric_label labels[] = {{SPAN("method"), SPAN("GET")},
                                          {SPAN("status"), SPAN("200")}};

    buf_init(&text, 65536);
    metric_add_head(&text, SPAN("x_total"), "counter", SPAN("How many"));
    metric_add(&text, SPAN("x_total"), NULL, 0, 0);
    metric_add(&text, SPAN("x_total"), labels, 1, 7);
    metric_add(&text, SPAN("x_total"), labels, 2, UINT64_MAX);
    expect("# HELP x_total How many\n"
           "# TYPE x_total counter\n"
           "x_total 0\n"
           "x_total{method=\"GET\"} 7\n"
           "x_total{method=\"GET\",status=\"200\"} 18446744073709551615\n");
    metric_add_seconds(&text, SPAN("s"), 0);
    metric_add_seconds(&text, SPAN("s"), 1);
    metric_add_seconds(&text, SPAN("s"), UINT64_C(1500000000));
    metric_add_seconds(&text, SPAN("s"), UINT64_MAX);
    expect("s 0.000000000\n"
           "s 0.000000001\n"
           "s 1.500000000\n"
           "s 18446744073.709551615\n");
    buf_done(&text);
}
END_TEST

START_TEST(text_is_escaped)
{
    const struct metric_label label = {SPAN("l"), SPAN("a\"b\\c\nd")};

    buf_init(&text, 65536);
    metric_add_head(&text, SPAN("x"), "gauge", SPAN("a \"quote\", a \\ and\na line"));
    metric_add(&text, SPAN("x"), &label, 1, 1);
    expect("# HELP x a \"quote\", a \\\\ and\\na line\n"
           "# TYPE x gauge\n"
           "x{l=\"a\\\"b\\\\c\\nd\"} 1\n");
    buf_done(&text);
}
END_TEST

static uint64_t value_of(const char *sample)
{
    struct span content = buf_span(&text);
    size_t at = span_find(content, span_str(sample));
    size_t from = at + span_str(sample).n;
    uint64_t value;

    ck_assert_msg(at != SIZE_MAX, "no %s", sample);
    ck_assert(span_to_u64(span_sub(content, from, span_find_char(content, '\n', from)), &value));
    return value;
}

START_TEST(histograms_are_cumulative)
{
    struct histogram h = {.sum_ns = 0};

    buf_init(&text, 65536);
    histogram_add(&h, 5000);
    histogram_add(&h, 10000);
    histogram_add(&h, 2000000);
    histogram_add(&h, UINT64_C(100000000000000));
    metric_add_histogram(&text, SPAN("d"), &h);
    ck_assert_uint_eq(value_of("d_bucket{le=\"0.00001\"} "), 2);
    ck_assert_uint_eq(value_of("d_bucket{le=\"0.001\"} "), 2);
    ck_assert_uint_eq(value_of("d_bucket{le=\"0.0025\"} "), 3);
    ck_assert_uint_eq(value_of("d_bucket{le=\"86400\"} "), 3);
    ck_assert_uint_eq(value_of("d_bucket{le=\"+Inf\"} "), 4);
    ck_assert_uint_eq(value_of("d_count "), 4);
    ck_assert(span_find(buf_span(&text), SPAN("d_sum 100000.002015000\n")) != SIZE_MAX);
    buf_done(&text);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, durations_find_their_bucket);
    tcase_add_test(tc, edges_are_in_order);
    tcase_add_test(tc, samples_are_written);
    tcase_add_test(tc, text_is_escaped);
    tcase_add_test(tc, histograms_are_cumulative);
}
