/* The checks at every write of a webhook. Each puts its member into normal form as well. */
#include "access/access.h"
#include "access/access_keys.h"
#include "access/mask.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "base/limits.h"
#include "fetch/fetch.h"
#include "protocol/negotiate.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "webhook/retry.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "webhook/webhook_headers.h"
#include "webhook/webhook_lanes.h"
#include "webhook/webhook_owner.h"
#include "webhook/webhook_selection.h"
#include "webhook/webhook_settings.h"
#include "webhook/webhook_signing.h"
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

static struct span json_of(struct arena *a, struct span text)
{
    struct buf b;
    struct span json;

    buf_init(&b, BUF_NO_CAP);
    json_add_string(&b, text);
    json = arena_copy(a, buf_span(&b));
    buf_done(&b);
    return json;
}

static struct span draft_string(const struct draft *draft, struct span name, struct arena *a)
{
    struct json_value value = draft_value(draft, name, a);

    return json_type(value) == JSON_STRING ? json_string(value, a) : (struct span){NULL, 0};
}

/* Headers. --------------------------------------------------------------------------------- */

static struct json_value old_member(const struct entity *old, struct span name, struct arena *a)
{
    if (old == NULL)
        return (struct json_value){NULL, NULL};
    return json_member(entity_parse(entity_json(old), a), name);
}

/* The member as clients see it. */
static struct span shown_member(const struct call *call, const struct entity *old, struct span name)
{
    struct buf b;

    buf_init_arena(&b, call->arena);
    mask_add_value(&b, call->rest->mask, old_member(old, name, call->arena), call->arena);
    return buf_span(&b);
}

/* Was the member left as it is stored? One with a secret that was written was not, equal or not. */
static bool is_unwritten(const struct call *call, const struct draft *draft,
                         const struct entity *old, struct span name)
{
    return old != NULL && span_eq(draft_written(draft, name), shown_member(call, old, name));
}

/* Does a PATCH leave it so? */
static bool is_kept(const struct call *call, const struct draft *draft, const struct entity *old,
                    struct span name)
{
    return call->method == METHOD_PATCH && is_unwritten(call, draft, old, name);
}

/* What a webhook refers to may have become wrong since it was stored: resources, keys and the rules
 * for addresses change. Nobody is to be kept by that from pausing it, or from changing other
 * members. Resuming asks again, since one that refers to nothing would match nothing. */
static bool is_kept_reference(const struct call *call, const struct draft *draft,
                              const struct entity *old, struct span name)
{
    return is_kept(call, draft, old, name) &&
           (is_kept(call, draft, old, SPAN("IsPaused")) ||
            span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("true")));
}

static struct err *check_own_headers(struct call *call, struct draft *draft)
{
    struct span name = SPAN("Headers");
    struct json_value headers = draft_value(draft, name, call->arena);
    struct span json = SPAN("{}");

    if (json_exists(headers))
        TRY(webhook_check_headers(headers, call->arena, &json));
    draft_set(draft, name, json);
    return NULL;
}

/* Local requests. -------------------------------------------------------------------------- */

static struct err *check_rights(struct call *call, struct json_value headers,
                                const struct resource *resource, enum method method)
{
    struct json_value value = json_member_fold(headers, SPAN("Authorization"));
    struct span authorization = {NULL, 0};
    struct access_key *key;

    if (!call->rest->access->required)
        return NULL;
    if (json_type(value) == JSON_STRING)
        authorization = json_string(value, call->arena);
    TRY(call_sign_in(call, authorization, &key));
    if (access_allows(key, resource->name, method))
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "the API key in Headers.Authorization may not use %.*s on '%.*s'",
               SPAN_FMT(method_name(method)), SPAN_FMT(resource->name));
}

struct err *webhook_find_target(const struct resources *resources, struct span target,
                                enum method method, const struct access_key *key,
                                size_t max_conditions, struct arena *a, struct uri *out_uri,
                                struct resource **out_resource)
{
    struct resource *resource;

