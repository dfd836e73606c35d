/* What deliveries take of a turn of the loop, and what a journal cannot say of them. */
#include "dispatch/dispatch.h"
#include "serving.h"

#include "store/store_kind.h"

enum { BATCHES = 8, MESSAGES_A_BATCH = 5000, WEBHOOKS = 8 };

static void post(const char *target, struct span body)
{
    const struct request request = {
        .method = SPAN("POST"),
        .target = span_str(target),
        .body = body,
    };

    dispatch_run(&service->rest, &request, &response);
    ck_assert_int_eq(response.status, 201);
}

static struct span many(const char *entity, int count)
{
    struct span all;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (int i = 0; i < count; i++)
        buf_printf(&b, "%s%s", i == 0 ? "[" : ",", entity);
    buf_add_char(&b, ']');
    all = arena_copy(&arena, buf_span(&b));
    buf_done(&b);
    return all;
}

/* Each looks through thousands of entities, which takes longer than a turn's starts may. */
START_TEST(slow_local_requests_have_turns_of_their_own)
{
    size_t most = 0;

    service->limits.scan_entities = INT32_MAX; /* the clock alone has them give way */
    service_start(service);
    for (int i = 0; i < BATCHES; i++)
        post("/Message", many("{\"Text\":\"Hello\"}", MESSAGES_A_BATCH));
    for (int i = 0; i < WEBHOOKS; i++)
        post("/Webhook", SPAN("{\"Destination\":\"/Message\",\"EventSelector\":\"/OrderPlaced\","
                              "\"CustomPayloadRequest\":{\"BreakOnNoContent\":true,"
                              "\"URI\":\"/Message/Text.Length>1000\"}}"));
    post("/Event", SPAN("{\"Resource\":\"Shop.OrderPlaced\",\"Payload\":{}}"));
    commit();
    while (deliveries_count(service->hooks.deliveries, DELIVERY_PENDING) > 0) {
        size_t before = deliveries_count(service->hooks.deliveries, DELIVERY_PENDING);
        size_t left;

        loop_run_once(&loop);
        left = deliveries_count(service->hooks.deliveries, DELIVERY_PENDING);
        most = MAX(most, before - left);
    }
    ck_assert_uint_eq(most, 1);
}
END_TEST

START_TEST(states_that_no_record_has)
{
    static const uint8_t states[] = {DELIVERY_IN_FLIGHT, DELIVERY_STATE_COUNT, UINT8_MAX};
    const struct record_delivery record = {.object_no = 2, .event_no = 1, .state = states[_i]};
    const struct store_origin origin = {.serial = 1};
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    record_add_delivery(&b, &record);
    ck_fails(store_apply(service->store, RECORD_DELIVERY, buf_span(&b), &origin),
             ERR_STORAGE_FAILURE, "no delivery is recorded in state");
    buf_done(&b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, states_that_no_record_has, 0, 3);
    tcase_add_test(tc, slow_local_requests_have_turns_of_their_own);
}
