/* The table of a webhook's properties, and how a stored one is read by it (docs/specification.md,
 * section 8). Delivery may be stored as null, and then has all its defaults.
 */
#include "protocol/method.h"
#include "webhook/webhook.h"
#include "webhook/webhook_settings.h"

#include "base/header_field.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "store/entity.h"
#include "webhook/webhook_status.h"
#include "json/decimal.h"
#include "json/json.h"

#define TEXT(s) SPAN_INIT(s)

static const struct span get_alone = SPAN_INIT("GET");
static const struct enumeration custom_methods = {
    .name = "Method", .values = &get_alone, .count = 1};

static const struct property custom_properties[] = {
    PROPERTY("Method", TYPE_STRING, "Always GET", .values = &method_names,
             .written = &custom_methods, .default_json = TEXT("\"GET\"")),
    PROPERTY("URI", TYPE_STRING, "URI of the local request", .flags = PROPERTY_REQUIRED),
    PROPERTY("Headers", TYPE_OBJECT, "Headers of the local request", .default_json = TEXT("{}")),
    PROPERTY("Body", TYPE_ANY, "Body used in the request"),
    PROPERTY("BreakOnError", TYPE_BOOLEAN,
             "Abort the delivery when the request fails, instead of sending the message",
             .default_json = TEXT("false")),
    PROPERTY("BreakOnNoContent", TYPE_BOOLEAN,
             "Abort the delivery when the request yields 204, instead of an empty body",
             .default_json = TEXT("false")),
};

static const struct shape custom_shape = {custom_properties, ARRAY_LEN(custom_properties), false};

/* In this order. */
enum { TIMEOUT, RETRY_SCHEDULE, MAX_IN_FLIGHT, RATE, ORDERED, DISABLE_AFTER };

static const struct property delivery_properties[] = {
    PROPERTY("TimeoutSeconds", TYPE_NUMBER, "Seconds for a whole attempt, 0.1 to 3600",
             .default_json = TEXT("30"), .least = 0.1, .most = 3600),
    PROPERTY("RetrySchedule", TYPE_ARRAY, "Seconds before the second, third, ... attempt",
             .default_json = TEXT("[5,300,1800,7200,18000,36000,36000]")),
    PROPERTY("MaxInFlight", TYPE_INTEGER, "Attempts under way at once, 1 to 1024",
             .default_json = TEXT("16"), .least = 1, .most = 1024),
    PROPERTY("RatePerSecond", TYPE_NUMBER, "Attempts a second at most, up to 1000000; 0: no limit",
             .default_json = TEXT("0"), .least = 0, .most = 1000000),
    PROPERTY("Ordered", TYPE_BOOLEAN,
             "One at a time in the order of events; the first blocks the others",
             .default_json = TEXT("false")),
    PROPERTY("DisableAfterDays", TYPE_NUMBER,
             "Days of nothing but failures before it is paused, up to 3650; 0: never",
             .default_json = TEXT("5"), .least = 0, .most = 3650),
};

static const struct shape delivery_shape = {delivery_properties, ARRAY_LEN(delivery_properties),
                                            false};

static const struct property signing_properties[] = {
    PROPERTY("Secrets", TYPE_ARRAY,
             "whsec_ (HMAC-SHA256) and whsk_ (ed25519) secrets, the newest last; each one "
             "signs; without any the server makes one",
             .elements = TYPE_STRING),
    PROPERTY("Rotate", TYPE_BOOLEAN, "Makes a new secret, of the kind of the newest; not kept",
             .default_json = TEXT("false")),
    PROPERTY("KeepSeconds", TYPE_NUMBER,
             "Beside Rotate alone: seconds for which the others still sign, up to 31536000; "
             "null: 86400; not kept",
             .least = 0, .most = 31536000),
    PROPERTY("Expires", TYPE_ARRAY,
             "Of each secret the time after which it does not sign, or null; the server's"),
};

static const struct shape signing_shape = {signing_properties, ARRAY_LEN(signing_properties),
                                           false};

