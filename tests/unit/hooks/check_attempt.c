/* Attempts over a fetcher that does as it is told, by a clock that stands still: what is sent, what
 * comes of the answer, and what is recorded. */
#include "asking.h"
#include "fetching.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/text.h"
#include "fetch/fetch.h"
#include "hooks/delivery.h"
#include "hooks/hooks.h"
#include "rest/metrics.h"
#include "webhook/sign.h"
#include "webhook/webhook.h"

#define A "http://a.test"
#define NOW_S INT64_C(1800000000)
#define S UINT64_C(1000000000)

static const char resources[] =
    "[{\"Name\":\"Shop.Placed\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Shop.Picture\",\"Kind\":\"EventResource\",\"Payload\":{\"ContentType\":"
    "\"image/png\"}},"
    "{\"Name\":\"Shop.Inbox\",\"Kind\":\"EntityResource\",\"Events\":{\"Inserted\":"
    "\"Shop.Loop\"}},"
    "{\"Name\":\"Shop.Loop\",\"Kind\":\"EventResource\"},"
    "{\"Name\":\"Shop.Rules\",\"Kind\":\"BinaryResource\",\"ContentType\":\"text/plain\","
    "\"Content\":\"QmUga2luZC4K\"}]";

static struct hooks *hooks(void)
{
    return &asking.service->hooks;
}

static void begin(void)
{
    clock_fake(NOW_S * 1000000000, S);
    asking_open(resources);
    service_start(asking.service);
}

/* Until nothing happens by itself. */
static void settle(void)
{
    asking_commit();
    for (int i = 0; i < 20; i++)
        asking_turn();
}

static void pass(uint64_t seconds)
{
    clock_advance(seconds * S);
    settle();
}

/* ---- what tests do ---- */

/* `members` is NULL or more of them. */
static const char *webhook(const char *selector, const char *destination, const char *members)
{
    ck_asks(201, "POST", "/Webhook",
            asking_printf("{\"EventSelector\":\"%s\",\"Destination\":\"%s\"%s%s}", selector,
                          destination, members != NULL ? "," : "", members != NULL ? members : ""));
    return answered_text("0.Id");
}

static void raise_event(const char *payload)
{
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", payload);
    settle();
}

static void look(const char *resource)
{
    ck_asks(200, "GET", asking_printf("/%s/_/offset=-1", resource), NULL);
}

static size_t in_state(enum delivery_state state)
{
    return deliveries_count(hooks()->deliveries, state);
}

static struct span header_of(const struct fetch *fetch, const char *name)
{
    for (size_t i = 0; i < fetch->header_count; i++)
        if (span_ieq(fetch->headers[i].name, span_str(name)))
            return fetch->headers[i].value;
    return (struct span){NULL, 0};
}

/* Ends the oldest one. */
static void end_with(const struct fetch_result *result)
{
    struct fetch *fetch = oldest(NULL);

    fetch_cancel(asking.service->fetcher, fetch); /* out of the list: it is over */
    fetch->on_done(fetch, result);
    settle();
}

static void answer_now(int status)
{
    answer(NULL, status);
    settle();
}

/* ---- what is sent ---- */

