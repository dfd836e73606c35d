#include "testing.h"

#include "webhook/retry.h"
#include "json/json.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define MINUTE (60 * S)
#define HOUR (60 * MINUTE)

static const int64_t start = INT64_C(1800000000) * S;

static struct retry_answer status(int code)
{
    return (struct retry_answer){.answered = true, .status = code, .retry_after_s = -1};
}

static const struct retry_answer silence = {.retry_after_s = -1};

static struct retry_policy policy_of(const char *json)
{
    struct retry_policy policy;
    struct json_doc doc;
    struct arena a;

    arena_init(&a);
    ck_ok(json_parse(span_str(json), NULL, &a, &doc));
    ck_ok(retry_parse(json_root(&doc), &policy));
    arena_done(&a);
    return policy;
}

static struct retry_policy usual(void)
{
    return policy_of("[5,300,1800,7200,18000,36000,36000]");
}

/* ---- policies ---- */

START_TEST(a_schedule_is_seconds)
{
    static const uint32_t seconds[] = {5, 300, 1800, 7200, 18000, 36000, 36000};
    struct retry_policy policy = usual();

    ck_assert_uint_eq(policy.delay_count, ARRAY_LEN(seconds));
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++)
        ck_assert_uint_eq(policy.delays_ms[i], seconds[i] * 1000);
}
END_TEST

static const struct {
    const char *json;
    unsigned count;
    uint32_t first_ms, last_ms;
} schedules[] = {
    {"[]", 0, 0, 0},
    {"[0]", 1, 0, 0},
    {"[-0]", 1, 0, 0},
    {"[0.25,1.5]", 2, 250, 1500},
    {"[0.0004,0.0005]", 2, 0, 1},
    {"[1e1, 604800]", 2, 10000, 604800000},
    {"[604800.0]", 1, 604800000, 604800000},
    {"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", 32, 1000, 2000},
};

START_TEST(schedules_are_read)
{
    for (size_t i = 0; i < ARRAY_LEN(schedules); i++) {
        struct retry_policy policy = policy_of(schedules[i].json);

        ck_assert_msg(policy.delay_count == schedules[i].count, "%s", schedules[i].json);
        if (policy.delay_count == 0)
            continue;
        ck_assert_uint_eq(policy.delays_ms[0], schedules[i].first_ms);
        ck_assert_uint_eq(policy.delays_ms[policy.delay_count - 1], schedules[i].last_ms);
    }
}
END_TEST

static const struct {
    const char *json, *text;
} bad[] = {
    {"5", "must be an array of at most 32 numbers"},
    {"{\"a\":1}", "must be an array"},
    {"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "at most 32"},
    {"[5,-1]", "element 1 is -1, but must be a number of seconds from 0 to 604800"},
    {"[604800.0000000000001]", "element 0 is 604800.0000000000001"},
    {"[1e999]", "element 0 is 1e999"},
    {"[1,\"2\"]", "element 1 is \"2\""},
    {"[null]", "element 0 is null"},
    {"[[1]]", "element 0 is [1]"},
    {"[true]", "RetrySchedule"},
};

START_TEST(bad_schedules_are_refused)
{
    struct retry_policy policy;
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct json_doc doc;

        ck_ok(json_parse(span_str(bad[i].json), NULL, &a, &doc));
        ck_fails(retry_parse(json_root(&doc), &policy), ERR_INVALID_ENTITY, bad[i].text);
    }
    arena_done(&a);
}
END_TEST

/* ---- verdicts ---- */

static const struct {
    int status; /* 0: none came */
    enum retry_verdict verdict;
} verdicts[] = {
    {200, RETRY_DELIVERED}, {204, RETRY_DELIVERED}, {299, RETRY_DELIVERED}, {199, RETRY_LATER},
    {300, RETRY_LATER},     {301, RETRY_LATER},     {308, RETRY_LATER},     {400, RETRY_LATER},
    {404, RETRY_LATER},     {409, RETRY_LATER},     {410, RETRY_GONE},      {429, RETRY_LATER},
    {500, RETRY_LATER},     {503, RETRY_LATER},     {599, RETRY_LATER},     {0, RETRY_LATER},
};

