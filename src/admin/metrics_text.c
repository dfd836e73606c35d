/* Samples of what struct metrics holds: one number, a histogram, or one number for each of a fixed
 * set of names. */
#include "admin/metrics_text.h"

#include "base/metric.h"
#include "io/tcp.h"
#include "protocol/method.h"
#include "rest/metrics.h"

_Static_assert((int)TCP_CLOSE_REASON_COUNT <= (int)METRIC_CLOSE_REASON_COUNT, "room for all");

static uint64_t value_of(const struct metrics_text *t)
{
    return *(const uint64_t *)t->member;
}

void metrics_text_count(const struct metrics_text *t)
{
    metric_add(t->out, t->row->name, NULL, 0, value_of(t));
}

void metrics_text_seconds(const struct metrics_text *t)
{
    metric_add_seconds(t->out, t->row->name, value_of(t));
}

void metrics_text_histogram(const struct metrics_text *t)
{
    metric_add_histogram(t->out, t->row->name, t->member);
}

void metrics_text_labelled(const struct metrics_text *t, struct span label, uint64_t value)
{
    const struct metric_label labels[] = {{t->row->labels, label}};

    metric_add(t->out, t->row->name, labels, ARRAY_LEN(labels), value);
}

void metrics_text_by_names(const struct metrics_text *t, const struct span *names, size_t count)
{
    const uint64_t *values = t->member;

    for (size_t i = 0; i < count; i++)
        metrics_text_labelled(t, names[i], values[i]);
}

/* Those that have occurred: most pairs of method and status never do. */
void metrics_text_requests(const struct metrics_text *t)
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

void metrics_text_by_error(const struct metrics_text *t)
{
    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++)
        if (is_first_of_number(code))
            metrics_text_labelled(t, err_info(code)->name,
                                  sum_of_number(t->member, err_info(code)->number));
}

void metrics_text_by_limit(const struct metrics_text *t)
{
    static const struct span names[] = {
#define METRIC_LIMIT_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_LIMITS(METRIC_LIMIT_AS_NAME)
#undef METRIC_LIMIT_AS_NAME
    };

    metrics_text_by_names(t, names, ARRAY_LEN(names));
}

void metrics_text_by_close_reason(const struct metrics_text *t)
{
    static const struct span names[] = {
#define TCP_REASON_AS_NAME(symbol, text) SPAN_INIT(text),
        TCP_CLOSE_REASONS(TCP_REASON_AS_NAME)
#undef TCP_REASON_AS_NAME
    };

    metrics_text_by_names(t, names, ARRAY_LEN(names));
}

void metrics_text_by_result(const struct metrics_text *t)
{
    static const struct span names[] = {
#define METRIC_RESULT_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_RESULTS(METRIC_RESULT_AS_NAME)
#undef METRIC_RESULT_AS_NAME
    };

    metrics_text_by_names(t, names, ARRAY_LEN(names));
}

void metrics_text_by_holder(const struct metrics_text *t)
{
    static const struct span names[] = {
#define METRIC_HOLDER_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_HOLDERS(METRIC_HOLDER_AS_NAME)
#undef METRIC_HOLDER_AS_NAME
    };

    metrics_text_by_names(t, names, ARRAY_LEN(names));
}

void metrics_text_build(const struct metrics_text *t)
{
    metrics_text_labelled(t, SPAN(SVCD_VERSION), value_of(t));
}

void metrics_text_rows(struct metrics_text *t, const struct metrics_row *rows, size_t count,
                       const void *counts)
{
    for (size_t i = 0; i < count; i++) {
        t->row = &rows[i];
        t->member = (const char *)counts + t->row->offset;
        metric_add_head(t->out, t->row->name, t->row->type, t->row->help);
        t->row->add(t);
    }
}
