/* Which payloads are in memory: as much as may be, those that are needed last go first, and all can
 * be read back. */
#include "../../../src/hooks/payload_inner.h"

#include "asking.h"

#include "base/blob.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/payload.h"
#include "io/fault.h"
#include "store/change.h"
#include "store/store.h"
#include "store/turn.h"
#include "webhook/webhook.h"

enum { EVENTS = 6, BYTES = 100 };

static struct event *events[EVENTS];

static struct payloads *payloads(void)
{
    return events_payloads(asking.service->hooks.events);
}

static void begin(void)
{
    asking_open("[{\"Name\":\"Shop.Text\",\"Kind\":\"EventResource\",\"Payload\":{\"ContentType\":"
                "\"text/plain\"}}]");
}

static void allow(int64_t payloads_held)
{
    asking.service->limits.payload_bytes = payloads_held * BYTES;
}

/* Each is BYTES of its own letter. */
static void raise_all(void)
{
    for (int i = 0; i < EVENTS; i++) {
        char bytes[BYTES + 1] = "";
        uint64_t number;

        memset(bytes, 'a' + i, BYTES);
        ck_asks(201, "POST", "/Svc.Event/Resource=Text", bytes);
        ck_assert(span_to_u64(answered("0.ObjectNo"), &number));
        events[i] = events_find_no(asking.service->hooks.events, number);
    }
}

static void webhook(void)
{
    ck_asks(201, "POST", "/Webhook",
            "{\"Destination\":\"http://a.test/\",\"EventSelector\":\"/Text\"}");
}

/* `x` for each that is held, in the order of raising. */
static struct span held(void)
{
    char text[EVENTS];

    for (int i = 0; i < EVENTS; i++)
        text[i] = payload_is_loaded(events[i]) ? 'x' : '-';
    return arena_copy(&asking.arena, span_of(text, EVENTS));
}

static void read_back(int i)
{
    struct blob *blob;

    ck_ok(payload_get(payloads(), events[i], &blob));
    ck_assert_uint_eq(blob_span(blob).n, BYTES);
    ck_assert_int_eq(blob_span(blob).p[BYTES - 1], 'a' + i);
    blob_unref(blob);
}

START_TEST(nothing_goes_before_it_is_on_disk)
{
    allow(0);
    raise_all();
    ck_span_eq(held(), "xxxxxx");
    asking_commit();
    asking_turn();
    ck_span_eq(held(), "------");
}
END_TEST

START_TEST(of_those_that_nobody_needs_the_oldest_go)
{
    allow(2);
    raise_all();
    asking_commit();
    asking_turn();
    ck_span_eq(held(), "----xx");
}
END_TEST

START_TEST(of_those_that_are_needed_the_last_go)
{
    webhook();
    allow(2);
    raise_all();
    asking_commit();
    asking_turn();
    ck_span_eq(held(), "xx----");
}
END_TEST

START_TEST(those_that_nobody_needs_go_first)
{
    webhook();
    raise_all();
    asking_commit();
    ck_asks(200, "DELETE", "/Svc.Admin.Delivery/_/limit=2&unsafe=true", NULL);
    ck_assert_uint_eq(payload_slot_of(events[0])->pending, 0);
    ck_assert_uint_eq(payload_slot_of(events[2])->pending, 1);
    allow(4);
    raise_all(); /* which makes room */
    asking_commit();
    asking_turn();
    ck_assert_uint_eq(events_count(asking.service->hooks.events), 2 * EVENTS);
    ck_span_eq(held(), "------");
    events[0] = events_first(asking.service->hooks.events);
    for (int i = 1; i < EVENTS; i++)
        events[i] = events_next(asking.service->hooks.events, events[i - 1]);
    ck_span_eq(held(), "--xxxx");
}
END_TEST

START_TEST(what_is_read_back_takes_the_place_of_others)
{
    allow(2);
    raise_all();
    asking_commit();
    asking_turn();
    for (int i = 0; i < EVENTS; i++)
        read_back(i);
    ck_assert(payload_is_loaded(events[EVENTS - 1]));
    allow(0); /* even then one is held as long as it is asked for */
    for (int i = EVENTS - 1; i >= 0; i--)
        read_back(i);
}
END_TEST

