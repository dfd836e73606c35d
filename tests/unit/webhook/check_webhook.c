/* What is derived from stored webhooks, and what becomes of them when what they refer to is
 * declared otherwise. Which values a member takes is in tests/conformance/webhooks.txt. */
#include "asking.h"
#include "owning.h"

#include "access/access.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "fetch/fetch.h"
#include "hooks/delivery.h"
#include "hooks/hooks.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/turn.h"
#include "webhook/webhook.h"
#include "webhook/webhook_entry.h"
#include "webhook/webhook_settings.h"
#include "webhook/webhook_write.h"

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

static const struct webhook *webhook_of(const char *id)
{
    struct uuid uuid;

    ck_assert(uuid_parse(span_str(id), &uuid));
    return webhook_find(hooks()->webhooks, &uuid);
}

/* Declared at run time, to be changed there. */
static void begin(void)
{
    asking_open(NULL);
    ck_asks(201, "POST", "/Svc.Admin.Resource",
            "[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
            "{\"Name\":\"Shop.Order\",\"Kind\":\"EntityResource\",\"Properties\":["
            "{\"Name\":\"Total\",\"Type\":\"number\"},{\"Name\":\"Text\",\"Type\":\"string\"}]},"
            "{\"Name\":\"Shop.Paid\",\"Kind\":\"EventResource\",\"Payload\":{\"Resource\":"
            "\"Shop.Order\"}},"
            "{\"Name\":\"Shop.Inbox\",\"Kind\":\"EntityResource\"},"
            "{\"Name\":\"Shop.Report\",\"Kind\":\"EntityResource\"}]");
}

/* `members` without braces, or NULL. */
static const char *webhook(const char *selector, const char *members)
{
    ck_asks(201, "POST", "/Webhook",
            asking_printf("{\"EventSelector\":\"%s\",%s}", selector,
                          members != NULL ? members : "\"Destination\":\"http://a.test/\""));
    return answered_text("0.Id");
}

static void look(const char *id)
{
    ck_asks(200, "GET", asking_printf("/Webhook/Id=%s", id), NULL);
}

static void patch(const char *id, const char *body)
{
    ask("PATCH", asking_printf("/Webhook/Id=%s", id), body);
}

/* How many webhooks an event is sent to. */
static int matched_by(const char *resource, const char *payload)
{
    uint64_t count;

    ck_asks(201, "POST", asking_printf("/Svc.Event/Resource=%s", resource), payload);
    ck_assert(span_to_u64(answered("0.Webhooks"), &count));
    return (int)count;
}

/* ---- what an attempt needs ---- */

START_TEST(a_webhook_without_settings_has_the_defaults)
{
    static const uint32_t delays_s[] = {5, 300, 1800, 7200, 18000, 36000, 36000};
    struct webhook_settings s;

    ck_ok(webhook_read(webhook_of(webhook("/Placed", NULL)), &asking.arena, &s));
    ck_span_eq(s.method, "POST");
    ck_span_eq(s.destination, "http://a.test/");
    ck_assert(!s.is_local && !s.has_custom && !s.ordered);
    ck_assert_uint_eq(s.header_count, 0);
    ck_assert_ptr_null(s.content_type.p);
    ck_assert_uint_eq(s.timeout_ms, 30000);
    ck_assert_uint_eq(s.max_in_flight, 16);
    ck_assert(s.rate_per_second == 0 && s.disable_after_days == 5);
    ck_assert_uint_eq(s.secret_count, 0);
    ck_assert_uint_eq(s.retry.delay_count, ARRAY_LEN(delays_s));
    for (size_t i = 0; i < ARRAY_LEN(delays_s); i++)
        ck_assert_uint_eq(s.retry.delays_ms[i], delays_s[i] * 1000);
}
END_TEST

START_TEST(settings_are_read_as_they_were_written)
{
    const char *id = webhook(
        "/Placed",
        "\"Method\":\"put\",\"Destination\":\"/inbox/a=1/"
        "limit=1\",\"Headers\":{\"X-A\":\"\\u00e4\","
        "\"content-type\":\"text/csv\"},\"Delivery\":{\"TimeoutSeconds\":0.25,\"RetrySchedule\":"
        "[0,1.5],\"MaxInFlight\":3,\"RatePerSecond\":0.5,\"Ordered\":true,\"DisableAfterDays\":"
        "0.5},\"Signing\":{\"Secrets\":[\"whsec_a2tra2tra2tra2tra2tra2tra2tra2tr\"]},"
        "\"CustomPayloadRequest\":{\"URI\":\"/report/x>1\",\"Headers\":{\"A\":\"b\"},\"Body\":"
        "[{\"a\": 1}],\"BreakOnError\":true,\"BreakOnNoContent\":true}");
    struct webhook_settings s;

    asking_reload();
    ck_ok(webhook_read(webhook_of(id), &asking.arena, &s));
    ck_span_eq(s.method, "PUT");
    ck_span_eq(s.destination, "/Shop.Inbox/a=1/limit=1");
    ck_assert(s.is_local && s.has_custom && s.ordered && s.break_on_error && s.break_on_no_content);
    ck_assert_uint_eq(s.header_count, 2);
    ck_span_eq(s.headers[0].value, "\xc3\xa4");
    ck_span_eq(s.content_type, "text/csv");
    ck_assert_uint_eq(s.timeout_ms, 250);
    ck_assert_uint_eq(s.retry.delay_count, 2);
    ck_assert_uint_eq(s.retry.delays_ms[0], 0);
    ck_assert_uint_eq(s.retry.delays_ms[1], 1500);
    ck_assert_uint_eq(s.max_in_flight, 3);
    ck_assert(s.rate_per_second == 0.5 && s.disable_after_days == 0.5);
    ck_assert_uint_eq(s.secret_count, 1);
    ck_span_eq(s.custom_uri, "/Shop.Report/x>1");
    ck_span_eq(s.custom_body, "[{\"a\":1}]");
    ck_assert_uint_eq(s.custom_header_count, 1);
    ck_span_eq(s.custom_headers[0].name, "A");
    /* It is a copy: the webhook may change meanwhile. */
    patch(id, "{\"Headers\":{\"X-A\":null},\"Destination\":\"http://b.test/\"}");
    ck_status(200);
    ck_span_eq(s.headers[0].name, "X-A");
    ck_span_eq(s.destination, "/Shop.Inbox/a=1/limit=1");
}
END_TEST

