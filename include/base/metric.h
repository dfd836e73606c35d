/* Measuring, and the text in which measurements are read: the Prometheus exposition format, version
 * 0.0.4. Counting is an increment of a plain field; a histogram of durations is one, too. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include "base/buf.h"

#include <stdint.h>

/* Upper edges of the buckets, in nanoseconds and in seconds as they are written: from what a
 * request takes to what a retry takes. One table for all durations, so that they can be compared.
 */
#define METRIC_EDGES(X)                                                                            \
    X(10000, "0.00001")                                                                            \
    X(25000, "0.000025")                                                                           \
    X(50000, "0.00005")                                                                            \
    X(100000, "0.0001")                                                                            \
    X(250000, "0.00025")                                                                           \
    X(500000, "0.0005")                                                                            \
    X(1000000, "0.001")                                                                            \
    X(2500000, "0.0025")                                                                           \
    X(5000000, "0.005")                                                                            \
    X(10000000, "0.01")                                                                            \
    X(25000000, "0.025")                                                                           \
    X(50000000, "0.05")                                                                            \
    X(100000000, "0.1")                                                                            \
    X(250000000, "0.25")                                                                           \
    X(500000000, "0.5")                                                                            \
    X(1000000000, "1")                                                                             \
    X(2500000000, "2.5")                                                                           \
    X(5000000000, "5")                                                                             \
    X(10000000000, "10")                                                                           \
    X(30000000000, "30")                                                                           \
    X(60000000000, "60")                                                                           \
    X(300000000000, "300")                                                                         \
    X(1800000000000, "1800")                                                                       \
    X(7200000000000, "7200")                                                                       \
    X(36000000000000, "36000")                                                                     \
    X(86400000000000, "86400")

#define METRIC_EDGE_AS_ONE(ns, text) +1
enum { METRIC_EDGE_COUNT = 0 METRIC_EDGES(METRIC_EDGE_AS_ONE) };
#undef METRIC_EDGE_AS_ONE

/* Zeroed, it is empty. */
struct histogram {
    uint64_t counts[METRIC_EDGE_COUNT + 1]; /* of one bucket each; the last is beyond all edges */
    uint64_t sum_ns;
};

/* An edge belongs to the bucket below it. */
void histogram_add(struct histogram *h, uint64_t ns);

struct metric_label {
    struct span name, value;
};

/* The lines that come before a metric's samples. `type` is counter, gauge or histogram. */
void metric_add_head(struct buf *b, struct span name, const char *type, struct span help);
/* One sample. Values of labels are escaped. */
void metric_add(struct buf *b, struct span name, const struct metric_label *labels, size_t count,
                uint64_t value);
/* The same without labels, of nanoseconds written as seconds. */
void metric_add_seconds(struct buf *b, struct span name, uint64_t ns);
/* All samples of a histogram: the buckets, cumulative, the sum and the count. */
void metric_add_histogram(struct buf *b, struct span name, const struct histogram *h);

#endif
