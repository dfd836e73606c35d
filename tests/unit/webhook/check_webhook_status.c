#include "testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "query/shape.h"
#include "store/entity.h"
#include "webhook/webhook_status.h"
#include "json/json.h"

static void ck_written(const struct webhook_status *status, struct span json)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    webhook_status_add(status, &b);
    ck_span_is(buf_span(&b), json);
    buf_done(&b);
}

START_TEST(nothing_has_happened)
{
    struct webhook_status status = {.state = WEBHOOK_ACTIVE};

    ck_written(
        &status,
        SPAN("{\"State\":\"Active\",\"Reason\":null,\"HeldBackUntil\":null,\"FailingSince\":null,"
             "\"Pending\":0,\"InFlight\":0,\"Waiting\":0,\"OldestTime\":null,"
             "\"NextAttemptTime\":null,\"RecentAttempts\":0,\"SuccessRate\":null,"
             "\"LastSuccessTime\":null,\"LastFailureTime\":null,\"LastError\":null}"));
}
END_TEST

START_TEST(all_of_it)
{
    struct webhook_status status = {
        .state = WEBHOOK_HELD_BACK,
        .reason = SPAN("it \"asked\""),
        .held_until_unix_ns = INT64_C(1000000000),
        .failing_since_unix_ns = INT64_C(2000000000),
        .pending = 3,
        .in_flight = 4,
        .waiting = 5,
        .oldest_unix_ns = INT64_C(3000000000),
        .next_attempt_unix_ns = INT64_C(4000000000),
        .recent = 0xb, /* 1011: three of four */
        .recent_count = 4,
        .success_unix_ns = INT64_C(5000000000),
        .failure_unix_ns = INT64_C(6000000000),
        .error = SPAN("refused"),
    };

    ck_written(
        &status,
        SPAN("{\"State\":\"HeldBack\",\"Reason\":\"it \\\"asked\\\"\","
             "\"HeldBackUntil\":\"1970-01-01T00:00:01.0000000Z\","
             "\"FailingSince\":\"1970-01-01T00:00:02.0000000Z\",\"Pending\":3,\"InFlight\":4,"
             "\"Waiting\":5,\"OldestTime\":\"1970-01-01T00:00:03.0000000Z\","
             "\"NextAttemptTime\":\"1970-01-01T00:00:04.0000000Z\",\"RecentAttempts\":4,"
             "\"SuccessRate\":0.75,\"LastSuccessTime\":\"1970-01-01T00:00:05.0000000Z\","
             "\"LastFailureTime\":\"1970-01-01T00:00:06.0000000Z\",\"LastError\":\"refused\"}"));
}
END_TEST

START_TEST(its_members_are_those_of_the_table)
{
    struct webhook_status status = {.state = WEBHOOK_ACTIVE};
    struct json_value json;
    struct arena a;
    struct buf b;
    size_t i = 0;

    arena_init(&a);
    buf_init(&b, BUF_NO_CAP);
    webhook_status_add(&status, &b);
    json = entity_parse(buf_span(&b), &a);
    for (struct json_member m = json_first_member(json); json_exists(m.name);
         m = json_next_member(json, m), i++) {
        ck_assert_uint_lt(i, webhook_status_shape.count);
        ck_span_is(json_string(m.name, &a), webhook_status_shape.properties[i].name);
    }
    ck_assert_uint_eq(i, webhook_status_shape.count);
    buf_done(&b);
    arena_done(&a);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, nothing_has_happened);
    tcase_add_test(tc, all_of_it);
    tcase_add_test(tc, its_members_are_those_of_the_table);
}