    TRY(uri_parse(target, SPAN("/"), max_conditions, a, out_uri));
    TRY(resource_find(
        resources, out_uri->resource.p == NULL ? SPAN("Svc.AvailableResource") : out_uri->resource,
        key, &resource));
    if ((resource->methods & METHOD_BIT(method)) == 0)
        return ERR(ERR_INVALID_ENTITY, "'%.*s' does not support %.*s", SPAN_FMT(resource->name),
                   SPAN_FMT(method_name(method)));
    *out_resource = resource;
    return NULL;
}

/* A target that the service itself will be asked for: it must make sense now. */
static struct err *check_local(struct call *call, struct span target, enum method method,
                               struct json_value headers, struct span *out_normal)
{
    struct rest *rest = call->rest;
    struct resource *resource;
    struct query query;
    struct buf normal;
    struct uri uri;

    TRY(webhook_find_target(rest->resources, target, method, call->key,
                            (size_t)rest->limits->conditions, call->arena, &uri, &resource));
    TRY(resource_parse_query(resource, &uri, call->arena, &query));
    query_done(&query);
    TRY(check_rights(call, headers, resource, method));
    buf_init(&normal, BUF_NO_CAP);
    uri_add_normal(&normal, &uri, resource->name, false);
    *out_normal = arena_copy(call->arena, buf_span(&normal));
    buf_done(&normal);
    return NULL;
}

/* Which method is asked for with which key is a part of a local destination. A remote one is judged
 * again by each attempt, so that it need not be when it is resumed. */
static bool is_kept_destination(const struct call *call, const struct draft *draft,
                                const struct entity *old, bool is_local)
{
    if (!is_local)
        return is_kept(call, draft, old, SPAN("Destination"));
    return is_kept_reference(call, draft, old, SPAN("Destination")) &&
           is_kept(call, draft, old, SPAN("Method")) && is_kept(call, draft, old, SPAN("Headers"));
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
    struct span text = draft_string(draft, name, call->arena);
    enum method method = method_parse(draft_string(draft, SPAN("Method"), call->arena));
    bool is_local = span_starts(text, SPAN("/"));
    struct span normal;

    if (is_kept_destination(call, draft, old, is_local))
        return NULL;
    if (is_local)
        TRY(check_local(call, text, method, draft_value(draft, SPAN("Headers"), call->arena),
                        &normal));
    else
        TRY(check_remote(egress, text, call->arena, &normal));
    draft_set(draft, name, json_of(call->arena, normal));
    return NULL;
}

/* What is selected. ------------------------------------------------------------------------ */

/* Of a write that leaves members out, a POST with safepost included. */
static bool is_left(const struct call *call, const struct draft *draft, const struct entity *old,
                    struct span name)
{
    return call->method != METHOD_PUT && is_unwritten(call, draft, old, name);
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
    if (e == NULL || !is_kept_reference(call, draft, old, selection->member))
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
        SPAN_FMT(json_of(call->arena, uri)), SPAN_FMT(headers),
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

    if (!json_exists(custom) || is_kept_reference(call, draft, old, name))
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
    TRY(check_local(call, uri, METHOD_GET, entity_parse(headers, a), &normal));
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

/* Whether the write leaves the member as it is stored. */
static bool is_same(const struct draft *draft, const struct entity *old, struct span name,
                    struct arena *a)
{
    struct span was = json_text(old_member(old, name, a));

    return span_eq(draft_get(draft, name), was.p == NULL ? SPAN("null") : was);
}

/* Its deliveries and their events are of the tenant that it had, also those that have ended, which
 * may be sent again. */
static struct err *check_moved(const struct webhook_lanes *lanes, const struct draft *draft,
                               const struct entity *old, struct arena *a)
{
    const struct webhook *w = old == NULL ? NULL : old->attached;

    if (w == NULL || !lanes->has_any(w) || is_same(draft, old, SPAN("Tenant"), a))
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

static bool is_changed(const struct call *call, const struct draft *draft, const struct entity *old,
                       struct span name)
{
    return !is_unwritten(call, draft, old, name) &&
           !span_eq(draft_get(draft, name), shown_member(call, old, name));
}

static bool is_resumed(const struct call *call, const struct draft *draft, const struct entity *old)
{
    return json_is_true(old_member(old, SPAN("IsPaused"), call->arena)) &&
           span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("false"));
}

static struct span old_string(const struct entity *old, struct span name, struct arena *a)
{
    struct json_value value = old_member(old, name, a);