START_TEST(after_a_restart_too)
{
    uint64_t numbers[EVENTS];

    webhook();
    raise_all();
    for (int i = 0; i < EVENTS; i++)
        numbers[i] = events[i]->object_no;
    asking_reload();
    for (int i = 0; i < EVENTS; i++) {
        events[i] = events_find_no(asking.service->hooks.events, numbers[i]);
        ck_assert_uint_eq(payload_slot_of(events[i])->pending, 1);
        read_back(i);
    }
}
END_TEST

START_TEST(ready_means_that_getting_it_does_not_wait)
{
    allow(0);
    raise_all();
    ck_assert(payload_ready(payloads(), events[0]));
    asking_commit();
    asking_turn();
    ck_assert(!payload_is_loaded(events[0]));
    for (unsigned i = 0; !payload_ready(payloads(), events[0]); i++) {
        testing_await(i);
        asking_turn();
    }
    ck_assert(payload_is_loaded(events[0]));
    read_back(0);
}
END_TEST

static void move(struct event *event)
{
    struct change change;
    uint64_t serial;

    change_init(&change, asking.service->turn, &asking.arena);
    change.is_move = true;
    ck_ok(store_move(asking.service->store, &event->stored, &change));
    ck_ok(turn_apply(asking.service->turn, &change, &serial));
    change_done(&change);
}

/* Its record moves while an attempt sends it, and the attempt ends before the move is on disk. */
START_TEST(what_is_moved_while_it_is_sent_is_held_until_that_is_on_disk)
{
    struct share *share;
    struct uuid id;
    struct blob *blob;

    webhook();
    ck_assert(uuid_parse(span_str(answered_text("0.Id")), &id));
    share = webhook_find(asking.service->hooks.webhooks, &id)->share;
    allow(0);
    raise_all();
    asking_commit();
    ck_ok(payload_send(payloads(), events[0], share, &blob));
    asking_turn();
    payloads_shrink(payloads());
    ck_assert_ptr_null(payload_slot_of(events[0])->blob);
    move(events[0]);
    blob_unref(blob);
    payload_sent(payloads(), events[0]);
    ck_assert(payload_is_loaded(events[0]));
    read_back(0);
    asking_commit();
    asking_turn();
    ck_span_eq(held(), "------");
    read_back(0);
}
END_TEST

#ifdef SVCD_FAULTS

START_TEST(one_that_cannot_be_read_is_an_error)
{
    struct blob *blob;

    allow(0);
    raise_all();
    asking_commit();
    asking_turn();
    ck_assert(fault_set("disk.read:1+"));
    ck_assert(payload_ready(payloads(), events[0])); /* there is an error to tell */
    ck_fails(payload_get(payloads(), events[0], &blob), ERR_STORAGE_FAILURE, "");
    ck_asks(200, "GET", "/Svc.Event/_/limit=1&select=Payload,ContentType", NULL);
    ck_body_eq("[{\"Payload\":null,\"ContentType\":\"text/plain\"}]");
    ck_assert(fault_set(NULL));
    read_back(0);
}
END_TEST

#endif

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, nothing_goes_before_it_is_on_disk);
    tcase_add_test(tc, of_those_that_nobody_needs_the_oldest_go);
    tcase_add_test(tc, of_those_that_are_needed_the_last_go);
    tcase_add_test(tc, those_that_nobody_needs_go_first);
    tcase_add_test(tc, what_is_read_back_takes_the_place_of_others);
    tcase_add_test(tc, after_a_restart_too);
    tcase_add_test(tc, ready_means_that_getting_it_does_not_wait);
    tcase_add_test(tc, what_is_moved_while_it_is_sent_is_held_until_that_is_on_disk);
#ifdef SVCD_FAULTS
    tcase_add_test(tc, one_that_cannot_be_read_is_an_error);
#endif
}
