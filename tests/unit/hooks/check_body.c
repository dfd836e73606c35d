/* How many bytes bodies of attempts take, who waits for room, and that none is lost. */
#include "asking.h"
#include "fetching.h"

#include "base/blob.h"
#include "base/clock.h"
#include "fetch/fetch.h"
#include "hooks/delivery.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"

#include <string.h>

#define A "http://a.test"
#define B "http://b.test"
#define CUSTOM "\"CustomPayloadRequest\":{\"Uri\":\"/Inbox\"}"

enum { LONG = 1000 };

static const char resources[] = "[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
                                "{\"Name\":\"Shop.Inbox\",\"Kind\":\"EntityResource\"}]";

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

static uint64_t held(void)
{
    return deliveries_body_bytes(hooks()->deliveries);
}

static void begin(void)
{
    clock_fake(INT64_C(1800000000000000000), UINT64_C(1000000000));
    asking_open(resources);
    service_start(asking.service);
    hooks()->body_bytes_most = 3 * LONG;
}

static void settle(void)
{
    asking_commit();
    for (int i = 0; i < 20; i++)
        asking_turn();
}

static void webhook(const char *destination, const char *members)
{
    ck_asks(201, "POST", "/Webhook",
            asking_printf("{\"EventSelector\":\"/Placed\",\"Destination\":\"%s\"%s%s}", destination,
                          *members != '\0' ? "," : "", members));
}

/* Of LONG bytes, as an array of one. */
static void raise_long(char letter)
{
    char text[LONG];

    memset(text, letter, sizeof(text));
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed",
            asking_printf("{\"T\":\"%.*s\"}", LONG - 10, text));
    settle();
}

static void answer_one(void)
{
    answer(NULL, 200);
    settle();
}

/* Until so many have ended in all. */
static void answer_all(size_t count)
{
    while (deliveries_count(hooks()->deliveries, DELIVERY_DELIVERED) < count)
        answer_one();
    ck_assert_uint_eq(deliveries_count(hooks()->deliveries, DELIVERY_DELIVERED), count);
    ck_assert_uint_eq(held(), 0);
}

START_TEST(what_finds_no_room_waits_its_turn)
{
    webhook(A "/", "");
    for (char letter = 'a'; letter < 'f'; letter++)
        raise_long(letter);
    ck_assert_uint_eq(under_way(NULL), 2);
    ck_assert_uint_eq(held(), 2 * LONG);
    ck_asks(200, "GET", "/Webhook/_/add=Status", NULL);
    ck_member_eq("0.Status.State", "\"Throttled\"");
    ck_assert(span_find(span_str(answered_text("0.Status.Reason")), SPAN("BodyBytesInFlight")) !=
              SIZE_MAX);
    answer_one();
    ck_assert_uint_eq(under_way(NULL), 2);
    answer_all(5);
    ck_assert_uint_eq(starts, 5);
}
END_TEST

START_TEST(a_payload_that_many_send_counts_once)
{
    webhook(A "/", "");
    webhook(B "/", "");
    webhook(B "/2", "");
    webhook(A "/2", "");
    raise_long('a');
    ck_assert_uint_eq(under_way(NULL), 4);
    ck_assert_uint_eq(held(), LONG);
    ck_assert_ptr_eq(oldest(A)->body, oldest(B)->body);
    answer_all(4);
}
END_TEST

/* Also when the payload is let go and read back meanwhile. */
START_TEST(it_counts_once_whatever_is_held_besides)
{
    asking.service->limits.payload_bytes = 0;
    webhook(A "/", "");
    raise_long('a');
    webhook(B "/", "");
    ck_assert_uint_eq(held(), LONG);
    raise_long('b');
    ck_assert_uint_eq(held(), 2 * LONG);
    answer_all(3);
}
END_TEST

START_TEST(equal_custom_payloads_count_once)
{
    ck_asks(201, "POST", "/Inbox", "{\"n\":1}");
    webhook(A "/", CUSTOM);
    webhook(B "/", CUSTOM);
    raise_long('a');
    ck_assert_uint_eq(under_way(NULL), 2);
    ck_assert_ptr_eq(oldest(A)->body, oldest(B)->body);
    ck_assert_uint_eq(held(), blob_span(oldest(A)->body).n);
    answer_all(2);
}
END_TEST