    return json_type(value) == JSON_STRING ? json_string(value, a) : span_of(NULL, 0);
}

/* As the text has it: one that this request has written before has nothing attached yet. */
static struct webhook_owner old_owner(const struct call *call, const struct entity *old)
{
    return (struct webhook_owner){.tenant = old_string(old, SPAN("Tenant"), call->arena),
                                  .name = old_string(old, SPAN("Owner"), call->arena),
                                  .identity = old_string(old, SPAN("OwnerKey"), call->arena)};
}

/* May the key have what is selected? Of a pattern, anything. */
static struct err *check_read(const struct selector *selector, const struct access_key *key,
                              struct arena *a)
{
    struct span *parts;
    size_t count = 1;

    if (selector->resource == NULL)
        selector_narrow(selector, key, a, &parts, &count);
    else if (!access_allows(key, selector->resource->name, METHOD_GET))
        return ERR(ERR_NOT_AUTHORIZED, "the API key may not GET '%.*s'",
                   SPAN_FMT(selector->resource->name));
    if (count > 0)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED, "the API key may GET nothing of '%.*s'",
               SPAN_FMT(selector->normal));
}

/* Is the owner able to have these events, for the tenant that the webhook has from now on? */
static bool is_answered_for(const struct call *call, const struct draft *draft,
                            const struct entity *old, const struct webhook_selection *selection)
{
    const struct access *access = call->rest->access;
    struct webhook_owner owner = old_owner(call, old);
    const struct access_key *key;
    struct err *e = NULL;

    if (!access->required || selection->count == 0)
        return true;
    if (owner.name.n == 0)
        return false;
    owner.tenant = draft_string(draft, SPAN("Tenant"), call->arena);
    e = webhook_owner_key(&owner, access, &key);
    for (size_t i = 0; i < selection->count && e == NULL; i++)
        e = check_read(&selection->items[i], key, call->arena);
    if (e == NULL)
        return true;
    err_free(e);
    return false;
}

/* What decides where which data goes: who changes it answers for it. Who resumes a webhook, or
 * gives it to another tenant, does so only where its owner cannot. */
static bool is_taken_over(const struct call *call, const struct draft *draft,
                          const struct entity *old, const struct webhook_selection *selection)
{
    static const struct span names[] = {SPAN_INIT("EventSelector"), SPAN_INIT("EventSelectors"),
                                        SPAN_INIT("Destination"), SPAN_INIT("Headers"),
                                        SPAN_INIT("CustomPayloadRequest")};

    if (old == NULL)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_changed(call, draft, old, names[i]))
            return true;
    return (is_resumed(call, draft, old) || !is_same(draft, old, SPAN("Tenant"), call->arena)) &&
           !is_answered_for(call, draft, old, selection);
}

/* Of the key that asks, as JSON. */
static struct span identity_json(const struct call *call)
{
    struct buf identity;

    if (call->key == NULL)
        return SPAN("null");
    buf_init_arena(&identity, call->arena);
    access_add_identity(&identity, call->key);
    return json_of(call->arena, buf_span(&identity));
}

static struct err *check_owner(struct call *call, struct draft *draft, const struct entity *old,
                               const struct webhook_selection *selection)
{
    if (!is_taken_over(call, draft, old, selection))
        return NULL;
    draft_set(draft, SPAN("OwnerKey"), identity_json(call));
    if (call->key == NULL) {
        draft_set(draft, SPAN("Owner"), SPAN("null"));
        return NULL;
    }
    for (size_t i = 0; i < selection->count; i++) {
        struct err *e = check_read(&selection->items[i], call->key, call->arena);

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(selection->member));
    }
    draft_set(draft, SPAN("Owner"), json_of(call->arena, call->key->name));
    return NULL;
}

/* Secrets. --------------------------------------------------------------------------------- */