/* ---- what is refused ---- */

static const struct {
    const char *patch;
    enum err_code code;
    const char *text;
} bad[] = {
    {"{\"Destination\":\"x\"}", ERR_INVALID_ENTITY, "Destination: "},
    {"{\"Destination\":\"/Placed\"}", ERR_INVALID_ENTITY,
     "Destination: 'Shop.Placed' does not support POST"},
    {"{\"Method\":\"PUT\",\"Destination\":\"/Svc.Event\"}", ERR_INVALID_ENTITY,
     "Destination: 'Svc.Event' does not support PUT"},
    {"{\"EventSelector\":\"/Inbox\"}", ERR_WRONG_SELECTOR_KIND, "EventSelector: "},
    {"{\"EventSelector\":\"/Paid/Totl>1\"}", ERR_INVALID_EVENT_SELECTOR, "EventSelector: "},
    {"{\"Headers\":{\"A\":\"a\\u0000\"}}", ERR_INVALID_ENTITY,
     "Headers: the value of 'A' has a line break, or another control character"},
    {"{\"Headers\":{\"\":\"a\"}}", ERR_INVALID_ENTITY, "Headers: '' is not a header name"},
    {"{\"Headers\":{\"Webhook-x\":\"a\"}}", ERR_INVALID_ENTITY,
     "Headers: 'Webhook-x' is set by the server"},
    {"{\"Headers\":{\"Content-Type\":\"text/html\"}}", ERR_INVALID_ENTITY, "Headers: "},
    {"{\"CustomPayloadRequest\":{\"URI\":\"/Placed\"}}", ERR_INVALID_ENTITY,
     "CustomPayloadRequest: 'Shop.Placed' does not support GET"},
    {"{\"Delivery\":{\"MaxInFlight\":0}}", ERR_INVALID_ENTITY,
     "Delivery.MaxInFlight: is 0, it must be between 1 and 1024"},
    {"{\"Signing\":{\"Secrets\":[\"sesame\"]}}", ERR_INVALID_ENTITY, "Signing: "},
    {"{\"Tags\":[\"a\",null]}", ERR_INVALID_ENTITY, "Tags[1]: must be of type string"},
};

START_TEST(what_is_refused_changes_nothing)
{
    const char *id = webhook("/Placed/a=1", NULL);
    struct span before = asking_entities("Svc.Admin.Webhook");

    patch(id, bad[_i].patch);
    ck_problem(bad[_i].code, bad[_i].text);
    ck_assert(span_find(answered_body(), SPAN("sesame")) == SIZE_MAX);
    ck_span_is(asking_entities("Svc.Admin.Webhook"), before);
    ck_assert_int_eq(matched_by("Placed", "{\"a\":1}"), 1);
}
END_TEST

START_TEST(headers_have_their_limit)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add_str(&b, "\"Destination\":\"http://a.test/\",\"Headers\":{\"A\":\"1\"");
    for (int i = 1; i < 64; i++)
        buf_printf(&b, ",\"A%d\":\"%d\"", i, i);
    buf_add_str(&b, "}");
    buf_add_char(&b, 0);
    patch(webhook("/Placed", b.p), "{\"Headers\":{\"B\":\"1\"}}");
    ck_problem(ERR_INVALID_ENTITY, "Headers: more than 64 headers");
}
END_TEST

/* ---- local requests and keys ---- */

#define KEYS "\"Headers\":{\"Authorization\":\"apikey "

static const struct {
    const char *members;
    const char *text; /* of the refusal; NULL: it is stored */
} local[] = {
    {"\"Destination\":\"/Inbox\"", "Destination: "},
    {"\"Destination\":\"/Inbox\"," KEYS "wrong\"}", "Destination: "},
    {"\"Destination\":\"/Inbox\"," KEYS "reader\"}",
     "Destination: the API key in Headers.Authorization may not use POST on 'Shop.Inbox'"},
    {"\"Destination\":\"/Inbox\"," KEYS "writer\"}", NULL},
    {"\"Destination\":\"/Inbox\",\"Method\":\"PUT\"," KEYS "writer\"}",
     "may not use PUT on 'Shop.Inbox'"},
    {"\"Destination\":\"http://a.test/\"," KEYS "wrong\"}", NULL},
    {"\"Destination\":\"http://a.test/\",\"CustomPayloadRequest\":{\"URI\":\"/Inbox\"}",
     "CustomPayloadRequest: "},
    {"\"Destination\":\"http://a.test/\"," KEYS "reader\"},\"CustomPayloadRequest\":{\"URI\":"
     "\"/Inbox\"}",
     "CustomPayloadRequest: "},
    {"\"Destination\":\"http://a.test/\",\"CustomPayloadRequest\":{\"URI\":\"/Inbox\"," KEYS
     "writer\"}}",
     "CustomPayloadRequest: the API key in Headers.Authorization may not use GET on 'Shop.Inbox'"},
    {"\"Destination\":\"http://a.test/\",\"CustomPayloadRequest\":{\"URI\":\"/Inbox\"," KEYS
     "reader\"}}",
     NULL},
};

START_TEST(local_requests_have_keys_of_their_own)
{
    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("reader", "[{\"Resources\":[\"Shop.Inbox\"],\"Methods\":[\"GET\"]}]");
    asking_add_key("writer", "[{\"Resources\":[\"Shop.Inbox\"],\"Methods\":[\"POST\"]}]");
    ask_with("Authorization: apikey admin", "POST", "/Webhook",
             asking_printf("{\"EventSelector\":\"/Placed\",%s}", local[_i].members));
    if (local[_i].text == NULL)
        ck_status(201);
    else
        ck_problem(ERR_INVALID_ENTITY, local[_i].text);
}
END_TEST

