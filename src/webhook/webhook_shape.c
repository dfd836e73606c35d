/* The table of a webhook's properties, and how a stored one is read by it (docs/specification.md,
 * section 8). Delivery may be stored as null, and then has all its defaults.
 */
#include "protocol/method.h"
#include "webhook/webhook.h"
#include "webhook/webhook_settings.h"

#include "fetch/fetch_header.h"
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
    {.name = TEXT("Method"),
     .type = TYPE_STRING,
     .values = &method_names,
     .written = &custom_methods,
     .default_json = TEXT("\"GET\""),
     .meaning = TEXT("Always GET")},
    {.name = TEXT("URI"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .meaning = TEXT("URI of the local request")},
    {.name = TEXT("Headers"),
     .type = TYPE_OBJECT,
     .default_json = TEXT("{}"),
     .meaning = TEXT("Headers of the local request")},
    {.name = TEXT("Body"), .type = TYPE_ANY, .meaning = TEXT("Body used in the request")},
    {.name = TEXT("BreakOnError"),
     .type = TYPE_BOOLEAN,
     .default_json = TEXT("false"),
     .meaning = TEXT("Abort the delivery when the request fails, instead of sending the message")},
    {.name = TEXT("BreakOnNoContent"),
     .type = TYPE_BOOLEAN,
     .default_json = TEXT("false"),
     .meaning = TEXT("Abort the delivery when the request yields 204, instead of an empty body")},
};

static const struct shape custom_shape = {custom_properties, ARRAY_LEN(custom_properties), false};

/* In this order. */
enum { TIMEOUT, RETRY_SCHEDULE, MAX_IN_FLIGHT, RATE, ORDERED, DISABLE_AFTER };

static const struct property delivery_properties[] = {
    {.name = TEXT("TimeoutSeconds"),
     .type = TYPE_NUMBER,
     .default_json = TEXT("30"),
     .least = 0.1,
     .most = 3600,
     .meaning = TEXT("Seconds for a whole attempt, 0.1 to 3600")},
    {.name = TEXT("RetrySchedule"),
     .type = TYPE_ARRAY,
     .default_json = TEXT("[5,300,1800,7200,18000,36000,36000]"),
     .meaning = TEXT("Seconds before the second, third, ... attempt")},
    {.name = TEXT("MaxInFlight"),
     .type = TYPE_INTEGER,
     .default_json = TEXT("16"),
     .least = 1,
     .most = 1024,
     .meaning = TEXT("Attempts under way at once, 1 to 1024")},
    {.name = TEXT("RatePerSecond"),
     .type = TYPE_NUMBER,
     .default_json = TEXT("0"),
     .least = 0,
     .most = 1000000,
     .meaning = TEXT("Attempts a second at most, up to 1000000; 0: no limit")},
    {.name = TEXT("Ordered"),
     .type = TYPE_BOOLEAN,
     .default_json = TEXT("false"),
     .meaning = TEXT("One at a time in the order of events; the first blocks the others")},
    {.name = TEXT("DisableAfterDays"),
     .type = TYPE_NUMBER,
     .default_json = TEXT("5"),
     .least = 0,
     .most = 3650,
     .meaning = TEXT("Days of nothing but failures before it is paused, up to 3650; 0: never")},
};

static const struct shape delivery_shape = {delivery_properties, ARRAY_LEN(delivery_properties),
                                            false};