START_TEST(a_request_says_what_it_is)
{
    const char *id = webhook("/Placed", A "/x?y",
                             "\"Method\":\"PUT\",\"Headers\":{\"X-A\":\"1\",\"content-type\":"
                             "\"application/json; charset=utf-8\"},\"Delivery\":{"
                             "\"TimeoutSeconds\":0.5}");
    static const char *const names[] = {"X-A",        "Content-Type",     "Svc-webhook-id",
                                        "Svc-event",  "Svc-attempt",      "Svc-depth",
                                        "webhook-id", "webhook-timestamp"};
    const struct fetch *fetch;

    ask_with("Svc-depth: 2", "POST", "/Svc.Event/Resource=Placed", "{\"a\": 1}");
    settle();
    fetch = oldest(A);
    ck_span_eq(fetch->method, "PUT");
    ck_span_eq(fetch->url, A "/x?y");
    ck_span_eq(blob_span(fetch->body), "[{\"a\": 1}]");
    ck_assert_uint_eq(fetch->timeout_ms, 500);
    ck_assert_uint_eq(fetch->header_count, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_span_is(fetch->headers[i].name, span_str(names[i]));
    ck_span_eq(header_of(fetch, "Content-Type"), "application/json; charset=utf-8");
    ck_span_is(header_of(fetch, "Svc-webhook-id"), span_str(id));
    ck_span_eq(header_of(fetch, "Svc-event"), "Shop.Placed");
    ck_span_eq(header_of(fetch, "Svc-attempt"), "1");
    ck_span_eq(header_of(fetch, "Svc-depth"), "3");
    ck_span_eq(header_of(fetch, "webhook-timestamp"), "1800000000");
    look("Svc.Event");
    ck_span_is(header_of(fetch, "webhook-id"), span_str(answered_text("0.Id")));
}
END_TEST

static const struct {
    const char *members, *event, *payload;
    const char *type, *body; /* NULL: none */
} bodies[] = {
    {NULL, "Placed", "[ {\"a\":1.0} ]", "application/json", "[ {\"a\":1.0} ]"},
    {NULL, "Placed", "[]", "application/json", "[]"},
    {"\"Headers\":{\"Content-Type\":\"application/x-ndjson\"}", "Placed", "[{\"a\":1},{\"b\": 2}]",
     "application/x-ndjson", "{\"a\":1}\n{\"b\":2}\n"},
    {"\"Headers\":{\"Content-Type\":\"text/csv;charset=utf-8\"}", "Placed",
     "[{\"a\":1},{\"b\":\"x,y\"}]", "text/csv;charset=utf-8", "a,b\r\n1,\r\n,\"x,y\"\r\n"},
    {NULL, "Picture", "bytes", "image/png", "bytes"},
    {"\"Headers\":{\"Content-Type\":\"text/html\"}", "Picture", "bytes", "image/png", "bytes"},
    {"\"Method\":\"HEAD\"", "Placed", "{}", NULL, NULL},
    {"\"Method\":\"DELETE\"", "Placed", "{}", "application/json", "[{}]"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Echo/a=1\"}", "Placed", "{}", "application/json",
     "[{\"a\":1}]"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Rules\"}", "Placed", "{}", "text/plain", "Be kind.\n"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Inbox\"}", "Placed", "{}", NULL, ""},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Aggregator\",\"Body\":{\"n\":\"REPORT /Inbox\"}}",
     "Placed", "{}", "application/json", "[{\"n\":0}]"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Echo/a=1\"},\"Headers\":{\"Content-Type\":"
     "\"text/csv\"}",
     "Placed", "{}", "text/csv", "a\r\n1\r\n"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Echo/a=1\",\"Headers\":{\"Accept\":"
     "\"application/x-ndjson\"}},\"Headers\":{\"Content-Type\":\"text/csv\"}",
     "Placed", "{}", "application/x-ndjson", "{\"a\":1}\n"},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Echo/a=1\"},\"Method\":\"HEAD\"", "Placed", "{}", NULL,
     NULL},
    {"\"CustomPayloadRequest\":{\"URI\":\"/Echo/a=1&a=2\"}", "Placed", "{}", "text/plain",
     "Svc.Echo: a name is there twice among the conditions and the body's members"},
};

START_TEST(a_body_has_the_form_that_was_asked_for)
{
    const struct fetch *fetch;

    webhook(asking_printf("/%s", bodies[_i].event), A "/", bodies[_i].members);
    ck_asks(201, "POST", asking_printf("/Svc.Event/Resource=%s", bodies[_i].event),
            bodies[_i].payload);
    settle();
    fetch = oldest(A);
    ck_span_is(header_of(fetch, "Content-Type"), span_str(bodies[_i].type));
    ck_assert((fetch->body != NULL) == (bodies[_i].body != NULL));
    ck_span_is(blob_span(fetch->body), span_str(bodies[_i].body));
    answer_now(200);
    look("Svc.Admin.WebhookLog");
    ck_span_is(answered("0.BodyByteCount"),
               arena_printf(&asking.arena, "%zu", span_str(bodies[_i].body).n));
}
END_TEST

#define SECRET_A "whsec_a2tra2tra2tra2tra2tra2tra2tra2tr"
#define SECRET_B "whsec_YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi"

