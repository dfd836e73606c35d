/* The text of Svc.Metrics while it is written, in the format of Prometheus. A row of the tables in
 * rest/metrics.h is a head, and samples in the way of its form: a part of res_metrics.c, in files
 * by whose metrics they are. */
#ifndef ADMIN_METRICS_TEXT_H
#define ADMIN_METRICS_TEXT_H

#include "base/span.h"

struct buf;
struct enumeration;
struct hooks;
struct metrics;
struct rest;
struct worst_entry;

/* What is being written. */
struct metrics_text {
    const struct rest *rest;
    const struct hooks *hooks;
    struct buf *out;
    const struct metrics_row *row;
    const void *member; /* of struct metrics, or of struct cluster_metrics */
};

/* How samples are written: by a function, which may do so one for each of these names. */
struct metrics_form {
    void (*add)(const struct metrics_text *t);
    const struct enumeration *names;
    size_t first; /* of them */
    uint64_t (*of_worst)(struct worst_entry *entry);
};

struct metrics_row {
    struct span name;
    const char *type;
    struct span labels, help;
    const struct metrics_form *form;
    size_t offset; /* of the member */
};

/* Of the tables; `in` is the struct whose members they name. */
#define METRICS_TEXT_ROW(in, member, form, type, name, labels, help)                               \
    {SPAN_INIT(name),     type, SPAN_INIT(labels), SPAN_INIT(help), &metrics_text_##form,          \
     offsetof(in, member)},

/* Writes rows whose members are in `counts`. */
void metrics_text_rows(struct metrics_text *t, const struct metrics_row *rows, size_t count,
                       const void *counts);

/* One sample with the row's label; and one for each of the form's names. */
void metrics_text_labelled(const struct metrics_text *t, struct span label, uint64_t value);
void metrics_text_by_names(const struct metrics_text *t);

/* ---- forms, by their names in the tables ---- */

extern const struct metrics_form metrics_text_count, metrics_text_seconds, metrics_text_histogram,
    metrics_text_requests, metrics_text_by_error, metrics_text_by_limit,
    metrics_text_by_close_reason, metrics_text_by_result, metrics_text_by_holder,
    metrics_text_build;
/* res_metrics.c */
extern const struct metrics_form metrics_text_entities;
/* metrics_hooks.c */
extern const struct metrics_form metrics_text_by_outcome, metrics_text_by_state,
    metrics_text_worst_attempts, metrics_text_worst_failures, metrics_text_worst_pending;
/* metrics_cluster.c */
extern const struct metrics_form metrics_text_by_role, metrics_text_by_trouble;

/* ---- gauges, and counters that somebody else keeps, as they are now ---- */

/* Of events, deliveries and what is kept for a while. */
void metrics_hooks_collect(const struct hooks *hooks, struct metrics *m);
/* Writes those of a node of a cluster; of a server that is alone, nothing. */
void metrics_cluster_text(struct metrics_text *t);

#endif