struct err *webhook_check_kept(bool are_own, bool leads_elsewhere, struct span kept)
{
    if (are_own || !leads_elsewhere || kept.n == 0)
        return NULL;
    return ERR(ERR_INVALID_ENTITY,
               "stored secrets do not travel: another key has written them, so that with this "
               "change they have to be written anew: %.*s",
               SPAN_FMT(kept));
}

/* Where no key is required, a webhook that nobody owns is everybody's. */
static bool is_owner(const struct call *call, const struct entity *old)
{
    struct webhook_owner owner = old_owner(call, old);
    const struct access *access = call->rest->access;

    if (owner.name.n == 0)
        return !access->required;
    return webhook_owner_is(&owner, access, call->key);
}

/* Who has taken a webhook over has not written its secrets. Where nothing is noted, a version that
 * noted nothing had them of the owner. */
static bool has_written_secrets(const struct call *call, const struct entity *old)
{
    struct json_value key = old_member(old, SPAN("WriterKey"), call->arena);

    return json_type(key) != JSON_STRING || span_eq(json_text(key), identity_json(call));
}

/* The key that has written all secrets, as far as none are kept of another. */
static void set_secrets_key(struct call *call, struct draft *draft, const struct entity *old)
{
    struct span name = SPAN("WriterKey");
    bool has_written_all = old == NULL || draft->kept.n == 0;

    if (!has_written_all && !span_eq(draft_get(draft, name), SPAN("null")))
        return;
    if (has_written_all || is_owner(call, old))
        draft_set(draft, name, identity_json(call));
    else if (!is_same(draft, old, SPAN("OwnerKey"), call->arena))
        draft_set(draft, name, SPAN("\"\"")); /* nobody's who is known */
}

/* Does it send something else, or the same to somebody else? What makes a key the owner counts too:
 * its data would go out in the name of who has written the secrets. */
static bool leads_elsewhere(const struct call *call, const struct draft *draft,
                            const struct entity *old)
{
    static const struct span names[] = {
        SPAN_INIT("Destination"), SPAN_INIT("Method"),        SPAN_INIT("CustomPayloadRequest"),
        SPAN_INIT("Headers"),     SPAN_INIT("EventSelector"), SPAN_INIT("EventSelectors")};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_changed(call, draft, old, names[i]))
            return true;
    return false;
}

static struct err *check_kept(const struct call *call, const struct draft *draft,
                              const struct entity *old)
{
    return old == NULL ? NULL
                       : webhook_check_kept(is_owner(call, old) && has_written_secrets(call, old),
                                            leads_elsewhere(call, draft, old), draft->kept);
}

/* What the server itself says of a webhook. */
static void set_read_only(struct call *call, struct draft *draft, const struct entity *old)
{
    struct buf time;

    if (span_eq(draft_get(draft, SPAN("IsPaused")), SPAN("false")))
        draft_set(draft, SPAN("ErrorMessage"), SPAN("null"));
    if (old != NULL)
        return;
    buf_init(&time, 64);
    buf_add_char(&time, '"');
    datetime_add(&time, clock_unix_ns());
    buf_add_char(&time, '"');
    draft_set(draft, SPAN("Time"), arena_copy(call->arena, buf_span(&time)));
    buf_done(&time);
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
    was = json_string(old_member(old, SPAN("Destination"), a), a);
    now = draft_string(draft, SPAN("Destination"), a);
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

    TRY(invalid("Headers", check_own_headers(call, draft)));
    TRY(check_selectors(call, draft, old, &selection));
    TRY(invalid("Headers", check_content_type(call, draft, &selection)));
    TRY(invalid("Format", check_format(call, draft, &selection)));
    TRY(invalid("Destination", check_destination(egress, call, draft, old)));
    TRY(invalid("CustomPayloadRequest", check_custom(call, draft, old)));
    TRY(invalid("Delivery", check_delivery(call, draft)));
    TRY(invalid("Signing", webhook_check_signing(call, draft, old)));
    TRY(check_kept(call, draft, old));
    TRY(check_tenant(lanes, call, draft, old));
    TRY(check_owner(call, draft, old, &selection));
    set_secrets_key(call, draft, old);
    set_read_only(call, draft, old);
    start_over(lanes, call, draft, old);
    note_long(lanes, call->change, old);
    return NULL;
}