/* Anew for each attempt, over what is sent. */
START_TEST(each_secret_signs)
{
    const struct span secrets[] = {SPAN(SECRET_A), SPAN(SECRET_B)};
    const char *id = webhook("/Placed", A "/",
                             "\"Signing\":{\"Secrets\":[\"" SECRET_A "\",\"" SECRET_B
                             "\"]},\"Delivery\":{\"RetrySchedule\":[10]}");
    struct signer *signer;

    ck_ok(signer_new(secrets, ARRAY_LEN(secrets), &signer));
    raise_event("{\"a\":1}");
    for (int i = 0; i < 2; i++) {
        const struct fetch *fetch = oldest(A);
        struct buf b;

        buf_init_arena(&b, &asking.arena);
        ck_ok(signer_add(signer, &b, header_of(fetch, "webhook-id"), clock_unix_ns() / 1000000000,
                         SPAN("[{\"a\":1}]")));
        ck_span_is(header_of(fetch, "webhook-signature"), buf_span(&b));
        answer_now(500);
        pass(20);
    }
    signer_unref(signer);
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id), "{\"Signing\":null}");
    raise_event("{}");
    ck_assert_ptr_null(header_of(oldest(A), "webhook-signature").p);
    answer_now(200);
}
END_TEST

enum { LARGE_BYTES = 900000 };

/* An entity with a string of so many bytes. */
static const char *large_payload(void)
{
    struct buf b;

    buf_init_arena(&b, &asking.arena);
    buf_add_str(&b, "{\"a\":\"");
    memset(buf_reserve(&b, LARGE_BYTES), 'x', LARGE_BYTES);
    buf_commit(&b, LARGE_BYTES);
    buf_add(&b, SPAN("\"}\0"));
    return b.p;
}

static struct span array_of(const char *entity)
{
    return arena_printf(&asking.arena, "[%s]", entity);
}

/* It is sent when it is signed, and others need not wait for that. */
START_TEST(a_large_body_is_signed_before_it_is_sent)
{
    const struct span secret = SPAN(SECRET_A);
    const char *payload = large_payload();
    struct signer *signer;
    struct buf b;

    webhook("/Placed", A "/", "\"Signing\":{\"Secrets\":[\"" SECRET_A "\"]}");
    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", payload);
    while (in_state(DELIVERY_IN_FLIGHT) == 0)
        asking_turn();
    ck_assert_uint_eq(under_way(A), 0);
    settle();
    ck_assert_uint_eq(under_way(A), 1);
    buf_init_arena(&b, &asking.arena);
    ck_ok(signer_new(&secret, 1, &signer));
    ck_ok(signer_add(signer, &b, header_of(oldest(A), "webhook-id"), clock_unix_ns() / 1000000000,
                     array_of(payload)));
    ck_span_is(header_of(oldest(A), "webhook-signature"), buf_span(&b));
    signer_unref(signer);
    answer_now(200);
    ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), 1);
}
END_TEST

START_TEST(what_is_being_signed_may_go)
{
    const char *id = webhook("/Placed", A "/", "\"Signing\":{\"Secrets\":[\"" SECRET_A "\"]}");

    ck_asks(201, "POST", "/Svc.Event/Resource=Placed", large_payload());
    while (in_state(DELIVERY_IN_FLIGHT) == 0)
        asking_turn();
    ck_asks(200, "DELETE", asking_printf("/Webhook/Id=%s", id), NULL);
    settle();
    ck_assert_uint_eq(starts, 0);
    ck_assert_uint_eq(in_state(DELIVERY_IN_FLIGHT), 0);
}
END_TEST

START_TEST(ed25519_signs_no_larger_body)
{
    webhook("/Placed", A "/",
            "\"Signing\":{\"Secrets\":[\"whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=\"]}");
    asking.service->limits.ed25519_bytes = LARGE_BYTES;
    raise_event(large_payload());
    ck_assert_uint_eq(starts, 0);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Aborted\"");
    ck_assert(span_find(span_str(answered_text("0.LastError")),
                        SPAN("the limit Ed25519Bytes (900000 bytes)")) != SIZE_MAX);
    asking.service->limits.ed25519_bytes = LARGE_BYTES + 100;
    raise_event(large_payload());
    ck_assert(span_starts(header_of(oldest(A), "webhook-signature"), SPAN("v1a,")));
    answer_now(200);
}
END_TEST

START_TEST(a_payload_that_is_not_held_is_read_back)
{
    webhook("/Placed", A "/", NULL);
    asking.service->limits.payload_bytes = 0;
    deliveries_stop(hooks()->deliveries);
    raise_event("{\"a\":1}");
    deliveries_start(hooks()->deliveries);
    for (unsigned i = 0; under_way(A) == 0; i++) {
        testing_await(i);
        asking_turn();
    }
    ck_span_eq(blob_span(oldest(A)->body), "[{\"a\":1}]");
    answer_now(200);
    ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), 1);
}
END_TEST

