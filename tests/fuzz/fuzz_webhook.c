/* Webhooks as they are written. The first line of the input is a webhook to insert, the second one
 * to lay over it. What is accepted can be read for an attempt, is its own normal form, and shows no
 * secret; what is shown, written back, changes nothing. */
#include "access/access.h"
#include "access/access_keys.h"
#include "access/secrets.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fuzzing.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "webhook/retry.h"
#include "webhook/webhook.h"
#include "webhook/webhook_lanes.h"
#include "webhook/webhook_settings.h"
#include "webhook/webhook_write.h"
#include "zoo.h"
#include "json/json.h"

#define NOW_NS (INT64_C(1800000000) * 1000000000)
#define MASK_TEXT "*******"

static struct mask mask;
static struct rest rest = {.mask = &mask};
static struct limits limits;
static struct egress_rules egress;
static const struct webhook_lanes lanes; /* none is attached */

static void make_rest(void)
{
    clock_fake(NOW_NS, 1);
    limits_init(&limits);
    egress_init(&egress);
    rest.limits = &limits;
    rest.access = NEW(struct access);
    access_init(rest.access);
    rest.resources = NEW(struct resources);
    zoo_init(rest.resources);
}

/* ---- writing, as crud does it ---- */

/* Of a stored text; NULL for none. */
static struct entity *entity_of(struct span json, struct arena *a)
{
    struct entity *e = ARENA_NEW(a, struct entity);
    struct blob *blob;

    if (json.p == NULL)
        return NULL;
    blob = arena_alloc(a, sizeof(*blob) + json.n);
    *blob = (struct blob){.refs = 1, .n = json.n, .p = (char *)(blob + 1)};
    memcpy(blob->p, json.p, json.n);
    e->json = blob;
    return e;
}

static struct err *write_webhook(struct json_value input, struct span old, enum schema_mode mode,
                                 struct arena *a, struct span *out_json)
{
    const struct uuid id = {.b = {7}};
    struct change change = {.arena = a};
    struct call call = {.rest = &rest, .arena = a, .change = &change};
    struct draft draft;
    struct buf b;

    TRY(secrets_decode(rest.mask, &webhook_shape, input, old, mode, a, &draft));
    TRY(webhook_check(&egress, &lanes, &call, &draft, entity_of(old, a)));
    buf_init(&b, BUF_NO_CAP);
    schema_encode(&b, &draft, &id, 1);
    *out_json = input_written(&b, a);
    return NULL;
}

/* ---- what must hold of a stored one ---- */

static void check_headers(const struct header_field *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct span name = headers[i].name, value = headers[i].value;

        MUST(name.n > 0 && span_find_char(name, ':', 0) == name.n);
        for (size_t at = 0; at < name.n; at++)
            MUST(name.p[at] > ' ' && name.p[at] < 0x7f);
        for (size_t at = 0; at < value.n; at++)
            MUST(value.p[at] != '\r' && value.p[at] != '\n' && value.p[at] != '\0');
        MUST(!span_ieq(name, SPAN("Host")) && !span_ieq(name, SPAN("Content-Length")));
    }
}

static void check_settings(struct span json, struct arena *a)
{
    const struct webhook webhook = {.entity = entity_of(json, a)};
    struct webhook_settings s;

    MUST(webhook_read(&webhook, a, &s) == NULL);
    MUST(s.is_local || span_starts(s.destination, SPAN("http")));
    MUST(s.timeout_ms >= 100 && s.timeout_ms <= 3600000);
    MUST(s.max_in_flight >= 1 && s.max_in_flight <= 1024);
    MUST(s.rate_per_second >= 0 && s.rate_per_second <= 1e6);
    MUST(s.disable_after_days >= 0 && s.disable_after_days <= 3650);
    MUST(s.retry.delay_count <= RETRY_MAX_DELAYS && s.secret_count <= 10);
    MUST(!s.has_custom || span_starts(s.custom_uri, SPAN("/")));
    check_headers(s.headers, s.header_count);
    check_headers(s.custom_headers, s.custom_header_count);
}

static void check_normal(struct span json, struct arena *a)
{
    const struct span nothing = {NULL, 0};
    struct span again;

    MUST(write_webhook(entity_parse(json, a), nothing, SCHEMA_INSERT, a, &again) == NULL);
    MUST(span_eq(again, json));
}

/* The text that is shown. */
static struct span masked(struct span json, struct arena *a)
{
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    mask_add_value(&b, rest.mask, entity_parse(json, a), a);
    return input_written(&b, a);
}

static void check_masked(struct span json, struct arena *a)
{
    struct json_value shown = entity_parse(masked(json, a), a);
    struct json_value headers = json_member(shown, SPAN("Headers"));
    struct json_value secrets = json_member(json_member(shown, SPAN("Signing")), SPAN("Secrets"));
    struct span again;

    for (struct json_value v = json_first(secrets); json_exists(v); v = json_next(secrets, v))
        MUST(span_eq(json_string(v, a), SPAN(MASK_TEXT)));
    for (struct json_member m = json_first_member(headers); json_exists(m.name);
         m = json_next_member(headers, m))
        if (span_ieq(json_string(m.name, a), SPAN("Authorization")))
            MUST(span_eq(json_string(m.value, a), SPAN(MASK_TEXT)));
    MUST(write_webhook(shown, json, SCHEMA_REPLACE, a, &again) == NULL);
    MUST(span_eq(again, json));
}

static void check_stored(struct span json, struct arena *a)
{
    check_settings(json, a);
    check_normal(json, a);
    check_masked(json, a);
}

/* The stored text, or the absent span. */
static struct span try_write(struct span line, struct span old, struct arena *a)
{
    struct span json = {NULL, 0};
    struct json_doc doc;
    struct err *e = json_parse(line, NULL, a, &doc);

    if (e == NULL)
        e = write_webhook(json_root(&doc), old, old.p == NULL ? SCHEMA_INSERT : SCHEMA_PATCH, a,
                          &json);
    MUST(e == NULL || err_message(e).n > 0);
    err_free(e);
    return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    struct span stored, changed;
    struct arena a;

    if (rest.limits == NULL)
        make_rest();
    arena_init(&a);
    stored = try_write(input_line(&in), (struct span){NULL, 0}, &a);
    if (stored.p != NULL) {
        check_stored(stored, &a);
        changed = try_write(input_line(&in), stored, &a);
        if (changed.p != NULL)
            check_stored(changed, &a);
    }
    arena_done(&a);
    return 0;
}
