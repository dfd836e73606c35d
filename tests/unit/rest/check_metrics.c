#include "testing.h"

#include "base/limits.h"
#include "rest/metrics.h"

/* ---- the tables ---- */

static const struct {
    struct span name, type, labels, help;
} rows[] = {
#define METRIC_AS_ROW(member, form, type, name, labels, help)                                      \
    {SPAN_INIT(name), SPAN_INIT(type), SPAN_INIT(labels), SPAN_INIT(help)},
    METRICS(METRIC_AS_ROW) CLUSTER_METRICS(METRIC_AS_ROW)
#undef METRIC_AS_ROW
};

START_TEST(names_follow_the_conventions)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct span name = rows[i].name, type = rows[i].type;
        bool is_counter = span_eq(type, SPAN("counter"));
        bool is_histogram = span_eq(type, SPAN("histogram"));

        ck_assert_msg(is_counter || is_histogram || span_eq(type, SPAN("gauge")), "%s", name.p);
        ck_assert_msg(span_starts(name, SPAN("svc_")), "%s", name.p);
        ck_assert_msg(span_ends(name, SPAN("_total")) == is_counter, "%s", name.p);
        ck_assert_msg(!is_histogram || span_ends(name, SPAN("_seconds")), "%s", name.p);
        ck_assert_msg(rows[i].help.n > 0, "%s", name.p);
    }
}
END_TEST

START_TEST(names_are_unique)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(!span_eq(rows[i].name, rows[j].name), "%s", rows[i].name.p);
}
END_TEST

START_TEST(limits_are_spelled_as_configured)
{
    static const struct span names[] = {
#define METRIC_LIMIT_AS_NAME(symbol, name) SPAN_INIT(name),
        METRIC_LIMITS(METRIC_LIMIT_AS_NAME)
#undef METRIC_LIMIT_AS_NAME
    };
    static const struct span limits[] = {
#define LIMIT_AS_NAME(member, name, value, least, most, unit, meaning) SPAN_INIT(name),
        LIMITS(LIMIT_AS_NAME)
#undef LIMIT_AS_NAME
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t at = 0;

        while (at < ARRAY_LEN(limits) && !span_eq(limits[at], names[i]))
            at++;
        ck_assert_msg(at < ARRAY_LEN(limits), "%s", names[i].p);
    }
}
END_TEST

/* ---- counting ---- */

static const struct {
    enum method method;
    int status;
    unsigned row;
    enum metric_status column;
} answers[] = {
    {METHOD_GET, 200, METHOD_GET, METRIC_STATUS_200},
    {METHOD_HEAD, 304, METHOD_HEAD, METRIC_STATUS_304},
    {METHOD_OPTIONS, 200, METRIC_METHOD_OTHER, METRIC_STATUS_200},
    {METHOD_OTHER, 501, METRIC_METHOD_OTHER, METRIC_STATUS_501},
    {METHOD_POST, 508, METHOD_POST, METRIC_STATUS_508},
    {METHOD_POST, 299, METHOD_POST, METRIC_STATUS_OTHER},
    {METHOD_POST, 599, METHOD_POST, METRIC_STATUS_OTHER},
    {METHOD_POST, 0, METHOD_POST, METRIC_STATUS_OTHER},
    {METHOD_POST, -1, METHOD_POST, METRIC_STATUS_OTHER},
};

START_TEST(answers_are_counted)
{
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct metrics m;
        uint64_t sum = 0;

        metrics_init(&m);
        metrics_count_answer(&m, answers[i].method, answers[i].status, ERR_NO_ERROR);
        ck_assert_msg(m.requests[answers[i].row][answers[i].column] == 1, "%zu", i);
        for (unsigned method = 0; method < METRIC_METHOD_COUNT; method++)
            for (unsigned status = 0; status < METRIC_STATUS_COUNT; status++)
                sum += m.requests[method][status];
        ck_assert_uint_eq(sum, 1);
    }
}
END_TEST

START_TEST(every_error_has_a_column)
{
    struct metrics m;

    metrics_init(&m);
    for (enum err_code code = 0; code < ERR_CODE_COUNT; code++)
        metrics_count_answer(&m, METHOD_GET, err_info(code)->status, code);
    ck_assert_uint_eq(m.requests[METHOD_GET][METRIC_STATUS_OTHER], 0);
    ck_assert_uint_eq(m.errors[ERR_NO_ERROR], 0);
    for (enum err_code code = ERR_NO_ERROR + 1; code < ERR_CODE_COUNT; code++)
        ck_assert_uint_eq(m.errors[code], 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, names_follow_the_conventions);
    tcase_add_test(tc, names_are_unique);
    tcase_add_test(tc, limits_are_spelled_as_configured);
    tcase_add_test(tc, answers_are_counted);
    tcase_add_test(tc, every_error_has_a_column);
}
