/* What is kept for days, with a clock that is told how late it is. */
#include "serving.h"

#include "base/clock.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

static void run(const char *method, const char *target, const char *body)
{
    const struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .body = span_str(body),
    };

    request_run(&service->rest, &request, &response);
    ck_assert_msg(response.status < 300, "%s %s: %.*s", method, target,
                  SPAN_FMT(buf_span(&response.body)));
}

/* It is stored as an error. */
static void fail_once(void)
{
    const struct request request = {.method = SPAN_INIT("GET"),
                                    .target = SPAN_INIT("/Message/Id~5")};

    request_run(&service->rest, &request, &response);
    ck_assert_int_ge(response.status, 400);
}

static void wait_for(enum delivery_state state, size_t count)
{
    while (deliveries_count(service->hooks.deliveries, state) != count)
        loop_run_once(&loop);
}

/* So many times as retention looks for sure. */
static void let_retention_look(void)
{
    for (int i = 0; i < 10; i++) {
        clock_advance(UINT64_C(1000000000));
        loop_run_once(&loop);
    }
}

static void pass_days(int days)
{
    clock_advance((uint64_t)(days * DAY_NS));
    let_retention_look();
}

static void start(void)
{
    clock_fake(1000 * DAY_NS, 1000000000);
    set_up();
    service_start(service);
    run("POST", "/Webhook", "{\"Destination\":\"/Message\",\"EventSelector\":\"/OrderPlaced\"}");
    run("POST", "/Event", "{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}");
}

static void stop(void)
{
    tear_down();
    clock_real();
}

START_TEST(deliveries_that_have_not_ended_stay)
{
    run("PATCH", "/Webhook", "{\"IsPaused\":true}");
    commit();
    pass_days(100);
    ck_assert_uint_eq(deliveries_count(service->hooks.deliveries, DELIVERY_PENDING), 1);
    ck_assert_uint_eq(events_count(service->hooks.events), 0);
}
END_TEST

START_TEST(those_that_have_ended_stay_as_long_as_their_log)
{
    const struct collection *log = store_collection(service->store, SPAN("Svc.Admin.WebhookLog"));

    run("PATCH", "/Webhook", "{\"IsPaused\":true}");
    commit();
    pass_days(100);
    run("PATCH", "/Webhook", "{\"IsPaused\":false}");
    wait_for(DELIVERY_DELIVERED, 1);
    pass_days(13);
    ck_assert_uint_eq(deliveries_count(service->hooks.deliveries, DELIVERY_DELIVERED), 1);
    ck_assert_uint_eq(collection_count(log), 1);
    pass_days(1);
    ck_assert_uint_eq(deliveries_count(service->hooks.deliveries, DELIVERY_DELIVERED), 0);
    ck_assert_uint_eq(collection_count(log), 0);
}
END_TEST

/* While more is stored all the time: what has to go goes a slice a millisecond. */
START_TEST(what_is_stored_puts_nothing_off)
{
    enum { ERRORS = 2000 };
    const struct collection *errors = store_collection(service->store, SPAN("Svc.Admin.Error"));
    size_t before;

    for (int i = 0; i < ERRORS; i++)
        fail_once();
    commit();
    ck_assert_uint_eq(collection_count(errors), ERRORS);
    service->retention.errors = 10;
    clock_advance(UINT64_C(20000000));
    loop_run_once(&loop);
    before = collection_count(errors);
    ck_assert_uint_lt(before, ERRORS);
    for (int i = 0; i < 10; i++) {
        fail_once();
        clock_advance(UINT64_C(1000000));
        loop_run_once(&loop);
    }
    ck_assert_uint_lt(collection_count(errors), 100);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, start, stop);
    tcase_add_test(tc, deliveries_that_have_not_ended_stay);
    tcase_add_test(tc, those_that_have_ended_stay_as_long_as_their_log);
    tcase_add_test(tc, what_is_stored_puts_nothing_off);
}