/* What is found by its first 64 KiB is compared whole. */
START_TEST(custom_payloads_that_begin_alike_are_told_apart)
{
    enum { BEGIN = 70000 };
    const char *const selects[] = {"T", "T,N", "T", "T,M", "T,M", "T,N"};
    char *text = mem_zero(BEGIN + 32);
    const struct blob *bodies[ARRAY_LEN(selects)];
    uint64_t bytes;

    hooks()->body_bytes_most = 10 * BEGIN;
    snprintf(text, BEGIN + 32, "{\"T\":\"%0*d\",\"N\":1,\"M\":2}", BEGIN, 0);
    ck_asks(201, "POST", "/Inbox", text);
    mem_free(text);
    for (size_t i = 0; i < ARRAY_LEN(selects); i++)
        webhook(
            asking_printf("http://%zu.test/", i),
            asking_printf("\"CustomPayloadRequest\":{\"Uri\":\"/Inbox/_/select=%s\"}", selects[i]));
    raise_long('a');
    ck_assert_uint_eq(under_way(NULL), ARRAY_LEN(selects));
    for (size_t i = 0; i < ARRAY_LEN(selects); i++)
        bodies[i] = oldest(asking_printf("http://%zu.test", i))->body;
    for (size_t i = 0; i < ARRAY_LEN(selects); i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_int_eq(bodies[i] == bodies[k], strcmp(selects[i], selects[k]) == 0);
    bytes = blob_span(bodies[0]).n + blob_span(bodies[1]).n + blob_span(bodies[3]).n;
    ck_assert_uint_eq(held(), bytes);
    answer("http://0.test", 200);
    answer("http://2.test", 200); /* the first of the three has gone */
    settle();
    ck_assert_uint_eq(held(), bytes - (BEGIN + 10));
    answer("http://3.test", 200);
    settle();
    ck_assert_ptr_eq(oldest("http://4.test")->body, bodies[3]);
    ck_assert_uint_eq(held(), bytes - (BEGIN + 10));
    answer_all(ARRAY_LEN(selects));
}
END_TEST

/* Its length is known only when it is made: nothing is sent, and it counts as not made. */
START_TEST(a_made_body_without_room_is_put_back)
{
    const char *const selects[] = {"Id,T", "T,Id", "T,ObjectNo,Id"};
    char text[LONG];

    memset(text, 'x', sizeof(text));
    ck_asks(201, "POST", "/Inbox", asking_printf("{\"T\":\"%.*s\"}", LONG - 1, text));
    for (size_t i = 0; i < ARRAY_LEN(selects); i++)
        webhook(
            i == 0 ? A "/" : B "/",
            asking_printf("\"CustomPayloadRequest\":{\"Uri\":\"/Inbox/_/select=%s\"}", selects[i]));
    raise_long('a');
    ck_assert_uint_eq(under_way(NULL), 2);
    ck_assert_uint_eq(starts, 2);
    ck_assert_uint_le(held(), hooks()->body_bytes_most);
    ck_assert_uint_eq(deliveries_count(hooks()->deliveries, DELIVERY_PENDING), 1);
    answer_all(3);
    ck_asks(200, "GET", "/Svc.Admin.Delivery/_/select=Attempts", NULL);
    ck_body_eq("[{\"Attempts\":1},{\"Attempts\":1},{\"Attempts\":1}]");
}
END_TEST

START_TEST(one_larger_than_the_bound_goes_alone)
{
    hooks()->body_bytes_most = LONG / 2;
    webhook(A "/", "");
    webhook(B "/", "");
    raise_long('a');
    raise_long('b');
    ck_assert_uint_eq(held(), LONG);
    answer_all(4);
}
END_TEST

START_TEST(who_goes_makes_room)
{
    webhook(A "/", "");
    webhook(B "/", "");
    hooks()->body_bytes_most = LONG;
    raise_long('a');
    raise_long('b');
    ck_assert_uint_eq(held(), LONG);
    ck_asks(200, "DELETE", "/Svc.Admin.Webhook/_/unsafe=true", NULL);
    settle();
    ck_assert_uint_eq(held(), 0);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, what_finds_no_room_waits_its_turn);
    tcase_add_test(tc, a_payload_that_many_send_counts_once);
    tcase_add_test(tc, it_counts_once_whatever_is_held_besides);
    tcase_add_test(tc, equal_custom_payloads_count_once);
    tcase_add_test(tc, custom_payloads_that_begin_alike_are_told_apart);
    tcase_add_test(tc, a_made_body_without_room_is_put_back);
    tcase_add_test(tc, one_larger_than_the_bound_goes_alone);
    tcase_add_test(tc, who_goes_makes_room);
}
