/* The service as a whole: that whatever fails while it is made, opened or run leaves nothing
 * behind. */
#include "testing.h"

#include "access/access.h"
#include "admin/service.h"
#include "admin/service_options.h"
#include "base/clock.h"
#include "dispatch/api_key.h"
#include "dispatch/dispatch.h"
#include "hooks/delivery.h"
#include "io/fault.h"
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "rest/request.h"
#include "rest/response.h"
#include "store/store.h"
#include "store/turn.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[TESTING_PATH_BYTES];
static struct loop loop;

static void begin(void)
{
    testing_make_directory(directory);
    ck_ok(loop_init(&loop));
}

static void end(void)
{
    loop_run(&loop);
    loop_done(&loop);
    testing_remove_directory(directory);
}

static struct err *try_make(const char *proxy, struct service **out_service)
{
    struct service_options options = {
        .base_path = "/",
        .delivery_in_flight = 32,
        .retention = {.error_days = 30,
                      .errors = 100,
                      .log_days = 14,
                      .log_entries = 100,
                      .error_bytes = 1 << 24,
                      .log_bytes = 1 << 24,
                      .event_bytes = 1 << 24,
                      .event_days = 1,
                      .events = 100,
                      .idempotency_seconds = 60,
                      .idempotency_keys = 100},
        .fetch = {.connect_timeout_ms = 1000, .max_connections = 1, .proxy = proxy},
    };
    struct err *e;

    limits_init(&options.limits);
    egress_init(&options.egress);
    access_init(&options.access);
    options.access.required = true;
    e = service_new(&loop, &options, out_service);
    ck_assert(!options.access.required); /* it was moved */
    access_done(&options.access);
    egress_done(&options.egress);
    return e;
}

static struct service *make(void)
{
    struct service *service;

    ck_ok(try_make(NULL, &service));
    return service;
}

static struct err *try_open(struct service *service, const char *where)
{
    const struct journal_options journal = {.directory = where, .segment_bytes = 1u << 16};

    TRY(service_replay(service, &(struct turn_options){.journal = &journal}));
    return api_keys_list_configured(service->rest.api_keys);
}

/* One evaluation; its status. */
static int ask(struct service *service, const char *method, const char *target, const char *body)
{
    const struct request request = {
        .method = span_str(method), .target = span_str(target), .body = span_str(body)};
    struct response response;
    int status;

    service->rest.access->required = false;
    response_init(&response, 1u << 20);
    dispatch_run(&service->rest, &request, &response);
    status = response.status;
    response_done(&response);
    return status;
}

/* ---- making ---- */

START_TEST(one_that_is_not_opened_can_be_freed)
{
    struct service *service = make();

    ck_assert(service->rest.access->required);
    ck_assert(!service->is_draining);
    ck_assert_ptr_null(service->failed);
    service_free(service);
    service_free(NULL);
}
END_TEST

START_TEST(one_that_cannot_be_made_leaves_nothing)
{
    struct service *service;

    ck_fails(try_make("nonsense://", &service), ERR_UNKNOWN, "");
}
END_TEST

/* ---- opening ---- */

START_TEST(a_journal_belongs_to_one)
{
    struct service *service = make(), *other = make();

    ck_ok(try_open(service, directory));
    ck_fails(try_open(other, directory), ERR_STORAGE_FAILURE, directory);
    service_free(other);
    ck_assert_int_eq(ask(service, "GET", "/Svc.Health", NULL), 200);
    service_free(service);
}
END_TEST

START_TEST(a_place_that_is_no_directory_is_refused)
{
    char path[64];
    struct service *service = make();
    int fd;

    snprintf(path, sizeof(path), "%s/file", directory);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_fails(try_open(service, path), ERR_STORAGE_FAILURE, "");
    service_free(service);
}
END_TEST

/* ---- running ---- */

static void raise_event(struct service *service)
{
    ck_assert_int_eq(
        ask(service, "POST", "/Svc.Event", "{\"Resource\":\"A.E\",\"Payload\":{\"a\":1}}"), 201);
}

static size_t count(struct service *service, enum delivery_state state)
{
    return deliveries_count(service->hooks.deliveries, state);
}

static void run(struct service *service)
{
    uint64_t last = journal_next_serial(turn_journal(service->turn)) - 1;

    while (!turn_is_committed(service->turn, last))
        loop_run_once(&loop);
    for (int i = 0; i < 20; i++) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
}

/* `webhook` is what its Destination and all that follows are. */
static struct service *make_with(const char *webhook)
{
    struct service *service = make();
    char text[256];