START_TEST(a_body_may_be_too_large_in_its_form)
{
    struct buf b;

    webhook("/Placed", A "/", "\"Headers\":{\"Content-Type\":\"text/csv\"}");
    asking.service->limits.answer_bytes =
        2000; /* a column for each member, a row for each entity */
    buf_init_arena(&b, &asking.arena);
    for (int i = 0; i < 50; i++)
        buf_printf(&b, "%s{\"n%d\":%d}", i == 0 ? "[" : ",", i, i);
    buf_add(&b, SPAN("]\0"));
    raise_event(b.p);
    ck_assert_uint_eq(starts, 0);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Aborted\"");
    ck_member_eq("0.Attempts", "1");
    ck_assert(span_find(span_str(answered_text("0.LastError")),
                        SPAN("text/csv the body would be larger than the limit AnswerBytes")) !=
              SIZE_MAX);
    ck_assert_uint_eq(asking.service->metrics->attempts[METRIC_ABORTED], 1);
}
END_TEST

/* ---- what comes of the answer ---- */

static const struct {
    int status;
    int64_t retry_after_s;
    const char *state;
    const char *error; /* NULL: none */
    uint64_t held_s;   /* the next attempt is at least so far away, and at most a fifth farther */
    bool pauses;
} outcomes[] = {
    {200, -1, "Delivered", NULL, 0, false},
    {299, -1, "Delivered", NULL, 0, false},
    {204, 50, "Delivered", NULL, 0, false},
    {199, -1, "Waiting", "answered 199 Unknown", 10, false},
    {300, -1, "Waiting", "answered 300 Multiple Choices", 10, false},
    {302, -1, "Waiting", "answered 302 Found", 10, false},
    {400, -1, "Waiting", "answered 400 Bad Request", 10, false},
    {404, 100, "Waiting", "answered 404 Not Found", 10, false},
    {429, -1, "Waiting", "answered 429 Too Many Requests", 10, false},
    {429, 100, "Waiting", "answered 429 Too Many Requests", 100, false},
    {503, 5, "Waiting", "answered 503 Service Unavailable", 10, false},
    {503, 1000000, "Waiting", "answered 503 Service Unavailable", 86400, false},
    {500, 100, "Waiting", "answered 500 Internal Server Error", 10, false},
    {410, -1, "Dead", "answered 410 Gone", 0, true},
};

START_TEST(an_answer_decides_what_follows)
{
    bool is_success = outcomes[_i].error == NULL;
    const char *id = webhook("/Placed", A "/", "\"Delivery\":{\"RetrySchedule\":[10,20]}");
    uint64_t serial;

    raise_event("{}");
    serial = asking_serial();
    answer_with(A, outcomes[_i].status, outcomes[_i].retry_after_s, 7);
    /* The entry of the log, the delivery's state, what its lane remembers, and the pause, with the
     * notices of it and of the end. */
    ck_assert_uint_eq(asking_serial(), serial + 2 + !is_success + 3 * outcomes[_i].pauses);
    settle();

    look("Svc.Admin.Delivery");
    ck_assert_str_eq(answered_text("0.State"), outcomes[_i].state);
    ck_member_eq("0.Attempts", "1");
    ck_span_is(answered("0.LastStatus"), arena_printf(&asking.arena, "%d", outcomes[_i].status));
    if (is_success)
        ck_member_eq("0.LastError", "null");
    else
        ck_assert_str_eq(answered_text("0.LastError"), outcomes[_i].error);
    look("Svc.Admin.WebhookLog");
    ck_span_is(answered("0.IsSuccess"), span_str(is_success ? "true" : "false"));
    ck_span_is(answered("0.StatusCode"), arena_printf(&asking.arena, "%d", outcomes[_i].status));
    ck_member_eq("0.DurationMs", "7");
    ck_member_eq("0.Attempt", "1");
    ck_assert_str_eq(answered_text("0.WebhookId"), id);
    ck_asks(200, "GET", "/Webhook", NULL);
    ck_span_is(answered("0.IsPaused"), span_str(outcomes[_i].pauses ? "true" : "false"));
    asking_reload();
    service_start(asking.service);
    if (outcomes[_i].held_s == 0) {
        pass(200000);
        ck_assert_uint_eq(under_way(A), 0);
        return;
    }
    pass(outcomes[_i].held_s - 1);
    ck_assert_uint_eq(under_way(A), 0);
    pass(outcomes[_i].held_s / 5 + 2);
    ck_assert_uint_eq(under_way(A), 1);
    ck_span_eq(header_of(oldest(A), "Svc-attempt"), "2");
    answer_now(200);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Delivered\"");
    ck_member_eq("0.Attempts", "2");
    ck_member_eq("0.LastError", "null");
}
END_TEST

