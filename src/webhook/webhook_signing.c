/* Secrets of a webhook. The newest stands last and never expires; a rotation puts a new one behind
 * it and gives the others a time after which they do not sign. Those whose time is over are dropped
 * by the next write, whatever that changes.
 *
 * A secret that the server makes is answered once. It is told apart from those that clients wrote
 * by a note in the call: the answer is made from what is stored, masked, and then the notes. */
#include "webhook/webhook_signing.h"

#include "access/access.h"
#include "access/mask.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "protocol/schema.h"
#include "resource/resource.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/entity.h"
#include "webhook/sign.h"
#include "webhook/webhook_call.h"
#include "webhook/webhook_settings.h"
#include "webhook/webhook_write.h"
#include "json/decimal.h"
#include "json/json.h"
#include "json/member.h"

enum { SECRETS_MOST = 10, KEPT_SECONDS = 86400 };

/* Reading. --------------------------------------------------------------------------------- */

static int64_t expiry_of(struct json_value expires, uint32_t place, struct arena *a)
{
    struct json_value time = {NULL, NULL};
    struct instant instant;

    if (json_type(expires) == JSON_ARRAY && place < json_count(expires))
        time = json_at(expires, place);
    if (json_type(time) != JSON_STRING || !datetime_parse(json_string(time, a), &instant))
        return WEBHOOK_SIGNS_ALWAYS;
    return instant.seconds * INT64_C(1000000000) + instant.nanos;
}

size_t webhook_secrets(struct json_value signing, struct arena *a,
                       struct webhook_secret **out_secrets)
{
    struct json_value texts = json_member(signing, SPAN("Secrets"));
    struct json_value expires = json_member(signing, SPAN("Expires"));
    struct webhook_secret *secrets = ARENA_ARRAY(a, struct webhook_secret, json_count(texts));
    uint32_t count = 0;

    for (struct json_value v = json_first(texts); json_exists(v); v = json_next(texts, v)) {
        secrets[count].text = json_string(v, a);
        secrets[count].expires_unix_ns = expiry_of(expires, count, a);
        count++;
    }
    *out_secrets = secrets;
    return count;
}

struct err *webhook_keep_signer(struct webhook_signer *kept,
                                const struct webhook_settings *settings, int64_t now_unix_ns,
                                struct arena *a)
{
    struct span *active;
    size_t count = 0;

    if (kept->keys != NULL && now_unix_ns < kept->until_unix_ns)
        return NULL;
    active = ARENA_ARRAY(a, struct span, settings->secret_count);
    signer_unref(TAKE(kept->keys));
    kept->until_unix_ns = WEBHOOK_SIGNS_ALWAYS;
    for (size_t i = 0; i < settings->secret_count; i++) {
        const struct webhook_secret *secret = &settings->secrets[i];

        if (secret->expires_unix_ns <= now_unix_ns)
            continue;
        active[count++] = secret->text;
        kept->until_unix_ns = MIN(kept->until_unix_ns, secret->expires_unix_ns);
    }
    return signer_new(active, count, &kept->keys);
}

/* Checking. -------------------------------------------------------------------------------- */

/* A webhook's secrets while they are written. */
struct signing {
    struct call *call;
    struct webhook_secret items[SECRETS_MOST + 1]; /* with room for one that is made */
    size_t count;
};

static struct err *take_written(struct signing *s, struct json_value written)
{
    struct arena *a = s->call->arena;
    uint32_t count = json_type(written) == JSON_ARRAY ? json_count(written) : 0;

    if (count > SECRETS_MOST || (json_type(written) == JSON_ARRAY && count == 0))
        return ERR(ERR_INVALID_ENTITY, "Secrets has %u elements, it must have 1 to %d", count,
                   SECRETS_MOST);
    for (struct json_value v = json_first(written); json_exists(v); v = json_next(written, v)) {
        struct span text = json_string(v, a);

        TRY(sign_check_secret(text));
        s->items[s->count++] = (struct webhook_secret){text, WEBHOOK_SIGNS_ALWAYS};
    }
    return NULL;
}

/* A secret that was kept, by its place, keeps its time. One that is written has none, also when it
 * is equal: nobody learns a secret by writing it. */
static void take_times(struct signing *s, const struct draft *draft, const struct entity *old)
{
    struct arena *a = s->call->arena;
    struct json_value written =
        json_member(entity_parse(draft_written(draft, SPAN("Signing")), a), SPAN("Secrets"));
    struct webhook_secret *stored;
    size_t count;

    if (old == NULL)
        return;
    count = webhook_secrets(json_member(entity_parse(entity_json(old), a), SPAN("Signing")), a,
                            &stored);
    for (uint32_t i = 0; i < MIN(s->count, count); i++)
        if (mask_is(json_at(written, i), a))
            s->items[i].expires_unix_ns = stored[i].expires_unix_ns;
}

static void drop_expired(struct signing *s, int64_t now_unix_ns)
{
    size_t kept = 0;

    if (s->count > 0)
        s->items[s->count - 1].expires_unix_ns = WEBHOOK_SIGNS_ALWAYS;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].expires_unix_ns > now_unix_ns)
            s->items[kept++] = s->items[i];
    s->count = kept;
}

struct made_secret {
    struct made_secret *next;
    struct span text;
};

static struct err *make_one(struct signing *s)
{
    struct call *call = s->call;
    struct webhook_call *own = webhook_call_of(call);
    struct made_secret *made = ARENA_NEW(call->arena, struct made_secret);
    struct span like = s->count == 0 ? span_of(NULL, 0) : s->items[s->count - 1].text;

