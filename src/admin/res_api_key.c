/* Svc.Admin.ApiKey: keys that are made at run time (docs/specification.md, section 6). Nobody
 * grants what the own key lacks; the configuration's are listed, and changed there only. A key is
 * shown in the answer to the request that made it, and nowhere else: what is stored is its digest.
 *
 * What becomes of them is in dispatch/api_key.h. */
#include "access/access.h"
#include "access/mask.h"
#include "admin/builtin.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "dispatch/api_key.h"
#include "protocol/schema.h"
#include "query/shape.h"
#include "resource/key_rights.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "json/json.h"

#include <stdlib.h>

enum { SECRET_BYTES = 32 };

/* One that this request makes. */
struct made {
    struct made *next;
    struct span id, key;
};

/* A title that some entity of this request has afterwards. */
struct titled {
    struct titled *next;
    struct span title;
};

/* Of one request. */
struct own {
    struct made *first, *last; /* in the order of the answer */
    struct made *shown;        /* the next one that the answer comes to */
    struct titled *titles;
    size_t title_count;
    struct span name; /* of a key that changes */
    size_t name_count;
};

static struct own *own_of(struct call *call)
{
    if (call->own == NULL)
        call->own = ARENA_NEW(call->arena, struct own);
    return call->own;
}

static struct span text_of(const struct draft *draft, struct span property, struct arena *a)
{
    return json_string(draft_value(draft, property, a), a);
}

static void set_time(struct draft *draft, struct span property, int64_t unix_ns, struct arena *a)
{
    struct buf time;

    buf_init_arena(&time, a);
    buf_add_char(&time, '"');
    datetime_add(&time, unix_ns);
    buf_add_char(&time, '"');
    draft_set(draft, property, buf_span(&time));
}

/* ---- what a key may be ---- */

static struct err *refuse_configured(struct span name)
{
    return ERR(ERR_NOT_AUTHORIZED,
               "the API key '%.*s' is the configuration's, and can only be changed there",
               SPAN_FMT(name));
}

static bool is_changed(const struct draft *draft, struct json_value old, struct span property)
{
    return !json_exists(old) ||
           !span_eq(draft_get(draft, property), json_text(json_member(old, property)));
}

static struct err *check_tenant(struct call *call, struct draft *draft, struct json_value old,
                                struct span *out_tenant)
{
    struct span name = SPAN("Tenant"), own = {NULL, 0};
    struct span tenant = text_of(draft, name, call->arena);

    if (call->key != NULL)
        own = call->key->tenant;
    if (tenant.p == NULL && own.p != NULL) {
        tenant = own;
        draft_set_text(draft, name, tenant, call->arena);
    }
    TRY(access_check_tenant(tenant));
    if (own.p != NULL &&
        (!span_eq(tenant, own) || (json_exists(old) && is_changed(draft, old, name))))
        return ERR(ERR_NOT_AUTHORIZED, "Tenant: the API key's own is '%.*s'", SPAN_FMT(own));
    *out_tenant = tenant;
    return NULL;
}

static void note_title(struct own *own, struct span tenant, struct span name, struct arena *a)
{
    struct titled *titled = ARENA_NEW(a, struct titled);

    titled->title = arena_printf(a, "%.*s/%.*s", SPAN_FMT(tenant), SPAN_FMT(name));
    titled->next = own->titles;
    own->titles = titled;
    own->title_count++;
}

static struct err *refuse_name(struct span name)
{
    return ERR(ERR_CONFLICT, "Name: there is an API key '%.*s' already", SPAN_FMT(name));
}

static struct err *check_name(struct call *call, const struct draft *draft, struct span tenant,
                              const struct entity *old)
{
    struct span name = text_of(draft, SPAN("Name"), call->arena);
    const struct access_key *other;

    TRY(access_check_name(name));
    other = access_find(call->rest->access, tenant, name);
    if (other != NULL && (old == NULL || other->stored != old->attached))
        return refuse_name(name);
    note_title(own_of(call), tenant, name, call->arena);
    return NULL;
}

static struct err *check_rights(struct call *call, struct draft *draft, struct json_value old,
                                struct access_key *granted)
{
    struct span name = SPAN("AllowAccess");
    struct json_value value = draft_value(draft, name, call->arena);
    int64_t most = call->rest->limits->key_resources;
    size_t count;
    struct buf json;