START_TEST(a_schedule_ends)
{
    webhook("/Placed", A "/", "\"Delivery\":{\"RetrySchedule\":[1,2]}");
    raise_event("{}");
    answer_now(500);
    pass(2);
    answer_now(501);
    pass(3);
    ck_assert_uint_eq(in_state(DELIVERY_DEAD), 0);
    answer_now(502);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Dead\"");
    ck_member_eq("0.Attempts", "3");
    ck_member_eq("0.LastStatus", "502");
    ck_assert_uint_eq(asking.service->metrics->attempts[METRIC_REJECTED], 3);
    ck_assert_uint_eq(asking.service->metrics->deliveries[1], 1); /* of those that died */
    pass(100);
    ck_assert_uint_eq(starts, 3);
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery", "{\"State\":\"Pending\"}");
    ck_member_eq("0.Attempts", "0");
    settle();
    ck_span_eq(header_of(oldest(A), "Svc-attempt"), "1");
    answer_now(200);
    ck_assert_uint_eq(asking_count("Svc.Admin.WebhookLog"), 4);
}
END_TEST

START_TEST(no_answer_is_a_failure)
{
    struct fetch_result result = {.error = FETCH_TLS,
                                  .why = "the certificate has expired",
                                  .retry_after_s = -1,
                                  .total_ms = 50,
                                  .dns_ms = 10,
                                  .connect_ms = 20};

    webhook("/Placed", A "/", NULL);
    raise_event("{}");
    end_with(&result);
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.StatusCode", "null");
    ck_member_eq("0.ResponseStatus", "null");
    ck_member_eq("0.Error", "\"the certificate has expired\"");
    ck_member_eq("0.ResponseBody", "null");
    ck_member_eq("0.DurationMs", "50");
    ck_member_eq("0.DnsMs", "10");
    ck_member_eq("0.ConnectMs", "20");
    ck_member_eq("0.TlsMs", "0");
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Waiting\"");
    ck_member_eq("0.LastStatus", "null");
    ck_assert_uint_eq(asking.service->metrics->attempts[METRIC_NO_ANSWER], 1);
}
END_TEST

/* Kept are the first 4 KiB, and of an error the first 500 bytes for the delivery. */
START_TEST(answers_are_kept_up_to_a_character)
{
    enum { BYTES = 4097 };
    char body[BYTES];
    struct fetch_result result = {.status = 200, .retry_after_s = -1, .body = {body, BYTES}};

    memset(body, 'x', BYTES);
    memcpy(body + 4095, "\xc3\xa4", 2);
    webhook("/Placed", A "/", NULL);
    raise_event("{}");
    end_with(&result);
    look("Svc.Admin.WebhookLog");
    ck_assert_uint_eq(strlen(answered_text("0.ResponseBody")), 4095);
    memset(result.why, 'y', sizeof(result.why) - 1);
    result.status = 0;
    result.error = FETCH_OTHER;
    result.body = SPAN("\xff\"");
    raise_event("{}");
    end_with(&result);
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.ResponseBody", "\"\xef\xbf\xbd\\\"\"");
    ck_assert_uint_eq(strlen(answered_text("0.Error")), sizeof(result.why) - 1);
}
END_TEST

/* ---- while it is under way ---- */

START_TEST(an_attempt_goes_on_with_what_it_began_with)
{
    const char *id = webhook("/Placed", A "/", "\"Delivery\":{\"RetrySchedule\":[1]}");

    raise_event("{}");
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id),
            "{\"Destination\":\"http://b.test/\",\"Method\":\"PUT\"}");
    settle();
    ck_assert_uint_eq(under_way(A), 1);
    answer_now(500);
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.Method", "\"POST\"");
    ck_member_eq("0.Destination", "\"" A "/\"");
    pass(2);
    ck_assert_uint_eq(under_way(A), 0);
    ck_span_eq(oldest("http://b.test")->method, "PUT");
    answer_now(200);
}
END_TEST