    if (s->count == SECRETS_MOST)
        return ERR(ERR_INVALID_ENTITY,
                   "Rotate: %d secrets sign already, which is the most: take some away first",
                   SECRETS_MOST);
    TRY(sign_make_secret(like, call->arena, &made->text));
    made->next = own->made;
    own->made = made;
    s->items[s->count++] = (struct webhook_secret){made->text, WEBHOOK_SIGNS_ALWAYS};
    return NULL;
}

/* For how long the others sign: nothing to say where there is nothing new. */
static struct err *read_kept(struct json_value given, bool rotates, double *out_seconds)
{
    struct json_value kept = json_member(given, SPAN("KeepSeconds"));

    *out_seconds = KEPT_SECONDS;
    if (json_type(kept) == JSON_NULL)
        return NULL;
    if (!rotates)
        return ERR(ERR_INVALID_ENTITY, "KeepSeconds is there without Rotate, and keeps nothing");
    *out_seconds = decimal_to_double(json_text(kept));
    return NULL;
}

static struct err *rotate(struct signing *s, double keep_seconds, int64_t now_unix_ns)
{
    int64_t until_unix_ns = now_unix_ns + (int64_t)(keep_seconds * 1e9);

    TRY(make_one(s));
    for (size_t i = 0; i + 1 < s->count; i++)
        s->items[i].expires_unix_ns = MIN(s->items[i].expires_unix_ns, until_unix_ns);
    drop_expired(s, now_unix_ns);
    return NULL;
}

static void add_expiry(struct buf *b, int64_t expires_unix_ns)
{
    if (expires_unix_ns == WEBHOOK_SIGNS_ALWAYS)
        buf_add_str(b, "null");
    else
        json_add_time(b, expires_unix_ns);
}

static struct span signing_json(const struct signing *s)
{
    bool expires = false;
    struct buf b;

    buf_init_arena(&b, s->call->arena);
    buf_add_str(&b, "{\"Secrets\":[");
    for (size_t i = 0; i < s->count; i++) {
        json_add_comma(&b);
        json_add_string(&b, s->items[i].text);
        expires |= s->items[i].expires_unix_ns != WEBHOOK_SIGNS_ALWAYS;
    }
    buf_add_char(&b, ']');
    if (expires) {
        json_add_name(&b, SPAN("Expires"));
        buf_add_char(&b, '[');
        for (size_t i = 0; i < s->count; i++) {
            json_add_comma(&b);
            add_expiry(&b, s->items[i].expires_unix_ns);
        }
        buf_add_char(&b, ']');
    }
    buf_add_char(&b, '}');
    return buf_span(&b);
}

struct err *webhook_check_signing(struct call *call, struct draft *draft, const struct entity *old)
{
    struct json_value given = draft_value(draft, SPAN("Signing"), call->arena);
    bool rotates = json_is_true(json_member(given, SPAN("Rotate")));
    struct signing s = {.call = call};
    int64_t now_unix_ns = clock_unix_ns();
    double keep_seconds;

    if (!json_exists(given))
        return NULL;
    TRY(read_kept(given, rotates, &keep_seconds));
    TRY(take_written(&s, json_member(given, SPAN("Secrets"))));
    take_times(&s, draft, old);
    drop_expired(&s, now_unix_ns);
    if (s.count == 0)
        TRY(make_one(&s));
    else if (rotates)
        TRY(rotate(&s, keep_seconds, now_unix_ns));
    draft_set(draft, SPAN("Signing"), signing_json(&s));
    return NULL;
}

/* Answering. ------------------------------------------------------------------------------- */

bool webhook_made_secrets(const struct call *call)
{
    const struct webhook_call *own = call->own;

    return own != NULL && own->made != NULL;
}

static bool is_made(const struct call *call, struct span text)
{
    const struct webhook_call *own = call->own;

    for (const struct made_secret *made = own->made; made != NULL; made = made->next)
        if (span_eq(made->text, text))
            return true;
    return false;
}

/* What a webhook is answered is kept in its log. */
static bool is_shown(const struct call *call, struct span text)
{
    return !call->request->is_local && is_made(call, text);
}

static void add_signing(const struct call *call, struct json_value signing, struct buf *b)
{
    struct arena *a = call->arena;
    struct json_value expires = json_member(signing, SPAN("Expires"));
    struct webhook_secret *secrets;
    size_t count = webhook_secrets(signing, a, &secrets);

    buf_add_str(b, "{\"Secrets\":[");
    for (size_t i = 0; i < count; i++) {
        json_add_comma(b);
        json_add_string(b, is_shown(call, secrets[i].text) ? secrets[i].text : SPAN(MASK));
    }
    buf_add_char(b, ']');
    if (json_exists(expires))
        member_add_json(b, SPAN("Expires"), json_text(expires));
    buf_add_char(b, '}');
}

/* Without the right to GET no more than what was made. */
void webhook_add_answer(struct call *call, struct span json, struct buf *b)
{
    struct arena *a = call->arena;
    struct json_value webhook = entity_parse(json, a);
    struct json_value signing = json_member(webhook, SPAN("Signing"));
    struct buf patch, masked;

    buf_init_arena(&patch, a);
    buf_add_char(&patch, '{');
    member_add_json(&patch, SPAN("Id"), json_text(json_member(webhook, SPAN("Id"))));
    if (json_type(signing) == JSON_OBJECT) {
        json_add_name(&patch, SPAN("Signing"));
        add_signing(call, signing, &patch);
    }
    buf_add_char(&patch, '}');
    if (!access_allows(call->key, call->resource->name, METHOD_GET)) {
        buf_add(b, buf_span(&patch));
        return;
    }
    buf_init_arena(&masked, a);
    mask_add_value(&masked, call->rest->mask, webhook, a);
    json_add_merged(b, entity_parse(buf_span(&masked), a), entity_parse(buf_span(&patch), a), false,
                    a);
}
