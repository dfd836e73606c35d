/* The checks at every write of a webhook, in their order. Each puts its member into normal form as
 * well. */
#include "access/access.h"
#include "base/clock.h"
#include "fetch/fetch_url.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "rest/call.h"
#include "store/change.h"
#include "store/entity.h"
#include "webhook/retry.h"
#include "webhook/webhook.h"
#include "webhook/webhook_checks.h"
#include "webhook/webhook_draft.h"
#include "webhook/webhook_headers.h"
#include "webhook/webhook_lanes.h"
#include "webhook/webhook_selection.h"
#include "webhook/webhook_settings.h"
#include "webhook/webhook_signing.h"
#include "webhook/webhook_write.h"
#include "json/json.h"

/* Deliveries that are put in order in a millisecond, and webhooks that are attached in one. */
enum { LONG_QUEUE = 2000, LONG_CHANGE = 64 };

/* The same error, under one code and with the member's name before the message. */
static struct err *invalid(const char *member, struct err *e)
{
    if (e == NULL || err_code(e) == ERR_TOO_MANY_REQUESTS)
        return e;
    return err_prefix(err_recode(e, ERR_INVALID_ENTITY), "%s: ", member);
}

/* Headers. --------------------------------------------------------------------------------- */

/* What an earlier version has let in does not keep a webhook from being paused. */
static struct err *check_own_headers(struct call *call, struct draft *draft,
                                     const struct entity *old)
{
    struct span name = SPAN("Headers");
    struct json_value headers = draft_value(draft, name, call->arena);
    struct span json = SPAN("{}");

    if (webhook_keeps(call, draft, old, name))
        return NULL;
    if (json_exists(headers))
        TRY(webhook_check_headers(headers, call->arena, &json));
    draft_set(draft, name, json);
    return NULL;
}

/* Which method is asked for with which key is a part of a local destination. A remote one is judged
 * again by each attempt, so that it need not be when it is resumed. */
static bool is_kept_destination(const struct call *call, const struct draft *draft,
                                const struct entity *old, bool is_local)
{
    if (!is_local)
        return webhook_keeps(call, draft, old, SPAN("Destination"));
    return webhook_keeps_reference(call, draft, old, SPAN("Destination")) &&
           webhook_keeps(call, draft, old, SPAN("Method")) &&
           webhook_keeps(call, draft, old, SPAN("Headers"));
}

static struct err *check_remote(const struct egress_rules *egress, struct span text,
                                struct arena *a, struct span *out_normal)
{
    if (span_find(text, SPAN(":")) == SIZE_MAX)
        return ERR(ERR_INVALID_ENTITY,
                   "'%.*s' begins neither with http:// or https:// nor, as the URI of a resource "
                   "of this server does, with '/'",
                   SPAN_FMT(text));
    return fetch_check_url(egress, text, a, out_normal);
}

static struct err *check_destination(const struct egress_rules *egress, struct call *call,
                                     struct draft *draft, const struct entity *old)
{
    struct span name = SPAN("Destination");
    struct span text = webhook_draft_string(draft, name, call->arena);
    enum method method = method_parse(webhook_draft_string(draft, SPAN("Method"), call->arena));
    bool is_local = span_starts(text, SPAN("/"));
    struct span normal;

    if (is_kept_destination(call, draft, old, is_local))
        return NULL;
    if (is_local)
        TRY(webhook_check_local(call, text, method,
                                draft_value(draft, SPAN("Headers"), call->arena), &normal));
    else
        TRY(check_remote(egress, text, call->arena, &normal));
    draft_set(draft, name, webhook_json_of(call->arena, normal));
    return NULL;
}

/* What is selected. ------------------------------------------------------------------------ */

/* Of a write that leaves members out, a POST with safepost included. */
static bool is_left(const struct call *call, const struct draft *draft, const struct entity *old,
                    struct span name)
{
    return call->method != METHOD_PUT && webhook_is_unwritten(call, draft, old, name);
}

/* A PATCH that writes one of the two members empties the other. */
static void empty_other(const struct call *call, struct draft *draft, const struct entity *old)
{
    if (is_left(call, draft, old, webhook_selectors_name))
        draft_set(draft, webhook_selectors_name, SPAN("null"));
    else if (is_left(call, draft, old, webhook_selector_name))
        draft_set(draft, webhook_selector_name, SPAN("null"));
}

static struct err *check_selectors(struct call *call, struct draft *draft, const struct entity *old,
                                   struct webhook_selection *selection)
{
    struct err *e;