    ck_ok(try_open(service, directory));
    ck_assert_int_eq(ask(service, "POST", "/Svc.Admin.Resource",
                         "[{\"Name\":\"A.E\",\"Kind\":\"EventResource\"},"
                         "{\"Name\":\"A.B\",\"Kind\":\"EntityResource\"}]"),
                     201);
    snprintf(text, sizeof(text), "{\"EventSelector\":\"/A.E\",\"Destination\":%s}", webhook);
    ck_assert_int_eq(ask(service, "POST", "/Webhook", text), 201);
    return service;
}

START_TEST(what_was_stored_is_there_again)
{
    struct service *service = make();
    struct store_digest before, after;

    ck_ok(try_open(service, directory));
    ck_assert_int_eq(ask(service, "POST", "/Svc.Admin.Resource",
                         "{\"Name\":\"A.B\",\"Kind\":\"EntityResource\"}"),
                     201);
    ck_assert_int_eq(ask(service, "POST", "/A.B", "[{\"a\":1},{\"a\":2}]"), 201);
    before = store_digest(service->store);
    run(service);
    service_free(service);
    service = make();
    ck_ok(try_open(service, directory));
    after = store_digest(service->store);
    ck_assert_uint_eq(after.sum, before.sum);
    ck_assert_uint_eq(after.objects, before.objects);
    ck_assert_int_eq(ask(service, "GET", "/A.B/a=2", NULL), 200);
    service_free(service);
}
END_TEST

START_TEST(nothing_is_delivered_before_the_start_nor_after_the_drain)
{
    struct service *service = make_with("\"/A.B\"");

    raise_event(service);
    run(service);
    ck_assert_uint_eq(count(service, DELIVERY_PENDING), 1);
    service_start(service);
    while (count(service, DELIVERY_DELIVERED) == 0)
        loop_run_once(&loop);
    service_drain(service);
    raise_event(service); /* requests go on */
    run(service);
    ck_assert_uint_eq(count(service, DELIVERY_DELIVERED), 1);
    ck_assert_uint_eq(count(service, DELIVERY_PENDING), 1);
    ck_assert_int_eq(ask(service, "GET", "/Svc.Health", NULL), 503);
    ck_assert_uint_eq(deliveries_in_flight(service->hooks.deliveries), 0);
    service_free(service);
}
END_TEST

#ifdef SVCD_FAULTS

static unsigned failures;

static void on_failed(void *context)
{
    ck_assert_str_eq(context, "owner");
    failures++;
}

START_TEST(a_failed_journal_is_told_once)
{
    static char owner[] = "owner";
    struct service *service;
    uint64_t serial;

    clock_fake(INT64_C(1800000000) * 1000000000, UINT64_C(1000000000));
    service = make_with("\"/A.B/a=0\",\"Method\":\"PUT\",\"Headers\":{\"If-Match\":\"*\"},"
                        "\"Delivery\":{\"RetrySchedule\":[1]}");

    service->on_failed = on_failed;
    service->on_failed_context = owner;
    service_start(service);
    raise_event(service);
    run(service);
    ck_assert_uint_eq(count(service, DELIVERY_WAITING), 1); /* 412: there is none */
    failures = 0;
    ck_assert(fault_set("disk.write:1+"));
    serial = journal_next_serial(turn_journal(service->turn));
    raise_event(service);
    for (int i = 0; i < 1000 && failures == 0; i++)
        loop_run_once(&loop);
    ck_assert_uint_eq(failures, 1);
    ck_assert_ptr_nonnull(service->failed);
    ck_assert(!turn_is_committed(service->turn, serial));
    ck_assert_int_eq(ask(service, "GET", "/Svc.Health", NULL), 503);
    /* What comes of a delivery could not be stored: none starts any more. */
    clock_advance(UINT64_C(10000000000));
    for (int i = 0; i < 20; i++) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(failures, 1);
    ck_assert_uint_eq(count(service, DELIVERY_IN_FLIGHT), 0);
    ck_assert_uint_eq(count(service, DELIVERY_WAITING), 1);
    ck_assert(fault_set(NULL));
    service_free(service);
}
END_TEST

#endif

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, one_that_is_not_opened_can_be_freed);
    tcase_add_test(tc, one_that_cannot_be_made_leaves_nothing);
    tcase_add_test(tc, a_journal_belongs_to_one);
    tcase_add_test(tc, a_place_that_is_no_directory_is_refused);
    tcase_add_test(tc, what_was_stored_is_there_again);
    tcase_add_test(tc, nothing_is_delivered_before_the_start_nor_after_the_drain);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, a_failed_journal_is_told_once);
#endif
}