/* Nobody is kept from other changes by a key that has lost its rights since. */
START_TEST(a_reference_that_went_wrong_is_kept)
{
    static const char *const kept[] = {"{\"Label\":\"x\"}", "{\"IsPaused\":true}",
                                       "{\"Label\":\"y\"}"};
    static const char *const judged[] = {"{\"IsPaused\":false}", "{\"Method\":\"PUT\"}",
                                         "{\"Headers\":{\"X\":\"y\"}}",
                                         "{\"Destination\":\"/Report\"}"};
    const char *id;
    const char admin[] = "Authorization: apikey admin", *target;

    asking_add_key("admin", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("reader", "[]");
    ask_with(admin, "POST", "/Webhook",
             "{\"EventSelector\":\"/Placed\",\"Destination\":\"/Inbox\"," KEYS "admin\"}}");
    ck_status(201);
    id = answered_text("0.Id");
    target = asking_printf("/Webhook/Id=%s", id);
    asking_remove_key("admin");
    asking_add_key("other", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        ask_with("Authorization: apikey other", "PATCH", target, kept[i]);
        ck_status(200);
    }
    for (size_t i = 0; i < ARRAY_LEN(judged); i++) {
        ask_with("Authorization: apikey other", "PATCH", target, judged[i]);
        ck_problem(ERR_INVALID_ENTITY, "Destination: ");
    }
}
END_TEST

/* ---- declarations that change ---- */

static const struct {
    const char *selector, *members;     /* of the webhook */
    const char *method, *target, *body; /* what is done to declarations */
    const char *message;                /* with which it is paused; NULL: it is not */
    const char *event, *payload;
} declared_otherwise[] = {
    /* The event resource goes. */
    {"/Placed", NULL, "DELETE", "/Resource/Name=Shop.Placed", NULL,
     "EventSelector: '/Shop.Placed': Svc could not locate any resource by 'Shop.Placed'.", NULL,
     NULL},
    /* Its payload is another. */
    {"/Placed/a=1", NULL, "PATCH", "/Resource/Name=Shop.Placed",
     "{\"Payload\":{\"ContentType\":\"text/plain\"}}", "EventSelector: ", "Placed", "x"},
    {"/Placed/a=1", NULL, "PATCH", "/Resource/Name=Shop.Placed",
     "{\"Payload\":{\"Resource\":\"Shop.Order\"}}", "EventSelector: ", "Placed", "{\"Total\":1}"},
    {"/Placed/Total>1", NULL, "PATCH", "/Resource/Name=Shop.Placed",
     "{\"Payload\":{\"Resource\":\"Shop.Order\"}}", NULL, "Placed", "{\"Total\":2}"},
    {"/Placed", NULL, "PATCH", "/Resource/Name=Shop.Placed", "{\"Description\":\"x\"}", NULL,
     "Placed", "{}"},
    /* The entities that its payload consists of have other properties. */
    {"/Paid/Total>1", NULL, "PATCH", "/Resource/Name=Shop.Order",
     "{\"Properties\":[{\"Name\":\"Text\",\"Type\":\"string\"}]}", "EventSelector: ", "Paid",
     "{\"Text\":\"x\"}"},
    {"/Paid/Total>1", NULL, "PATCH", "/Resource/Name=Shop.Order",
     "{\"Properties\":[{\"Name\":\"Total\",\"Type\":\"boolean\"}]}", "EventSelector: ", "Paid",
     "{\"Total\":true}"},
    {"/Paid/Total>1", NULL, "PATCH", "/Resource/Name=Shop.Order",
     "{\"Properties\":[{\"Name\":\"More\",\"Type\":\"any\"},{\"Name\":\"Total\",\"Type\":"
     "\"number\"}]}",
     NULL, "Paid", "{\"Total\":2}"},
    {"/Paid/Text=5", NULL, "PATCH", "/Resource/Name=Shop.Order",
     "{\"Properties\":[{\"Name\":\"Text\",\"Type\":\"integer\"}]}", NULL, "Paid", "{\"Text\":5}"},
    /* A local destination goes, or has the method no more. */
    {"/Placed", "\"Destination\":\"/Inbox\"", "DELETE", "/Resource/Name=Shop.Inbox", NULL,
     "Destination: Svc could not locate any resource by 'Shop.Inbox'.", "Placed", "{}"},
    {"/Placed", "\"Destination\":\"/Inbox\"", "PATCH", "/Resource/Name=Shop.Inbox",
     "{\"Methods\":[\"GET\"]}", "Destination: 'Shop.Inbox' does not support POST", "Placed", "{}"},
    {"/Placed", "\"Destination\":\"/Inbox\"", "PATCH", "/Resource/Name=Shop.Inbox",
     "{\"Methods\":[\"POST\"]}", NULL, "Placed", "{}"},
    {"/Placed", "\"Destination\":\"http://a.test/\",\"CustomPayloadRequest\":{\"URI\":\"/Report\"}",
     "DELETE", "/Resource/Name=Shop.Report", NULL,
     "CustomPayloadRequest.URI: Svc could not locate any resource by 'Shop.Report'.", "Placed",
     "{}"},
    {"/Placed", "\"Destination\":\"/Inbox\",\"CustomPayloadRequest\":{\"URI\":\"/Report\"}",
     "PATCH", "/Resource/Name=Shop.Report", "{\"Methods\":[\"POST\"]}",
     "CustomPayloadRequest.URI: 'Shop.Report' does not support GET", "Placed", "{}"},
    /* Others do not matter. */
    {"/Placed", NULL, "DELETE", "/Resource/Name=Shop.Inbox", NULL, NULL, "Placed", "{}"},
    {"/Placed", NULL, "POST", "/Resource", "{\"Name\":\"Other.Placed\",\"Kind\":\"EventResource\"}",
     NULL, "Shop.Placed", "{}"},
};

START_TEST(webhooks_follow_the_declarations)
{
    const char *selector = declared_otherwise[_i].selector;
    const char *id = webhook(selector, declared_otherwise[_i].members);
    bool is_paused = declared_otherwise[_i].message != NULL;
    uint64_t serial = asking_serial();

    ask(declared_otherwise[_i].method, declared_otherwise[_i].target, declared_otherwise[_i].body);
    ck_assert_int_lt(asking.answer.status, 300);
    /* The answer waits for the pause too. */
    /* The pause, that the recovery is to be told, and the notice. */
    ck_assert_uint_eq(asking_serial(), serial + 1 + 3 * is_paused);
    ck_assert_uint_eq(asking.answer.serial, serial + 3 * is_paused);
    for (int again = 0; again < 2; again++) {
        look(id);
        ck_span_is(answered("0.IsPaused"), span_str(is_paused ? "true" : "false"));
        if (is_paused)
            ck_assert_msg(span_starts(span_str(answered_text("0.ErrorMessage")),
                                      span_str(declared_otherwise[_i].message)),
                          "%s", answered_text("0.ErrorMessage"));
        else
            ck_member_eq("0.ErrorMessage", "null");
        ck_assert_uint_eq(asking.service->metrics->webhooks_paused, is_paused);
        if (declared_otherwise[_i].event != NULL)
            ck_assert_int_eq(
                matched_by(declared_otherwise[_i].event, declared_otherwise[_i].payload),
                !is_paused);
        asking_reload();
    }
}
END_TEST

START_TEST(what_comes_back_is_resumed_by_hand)
{
    const char *id = webhook("/Placed/a=1", NULL);

    ck_asks(200, "DELETE", "/Resource/Name=Shop.Placed", NULL);
    ck_assert(!webhook_of(id)->is_attached);
    /* As long as it is paused, it may refer to what is not there. */
    patch(id, "{\"Label\":\"x\"}");
    ck_status(200);
    patch(id, "{\"IsPaused\":true}");
    ck_status(200);
    ck_assert(span_starts(span_str(answered_text("0.ErrorMessage")), SPAN("EventSelector: ")));
    patch(id, "{\"IsPaused\":false}");
    ck_problem(ERR_INVALID_EVENT_SELECTOR, "EventSelector: ");
    ck_asks(201, "POST", "/Resource", "{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"}");
    ck_assert(webhook_of(id)->is_attached);
    ck_assert_int_eq(matched_by("Placed", "{\"a\":1}"), 0);
    patch(id, "{\"IsPaused\":false}");
    ck_status(200);
    ck_member_eq("0.ErrorMessage", "null");
    ck_assert_int_eq(matched_by("Placed", "{\"a\":1}"), 1);
    ck_assert_int_eq(matched_by("Placed", "{\"a\":2}"), 0);
}
END_TEST

/* A message says what to do: who has paused it does not know yet. */
START_TEST(one_that_was_paused_by_hand_gets_its_message)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"IsPaused\":true");
    struct span before;

    ck_asks(200, "DELETE", "/Resource/Name=Shop.Placed", NULL);
    look(id);
    ck_assert(span_starts(span_str(answered_text("0.ErrorMessage")), SPAN("EventSelector: ")));
    before = asking_entities("Svc.Admin.Webhook");
    /* Once it has one, nothing is written again. */
    ck_asks(200, "DELETE", "/Resource/Name=Shop.Inbox", NULL);
    ck_span_is(asking_entities("Svc.Admin.Webhook"), before);
}
END_TEST