    TRY(access_read_rights(value, call->arena, granted));
    count = access_count_resources(granted);
    if (MAX(count, granted->entry_count) > (size_t)most)
        return ERR(ERR_INVALID_ENTITY,
                   "AllowAccess: has %zu entries for %zu resources; the limit KeyResources is %lld",
                   granted->entry_count, count, (long long)most);
    buf_init_arena(&json, call->arena);
    access_add_rights(&json, value, call->arena);
    draft_set(draft, name, buf_span(&json));
    /* What was good once may not be any more, after an update: it is not asked about again. */
    return is_changed(draft, old, name) ? key_rights_check(granted, call->rest->resources) : NULL;
}

static int64_t expiry_of(struct span text)
{
    int64_t unix_ns;

    return text.p != NULL && api_key_time(text, &unix_ns) ? unix_ns : ACCESS_FOREVER;
}

/* Left out, it is the maker's. *out_is_later: than it was. */
static struct err *check_expiry(struct call *call, struct draft *draft, struct json_value old,
                                bool *out_is_later)
{
    struct span name = SPAN("ExpiresAt");
    struct arena *a = call->arena;
    int64_t own = call->key == NULL ? ACCESS_FOREVER : call->key->expires_unix_ns;
    int64_t expires = expiry_of(text_of(draft, name, a));
    int64_t was = expiry_of(json_string(json_member(old, name), a));

    *out_is_later = false;
    if (!is_changed(draft, old, name))
        return NULL;
    if (expires == ACCESS_FOREVER && own != ACCESS_FOREVER) {
        expires = own;
        set_time(draft, name, own, a);
    }
    if (!json_exists(old) && expires <= clock_unix_ns())
        return ERR(ERR_INVALID_ENTITY, "ExpiresAt: is past, so that the key would never be good");
    if (expires > own)
        return ERR(ERR_NOT_AUTHORIZED, "ExpiresAt: is later than that of the API key itself");
    *out_is_later = expires > was;
    return NULL;
}

static struct err *check_grant(const struct call *call, const struct access_key *granted)
{
    struct span lacks = access_lacks(call->key, granted);

    if (lacks.p == NULL)
        return NULL;
    return ERR(ERR_NOT_AUTHORIZED,
               "AllowAccess: the API key itself has not all of these rights on '%.*s'",
               SPAN_FMT(lacks));
}

/* ---- making one ---- */

/* 32 random bytes as base64url (RFC 4648, section 5) without padding, after `svck_`. */
static struct span new_key(struct arena *a)
{
    uint8_t secret[SECRET_BYTES];
    struct buf text;

    buf_init_arena(&text, a);
    buf_add_str(&text, "svck_");
    rng_secret(secret, sizeof(secret));
    text_add_base64(&text, span_of((const char *)secret, sizeof(secret)));
    mem_wipe(secret, sizeof(secret));
    buf_truncate(&text, text.n - 1);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '+')
            text.p[i] = '-';
        else if (text.p[i] == '/')
            text.p[i] = '_';
    }
    return buf_span(&text);
}

static void note_made(struct own *own, struct span key, struct arena *a)
{
    struct made *made = ARENA_NEW(a, struct made);

    made->key = key;
    if (own->last != NULL)
        own->last->next = made;
    else
        own->first = own->shown = made;
    own->last = made;
}

static void make(struct call *call, struct draft *draft)
{
    struct arena *a = call->arena;
    struct span key = new_key(a);
    uint8_t digest[DIGEST_BYTES];
    struct buf hex;

    digest_sha256(key, digest);
    buf_init_arena(&hex, a);
    text_add_hex(&hex, span_of((const char *)digest, sizeof(digest)));
    draft_set_text(draft, SPAN("KeySha256"), buf_span(&hex), a);
    set_time(draft, SPAN("Time"), clock_unix_ns(), a);
    if (call->key != NULL)
        draft_set_text(draft, SPAN("CreatedBy"), call->key->name, a);
    if (call->key != NULL)
        draft_set_text(draft, SPAN("Account"), call->key->root, a);
    else
        draft_set(draft, SPAN("Account"), draft_get(draft, SPAN("Name")));
    note_made(own_of(call), key, a);
}

static struct err *check(struct call *call, struct draft *draft, const struct entity *old)
{
    struct json_value old_json = {NULL, NULL};
    struct access_key granted;
    bool was_configured = old != NULL && api_key_is_configured(old);
    struct span tenant = {NULL, 0};
    bool is_later;