static const struct span format_names[WEBHOOK_FORMAT_COUNT] = {
    [WEBHOOK_ARRAY] = SPAN_INIT("Array"),
    [WEBHOOK_STANDARD] = SPAN_INIT("StandardWebhooks"),
    [WEBHOOK_CLOUD_BINARY] = SPAN_INIT("CloudEventsBinary"),
    [WEBHOOK_CLOUD_STRUCTURED] = SPAN_INIT("CloudEventsStructured"),
};
const struct enumeration webhook_format_names = {"Format", format_names, WEBHOOK_FORMAT_COUNT};

static const struct span verify_texts[] = {SPAN_INIT("CloudEvents")};
static const struct enumeration verify_names = {"Verify", verify_texts, ARRAY_LEN(verify_texts)};

static const struct property properties[] = {
    ID_PROPERTY("Unique ID of the webhook"),
    PROPERTY("Label", TYPE_STRING, "Descriptive label"),
    PROPERTY("Method", TYPE_STRING, "HTTP method of the triggered request", .values = &method_names,
             .default_json = TEXT("\"POST\"")),
    PROPERTY("Destination", TYPE_STRING, "Destination URI: relative (a local resource) or absolute",
             .flags = PROPERTY_REQUIRED),
    PROPERTY("EventSelector", TYPE_STRING,
             "Selects the events that trigger the webhook; or EventSelectors"),
    PROPERTY("Headers", TYPE_OBJECT, "Headers sent with the triggered request",
             .default_json = TEXT("{}")),
    PROPERTY("IsPaused", TYPE_BOOLEAN, "Paused webhooks are skipped when events are matched",
             .default_json = TEXT("false")),
    PROPERTY("CustomPayloadRequest", TYPE_OBJECT,
             "A local request whose result replaces the event payload as body",
             .flags = PROPERTY_WHOLE, .members = &custom_shape),
    PROPERTY("EventSelectors", TYPE_ARRAY, "1 to 64 selectors, of which any may select an event",
             .elements = TYPE_STRING),
    PROPERTY("Format", TYPE_STRING,
             "Form of the body: Array, or StandardWebhooks, an object with type, timestamp "
             "and data, or as CloudEvents; null: Array",
             .values = &webhook_format_names),
    PROPERTY("Verify", TYPE_STRING,
             "CloudEvents: the receiver has to agree before it gets anything; null: no",
             .values = &verify_names),
    PROPERTY("Delivery", TYPE_OBJECT,
             "Time-outs, retries and limits of its deliveries; null: the defaults",
             .members = &delivery_shape),
    PROPERTY("Signing", TYPE_OBJECT, "Secrets that sign its requests; null: unsigned",
             .members = &signing_shape),
    PROPERTY("Tags", TYPE_ARRAY, "The owner's own labels", .elements = TYPE_STRING),
    PROPERTY("Tenant", TYPE_STRING,
             "Whose it is: it gets events of this tenant only; null: all events",
             .flags = PROPERTY_INDEXED),
    READ_ONLY_PROPERTY("Owner", TYPE_STRING, PROPERTY_INDEXED,
                       "Name of the API key that made it, or last changed what it sends where"),
    READ_ONLY_PROPERTY("ErrorMessage", TYPE_STRING, 0, "Why the server paused it"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When it was created"),
    READ_ONLY_PROPERTY("Status", TYPE_OBJECT, PROPERTY_HIDDEN,
                       "How its deliveries are doing, and why; shown when add asks for it",
                       .members = &webhook_status_shape),
    OBJECT_NO_PROPERTY,
    READ_ONLY_PROPERTY("OwnerKey", TYPE_STRING, 0, "Which key of the name Owner it is"),
    READ_ONLY_PROPERTY("WriterKey", TYPE_STRING, 0, "Which key wrote its secrets, all of them"),
};
enum { NEVER_SHOWN = 2 };

const struct shape webhook_shape = {.properties = properties,
                                    .count = ARRAY_LEN(properties) - NEVER_SHOWN,
                                    .name = SPAN_INIT("Svc.Admin.Webhook")};
const struct shape webhook_stored_shape = {.properties = properties,
                                           .count = ARRAY_LEN(properties),
                                           .name = SPAN_INIT("Svc.Admin.Webhook")};

/* Settings. -------------------------------------------------------------------------------- */

static void read_headers(struct json_value headers, struct arena *a, struct header_field **out,
                         size_t *out_count)
{
    struct header_field *list = ARENA_ARRAY(a, struct header_field, json_count(headers));
    size_t count = 0;

    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m))
        list[count++] = (struct header_field){json_string(m.name, a), json_string(m.value, a)};
    *out = list;
    *out_count = count;
}

