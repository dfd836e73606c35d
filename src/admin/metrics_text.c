/* Samples of what struct metrics holds: one number, a histogram, or one number for each of a fixed
 * set of names. */
#include "admin/metrics_text.h"

#include "base/metric.h"
#include "io/tcp.h"
#include "protocol/method.h"
#include "query/shape.h"
#include "rest/metrics.h"

_Static_assert((int)TCP_CLOSE_REASON_COUNT <= (int)METRIC_CLOSE_REASON_COUNT, "room for all");

static uint64_t value_of(const struct metrics_text *t)
{
    return *(const uint64_t *)t->member;
}

static void add_count(const struct metrics_text *t)
{
    metric_add(t->out, t->row->name, NULL, 0, value_of(t));
}

static void add_seconds(const struct metrics_text *t)
{
    metric_add_seconds(t->out, t->row->name, value_of(t));
}

static void add_histogram(const struct metrics_text *t)
{
    metric_add_histogram(t->out, t->row->name, t->member);
}

void metrics_text_labelled(const struct metrics_text *t, struct span label, uint64_t value)
{
    const struct metric_label labels[] = {{t->row->labels, label}};

    metric_add(t->out, t->row->name, labels, ARRAY_LEN(labels), value);
}

void metrics_text_by_names(const struct metrics_text *t)
{
    const struct metrics_form *form = t->row->form;
    const uint64_t *values = t->member;

    for (size_t i = form->first; i < form->names->count; i++)
        metrics_text_labelled(t, form->names->values[i], values[i - form->first]);
}

/* Those that have occurred: most pairs of method and status never do. */
static void add_requests(const struct metrics_text *t)
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

/* Rows of one number follow one another in the table of errors: together they are one ErrorCode. */
static void add_by_error(const struct metrics_text *t)
{
    const uint64_t *counts = t->member;
    uint64_t sum = 0;

    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++) {
        sum += counts[code];
        if (code + 1 < ERR_CODE_COUNT && err_repeats(code + 1))
            continue;
        metrics_text_labelled(t, err_info(code)->name, sum);
        sum = 0;
    }
}

static void add_build(const struct metrics_text *t)
{
    metrics_text_labelled(t, SPAN(SVCD_VERSION), value_of(t));
}

#define AS_NAME(symbol, name) SPAN_INIT(name),
static const struct span limit_names[] = {METRIC_LIMITS(AS_NAME)};
static const struct span close_reason_names[] = {TCP_CLOSE_REASONS(AS_NAME)};
static const struct span result_names[] = {METRIC_RESULTS(AS_NAME)};
static const struct span holder_names[] = {METRIC_HOLDERS(AS_NAME)};
#undef AS_NAME

static const struct enumeration limits = {"limit", limit_names, ARRAY_LEN(limit_names)};
static const struct enumeration close_reasons = {"reason", close_reason_names,
                                                 ARRAY_LEN(close_reason_names)};
static const struct enumeration results = {"result", result_names, ARRAY_LEN(result_names)};
static const struct enumeration holders = {"kind", holder_names, ARRAY_LEN(holder_names)};

const struct metrics_form metrics_text_count = {.add = add_count};
const struct metrics_form metrics_text_seconds = {.add = add_seconds};
const struct metrics_form metrics_text_histogram = {.add = add_histogram};
const struct metrics_form metrics_text_requests = {.add = add_requests};
const struct metrics_form metrics_text_by_error = {.add = add_by_error};
const struct metrics_form metrics_text_by_limit = {metrics_text_by_names, &limits, 0};
const struct metrics_form metrics_text_by_close_reason = {metrics_text_by_names, &close_reasons, 0};
const struct metrics_form metrics_text_by_result = {metrics_text_by_names, &results, 0};
const struct metrics_form metrics_text_by_holder = {metrics_text_by_names, &holders, 0};
const struct metrics_form metrics_text_build = {.add = add_build};

void metrics_text_rows(struct metrics_text *t, const struct metrics_row *rows, size_t count,
                       const void *counts)
{
    for (size_t i = 0; i < count; i++) {
        t->row = &rows[i];
        t->member = (const char *)counts + t->row->offset;
        metric_add_head(t->out, t->row->name, t->row->type, t->row->help);
        t->row->form->add(t);
    }
}
