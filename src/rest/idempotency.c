#include "rest/idempotency.h"

#include "access/access.h"
#include "base/digest.h"
#include "query/literal.h"
#include "query/query.h"
#include "rest/call.h"
#include "rest/crud.h"
#include "rest/request.h"
#include "store/once.h"

#include <string.h>

#define KEY_HEADER "Idempotency-Key"

enum { KEY_MOST = 255 };

/* Keys of events and of requests have nothing in common, whatever their text, and neither have
 * those of a tenant and of an API key. */
enum name_kind { NAMES_REQUEST = 2, NAMES_OF_TENANT = 4, NAMES_CLIENT = 8 };

static struct span added_key(const void *item)
{
    const struct record_once *answer = item;

    return span_of((const char *)answer->key, sizeof(answer->key));
}

/* Visible ASCII: what an HTTP field can carry as it is. */
static struct err *check_key(const char *where, struct span key)
{
    if (key.n == 0 || key.n > KEY_MOST)
        return ERR(ERR_INVALID_ENTITY, "%s: is %zu characters long, it must be 1 to %d", where,
                   key.n, KEY_MOST);
    for (size_t i = 0; i < key.n; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return ERR(ERR_INVALID_ENTITY, "%s: character %zu is a blank, a control or not ASCII",
                       where, i + 1);
    return NULL;
}

static void add_text(struct buf *b, struct span text)
{
    buf_add_le32(b, (uint32_t)text.n);
    buf_add(b, text);
}

/* SHA-256, as nobody may be able to find two keys, or two bodies, that are taken for one another,
 * and the next process must find what this one remembered. */
static void key_of(const struct idempotency *r, enum name_kind kind, struct span tenant,
                   struct span key, size_t place, uint8_t out_key[RECORD_ONCE_KEY_BYTES])
{
    const struct access_key *by = r->call->key;
    bool is_tenant;
    uint8_t digest[RECORD_ONCE_BODY_BYTES];
    struct buf b;