    if (webhook_has_both(draft))
        empty_other(call, draft, old);
    TRY(webhook_choose_selectors(draft, selection));
    e = webhook_check_selectors(call, draft, selection);
    if (e == NULL || !webhook_keeps_reference(call, draft, old, selection->member))
        return e;
    err_free(e);
    selection->count = 0;
    return NULL;
}

static struct err *check_content_type(struct call *call, const struct draft *draft,
                                      const struct webhook_selection *selection)
{
    struct json_value headers = draft_value(draft, SPAN("Headers"), call->arena);
    struct json_value type = json_member_fold(headers, SPAN("Content-Type"));
    enum format format;

    if (!json_exists(type) || !webhook_selects_entities(selection))
        return NULL;
    return negotiate_written_type(json_string(type, call->arena), &format);
}

/* An envelope is JSON, around entities. */
static struct err *check_format(struct call *call, const struct draft *draft,
                                const struct webhook_selection *selection)
{
    struct json_value headers = draft_value(draft, SPAN("Headers"), call->arena);
    struct json_value type = json_member_fold(headers, SPAN("Content-Type"));
    struct json_value name = draft_value(draft, SPAN("Format"), call->arena);
    enum format format = FORMAT_JSON;

    if (!span_eq(json_string(name, call->arena), webhook_format_names.values[WEBHOOK_STANDARD]))
        return NULL;
    if (webhook_selects_bytes(selection))
        return ERR(ERR_INVALID_ENTITY, "StandardWebhooks is not for events with a binary payload");
    if (json_exists(type))
        TRY(negotiate_written_type(json_string(type, call->arena), &format));
    if (format == FORMAT_JSON)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "StandardWebhooks is JSON, and Headers.Content-Type is '%.*s'",
               SPAN_FMT(format_media_types[format]));
}

/* CustomPayloadRequest. -------------------------------------------------------------------- */

static struct err *check_custom_body(struct json_value body)
{
    if (json_type(body) == JSON_NULL || json_type(body) == JSON_OBJECT)
        return NULL;
    if (json_type(body) == JSON_ARRAY) {
        for (struct json_value v = json_first(body); json_exists(v); v = json_next(body, v))
            if (json_type(v) != JSON_OBJECT)
                return ERR(ERR_INVALID_ENTITY, "Body has an element that is not an object");
        return NULL;
    }
    return ERR(ERR_INVALID_ENTITY, "Body is neither an object nor an array of objects");
}

static struct span json_or(struct json_value v, const char *otherwise)
{
    return json_exists(v) ? json_text(v) : span_str(otherwise);
}

static struct span custom_json(struct call *call, struct json_value custom, struct span uri,
                               struct span headers)
{
    return arena_printf(
        call->arena,
        "{\"Method\":\"GET\",\"URI\":%.*s,\"Headers\":%.*s,\"Body\":%.*s,\"BreakOnError\":%.*s,"
        "\"BreakOnNoContent\":%.*s}",
        SPAN_FMT(webhook_json_of(call->arena, uri)), SPAN_FMT(headers),
        SPAN_FMT(json_or(json_member(custom, SPAN("Body")), "null")),
        SPAN_FMT(json_or(json_member(custom, SPAN("BreakOnError")), "false")),
        SPAN_FMT(json_or(json_member(custom, SPAN("BreakOnNoContent")), "false")));
}

static struct err *check_custom(struct call *call, struct draft *draft, const struct entity *old)
{
    struct span name = SPAN("CustomPayloadRequest");
    struct arena *a = call->arena;
    struct json_value custom = draft_value(draft, name, a);
    struct span uri, method, headers = SPAN("{}"), normal;

    if (!json_exists(custom) || webhook_keeps_reference(call, draft, old, name))
        return NULL;
    method = json_string(json_member(custom, SPAN("Method")), a);
    if (!span_ieq(method, SPAN("GET")))
        return ERR(ERR_INVALID_ENTITY, "Method is always GET, not '%.*s'", SPAN_FMT(method));
    uri = json_string(json_member(custom, SPAN("URI")), a);
    if (!span_starts(uri, SPAN("/")))
        return ERR(ERR_INVALID_ENTITY, "URI '%.*s' is not local: it does not begin with '/'",
                   SPAN_FMT(uri));
    TRY(check_custom_body(json_member(custom, SPAN("Body"))));
    if (json_type(json_member(custom, SPAN("Headers"))) == JSON_OBJECT)
        TRY(webhook_check_headers(json_member(custom, SPAN("Headers")), a, &headers));
    TRY(webhook_check_local(call, uri, METHOD_GET, entity_parse(headers, a), &normal));
    draft_set(draft, name, custom_json(call, custom, normal, headers));
    return NULL;
}