START_TEST(several_are_paused_in_one_change)
{
    uint64_t serial;

    for (int i = 0; i < 3; i++)
        webhook("/Placed", NULL);
    webhook("/Paid", NULL);
    serial = asking_serial();
    ck_asks(200, "DELETE", "/Resource/Name=Shop.Placed", NULL);
    /* The declaration; of each its pause, that its recovery is to be told, and the notice. */
    ck_assert_uint_eq(asking_serial(), serial + 1 + 3 * 3);
    ck_assert_uint_eq(asking.service->metrics->webhooks_paused, 3);
    ck_asks(200, "REPORT", "/Webhook/IsPaused=true", NULL);
    ck_member_eq("0.Count", "3");
}
END_TEST

START_TEST(detached_webhooks_match_nothing_until_they_are_settled)
{
    struct resource *resource = resource_named(asking.service->rest.resources, SPAN("Shop.Placed"));
    const char *id = webhook("/Placed", NULL);
    const char *target = webhook("/Paid", "\"Destination\":\"/Inbox\"");
    uint64_t serial, before = asking_serial();

    webhooks_detach(hooks()->webhooks, resource);
    webhooks_detach(hooks()->webhooks, resource);
    webhooks_detach(hooks()->webhooks,
                    resource_named(asking.service->rest.resources, SPAN("Shop.Inbox")));
    ck_assert(!webhook_of(id)->is_attached);
    ck_assert(!webhook_of(target)->is_attached);
    ck_assert_int_eq(matched_by("Placed", "{}"), 0);
    ck_assert_int_eq(matched_by("Paid", "{}"), 0);
    ck_ok(webhooks_settle(hooks()->webhooks, &asking.arena, &serial));
    ck_assert_uint_eq(serial, 0); /* nothing had to be written */
    ck_assert_uint_eq(asking_serial(), before + 2);
    ck_assert_ptr_eq(webhook_of(id)->entries[0].resource, resource);
    ck_assert_int_eq(matched_by("Placed", "{}"), 1);
    ck_assert_int_eq(matched_by("Paid", "{}"), 1);
}
END_TEST

/* ---- pausing ---- */