    if (by != NULL && by->tenant.n > 0)
        tenant = by->tenant;
    is_tenant = tenant.n > 0;
    buf_init(&b, BUF_NO_CAP);
    buf_add_char(&b, (char)(is_tenant ? kind | NAMES_OF_TENANT : kind));
    if (is_tenant)
        add_text(&b, tenant);
    else
        add_text(&b, by == NULL ? SPAN("") : by->name);
    add_text(&b, key);
    buf_add_le64(&b, place);
    digest_sha256(buf_span(&b), digest);
    memcpy(out_key, digest, RECORD_ONCE_KEY_BYTES);
    buf_done(&b);
}

/* Everything that decides what the request raises. */
static void digest_request(const struct call *call, uint8_t out_body[RECORD_ONCE_BODY_BYTES])
{
    const struct conditions *conditions = &call->query->conditions;
    const struct literal *resource = conditions_equal_to(conditions, SPAN("Resource"));
    const struct literal *webhook = conditions_equal_to(conditions, SPAN("WebhookId"));
    const struct literal *tenant = conditions_equal_to(conditions, SPAN("Tenant"));
    uint8_t body[RECORD_ONCE_BODY_BYTES];
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    add_text(&b, resource == NULL ? SPAN("") : resource->text);
    add_text(&b, webhook == NULL ? SPAN("") : webhook->text);
    if (tenant != NULL)
        add_text(&b, tenant->text);
    add_text(&b, request_header(call->request, SPAN("Content-Type")));
    digest_long(call->request->body, body);
    buf_add(&b, span_of((const char *)body, sizeof(body)));
    digest_sha256(buf_span(&b), out_body);
    buf_done(&b);
}

struct err *idempotency_init(struct idempotency *r, const struct once *once, struct call *call)
{
    *r = (struct idempotency){.call = call, .once = once};
    map_init(&r->added, added_key);
    r->request_key = request_header_all(call->request, SPAN(KEY_HEADER), call->arena);
    if (r->request_key.p == NULL)
        return NULL;
    TRY(check_key(KEY_HEADER, r->request_key));
    digest_request(call, r->request_body);
    return NULL;
}

void idempotency_done(struct idempotency *r)
{
    map_done(&r->added);
}

/* The same resource and the same bytes, whichever form carried them, and for the same receivers.
 * The resource is left to same_resource. */
static void digest_event(const struct idempotency_event *event,
                         uint8_t out_body[RECORD_ONCE_BODY_BYTES])
{
    uint8_t payload[RECORD_ONCE_BODY_BYTES];
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    add_text(&b, event->tenant);
    add_text(&b, event->webhook);
    add_text(&b, event->content_type);
    if (event->cloud_type.p != NULL)
        add_text(&b, event->cloud_type);
    digest_long(event->payload, payload);
    buf_add(&b, span_of((const char *)payload, sizeof(payload)));
    digest_sha256(buf_span(&b), out_body);
    buf_done(&b);
}

struct err *idempotency_name(const struct idempotency *r, const struct idempotency_event *event,
                             size_t place, struct idempotency_name *out_name)
{
    struct idempotency_name name = {.is_given = true};

    if (r->request_key.p != NULL && event->client_id.p != NULL)
        return ERR(ERR_INVALID_ENTITY, "ClientId: the request has an " KEY_HEADER " already");
    if (r->request_key.p != NULL) {
        key_of(r, NAMES_REQUEST, span_of(NULL, 0), r->request_key, place, name.key);
        memcpy(name.body, r->request_body, sizeof(name.body));
    } else if (event->client_id.p != NULL) {
        if (event->cloud_type.p == NULL)
            TRY(check_key("ClientId", event->client_id));
        key_of(r, NAMES_CLIENT, event->tenant, event->client_id, 0, name.key);
        digest_event(event, name.body);
        name.resource = event->resource;
    } else {
        name.is_given = false;
    }
    *out_name = name;
    return NULL;
}

/* Is the full name that was answered what is asked for again, in full or by its end? The resource
 * may be gone by now. */
static bool same_resource(struct span answered, struct span asked)
{
    struct span end;

    if (asked.p == NULL)
        return true;
    if (asked.n > answered.n)
        return false;
    end = span_sub(answered, answered.n - asked.n, answered.n);
    return span_ieq(end, asked) &&
           (end.n == answered.n || answered.p[answered.n - end.n - 1] == '.');
}

static const struct record_once *find(const struct idempotency *r,
                                      const uint8_t key[RECORD_ONCE_KEY_BYTES])
{
    const struct record_once *added =
        map_find(&r->added, span_of((const char *)key, RECORD_ONCE_KEY_BYTES));
    const struct once_entry *entry;

    if (added != NULL)
        return added;
    entry = once_find(r->once, key);
    if (entry == NULL)
        return NULL;
    crud_shows(r->call, entry->stored.serial);
    return &entry->record;
}

struct err *idempotency_find(const struct idempotency *r, const struct idempotency_name *name,
                             const struct record_once **out_answer)
{
    const struct record_once *answer = NULL;
    char event[UUID_TEXT_BYTES + 1];

    if (name->is_given)
        answer = find(r, name->key);
    if (answer != NULL && (memcmp(answer->body, name->body, sizeof(name->body)) != 0 ||
                           !same_resource(answer->resource, name->resource))) {
        uuid_text(&answer->event, event);
        return ERR(ERR_CONFLICT, "%s: event %s was raised with the same one and another body",
                   r->request_key.p != NULL ? KEY_HEADER : "ClientId", event);
    }
    *out_answer = answer;
    return NULL;
}

void idempotency_remember(struct idempotency *r, const struct idempotency_name *name,
                          const struct record_once *answer)
{
    struct record_once *added;

    if (!name->is_given)
        return;
    added = ARENA_NEW(r->call->arena, struct record_once);
    *added = *answer;
    memcpy(added->key, name->key, sizeof(added->key));
    memcpy(added->body, name->body, sizeof(added->body));
    once_remember(r->call->change, added);
    map_add(&r->added, added);
}
