/* Histograms with fixed buckets, and the text format of Prometheus (version 0.0.4): for each metric
 * HELP and TYPE, then its samples. Durations are counted in nanoseconds and written as seconds. */
#include "base/metric.h"

#define NANOS_PER_S UINT64_C(1000000000)

static const struct {
    uint64_t ns;
    struct span text;
} edges[] = {
#define METRIC_EDGE_AS_ROW(ns, text) {UINT64_C(ns), SPAN_INIT(text)},
    METRIC_EDGES(METRIC_EDGE_AS_ROW)
#undef METRIC_EDGE_AS_ROW
};

/* From the front: what is measured often is short. */
void histogram_add(struct histogram *h, uint64_t ns)
{
    size_t i = 0;

    while (i < METRIC_EDGE_COUNT && ns > edges[i].ns)
        i++;
    h->counts[i]++;
    h->sum_ns += ns;
}

static void add_escaped(struct buf *b, struct span text, bool is_quoted)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n')
            buf_add_str(b, "\\n");
        else if (text.p[i] == '\\' || (text.p[i] == '"' && is_quoted))
            buf_printf(b, "\\%c", text.p[i]);
        else
            buf_add_char(b, text.p[i]);
    }
}

void metric_add_head(struct buf *b, struct span name, const char *type, struct span help)
{
    buf_printf(b, "# HELP %.*s ", SPAN_FMT(name));
    add_escaped(b, help, false);
    buf_printf(b, "\n# TYPE %.*s %s\n", SPAN_FMT(name), type);
}

void metric_add(struct buf *b, struct span name, const struct metric_label *labels, size_t count,
                uint64_t value)
{
    buf_add(b, name);
    for (size_t i = 0; i < count; i++) {
        buf_add_char(b, i == 0 ? '{' : ',');
        buf_add(b, labels[i].name);
        buf_add_str(b, "=\"");
        add_escaped(b, labels[i].value, true);
        buf_add_char(b, '"');
    }
    if (count > 0)
        buf_add_char(b, '}');
    buf_add_char(b, ' ');
    buf_add_u64(b, value);
    buf_add_char(b, '\n');
}

/* In whole numbers: a double would lose nanoseconds of a large sum. */
static void add_seconds(struct buf *b, uint64_t ns)
{
    buf_printf(b, " %llu.%09llu\n", (unsigned long long)(ns / NANOS_PER_S),
               (unsigned long long)(ns % NANOS_PER_S));
}

void metric_add_seconds(struct buf *b, struct span name, uint64_t ns)
{
    buf_add(b, name);
    add_seconds(b, ns);
}

static void add_bucket(struct buf *b, struct span name, struct span edge, uint64_t value)
{
    buf_printf(b, "%.*s_bucket{le=\"%.*s\"} %llu\n", SPAN_FMT(name), SPAN_FMT(edge),
               (unsigned long long)value);
}

void metric_add_histogram(struct buf *b, struct span name, const struct histogram *h)
{
    uint64_t count = 0;

    for (size_t i = 0; i < METRIC_EDGE_COUNT; i++) {
        count += h->counts[i];
        add_bucket(b, name, edges[i].text, count);
    }
    count += h->counts[METRIC_EDGE_COUNT];
    add_bucket(b, name, SPAN("+Inf"), count);
    buf_printf(b, "%.*s_sum", SPAN_FMT(name));
    add_seconds(b, h->sum_ns);
    buf_printf(b, "%.*s_count %llu\n", SPAN_FMT(name), (unsigned long long)count);
}