START_TEST(pausing_is_counted)
{
    const uint64_t *paused = &asking.service->metrics->webhooks_paused;
    const char *id = webhook("/Placed", NULL);

    ck_assert_uint_eq(*paused, 0);
    patch(id, "{\"IsPaused\":true}");
    ck_assert_uint_eq(*paused, 1);
    patch(id, "{\"Label\":\"x\"}");
    ck_assert_uint_eq(*paused, 1);
    asking_reload();
    paused = &asking.service->metrics->webhooks_paused;
    ck_assert_uint_eq(*paused, 1);
    ck_asks(200, "DELETE", "/Webhook", NULL);
    ck_assert_uint_eq(*paused, 0);
    ck_assert_ptr_null(webhook_of(id));
}
END_TEST

START_TEST(the_server_pauses_with_a_message)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Label\":\"x\"");
    struct change change;
    uint64_t serial;

    change_init(&change, asking.service->turn, &asking.arena);
    webhook_pause(webhook_of(id), SPAN("410 \"Gone\""), &change);
    ck_assert(!webhook_of(id)->is_paused);
    ck_ok(turn_apply(asking.service->turn, &change, &serial));
    change_done(&change);
    ck_assert(webhook_of(id)->is_paused);
    look(id);
    ck_member_eq("0.ErrorMessage", "\"410 \\\"Gone\\\"\"");
    ck_member_eq("0.Label", "\"x\"");
    patch(id, "{\"IsPaused\":false,\"ErrorMessage\":\"mine\"}");
    ck_member_eq("0.ErrorMessage", "null");
}
END_TEST

/* ---- Status ---- */

START_TEST(a_status_says_why)
{
    const char *id = webhook("/Placed", NULL);

    ck_asks(200, "GET", "/Webhook/_/add=Status", NULL);
    ck_member_eq("0.Status.State", "\"Active\"");
    ck_member_eq("0.Status.Reason", "null");
    ck_member_eq("0.Status.OldestTime", "null");
    ck_member_eq("0.Status.SuccessRate", "null");
    ck_assert_int_eq(matched_by("Placed", "{}"), 1);
    patch(id, "{\"IsPaused\":true}");
    ck_asks(200, "GET", "/Webhook/_/add=Status", NULL);
    ck_member_eq("0.Status.State", "\"Paused\"");
    ck_member_eq("0.Status.Reason", "\"IsPaused is set\"");
    ck_member_eq("0.Status.Pending", "1");
    ck_assert_ptr_null(answered("0.status").p);
    ck_asks(200, "DELETE", "/Resource/Name=Shop.Placed", NULL);
    ck_asks(200, "GET", "/Webhook/_/add=Status", NULL);
    ck_assert_str_eq(answered_text("0.Status.Reason"), answered_text("0.ErrorMessage"));
    ck_asks(200, "GET", "/Webhook", NULL);
    ck_assert_ptr_null(answered("0.Status").p);
}
END_TEST

/* ---- secrets ---- */

#define SECRET_A "whsec_a2tra2tra2tra2tra2tra2tra2tra2tr"
#define SECRET_B "whsec_YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi"

static struct webhook_settings settings_of(const char *id)
{
    struct webhook_settings s;

    ck_ok(webhook_read(webhook_of(id), &asking.arena, &s));
    return s;
}

START_TEST(a_masked_secret_keeps_its_place)
{
    const char *id = webhook(
        "/Placed", "\"Destination\":\"http://a.test/\",\"Signing\":{\"Secrets\":[\"" SECRET_A
                   "\"]},\"CustomPayloadRequest\":{\"URI\":\"/Report\",\"Headers\":{\"X-Api-Key\":"
                   "\"sesame\"}}");

    patch(id, "{\"Signing\":{\"Secrets\":[\"*******\",\"" SECRET_B "\"]}}");
    ck_member_eq("0.Signing.Secrets", "[\"*******\",\"*******\"]");
    ck_span_eq(settings_of(id).secrets[0].text, SECRET_A);
    ck_span_eq(settings_of(id).secrets[1].text, SECRET_B);
    patch(id, "{\"Signing\":{\"Secrets\":[\"" SECRET_B "\",\"*******\"]}}");
    ck_span_eq(settings_of(id).secrets[0].text, SECRET_B);
    ck_span_eq(settings_of(id).secrets[1].text, SECRET_B);
    patch(id, "{\"Signing\":{\"Secrets\":[\"*******\",\"*******\",\"*******\"]}}");
    ck_problem(ERR_INVALID_ENTITY, "Signing.Secrets.2 is *******, but no value is stored");
    patch(id, "{\"CustomPayloadRequest\":{\"URI\":\"/Inbox\",\"Headers\":{\"x-api-key\":"
              "\"*******\"}}}");
    ck_status(200);
    ck_member_eq("0.CustomPayloadRequest.Headers.x-api-key", "\"*******\"");
    ck_span_eq(settings_of(id).custom_headers[0].value, "sesame");
    patch(id, "{\"CustomPayloadRequest\":{\"URI\":\"/Inbox\",\"Headers\":{\"Cookie\":"
              "\"*******\"}}}");
    ck_problem(ERR_INVALID_ENTITY, "CustomPayloadRequest.Headers.Cookie is *******, but no value");
}
END_TEST

static const struct {
    bool is_owner, leads_elsewhere;
    const char *kept;
    bool is_refused;
} kept_secrets[] = {
    {true, true, "Headers.Cookie", false},
    {false, false, "Headers.Cookie", false},
    {false, true, "", false},
    {false, true, "Headers.Cookie, Signing.Secrets.0", true},
};

START_TEST(stored_secrets_do_not_travel)
{
    struct span kept = span_str(kept_secrets[_i].kept);
    struct err *e =
        webhook_check_kept(kept_secrets[_i].is_owner, kept_secrets[_i].leads_elsewhere, kept);

    ck_assert_int_eq(e != NULL, kept_secrets[_i].is_refused);
    if (e != NULL) {
        ck_assert_int_eq(err_code(e), ERR_INVALID_ENTITY);
        ck_assert(span_ends(err_message(e), kept));
    }
    err_free(e);
}
END_TEST