/* Delivery. -------------------------------------------------------------------------------- */

static struct err *check_delivery(struct call *call, const struct draft *draft)
{
    struct json_value delivery = draft_value(draft, SPAN("Delivery"), call->arena);
    struct json_value schedule = json_member(delivery, SPAN("RetrySchedule"));
    struct retry_policy policy;

    return json_type(schedule) == JSON_ARRAY ? retry_parse(schedule, &policy) : NULL;
}

/* Tenant and Owner. ------------------------------------------------------------------------ */

/* Its deliveries and their events are of the tenant that it had, also those that have ended, which
 * may be sent again. */
static struct err *check_moved(const struct webhook_lanes *lanes, const struct draft *draft,
                               const struct entity *old, struct arena *a)
{
    const struct webhook *w = old == NULL ? NULL : old->attached;

    if (w == NULL || !lanes->has_any(w) || webhook_is_same(draft, old, SPAN("Tenant"), a))
        return NULL;
    return ERR(ERR_CONFLICT, "the webhook has deliveries of the tenant that it had: delete these "
                             "first, or make another webhook");
}

static struct err *check_tenant(const struct webhook_lanes *lanes, struct call *call,
                                const struct draft *draft, const struct entity *old)
{
    struct json_value value = draft_value(draft, SPAN("Tenant"), call->arena);
    struct err *e = check_moved(lanes, draft, old, call->arena);
    struct span text;

    if (e != NULL)
        return err_prefix(e, "Tenant: ");
    if (!json_exists(value))
        return NULL;
    text = json_string(value, call->arena);
    if (access_is_tenant(text))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "Tenant: '%.*s' is not 1 to %d letters, digits, '_', '-' and '.'", SPAN_FMT(text),
               ACCESS_TENANT_BYTES);
}

/* What the server itself says of a webhook. */
static void set_read_only(struct call *call, struct draft *draft, const struct entity *old)
{
    struct buf time;

    if (span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("false")))
        draft_set(draft, SPAN("ErrorMessage"), SPAN("null"));
    if (old != NULL)
        return;
    buf_init_arena(&time, call->arena);
    json_add_time(&time, clock_unix_ns());
    draft_set(draft, SPAN("Time"), buf_span(&time));
}

/* One that is resumed, or led to another receiver, begins anew. */
static void start_over(const struct webhook_lanes *lanes, struct call *call,
                       const struct draft *draft, const struct entity *old)
{
    struct arena *a = call->arena;
    const struct webhook *w = old == NULL ? NULL : old->attached;
    struct span was, now;
    bool goes_on, is_other_receiver;

    if (w == NULL)
        return;
    was = json_string(webhook_old_member(old, SPAN("Destination"), a), a);
    now = webhook_draft_string(draft, SPAN("Destination"), a);
    goes_on = w->is_paused && span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("false"));
    is_other_receiver = !span_eq(fetch_url_origin(was), fetch_url_origin(now));
    if (goes_on || is_other_receiver)
        lanes->start_over(call->change, w, is_other_receiver);
}

/* Its queue may have to be put in another order; and to attach one takes longer than other records
 * do. */
static void note_long(const struct webhook_lanes *lanes, struct change *change,
                      const struct entity *old)
{
    const struct webhook *w = old == NULL ? NULL : old->attached;

    if (change->count >= LONG_CHANGE)
        change->is_long = true;
    if (w != NULL && lanes->pending(w) > LONG_QUEUE)
        change->is_long = true;
}

struct err *webhook_check(const struct egress_rules *egress, const struct webhook_lanes *lanes,
                          struct call *call, struct draft *draft, const struct entity *old)
{
    struct webhook_selection selection;

    TRY(invalid("Headers", check_own_headers(call, draft, old)));
    TRY(check_selectors(call, draft, old, &selection));
    TRY(invalid("Headers", check_content_type(call, draft, &selection)));
    TRY(invalid("Format", check_format(call, draft, &selection)));
    TRY(invalid("Destination", check_destination(egress, call, draft, old)));
    TRY(invalid("CustomPayloadRequest", check_custom(call, draft, old)));
    TRY(invalid("Delivery", check_delivery(call, draft)));
    TRY(invalid("Signing", webhook_check_signing(call, draft, old)));
    TRY(webhook_check_secrets(call, draft, old));
    TRY(check_tenant(lanes, call, draft, old));
    TRY(webhook_check_owner(call, draft, old, &selection));
    webhook_note_writer(call, draft, old);
    set_read_only(call, draft, old);
    start_over(lanes, call, draft, old);
    note_long(lanes, call->change, old);
    return NULL;
}