static void read_custom(struct json_value custom, struct arena *a, struct webhook_settings *s)
{
    struct json_value body = json_member(custom, SPAN("Body"));

    s->has_custom = json_type(custom) == JSON_OBJECT;
    if (!s->has_custom)
        return;
    s->custom_uri = json_string(json_member(custom, SPAN("URI")), a);
    s->break_on_error = json_is_true(json_member(custom, SPAN("BreakOnError")));
    s->break_on_no_content = json_is_true(json_member(custom, SPAN("BreakOnNoContent")));
    read_headers(json_member(custom, SPAN("Headers")), a, &s->custom_headers,
                 &s->custom_header_count);
    if (json_type(body) != JSON_NULL)
        s->custom_body = json_text(body);
}

static double number_of(struct json_value v)
{
    return decimal_to_double(json_text(v));
}

static struct err *read_delivery(struct json_value delivery, struct arena *a,
                                 struct webhook_settings *s)
{
    const struct json_value *values = schema_stored(&delivery_shape, delivery, a);

    s->timeout_ms = (uint32_t)(number_of(values[TIMEOUT]) * 1000);
    s->max_in_flight = (uint32_t)number_of(values[MAX_IN_FLIGHT]);
    s->rate_per_second = number_of(values[RATE]);
    s->ordered = json_is_true(values[ORDERED]);
    s->disable_after_days = number_of(values[DISABLE_AFTER]);
    return retry_parse(values[RETRY_SCHEDULE], &s->retry);
}

static void read_signing(struct json_value signing, struct arena *a, struct webhook_settings *s)
{
    s->secret_count = webhook_secrets(signing, a, &s->secrets);
}

/* Null is Array. */
static enum webhook_format format_of(struct span name)
{
    size_t place = enumeration_place(&webhook_format_names, name);

    return place < WEBHOOK_FORMAT_COUNT ? (enum webhook_format)place : WEBHOOK_ARRAY;
}

struct err *webhook_read(const struct webhook *w, struct arena *a,
                         struct webhook_settings *out_settings)
{
    /* A copy: the entity may change while an attempt goes on with what it began with. */
    struct json_value json = entity_parse(arena_copy(a, entity_json(w->entity)), a);
    struct webhook_settings s = {.has_custom = false};

    s.method = json_string(json_member(json, SPAN("Method")), a);
    s.destination = json_string(json_member(json, SPAN("Destination")), a);
    s.is_local = span_starts(s.destination, SPAN("/"));
    read_headers(json_member(json, SPAN("Headers")), a, &s.headers, &s.header_count);
    for (size_t i = 0; i < s.header_count; i++)
        if (span_ieq(s.headers[i].name, SPAN("Content-Type")))
            s.content_type = s.headers[i].value;
    read_custom(json_member(json, SPAN("CustomPayloadRequest")), a, &s);
    read_signing(json_member(json, SPAN("Signing")), a, &s);
    s.format = format_of(json_string(json_member(json, SPAN("Format")), a));
    s.verifies = !s.is_local && json_type(json_member(json, SPAN("Verify"))) == JSON_STRING;
    TRY(read_delivery(json_member(json, SPAN("Delivery")), a, &s));
    *out_settings = s;
    return NULL;
}

/* What is wrong with the type an attempt will tell. */
static bool is_reformatted(const struct webhook_settings *settings)
{
    enum format format = FORMAT_JSON;

    err_free(negotiate_written_type(settings->content_type, &format));
    return format != FORMAT_JSON;
}

bool webhook_makes_bodies(const struct webhook_settings *settings)
{
    return settings->has_custom || settings->format != WEBHOOK_ARRAY || is_reformatted(settings);
}
