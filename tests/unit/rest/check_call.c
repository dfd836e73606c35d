/* What a call is refused for: limits that are passed. */
#include "asking.h"

#include "base/clock.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "protocol/method.h"
#include "rest/call.h"
#include "rest/metrics.h"

#include <netinet/in.h>

static void begin(void)
{
    asking_open("[{\"Name\":\"Shop.Person\",\"Kind\":\"EntityResource\"}]");
}

static void ask_from(const struct in6_addr *client, const char *authorization)
{
    const struct header_field header = {SPAN("Authorization"), span_str(authorization)};
    const struct request request = {
        .method = SPAN("GET"),
        .target = SPAN("/Person"),
        .headers = &header,
        .header_count = authorization != NULL,
        .client = client,
    };

    ask_request(&request);
}

START_TEST(who_fails_to_sign_in_has_to_wait)
{
    const struct in6_addr one = {{{0x20, 1}}}, another = {{{0x20, 2}}};

    clock_fake(INT64_C(1700000000000000000), UINT64_C(1000000000));
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking.service->limits.failed_sign_ins_per_minute = 3;
    for (int i = 0; i < 5; i++) { /* that guesses none */
        ask_from(&one, NULL);
        ck_problem(ERR_NOT_SIGNED_IN, "");
    }
    for (int i = 0; i < 3; i++) {
        ask_from(&one, "apikey wrong");
        ck_problem(ERR_NOT_SIGNED_IN, "");
    }
    ask_from(&one, "apikey wrong");
    ck_problem(ERR_TOO_MANY_REQUESTS, "FailedSignInsPerMinute");
    ck_header_eq("Retry-After", "20");
    ck_assert_uint_eq(asking.service->metrics->limit_hits[METRIC_FAILED_SIGN_INS], 1);
    ask_from(&one, "apikey admin"); /* not even the right one, else it could be tried out */
    ck_problem(ERR_TOO_MANY_REQUESTS, "");
    ask_from(&another, "apikey admin");
    ck_status(204);
    for (int i = 0; i < 5; i++) { /* one that nobody is known to have sent */
        ask_from(NULL, "apikey wrong");
        ck_problem(ERR_NOT_SIGNED_IN, "");
    }
    clock_advance(UINT64_C(20000000000));
    ask_from(&one, "apikey admin");
    ck_status(204);
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 0);
}
END_TEST

static void ck_refused(struct err *e, enum err_code code, const char *part)
{
    ck_assert_int_eq(err_code(e), code);
    ck_assert(span_find(err_message(e), span_str(part)) != SIZE_MAX);
    err_free(e);
}

START_TEST(what_passes_a_limit_is_refused_and_counted)
{
    struct limits limits = {.memory_bytes = 70, .change_bytes = 80};
    struct metrics metrics = {.limit_hits = {0}};
    struct rest rest = {.limits = &limits, .metrics = &metrics};
    struct call call = {.rest = &rest, .response = &asking.answer, .method = METHOD_GET};

    ck_refused(call_refuse_for_memory(&call), ERR_OVERLOADED, "MemoryBytes (70)");
    ck_refused(call_refuse_change(&call), ERR_PAYLOAD_TOO_LARGE, "ChangeBytes (80 bytes)");
    asking.answer.most_body_bytes = asking.answer.body.max = 90;
    ck_refused(call_refuse_answer(&call), ERR_PAYLOAD_TOO_LARGE, "AnswerBytes (90 bytes)");
    call.method = METHOD_POST;
    ck_refused(call_refuse_answer(&call), ERR_PAYLOAD_TOO_LARGE, "Prefer: return=minimal");
    asking.answer.body.max = 89; /* there was no room for more */
    ck_refused(call_refuse_answer(&call), ERR_OVERLOADED, "MemoryBytes");
    ck_assert_uint_eq(metrics.limit_hits[METRIC_MEMORY_BYTES], 2);
    ck_assert_uint_eq(metrics.limit_hits[METRIC_CHANGE_BYTES], 1);
    ck_assert_uint_eq(metrics.limit_hits[METRIC_ANSWER_BYTES], 2);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, who_fails_to_sign_in_has_to_wait);
    tcase_add_test(tc, what_passes_a_limit_is_refused_and_counted);
}