static const struct property signing_properties[] = {
    {.name = TEXT("Secrets"),
     .type = TYPE_ARRAY,
     .elements = TYPE_STRING,
     .meaning = TEXT("whsec_ (HMAC-SHA256) and whsk_ (ed25519) secrets, the newest last; each one "
                     "signs; without any the server makes one")},
    {.name = TEXT("Rotate"),
     .type = TYPE_BOOLEAN,
     .default_json = TEXT("false"),
     .meaning = TEXT("Makes a new secret, of the kind of the newest; not kept")},
    {.name = TEXT("KeepSeconds"),
     .type = TYPE_NUMBER,
     .default_json = TEXT("86400"),
     .least = 0,
     .most = 31536000,
     .meaning = TEXT("Beside Rotate: seconds for which the others still sign, up to 31536000; not "
                     "kept")},
    {.name = TEXT("Expires"),
     .type = TYPE_ARRAY,
     .meaning =
         TEXT("Of each secret the time after which it does not sign, or null; the server's")},
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
    {.name = TEXT("Id"),
     .type = TYPE_STRING,
     .flags = PROPERTY_ENTITY | PROPERTY_READ_ONLY,
     .meaning = TEXT("Unique ID of the webhook")},
    {.name = TEXT("Label"), .type = TYPE_STRING, .meaning = TEXT("Descriptive label")},
    {.name = TEXT("Method"),
     .type = TYPE_STRING,
     .values = &method_names,
     .default_json = TEXT("\"POST\""),
     .meaning = TEXT("HTTP method of the triggered request")},
    {.name = TEXT("Destination"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED,
     .meaning = TEXT("Destination URI: relative (a local resource) or absolute")},
    {.name = TEXT("EventSelector"),
     .type = TYPE_STRING,
     .meaning = TEXT("Selects the events that trigger the webhook; or EventSelectors")},
    {.name = TEXT("Headers"),
     .type = TYPE_OBJECT,
     .default_json = TEXT("{}"),
     .meaning = TEXT("Headers sent with the triggered request")},
    {.name = TEXT("IsPaused"),
     .type = TYPE_BOOLEAN,
     .default_json = TEXT("false"),
     .meaning = TEXT("Paused webhooks are skipped when events are matched")},
    {.name = TEXT("CustomPayloadRequest"),
     .type = TYPE_OBJECT,
     .flags = PROPERTY_WHOLE,
     .members = &custom_shape,
     .meaning = TEXT("A local request whose result replaces the event payload as body")},
    {.name = TEXT("EventSelectors"),
     .type = TYPE_ARRAY,
     .elements = TYPE_STRING,
     .meaning = TEXT("1 to 64 selectors, of which any may select an event")},
    {.name = TEXT("Format"),
     .type = TYPE_STRING,
     .values = &webhook_format_names,
     .meaning = TEXT("Form of the body: Array, or StandardWebhooks, an object with type, timestamp "
                     "and data, or as CloudEvents; null: Array")},
    {.name = TEXT("Verify"),
     .type = TYPE_STRING,
     .values = &verify_names,
     .meaning = TEXT("CloudEvents: the receiver has to agree before it gets anything; null: no")},
    {.name = TEXT("Delivery"),
     .type = TYPE_OBJECT,
     .members = &delivery_shape,
     .meaning = TEXT("Time-outs, retries and limits of its deliveries; null: the defaults")},
    {.name = TEXT("Signing"),
     .type = TYPE_OBJECT,
     .members = &signing_shape,
     .meaning = TEXT("Secrets that sign its requests; null: unsigned")},
    {.name = TEXT("Tags"),
     .type = TYPE_ARRAY,
     .elements = TYPE_STRING,
     .meaning = TEXT("The owner's own labels")},
    {.name = TEXT("Tenant"),
     .type = TYPE_STRING,
     .flags = PROPERTY_INDEXED,
     .meaning = TEXT("Whose it is: it gets events of this tenant only; null: all events")},
    {.name = TEXT("Owner"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY | PROPERTY_INDEXED,
     .meaning = TEXT("Name of the API key that made it, or last changed what it sends where")},
    {.name = TEXT("ErrorMessage"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .meaning = TEXT("Why the server paused it")},
    {.name = TEXT("Time"),
     .type = TYPE_DATETIME,
     .flags = PROPERTY_READ_ONLY,
     .meaning = TEXT("When it was created")},
    {.name = TEXT("Status"),
     .type = TYPE_OBJECT,
     .flags = PROPERTY_HIDDEN | PROPERTY_READ_ONLY,
     .members = &webhook_status_shape,
     .meaning = TEXT("How its deliveries are doing, and why; shown when add asks for it")},
    {.name = TEXT("ObjectNo"),
     .type = TYPE_INTEGER,
     .flags = PROPERTY_ENTITY | PROPERTY_READ_ONLY,
     .meaning = TEXT("Serial number in the store")},
    {.name = TEXT("OwnerKey"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .meaning = TEXT("Which key of the name Owner it is")},
    {.name = TEXT("WriterKey"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .meaning = TEXT("Which key wrote its secrets, all of them")},
};
enum { NEVER_SHOWN = 2 };

const struct shape webhook_shape = {.properties = properties,
                                    .count = ARRAY_LEN(properties) - NEVER_SHOWN,
                                    .name = SPAN_INIT("Svc.Admin.Webhook")};
const struct shape webhook_stored_shape = {.properties = properties,
                                           .count = ARRAY_LEN(properties),
                                           .name = SPAN_INIT("Svc.Admin.Webhook")};

/* Settings. -------------------------------------------------------------------------------- */

static void read_headers(struct json_value headers, struct arena *a, struct fetch_header **out,
                         size_t *out_count)
{
    struct fetch_header *list = ARENA_ARRAY(a, struct fetch_header, json_count(headers));
    size_t count = 0;

    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m))
        list[count++] = (struct fetch_header){json_string(m.name, a), json_string(m.value, a)};
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
