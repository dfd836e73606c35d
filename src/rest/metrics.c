/* Counting: an increment of a member of struct metrics where it happens, or one of these. */
#include "rest/metrics.h"

#include "base/clock.h"

void metrics_init(struct metrics *m)
{
    *m = (struct metrics){.started_ns = (uint64_t)clock_unix_ns(), .build = 1};
}

/* 0, which is METRIC_STATUS_OTHER: none of its own. */
static const uint8_t places[] = {
#define METRIC_STATUS_AS_PLACE(status) [status] = METRIC_STATUS_##status,
    METRIC_STATUSES(METRIC_STATUS_AS_PLACE)
#undef METRIC_STATUS_AS_PLACE
};

void metrics_note_turn(struct metrics *m, uint64_t ns)
{
    m->longest_turn_ns = MAX(m->longest_turn_ns, ns);
}

void metrics_count_answer(struct metrics *m, enum method method, int status, enum err_code error)
{
    size_t place = (size_t)status < ARRAY_LEN(places) ? places[status] : METRIC_STATUS_OTHER;

    m->requests[MIN((int)method, METRIC_METHOD_OTHER)][place]++;
    if (error != ERR_NO_ERROR)
        m->errors[error]++;
}