START_TEST(the_status_decides)
{
    struct retry_policy policy = usual();

    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
        struct retry_answer answer = verdicts[i].status > 0 ? status(verdicts[i].status) : silence;
        struct retry_decision d = retry_decide(&policy, 1, &answer, start, 0);

        ck_assert_msg(d.verdict == verdicts[i].verdict, "%d", verdicts[i].status);
        ck_assert_int_eq(d.hold_all_until_ns, 0);
        ck_assert_int_eq(d.at_unix_ns, d.verdict == RETRY_LATER ? start + 5 * S : 0);
    }
}
END_TEST

/* A status that is left over in an answer that never came means nothing. */
START_TEST(silence_has_no_status)
{
    struct retry_policy policy = usual();
    struct retry_answer answer = {.answered = false, .status = 200, .retry_after_s = 60};
    struct retry_decision d = retry_decide(&policy, 1, &answer, start, 0);

    ck_assert_int_eq(d.verdict, RETRY_LATER);
    ck_assert_int_eq(d.hold_all_until_ns, 0);
    answer.status = 410;
    ck_assert_int_eq(retry_decide(&policy, 1, &answer, start, 0).verdict, RETRY_LATER);
}
END_TEST

/* ---- whole schedules, in virtual time ---- */

struct play {
    const char *schedule; /* NULL: the default */
    struct {
        int status;
        int64_t retry_after_s;
    } answers[12]; /* the last one repeats */
    size_t answer_count;
    double chance;
    int64_t at[12]; /* of each attempt, from the first */
    size_t attempt_count;
    enum retry_verdict end;
};

static const struct play plays[] = {
    /* Nobody there: the whole default schedule, 29 hours and 35 minutes. */
    {NULL,
     {{0, -1}},
     1,
     0,
     {0, 5 * S, 5 * S + 5 * MINUTE, 5 * S + 35 * MINUTE, 5 * S + 2 * HOUR + 35 * MINUTE,
      5 * S + 7 * HOUR + 35 * MINUTE, 5 * S + 17 * HOUR + 35 * MINUTE,
      5 * S + 27 * HOUR + 35 * MINUTE},
     8,
     RETRY_DEAD},
    /* Recovers at the fourth attempt. */
    {NULL,
     {{500, -1}, {502, -1}, {0, -1}, {204, -1}},
     4,
     0,
     {0, 5 * S, 5 * S + 5 * MINUTE, 5 * S + 35 * MINUTE},
     4,
     RETRY_DELIVERED},
    /* Half of the jitter: a tenth more. */
    {"[10,100,1000]", {{500, -1}}, 1, 0.5, {0, 11 * S, 121 * S, 1221 * S}, 4, RETRY_DEAD},
    /* One attempt and no more. */
    {"[]", {{500, -1}}, 1, 0.9, {0}, 1, RETRY_DEAD},
    /* At once, twice. */
    {"[0,0]", {{500, -1}}, 1, 0.9, {0, 0, 0}, 3, RETRY_DEAD},
    /* Asked for longer, then for shorter, than the schedule says. */
    {"[10,10,10]",
     {{429, 60}, {503, 3}, {503, 0}, {200, -1}},
     4,
     0,
     {0, 60 * S, 70 * S, 80 * S},
     4,
     RETRY_DELIVERED},
    /* Retry-After is not jittered down or up; at most a day. */
    {"[1,1]", {{503, 86400}, {429, 9000000}}, 2, 0.99, {0, 24 * HOUR, 48 * HOUR}, 3, RETRY_DEAD},
    /* Only 429 and 503 may ask. */
    {"[10]", {{500, 60}, {302, 60}}, 2, 0, {0, 10 * S}, 2, RETRY_DEAD},
    /* Gone in the middle. */
    {"[1,1,1]", {{500, -1}, {410, 60}}, 2, 0, {0, 1 * S}, 2, RETRY_GONE},
    {"[0.001]", {{500, -1}}, 1, 0, {0, 1 * MS}, 2, RETRY_DEAD},
};