/* A webhook of the key `alpha`, with secrets in three places. */
static const char *owned_webhook(void)
{
    const char *id =
        webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Headers\":{\"Cookie\":\"c\","
                           "\"X\":\"x\"},\"Signing\":{\"Secrets\":[\"" SECRET_A "\"]}");
    struct entity *e = webhook_of(id)->entity;
    struct span json = entity_json(e), none = SPAN("\"Owner\":null");
    size_t at = span_find(json, none);
    struct change change;
    uint64_t serial;

    ck_assert(at != SIZE_MAX);
    change_init(&change, hooks()->turn, &asking.arena);
    change_put_entity(&change, SPAN("Svc.Admin.Webhook"), &e->id, e->object_no,
                      arena_printf(&asking.arena, "%.*s\"Owner\":\"alpha\"%.*s",
                                   SPAN_FMT(span_sub(json, 0, at)),
                                   SPAN_FMT(span_sub(json, at + none.n, json.n))));
    ck_ok(turn_apply(hooks()->turn, &change, &serial));
    change_done(&change);
    asking_add_key("alpha", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    asking_add_key("beta", "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]");
    return id;
}

#define ALL_KEPT "anew: Headers.Cookie, Signing.Secrets.0"

/* What others than the owner are told; NULL: they may. */
static const struct {
    const char *patch, *refused;
} of_others[] = {
    {"{\"Label\":\"l\",\"IsPaused\":true,\"Delivery\":{\"MaxInFlight\":1}}", NULL},
    {"{\"Destination\":\"http://a.test:80/\",\"Method\":\"post\",\"EventSelector\":\"/placed\"}",
     NULL},
    {"{\"Headers\":{\"Cookie\":\"*******\",\"X\":\"x\"}}", NULL},
    {"{\"Signing\":{\"Secrets\":[\"*******\",\"" SECRET_B "\"]}}", NULL},
    {"{\"Destination\":\"http://b.test/\"}", ALL_KEPT},
    {"{\"Method\":\"PUT\"}", ALL_KEPT},
    {"{\"CustomPayloadRequest\":{\"URI\":\"/Report\",\"Headers\":{\"Authorization\":\"apikey "
     "beta\"}}}",
     ALL_KEPT},
    /* Or they would be owners with the next request. */
    {"{\"Headers\":{\"X\":\"y\"}}", ALL_KEPT},
    {"{\"EventSelector\":\"/Paid\"}", ALL_KEPT},
    {"{\"Destination\":\"http://b.test/\",\"Headers\":{\"Cookie\":\"n\"}}",
     "anew: Signing.Secrets.0"},
    {"{\"Destination\":\"http://b.test/\",\"Headers\":{\"Cookie\":\"c\"}}",
     "anew: Signing.Secrets.0"},
    {"{\"Destination\":\"http://b.test/\",\"Signing\":null}", "anew: Headers.Cookie"},
    {"{\"Destination\":\"http://b.test/\",\"Signing\":null,\"Headers\":{\"Cookie\":null}}", NULL},
    {"{\"Destination\":\"http://b.test/\",\"Signing\":{\"Secrets\":[\"" SECRET_B
     "\"]},\"Headers\":{\"Cookie\":\"n\"}}",
     NULL},
};

START_TEST(only_the_owner_leads_secrets_elsewhere)
{
    const char *id = owned_webhook(), *target = asking_printf("/Webhook/Id=%s", id);

    ask_with("Authorization: apikey beta", "PATCH", target, of_others[_i].patch);
    if (of_others[_i].refused == NULL) {
        ck_status(200);
        return;
    }
    ck_problem(ERR_INVALID_ENTITY, of_others[_i].refused);
    ask_with("Authorization: apikey alpha", "PATCH", target, of_others[_i].patch);
    ck_status(200);
}
END_TEST

/* ---- secrets that are made ---- */

static int64_t expiry_of(const char *id, size_t place)
{
    return settings_of(id).secrets[place].expires_unix_ns;
}

START_TEST(a_secret_is_made_and_shown_once)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Signing\":{}");
    const char *made = answered_text("0.Signing.Secrets.0");

    ck_assert(span_starts(span_str(made), SPAN("whsec_")));
    ck_span_is(settings_of(id).secrets[0].text, span_str(made));
    look(id);
    ck_member_eq("0.Signing", "{\"Secrets\":[\"*******\"]}");
    patch(id, "{\"Label\":\"x\"}");
    ck_member_eq("0.Signing", "{\"Secrets\":[\"*******\"]}");
    ck_span_is(settings_of(id).secrets[0].text, span_str(made));
}
END_TEST

/* One that has it may be paused, but nobody writes it anew. */
START_TEST(header_fields_that_an_earlier_version_took_stay)
{
    const char *id = webhook("/Placed", NULL);
    struct uuid uuid;

    ck_assert(uuid_parse(span_str(id), &uuid));
    lay_over(asking.service, &asking.arena, &uuid,
             SPAN("{\"Headers\":{\"Content-Encoding\":\"gzip\"}}"));
    patch(id, "{\"IsPaused\":true}");
    ck_status(200);
    ck_member_eq("0.Headers", "{\"Content-Encoding\":\"gzip\"}");
    patch(id, "{\"Headers\":{\"X-A\":\"b\"}}");
    ck_problem(ERR_INVALID_ENTITY, "Headers: 'Content-Encoding' is set by the server");
    patch(id, "{\"Headers\":{\"Content-Encoding\":null,\"X-A\":\"b\"}}");
    ck_member_eq("0.Headers", "{\"X-A\":\"b\"}");
}
END_TEST

