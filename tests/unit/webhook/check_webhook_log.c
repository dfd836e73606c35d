/* Entries of the log: their text, and that they are found. */
#include "asking.h"

#include "base/uuid.h"
#include "query/shape.h"
#include "store/change.h"
#include "store/turn.h"
#include "webhook/webhook_log.h"

static void begin(void)
{
    asking_open(NULL);
}

static void add(const struct webhook_log_entry *entry)
{
    struct change change;
    uint64_t serial;

    change_init(&change, asking.service->turn, &asking.arena);
    webhook_log_add(&change, entry);
    ck_assert_uint_eq(change.count, 1);
    ck_ok(turn_apply(asking.service->turn, &change, &serial));
    change_done(&change);
}

static struct uuid uuid_of(const char *text)
{
    struct uuid id;

    ck_assert(uuid_parse(span_str(text), &id));
    return id;
}

#define WEBHOOK "01a20431-465e-70c5-853b-5ad9ee31771b"
#define DELIVERY "01a20431-465e-70c5-853b-5b764b1143c7"
#define EVENT "01a20431-465e-70c5-853b-5bddd481a4a8"

START_TEST(an_entry_has_all_members_in_their_order)
{
    const struct webhook_log_entry entry = {
        .webhook = uuid_of(WEBHOOK),
        .delivery = uuid_of(DELIVERY),
        .event = uuid_of(EVENT),
        .attempt = 2,
        .method = SPAN("PUT"),
        .destination = SPAN("http://a.test/\"x\""),
        .time_unix_ns = INT64_C(1800000000123456700),
        .is_success = true,
        .status = 201,
        .body_bytes = 12,
        .duration_ms = 5,
        .dns_ms = 1,
        .connect_ms = 2,
        .tls_ms = 3,
        .first_byte_ms = 4,
        .response_body = SPAN("ok\n"),
        .tenant = SPAN("acme"),
    };
    struct span rest;

    add(&entry);
    ck_asks(200, "GET", "/Svc.Admin.WebhookLog", NULL);
    rest = answered_body();
    rest = span_sub(rest, sizeof("[{\"Id\":\"\"") - 1 + UUID_TEXT_BYTES, rest.n);
    ck_span_is(
        rest,
        arena_printf(
            &asking.arena,
            ",\"WebhookId\":\"" WEBHOOK "\",\"DeliveryId\":\"" DELIVERY "\",\"EventId\":\"" EVENT
            "\",\"Tenant\":\"acme\",\"Attempt\":2,\"Method\":\"PUT\",\"Destination\":\"http://"
            "a.test/\\\"x\\\"\","
            "\"Time\":\"2027-01-15T08:00:00.1234567Z\",\"IsSuccess\":true,\"ResponseStatus\":"
            "\"Created\",\"StatusCode\":201,\"Error\":null,\"BodyByteCount\":12,\"DurationMs\":5,"
            "\"DnsMs\":1,\"ConnectMs\":2,\"TlsMs\":3,\"FirstByteMs\":4,\"ResponseBody\":\"ok\\n\","
            "\"ObjectNo\":%.*s}]",
            SPAN_FMT(answered("0.ObjectNo"))));
}
END_TEST

/* So that of an entry that is stored no more than these need be read. */
START_TEST(what_is_indexed_stands_in_front)
{
    size_t indexed = 0, last = 0;

    for (size_t i = 0; i < webhook_log_shape.count; i++) {
        if ((webhook_log_shape.properties[i].flags & PROPERTY_INDEXED) == 0)
            continue;
        indexed++;
        last = i;
    }
    ck_assert_uint_eq(indexed, 4);
    ck_assert_uint_eq(last, indexed); /* behind Id */
}
END_TEST

START_TEST(what_there_was_not_is_null)
{
    const struct webhook_log_entry entry = {.error = SPAN("refused"), .attempt = 1};

    add(&entry);
    ck_asks(200, "GET", "/Svc.Admin.WebhookLog", NULL);
    ck_member_eq("0.StatusCode", "null");
    ck_member_eq("0.ResponseStatus", "null");
    ck_member_eq("0.ResponseBody", "null");
    ck_member_eq("0.Error", "\"refused\"");
    ck_member_eq("0.IsSuccess", "false");
}
END_TEST

START_TEST(entries_are_found_by_what_they_are_of)
{
    static const struct {
        const char *target, *count;
    } reads[] = {
        {"WebhookId=" WEBHOOK, "2"}, {"DeliveryId=" DELIVERY, "1"},
        {"EventId=" EVENT, "1"},     {"WebhookId=" WEBHOOK "&EventId=" EVENT, "0"},
        {"StatusCode>=500", "1"},    {"IsSuccess=false", "3"},
        {"StatusCode=null", "2"},    {"Tenant=acme", "1"},
        {"Tenant=null", "2"},
    };
    struct webhook_log_entry entry = {.webhook = uuid_of(WEBHOOK)};

    add(&entry);
    entry.delivery = uuid_of(DELIVERY);
    add(&entry);
    entry =
        (struct webhook_log_entry){.event = uuid_of(EVENT), .status = 502, .tenant = SPAN("acme")};
    add(&entry);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
            ck_asks(200, "REPORT", asking_printf("/Svc.Admin.WebhookLog/%s", reads[i].target),
                    NULL);
            ck_span_is(answered("0.Count"), span_str(reads[i].count));
        }
        asking_reload();
    }
    ck_asks(200, "DELETE", "/Svc.Admin.WebhookLog/WebhookId=" WEBHOOK "/unsafe=true", NULL);
    ck_member_eq("0.Count", "2");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, an_entry_has_all_members_in_their_order);
    tcase_add_test(tc, what_is_indexed_stands_in_front);
    tcase_add_test(tc, what_there_was_not_is_null);
    tcase_add_test(tc, entries_are_found_by_what_they_are_of);
}