START_TEST(pausing_lets_an_attempt_end)
{
    const char *id = webhook("/Placed", A "/", "\"Delivery\":{\"RetrySchedule\":[1]}");

    raise_event("{}");
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id), "{\"IsPaused\":true}");
    settle();
    answer_now(500);
    pass(100);
    ck_assert_uint_eq(under_way(A), 0);
    ck_asks(200, "PATCH", asking_printf("/Webhook/Id=%s", id), "{\"IsPaused\":false}");
    settle();
    answer_now(200);
    ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), 1);
}
END_TEST

START_TEST(an_attempt_ends_with_its_webhook_or_delivery)
{
    webhook("/Placed", A "/", NULL);
    raise_event("{}");
    ck_assert_uint_eq(in_state(DELIVERY_IN_FLIGHT), 1);
    if (_i == 0)
        ck_asks(200, "DELETE", "/Webhook", NULL);
    else
        ck_asks(200, "DELETE", "/Svc.Admin.Delivery", NULL);
    settle();
    ck_assert_uint_eq(under_way(A), 0);
    ck_assert_uint_eq(in_state(DELIVERY_IN_FLIGHT), 0);
    ck_assert_uint_eq(asking_count("Svc.Admin.WebhookLog"), 0);
    ck_assert_ptr_null(deliveries_oldest_pending(hooks()->deliveries));
}
END_TEST

START_TEST(an_attempt_that_is_not_recorded_is_made_again)
{
    webhook("/Placed", A "/", NULL);
    raise_event("{}");
    ck_assert_uint_eq(under_way(A), 1);
    asking_reload();
    ck_assert_uint_eq(in_state(DELIVERY_PENDING), 1);
    service_start(asking.service);
    settle();
    ck_span_eq(header_of(oldest(A), "Svc-attempt"), "1");
    answer_now(200);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.Attempts", "1");
}
END_TEST

/* ---- local destinations ---- */

START_TEST(a_local_request_is_evaluated_here)
{
    webhook("/Placed", "/Inbox", "\"Headers\":{\"X\":\"y\"}");
    ask_with("Svc-depth: 1", "POST", "/Svc.Event/Resource=Placed", "[{\"a\":1},{\"a\":2}]");
    settle();
    ck_assert_uint_eq(starts, 0);
    ck_assert_uint_eq(asking_count("Shop.Inbox"), 2);
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.StatusCode", "201");
    ck_member_eq("0.IsSuccess", "true");
    ck_member_eq("0.Error", "null");
    ck_member_eq("0.Destination", "\"/Shop.Inbox\"");
    ck_assert(span_starts(span_str(answered_text("0.ResponseBody")), SPAN("[{\"Id\":")));
    /* What it has changed raises events, one deeper. */
    ck_asks(200, "GET", "/Svc.Event/Resource=Shop.Loop", NULL);
    ck_assert_uint_eq(events_next(hooks()->events, events_first(hooks()->events))->depth, 2);
}
END_TEST

START_TEST(a_local_refusal_is_the_end)
{
    webhook("/Placed", "/Inbox/a=1", "\"Method\":\"PATCH\",\"Delivery\":{\"RetrySchedule\":[1]}");
    raise_event("{\"b\":2}");
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.StatusCode", "404");
    ck_member_eq("0.Error", "\"no entity of 'Shop.Inbox' matches\"");
    ck_assert_uint_eq(asking_count("Svc.Admin.Error"), 1);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Dead\"");
    ck_member_eq("0.Attempts", "1");
    ck_asks(201, "POST", "/Inbox", "{\"a\":1}");
    pass(2);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Dead\"");
    ck_asks(200, "PATCH", "/Svc.Admin.Delivery", "{\"State\":\"Pending\"}");
    settle();
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Delivered\"");
    look("Shop.Inbox");
    ck_member_eq("0.b", "2");
}
END_TEST

START_TEST(a_loop_ends)
{
    webhook("/Loop", "/Inbox", NULL);
    ck_asks(201, "POST", "/Inbox", "{}");
    while (deliveries_oldest_pending(hooks()->deliveries) != NULL)
        settle();
    /* One by hand, one from each of the 16 events. The last raises none. */
    ck_assert_uint_eq(asking_count("Shop.Inbox"), 16);
    ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), 15);
    ck_assert_uint_eq(in_state(DELIVERY_ABORTED), 1);
    ck_asks(200, "GET", "/Svc.Admin.Delivery/State=Aborted", NULL);
    ck_member_eq("0.LastStatus", "508");
    ck_assert(span_find(span_str(answered_text("0.LastError")), SPAN("17th")) != SIZE_MAX);
}
END_TEST