START_TEST(a_rotation_keeps_the_others_for_a_while)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Signing\":{"
                                        "\"Secrets\":[\"" SECRET_A "\"]}");
    int64_t until;

    clock_fake(INT64_C(1800000000000000000), UINT64_C(1000000000));
    patch(id, "{\"Signing\":{\"Rotate\":true,\"KeepSeconds\":60}}");
    ck_status(200);
    ck_assert_str_eq(answered_text("0.Signing.Secrets.0"), "*******");
    ck_assert(span_starts(span_str(answered_text("0.Signing.Secrets.1")), SPAN("whsec_")));
    ck_span_eq(settings_of(id).secrets[0].text, SECRET_A);
    ck_assert_int_eq(expiry_of(id, 0), clock_unix_ns() + INT64_C(60000000000));
    ck_assert_int_eq(expiry_of(id, 1), WEBHOOK_SIGNS_ALWAYS);
    /* Later rotations do not lengthen that. */
    until = expiry_of(id, 0);
    patch(id, "{\"Signing\":{\"Rotate\":true}}");
    ck_assert_int_eq(expiry_of(id, 0), until);
    ck_assert_int_eq(expiry_of(id, 1), clock_unix_ns() + INT64_C(86400000000000));
    ck_assert_uint_eq(settings_of(id).secret_count, 3);
    asking_reload();
    ck_assert_int_eq(expiry_of(id, 0), until);
    /* Written again, it is a secret like any other; the newest never expires. */
    patch(id, "{\"Signing\":{\"Secrets\":[\"" SECRET_A "\",\"*******\"]}}");
    ck_assert_int_eq(expiry_of(id, 0), WEBHOOK_SIGNS_ALWAYS);
    ck_assert_int_eq(expiry_of(id, 1), WEBHOOK_SIGNS_ALWAYS);
    clock_real();
}
END_TEST

START_TEST(an_expired_secret_goes_with_the_next_write)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Signing\":{"
                                        "\"Secrets\":[\"" SECRET_A "\"]}");

    clock_fake(INT64_C(1800000000000000000), UINT64_C(1000000000));
    patch(id, "{\"Signing\":{\"Rotate\":true,\"KeepSeconds\":60}}");
    clock_advance(61 * INT64_C(1000000000));
    ck_assert_uint_eq(settings_of(id).secret_count, 2);
    patch(id, "{\"Label\":\"x\"}");
    ck_member_eq("0.Signing", "{\"Secrets\":[\"*******\"]}");
    ck_assert_uint_eq(settings_of(id).secret_count, 1);
    clock_real();
}
END_TEST

START_TEST(a_rotation_makes_the_kind_of_the_newest)
{
    const char *id = webhook("/Placed", "\"Destination\":\"http://a.test/\",\"Signing\":{"
                                        "\"Secrets\":[\"" SECRET_A "\",\"whsk_"
                                        "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=\"]}");

    patch(id, "{\"Signing\":{\"Rotate\":true}}");
    ck_assert(span_starts(span_str(answered_text("0.Signing.Secrets.2")), SPAN("whsk_")));
    ck_member_eq("0.Signing.Secrets.1", "\"*******\"");
}
END_TEST

/* ---- several selectors, patterns ---- */

static const char *all_of(const char *selectors)
{
    ck_asks(
        201, "POST", "/Webhook",
        asking_printf("{\"EventSelectors\":[%s],\"Destination\":\"http://a.test/\"}", selectors));
    return answered_text("0.Id");
}

START_TEST(any_of_several_selectors_finds_an_event_once)
{
    const char *id = all_of("\"/Placed/a=1\",\"/Placed/b=1\",\"/Paid/Total>1\",\"/Shop.*/a=1\"");

    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(webhook_of(id)->entry_count, 4);
        ck_assert_int_eq(matched_by("Placed", "{\"a\":1,\"b\":1}"), 1);
        ck_assert_int_eq(matched_by("Placed", "[{\"a\":1},{\"b\":1},{\"a\":1}]"), 1);
        ck_assert_int_eq(matched_by("Placed", "{\"b\":1}"), 1);
        ck_assert_int_eq(matched_by("Placed", "{\"a\":2}"), 0);
        ck_assert_int_eq(matched_by("Paid", "{\"Total\":2}"), 1);
        ck_assert_int_eq(matched_by("Paid", "{\"Total\":1}"), 0);
        asking_reload();
    }
}
END_TEST

START_TEST(one_that_loses_a_selector_is_paused_as_a_whole)
{
    const char *id = all_of("\"/Placed\",\"/Paid\"");

    ck_asks(200, "DELETE", "/Resource/Name=Shop.Paid", NULL);
    look(id);
    ck_member_eq("0.IsPaused", "true");
    ck_assert(span_starts(span_str(answered_text("0.ErrorMessage")), SPAN("EventSelectors: ")));
    ck_assert_int_eq(matched_by("Placed", "{}"), 0);
    patch(id, "{\"IsPaused\":false}");
    ck_problem(ERR_INVALID_EVENT_SELECTOR, "EventSelectors: ");
    patch(id, "{\"IsPaused\":false,\"EventSelectors\":[\"/Placed\"]}");
    ck_status(200);
    ck_assert_int_eq(matched_by("Placed", "{}"), 1);
}
END_TEST

START_TEST(a_pattern_waits_for_what_is_not_declared_yet)
{
    const char *id = webhook("/Later.*/a=1", NULL), *every = webhook("/*", NULL);

    ck_assert(webhook_of(id)->has_patterns && webhook_of(every)->has_patterns);
    ck_asks(201, "POST", "/Resource",
            "[{\"Name\":\"Later.On\",\"Kind\":\"EventResource\"},"
            "{\"Name\":\"Later.In.Deep\",\"Kind\":\"EventResource\"}]");
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(matched_by("Later.On", "{\"a\":1}"), 2);
        ck_assert_int_eq(matched_by("Later.On", "{\"a\":2}"), 1);
        ck_assert_int_eq(matched_by("Later.In.Deep", "{\"a\":1}"), 1);
        asking_reload();
    }
    ck_asks(200, "DELETE", "/Resource/Name=Later.On", NULL);
    look(id);
    ck_member_eq("0.IsPaused", "false");
    patch(id, "{\"IsPaused\":true}");
    ck_asks(201, "POST", "/Resource", "{\"Name\":\"Later.On\",\"Kind\":\"EventResource\"}");
    ck_assert_int_eq(matched_by("Later.On", "{\"a\":1}"), 1);
    patch(id, "{\"IsPaused\":false}");
    ck_assert_int_eq(matched_by("Later.On", "{\"a\":1}"), 2);
    ck_asks(200, "DELETE", "/Webhook/_/unsafe=true", NULL);
    ck_assert_int_eq(matched_by("Later.On", "{\"a\":1}"), 0);
}
END_TEST

