/* What an entry of the log tells of what was sent. What attempts keep of it, and that this is what
 * receivers got, tests/blackbox/test_sent.py shows. */
#include "asking.h"

#include "hooks/webhook_sent.h"
#include "store/change.h"
#include "store/turn.h"
#include "webhook/webhook_log.h"

static void begin(void)
{
    asking_open(NULL);
}

#define KNOWN                                                                                      \
    "\"Svc-webhook-id\":\"00000000-0000-0000-0000-000000000000\",\"Svc-attempt\":\"2\","           \
    "\"webhook-id\":\"00000000-0000-0000-0000-000000000000\",\"webhook-timestamp\":\"18\""
#define JSON "\"Content-Type\":\"application/json\","

static const struct {
    const char *sent, *method;
    size_t body_bytes;
    const char *headers, *body;
} rows[] = {
    {NULL, "POST", 0, "null", "null"},
    {"\"\"", "POST", 10, "{" JSON KNOWN "}", "null"}, /* the payload of an event that is gone */
    {"\"A: 1\\nB: 2: 3\\n\"", "POST", 10, "{\"A\":\"1\",\"B\":\"2: 3\"," JSON KNOWN "}", "null"},
    {"\"A: \\\"x\\\"\\n\\n<b>\\n\\n</b>\"", "POST", 10, "{\"A\":\"\\\"x\\\"\"," JSON KNOWN "}",
     "\"<b>\\n\\n</b>\""},
    {"\"\\nbody\"", "POST", 4, "{" JSON KNOWN "}", "\"body\""},
    {"\"\\n\\nbody\"", "POST", 4, "{" JSON KNOWN "}", "\"\\nbody\""},
    {"\"Content-Type: text/csv\\n\\na\\r\\n1\\r\\n\"", "POST", 6,
     "{\"Content-Type\":\"text/csv\"," KNOWN "}", "\"a\\r\\n1\\r\\n\""},
    {"\"A: 1\\n\\n\"", "POST", 0, "{\"A\":\"1\"," KNOWN "}", "null"},
    {"\"A: 1\\n\"", "HEAD", 0, "{\"A\":\"1\"," KNOWN "}", "null"},
};

START_TEST(entries)
{
    const struct webhook_log_entry entry = {
        .attempt = 2,
        .method = span_str(rows[_i].method),
        .time_unix_ns = INT64_C(18999999999),
        .body_bytes = rows[_i].body_bytes,
        .sent = span_str(rows[_i].sent),
    };
    struct change change;
    uint64_t serial;

    change_init(&change, asking.service->turn, &asking.arena);
    webhook_log_add(&change, &entry);
    ck_ok(turn_apply(asking.service->turn, &change, &serial));
    change_done(&change);
    for (int again = 0; again < 2; again++) {
        ck_asks(200, "GET", "/Svc.Admin.WebhookLog/_/add=RequestHeaders,RequestBody", NULL);
        ck_span_is(answered("0.RequestHeaders"), span_str(rows[_i].headers));
        ck_span_is(answered("0.RequestBody"), span_str(rows[_i].body));
        ck_asks(200, "GET", "/Svc.Admin.WebhookLog", NULL);
        ck_assert(span_find(answered_body(), SPAN("Request")) == SIZE_MAX);
        ck_assert(span_find(answered_body(), SPAN("Sent")) == SIZE_MAX);
        asking_reload();
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, asking_close);
    tcase_add_loop_test(tc, entries, 0, ARRAY_LEN(rows));
}