    if (old != NULL)
        old_json = entity_parse(entity_json(old), call->arena);
    if (was_configured)
        return refuse_configured(json_string(json_member(old_json, SPAN("Name")), call->arena));
    TRY(check_tenant(call, draft, old_json, &tenant));
    TRY(check_name(call, draft, tenant, old));
    TRY(check_rights(call, draft, old_json, &granted));
    TRY(check_expiry(call, draft, old_json, &is_later));
    if (is_later || is_changed(draft, old_json, SPAN("AllowAccess")) ||
        is_changed(draft, old_json, SPAN("Tenant")))
        TRY(check_grant(call, &granted));
    if (old == NULL)
        make(call, draft);
    else if (is_changed(draft, old_json, SPAN("Name")))
        own_of(call)->name_count++; /* the old name is one that changes, too */
    return NULL;
}

/* ---- the answer, and what follows ---- */

static struct err *stored(struct call *call, enum method verb, struct span json)
{
    struct own *own = own_of(call);
    struct json_value entity = entity_parse(json, call->arena);
    struct span id = json_string(json_member(entity, SPAN("Id")), call->arena);

    own->name = json_string(json_member(entity, SPAN("Name")), call->arena);
    own->name_count++;
    if (verb == METHOD_POST)
        own->last->id = id;
    if (verb == METHOD_DELETE && api_key_is_configured(api_key_find(call->rest->api_keys, id)))
        return refuse_configured(own->name);
    return NULL;
}

/* What a webhook is answered is kept in its log. */
static struct span shown_key(const struct call *call, const struct made *made)
{
    return call->request->is_local ? SPAN(MASK) : made->key;
}

static void answer(struct call *call, struct span json, struct buf *b)
{
    struct own *own = own_of(call);
    struct json_value entity = entity_parse(json, call->arena);
    struct span id = json_string(json_member(entity, SPAN("Id")), call->arena);

    if (own->shown == NULL || !span_eq(own->shown->id, id)) {
        buf_add(b, json);
        return;
    }
    buf_add(b, span_sub(json, 0, json.n - 1));
    json_add_name(b, SPAN("Key"));
    json_add_string(b, shown_key(call, own->shown));
    buf_add_char(b, '}');
    own->shown = own->shown->next;
}

static int by_title(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

/* Those of one request among one another; those that are there are looked at one by one. */
static struct err *check_titles(const struct own *own, struct arena *a)
{
    struct span *titles = ARENA_ARRAY(a, struct span, own->title_count);
    size_t count = 0;

    for (const struct titled *titled = own->titles; titled != NULL; titled = titled->next)
        titles[count++] = titled->title;
    if (count > 1)
        qsort(titles, count, sizeof(*titles), by_title);
    for (size_t i = 1; i < count; i++)
        if (span_eq(titles[i - 1], titles[i]))
            return refuse_name(
                span_sub(titles[i], span_find_char(titles[i], '/', 0) + 1, titles[i].n));
    return NULL;
}

static struct err *apply(struct call *call)
{
    const struct own *own = own_of(call);
    uint64_t serial;

    TRY(check_titles(own, call->arena));
    TRY(crud_apply(call));
    if (own->name_count == 0)
        return NULL;
    TRY(api_keys_tell(call->rest->api_keys, own->name_count == 1 ? own->name : span_of(NULL, 0),
                      call->arena, &serial));
    crud_shows(call, serial);
    return NULL;
}

static const struct property answered_properties[] = {
    READ_ONLY_PROPERTY("Key", TYPE_STRING, 0,
                       "The key itself: shown once, in the answer to the POST that made it"),
};
static const struct shape answered = {.properties = answered_properties,
                                      .count = ARRAY_LEN(answered_properties)};

static const struct resource_ops ops = {
    .check = check,
    .stored = stored,
    .apply = apply,
    .changes_at_once = true,
    .stored_shape = &api_key_stored_shape,
    .answer = answer,
    .answered = &answered,
};

const struct resource_definition res_api_key = {
    .name = SPAN_INIT("Svc.Admin.ApiKey"),
    .description = SPAN_INIT("API keys: who may do what"),
    .kind = KIND_ENTITY,
    .methods = METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PATCH) |
               METHOD_BIT(METHOD_DELETE),
    .shape = &api_key_shape,
    .ops = &ops,
    .is_stored = true,
};