/* However wide it is: it would be 4 to the 16th events. */
START_TEST(a_wide_loop_ends)
{
    enum { MOST = 10 };

    asking.service->limits.event_descendants = MOST;
    for (int i = 0; i < 4; i++)
        webhook("/Loop", "/Inbox", NULL);
    ck_asks(201, "POST", "/Inbox", "{}");
    while (deliveries_oldest_pending(hooks()->deliveries) != NULL)
        settle();
    ck_assert_uint_eq(asking_count("Shop.Inbox"), 1 + MOST);
    ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), MOST);
    ck_assert_uint_eq(in_state(DELIVERY_ABORTED), 4 * (1 + MOST) - MOST);
    ck_asks(200, "GET", "/Svc.Admin.Delivery/State=Aborted/limit=1", NULL);
    ck_member_eq("0.LastStatus", "508");
    ck_assert(span_find(span_str(answered_text("0.LastError")), SPAN("EventDescendants")) !=
              SIZE_MAX);
    ck_asks(201, "POST", "/Inbox", "{}"); /* which is the first of its own */
    ck_assert_uint_eq(asking_count("Shop.Inbox"), 2 + MOST);
    settle();
    ck_assert_uint_gt(asking_count("Shop.Inbox"), 2 + MOST);
}
END_TEST

/* The webhook deletes its own deliveries, or itself, or its event. */
static const char *const own[] = {"/Svc.Admin.Delivery", "/Svc.Admin.Webhook", "/Svc.Event",
                                  "/Svc.Admin.WebhookLog"};

START_TEST(a_local_request_may_delete_what_it_is_for)
{
    webhook("/Placed", asking_printf("%s/_/unsafe=true", own[_i]), "\"Method\":\"DELETE\"");
    raise_event("{}");
    raise_event("{}");
    ck_assert_uint_eq(in_state(DELIVERY_IN_FLIGHT), 0);
    ck_assert_uint_eq(in_state(DELIVERY_PENDING), 0);
    if (_i >= 2)
        ck_assert_uint_eq(in_state(DELIVERY_DELIVERED), 2);
    else
        ck_asks(204, "GET", "/Svc.Admin.Delivery", NULL);
}
END_TEST

/* ---- custom payload requests ---- */

#define CUSTOM(uri, more) "\"CustomPayloadRequest\":{\"URI\":\"" uri "\"" more "}"

static const struct {
    const char *members, *error; /* of an abort; NULL: it is sent */
} customs[] = {
    {CUSTOM("/Echo/a=1&a=2", ""), NULL},
    {CUSTOM("/Echo/a=1&a=2", ",\"BreakOnError\":true"),
     "custom payload request failed with status 400: Svc.Echo"},
    {CUSTOM("/Echo/a=1&a=2", ",\"BreakOnNoContent\":true"), NULL},
    {CUSTOM("/Inbox", ""), NULL},
    {CUSTOM("/Inbox", ",\"BreakOnNoContent\":true"), "custom payload request has no content"},
    {CUSTOM("/Inbox", ",\"BreakOnError\":true"), NULL},
    {CUSTOM("/Echo/a=1", ",\"BreakOnError\":true,\"BreakOnNoContent\":true"), NULL},
};

START_TEST(a_custom_payload_may_abort_a_delivery)
{
    webhook("/Placed", A "/", customs[_i].members);
    raise_event("{}");
    if (customs[_i].error == NULL) {
        ck_assert_uint_eq(under_way(A), 1);
        answer_now(200);
        return;
    }
    ck_assert_uint_eq(starts, 0);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Aborted\"");
    ck_member_eq("0.LastStatus", "null");
    ck_assert(span_starts(span_str(answered_text("0.LastError")), span_str(customs[_i].error)));
    look("Svc.Admin.WebhookLog");
    ck_member_eq("0.IsSuccess", "false");
    ck_member_eq("0.BodyByteCount", "0");
    /* It says nothing about the receiver. */
    ck_asks(200, "GET", "/Webhook/_/add=Status", NULL);
    ck_member_eq("0.Status.FailingSince", "null");
}
END_TEST