#define EVERYTHING "[{\"Resources\":[\"*\"],\"Methods\":[\"*\"]}]"
#define BETA "Authorization: apikey beta"

/* Who takes a webhook over is its owner, but has not written what it holds. */
START_TEST(secrets_stay_whose_they_are)
{
    const char *target, *elsewhere = "{\"Destination\":\"http://b.test/\"}";

    asking_add_key("alpha", EVERYTHING);
    asking_add_key("beta", EVERYTHING);
    ask_with(BETA, "POST", "/Webhook",
             "{\"EventSelector\":\"/Placed\",\"Destination\":\"http://a.test/\"}");
    ck_assert(!webhook_of(answered_text("0.Id"))->holds_secrets); /* nor need it be masked */
    ask_with("Authorization: apikey alpha", "POST", "/Webhook",
             "{\"EventSelector\":\"/Placed\",\"Destination\":\"http://a.test/\",\"IsPaused\":true,"
             "\"Headers\":{\"Cookie\":\"c\"},\"Signing\":{\"Secrets\":[\"" SECRET_A "\"]}}");
    ck_status(201);
    target = asking_printf("/Webhook/Id=%s", answered_text("0.Id"));
    ask_with(BETA, "PATCH", target, "{\"IsPaused\":false}");
    ck_assert_str_eq(answered_text("0.Owner"), "alpha");
    ask_with(BETA, "PATCH", target, "{\"IsPaused\":true}");
    asking_remove_key("alpha");
    ask_with(BETA, "PATCH", target, "{\"IsPaused\":false}");
    ck_assert_str_eq(answered_text("0.Owner"), "beta");
    ask_with(BETA, "PATCH", target, elsewhere);
    ck_problem(ERR_INVALID_ENTITY, ALL_KEPT);

    /* One of the name of who wrote them is another, when it was made at run time. */
    ask_with(BETA, "POST", "/ApiKey", "{\"Name\":\"alpha\",\"AllowAccess\":" EVERYTHING "}");
    ck_status(201);
    ask_with(asking_printf("Authorization: apikey %s", answered_text("0.Key")), "PATCH", target,
             elsewhere);
    ck_problem(ERR_INVALID_ENTITY, ALL_KEPT);

    ask_with(
        BETA, "PATCH", target,
        "{\"Destination\":\"http://b.test/\",\"Headers\":{\"Cookie\":\"n\"},\"Signing\":null}");
    ck_status(200);
    ask_with(BETA, "PATCH", target, "{\"Destination\":\"http://c.test/\"}");
    ck_status(200);
}
END_TEST

/* ---- deletion ---- */

START_TEST(with_a_webhook_its_deliveries_go)
{
    const char *id = webhook("/Placed", NULL);

    webhook("/Placed", NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(matched_by("Placed", "{}"), 2);
    ck_asks(200, "DELETE", asking_printf("/Webhook/Id=%s", id), NULL);
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery", NULL);
    ck_member_eq("0.Count", "3");
    asking_reload();
    ck_asks(200, "REPORT", "/Svc.Admin.Delivery", NULL);
    ck_member_eq("0.Count", "3");
    ck_assert_int_eq(matched_by("Placed", "{}"), 1);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, a_webhook_without_settings_has_the_defaults);
    tcase_add_test(tc, settings_are_read_as_they_were_written);
    tcase_add_loop_test(tc, what_is_refused_changes_nothing, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, headers_have_their_limit);
    tcase_add_loop_test(tc, local_requests_have_keys_of_their_own, 0, ARRAY_LEN(local));
    tcase_add_test(tc, a_reference_that_went_wrong_is_kept);
    tcase_add_loop_test(tc, webhooks_follow_the_declarations, 0, ARRAY_LEN(declared_otherwise));
    tcase_add_test(tc, what_comes_back_is_resumed_by_hand);
    tcase_add_test(tc, one_that_was_paused_by_hand_gets_its_message);
    tcase_add_test(tc, several_are_paused_in_one_change);
    tcase_add_test(tc, detached_webhooks_match_nothing_until_they_are_settled);
    tcase_add_test(tc, pausing_is_counted);
    tcase_add_test(tc, the_server_pauses_with_a_message);
    tcase_add_test(tc, a_status_says_why);
    tcase_add_test(tc, a_masked_secret_keeps_its_place);
    tcase_add_loop_test(tc, only_the_owner_leads_secrets_elsewhere, 0, ARRAY_LEN(of_others));
    tcase_add_test(tc, secrets_stay_whose_they_are);
    tcase_add_loop_test(tc, stored_secrets_do_not_travel, 0, ARRAY_LEN(kept_secrets));
    tcase_add_test(tc, a_secret_is_made_and_shown_once);
    tcase_add_test(tc, header_fields_that_an_earlier_version_took_stay);
    tcase_add_test(tc, a_rotation_keeps_the_others_for_a_while);
    tcase_add_test(tc, an_expired_secret_goes_with_the_next_write);
    tcase_add_test(tc, a_rotation_makes_the_kind_of_the_newest);
    tcase_add_test(tc, any_of_several_selectors_finds_an_event_once);
    tcase_add_test(tc, one_that_loses_a_selector_is_paused_as_a_whole);
    tcase_add_test(tc, a_pattern_waits_for_what_is_not_declared_yet);
    tcase_add_test(tc, with_a_webhook_its_deliveries_go);
}
