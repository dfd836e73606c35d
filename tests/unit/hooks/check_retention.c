/* What is kept for days, with a clock that is told how late it is. */
#include "serving.h"

#include "base/clock.h"
#include "dispatch/dispatch.h"
#include "hooks/retention.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

static void run(const char *method, const char *target, const char *body)
{
    const struct request request = {
        .method = span_str(method),
        .target = span_str(target),
        .body = span_str(body),
    };

    dispatch_run(&service->rest, &request, &response);
    ck_assert_msg(response.status < 300, "%s %s: %.*s", method, target,
                  SPAN_FMT(buf_span(&response.body)));
}

/* It is stored as an error. */
static void fail_once(void)
{
    const struct request request = {.method = SPAN_INIT("GET"),
                                    .target = SPAN_INIT("/Message/Id~5")};

    dispatch_run(&service->rest, &request, &response);
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

static struct collection *errors(void)
{
    return store_collection(service->store, SPAN("Svc.Admin.Error"));
}

/* It is waked, and has time for several slices. */
static void look_now(void)
{
    for (int i = 0; i < 10; i++) {
        retention_wake(service->hooks.retention);
        clock_advance(UINT64_C(1000000000));
        loop_run_once(&loop);
    }
}

static uint64_t sum_of(const struct collection *c)
{
    uint64_t sum = 0;

    for (const struct entity *e = collection_first(c); e != NULL; e = collection_next(c, e))
        sum += collection_entity_bytes(e);
    return sum;
}

/* Of so many the newest that fit stay. */
static void keep_many(void)
{
    service->retention.errors = 100000;
    service->retention.error_days = 30;
}

START_TEST(errors_are_bounded_in_bytes)
{
    enum { ERRORS = 100 };
    const struct entity *e;
    uint64_t all, last;

    keep_many();
    for (int i = 0; i < ERRORS; i++)
        fail_once();
    commit();
    look_now();
    all = collection_bytes(errors());
    ck_assert_uint_eq(all, sum_of(errors()));
    last = collection_first(errors())->object_no;
    service->retention.error_bytes = (int64_t)all / 2;
    fail_once();
    look_now();
    ck_assert_uint_le(collection_bytes(errors()), all / 2);
    ck_assert_uint_gt(collection_bytes(errors()), all / 2 - 2 * all / ERRORS);
    ck_assert_uint_eq(collection_bytes(errors()), sum_of(errors()));
    for (e = collection_first(errors()); e != NULL; e = collection_next(errors(), e))
        ck_assert_uint_gt(e->object_no, last);
}
END_TEST

START_TEST(a_log_is_bounded_in_bytes)
{
    enum { DELIVERIES = 50 };
    struct collection *log = store_collection(service->store, SPAN("Svc.Admin.WebhookLog"));
    uint64_t all;

    for (int i = 1; i < DELIVERIES; i++)
        run("POST", "/Event", "{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}");
    wait_for(DELIVERY_DELIVERED, DELIVERIES);
    all = collection_bytes(log);
    ck_assert_uint_eq(all, sum_of(log));
    service->retention.log_bytes = (int64_t)all / 5;
    run("POST", "/Event", "{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}");
    wait_for(DELIVERY_DELIVERED, DELIVERIES + 1);
    look_now();
    ck_assert_uint_le(collection_bytes(log), all / 5);
    ck_assert_uint_gt(collection_bytes(log), 0);
}
END_TEST

START_TEST(events_are_bounded_in_bytes)
{
    enum { EVENTS = 50 };
    uint64_t all;

    for (int i = 1; i < EVENTS; i++)
        run("POST", "/Event", "{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{\"a\":\"bcd\"}}");
    commit();
    all = events_bytes(service->hooks.events);
    ck_assert_uint_gt(all, EVENTS * sizeof(struct event));
    service->retention.event_bytes = (int64_t)all / 5;
    look_now();
    run("POST", "/Event", "{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}");
    look_now();
    ck_assert_uint_le(events_bytes(service->hooks.events), all / 5);
    ck_assert_uint_gt(events_count(service->hooks.events), 1);
    run("DELETE", "/Event/_/unsafe=true", "");
    ck_assert_uint_eq(events_bytes(service->hooks.events), 0);
}
END_TEST

/* What is near to MemoryBytes because of logs is not full. */
START_TEST(logs_give_way_before_requests_are_refused)
{
    enum { ERRORS = 8000, MESSAGES = 2000, LEAST = 1 << 20 };
    char body[200];
    uint64_t before;

    keep_many();
    for (int i = 0; i < ERRORS; i++)
        fail_once();
    commit();
    ck_assert_uint_gt(collection_bytes(errors()), 3 * LEAST);
    snprintf(body, sizeof(body), "{\"Text\":\"%0100d\"}", 1);
    service->limits.memory_bytes = (int64_t)mem_bytes();
    before = collection_bytes(errors());
    for (int i = 0; i < MESSAGES; i++) {
        run("POST", "/Message", body);
        if (i % 100 == 0)
            commit();
    }
    ck_assert_uint_lt(collection_bytes(errors()), before);
    ck_assert_uint_gt(collection_bytes(errors()), LEAST);
    ck_assert_uint_le(mem_bytes(), (uint64_t)service->limits.memory_bytes + 65536);
    service->limits.memory_bytes = 0;
}
END_TEST

START_TEST(the_last_errors_stay_when_it_is_full)
{
    enum { ERRORS = 4000, LEAST = 1 << 20 };

    keep_many();
    for (int i = 0; i < ERRORS; i++)
        fail_once();
    commit();
    service->limits.memory_bytes = 1;
    for (int i = 0; i < 5; i++)
        look_now();
    ck_assert_uint_le(collection_bytes(errors()), LEAST);
    ck_assert_uint_gt(collection_bytes(errors()), LEAST - 10000);
    service->limits.memory_bytes = 0;
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, start, stop);
    tcase_add_test(tc, deliveries_that_have_not_ended_stay);
    tcase_add_test(tc, those_that_have_ended_stay_as_long_as_their_log);
    tcase_add_test(tc, what_is_stored_puts_nothing_off);
    tcase_add_test(tc, errors_are_bounded_in_bytes);
    tcase_add_test(tc, a_log_is_bounded_in_bytes);
    tcase_add_test(tc, events_are_bounded_in_bytes);
    tcase_add_test(tc, logs_give_way_before_requests_are_refused);
    tcase_add_test(tc, the_last_errors_stay_when_it_is_full);
}