START_TEST(each_attempt_asks_for_its_payload_anew)
{
    webhook("/Placed", A "/",
            CUSTOM("/Inbox/_/select=n", "") ",\"Delivery\":{\"RetrySchedule\":[1]}");
    ck_asks(201, "POST", "/Inbox", "{\"n\":1}");
    raise_event("{}");
    ck_span_eq(blob_span(oldest(A)->body), "[{\"n\":1}]");
    ck_asks(201, "POST", "/Inbox", "{\"n\":2}");
    answer_now(500);
    pass(2);
    ck_span_eq(blob_span(oldest(A)->body), "[{\"n\":1},{\"n\":2}]");
    answer_now(200);
}
END_TEST

/* ---- one after the other ---- */

/* Attempts are used again: nothing of the one before is left in the next. */
START_TEST(an_attempt_begins_with_nothing)
{
    webhook("/Placed/n=1", A "/", CUSTOM("/Inbox", ",\"BreakOnNoContent\":true"));
    webhook("/Placed/n=2", A "/", "\"Delivery\":{\"RetrySchedule\":[]}");
    webhook("/Placed/n=3", A "/", CUSTOM("/Inbox", ""));
    webhook("/Placed/n=4", "/Svc.Admin.Delivery/_/unsafe=true", "\"Method\":\"DELETE\"");
    raise_event("{\"n\":1}"); /* aborted */
    raise_event("{\"n\":2}");
    ck_span_eq(header_of(oldest(A), "Content-Type"), "application/json");
    answer_with(A, 503, 1000, 1);
    settle();
    raise_event("{\"n\":3}");
    ck_assert_ptr_null(header_of(oldest(A), "Content-Type").p);
    answer_now(200);
    raise_event("{\"n\":1}");
    look("Svc.Admin.Delivery");
    ck_asks(200, "GET", "/Svc.Admin.Delivery/_/select=State,LastStatus", NULL);
    ck_body_eq("[{\"State\":\"Aborted\",\"LastStatus\":null},"
               "{\"State\":\"Aborted\",\"LastStatus\":null},"
               "{\"State\":\"Dead\",\"LastStatus\":503},"
               "{\"State\":\"Delivered\",\"LastStatus\":200}]");
    raise_event("{\"n\":4}"); /* it takes itself away */
    ck_asks(204, "GET", "/Svc.Admin.Delivery", NULL);
    raise_event("{\"n\":3}");
    answer_now(200);
    look("Svc.Admin.Delivery");
    ck_member_eq("0.State", "\"Delivered\"");
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_test(tc, a_request_says_what_it_is);
    tcase_add_loop_test(tc, a_body_has_the_form_that_was_asked_for, 0, ARRAY_LEN(bodies));
    tcase_add_test(tc, each_secret_signs);
    tcase_add_test(tc, a_large_body_is_signed_before_it_is_sent);
    tcase_add_test(tc, what_is_being_signed_may_go);
    tcase_add_test(tc, ed25519_signs_no_larger_body);
    tcase_add_test(tc, a_payload_that_is_not_held_is_read_back);
    tcase_add_test(tc, a_body_may_be_too_large_in_its_form);
    tcase_add_loop_test(tc, an_answer_decides_what_follows, 0, ARRAY_LEN(outcomes));
    tcase_add_test(tc, a_schedule_ends);
    tcase_add_test(tc, no_answer_is_a_failure);
    tcase_add_test(tc, answers_are_kept_up_to_a_character);
    tcase_add_test(tc, an_attempt_goes_on_with_what_it_began_with);
    tcase_add_test(tc, pausing_lets_an_attempt_end);
    tcase_add_loop_test(tc, an_attempt_ends_with_its_webhook_or_delivery, 0, 2);
    tcase_add_test(tc, an_attempt_that_is_not_recorded_is_made_again);
    tcase_add_test(tc, a_local_request_is_evaluated_here);
    tcase_add_test(tc, a_local_refusal_is_the_end);
    tcase_add_test(tc, a_loop_ends);
    tcase_add_test(tc, a_wide_loop_ends);
    tcase_add_loop_test(tc, a_local_request_may_delete_what_it_is_for, 0, ARRAY_LEN(own));
    tcase_add_loop_test(tc, a_custom_payload_may_abort_a_delivery, 0, ARRAY_LEN(customs));
    tcase_add_test(tc, each_attempt_asks_for_its_payload_anew);
    tcase_add_test(tc, an_attempt_begins_with_nothing);
}