static void run(const struct play *play)
{
    struct retry_policy policy = play->schedule != NULL ? policy_of(play->schedule) : usual();
    struct retry_decision d = {.verdict = RETRY_LATER, .at_unix_ns = start};
    unsigned attempts = 0;

    while (d.verdict == RETRY_LATER) {
        size_t i = MIN(attempts, play->answer_count - 1);
        struct retry_answer answer = {play->answers[i].status > 0, play->answers[i].status,
                                      play->answers[i].retry_after_s};

        ck_assert_uint_lt(attempts, play->attempt_count);
        ck_assert_int_eq(d.at_unix_ns - start, play->at[attempts]);
        d = retry_decide(&policy, ++attempts, &answer, d.at_unix_ns, play->chance);
        d.at_unix_ns = MAX(d.at_unix_ns, d.hold_all_until_ns);
    }
    ck_assert_uint_eq(attempts, play->attempt_count);
    ck_assert_int_eq(d.verdict, play->end);
}

START_TEST(schedules_play_out)
{
    for (size_t i = 0; i < ARRAY_LEN(plays); i++)
        run(&plays[i]);
}
END_TEST

static const struct {
    int status;
    int64_t retry_after_s;
    int64_t hold_s; /* 0: none */
} holds[] = {
    {429, 1, 1},
    {503, 120, 120},
    {429, 86400, 86400},
    {429, 86401, 86400},
    {503, INT64_MAX, 86400},
    {429, 0, 0},
    {429, -1, 0},
    {503, INT64_MIN, 0},
    {500, 60, 0},
    {200, 60, 0},
    {410, 60, 0},
    {301, 60, 0},
};

START_TEST(some_answers_hold_everything)
{
    struct retry_policy policy = usual();

    for (size_t i = 0; i < ARRAY_LEN(holds); i++) {
        struct retry_answer answer = {true, holds[i].status, holds[i].retry_after_s};
        struct retry_decision d = retry_decide(&policy, 1, &answer, start, 0.5);

        ck_assert_int_eq(d.hold_all_until_ns,
                         holds[i].hold_s > 0 ? start + holds[i].hold_s * S : 0);
        if (d.hold_all_until_ns >
            0) /* which is the receiver's: another may have it by the schedule */
            ck_assert_int_eq(d.at_unix_ns, start + 5500 * MS);
    }
}
END_TEST

/* The last attempt of one delivery may still say something about all the others. */
START_TEST(a_dead_delivery_still_holds)
{
    struct retry_policy policy = policy_of("[]");
    struct retry_answer answer = {true, 429, 30};
    struct retry_decision d = retry_decide(&policy, 1, &answer, start, 0);

    ck_assert_int_eq(d.verdict, RETRY_DEAD);
    ck_assert_int_eq(d.hold_all_until_ns, start + 30 * S);
}
END_TEST

START_TEST(chance_lengthens_by_up_to_a_fifth)
{
    struct retry_policy policy = usual();

    for (unsigned attempts = 1; attempts <= policy.delay_count; attempts++) {
        int64_t delay = policy.delays_ms[attempts - 1] * MS;
        int64_t before = 0;

        for (double chance = 0; chance < 1; chance += 0.0625) {
            struct retry_decision d = retry_decide(&policy, attempts, &silence, start, chance);
            int64_t waited = d.at_unix_ns - start;

            ck_assert_int_ge(waited, delay);
            ck_assert_int_lt(waited, delay + delay / 5);
            ck_assert_int_gt(waited, before);
            before = waited;
        }
    }
}
END_TEST

START_TEST(the_longest_schedule_fits)
{
    struct retry_policy policy = policy_of("[604800]");
    struct retry_decision d = retry_decide(&policy, 1, &silence, start, 0.9999);

    ck_assert_int_gt(d.at_unix_ns, start + 8 * 24 * HOUR);
    ck_assert_int_eq(retry_decide(&policy, 2, &silence, start, 0).verdict, RETRY_DEAD);
    ck_assert_int_eq(retry_decide(&policy, UINT32_MAX, &silence, start, 0).verdict, RETRY_DEAD);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, a_schedule_is_seconds);
    tcase_add_test(tc, schedules_are_read);
    tcase_add_test(tc, bad_schedules_are_refused);
    tcase_add_test(tc, the_status_decides);
    tcase_add_test(tc, silence_has_no_status);
    tcase_add_test(tc, schedules_play_out);
    tcase_add_test(tc, some_answers_hold_everything);
    tcase_add_test(tc, a_dead_delivery_still_holds);
    tcase_add_test(tc, chance_lengthens_by_up_to_a_fifth);
    tcase_add_test(tc, the_longest_schedule_fits);
}
