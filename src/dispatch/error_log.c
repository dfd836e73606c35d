/* Errors as they are stored. Whoever is refused makes the texts of his error as long as he likes,
 * and characters that are escaped take up to six times their own; so one is bounded as it is
 * written: its texts share ENTITY_BYTES, where the short ones leave room to the long ones, which
 * are cut. */
#include "dispatch/error_log.h"

#include "access/access.h"
#include "access/mask.h"
#include "base/clock.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "dispatch/handover.h"
#include "query/shape.h"
#include "query/uri.h"
#include "resource/resource.h"
#include "rest/call.h"
#include "rest/cluster_view.h"
#include "rest/request.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/turn.h"
#include "json/json.h"
#include "json/member.h"

enum {
    TEXT_MAX_SCALARS = 10000,
    ENTITY_BYTES = 32768,
    OTHER_BYTES = 1024, /* names, Id, Time, numbers, and what the journal puts around it */
};

/* In the order of the entity's members. */
#define TEXTS(X)                                                                                   \
    X(TEXT_RESOURCE, "ResourceName")                                                               \
    X(TEXT_ACTION, "Action")                                                                       \
    X(TEXT_CODE, "ErrorCode")                                                                      \
    X(TEXT_TRACE, "StackTrace")                                                                    \
    X(TEXT_MESSAGE, "Message")                                                                     \
    X(TEXT_URI, "Uri")                                                                             \
    X(TEXT_HEADERS, "Headers")                                                                     \
    X(TEXT_BODY, "Body")

enum text {
#define TEXT_AS_ENUM(symbol, name) symbol,
    TEXTS(TEXT_AS_ENUM)
#undef TEXT_AS_ENUM
        TEXT_COUNT
};

struct texts {
    struct span of[TEXT_COUNT];
    struct buf own[TEXT_COUNT]; /* what was composed for it */
};

const struct span error_log_resource = SPAN_INIT("Svc.Admin.Error");

static const struct span code_names[] = {
#define CODE_AS_NAME(symbol, name, number, status) SPAN_INIT(name),
    ERR_CODES(CODE_AS_NAME)
#undef CODE_AS_NAME
};
static const struct enumeration codes = {"ErrorCode", code_names, ARRAY_LEN(code_names)};

static const struct property properties[] = {
    ID_PROPERTY("ID of the error"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When the error was encountered"),
    READ_ONLY_PROPERTY("ResourceName", TYPE_STRING, 0, "Resource of the request, or <unknown>"),
    READ_ONLY_PROPERTY("Action", TYPE_STRING, PROPERTY_ANY_CASE,
                       "The action that failed: the request's method"),
    {.name = SPAN_INIT("ErrorCode"),
     .type = TYPE_STRING,
     .flags = PROPERTY_READ_ONLY,
     .values = &codes,
     .meaning = SPAN_INIT("Error code, see Svc.Admin.ErrorCode")},
    READ_ONLY_PROPERTY("StackTrace", TYPE_STRING, 0, "Places in the server that the error passed"),
    READ_ONLY_PROPERTY("Message", TYPE_STRING, 0, "What was wrong"),
    READ_ONLY_PROPERTY("Uri", TYPE_STRING, 0, "URI of the request in normal form"),
    READ_ONLY_PROPERTY("Headers", TYPE_STRING, 0, "Request headers, secrets masked"),
    READ_ONLY_PROPERTY("Body", TYPE_STRING, 0, "Body of the request"),
    READ_ONLY_PROPERTY("KeyName", TYPE_STRING, PROPERTY_UNSHOWN,
                       "Name of the request's API key; shown when add asks for it"),
    READ_ONLY_PROPERTY("Tenant", TYPE_STRING, PROPERTY_UNSHOWN | PROPERTY_INDEXED,
                       "Tenant of the request's API key; shown when add asks for it"),
    OBJECT_NO_PROPERTY,
};

const struct shape error_log_shape = {
    .properties = properties,
    .count = ARRAY_LEN(properties),
    .name = SPAN_INIT("Svc.Admin.Error"),
    .hides = true,
};

bool error_log_keeps(enum err_code code)
{
    switch (code) {
    case ERR_NOT_SIGNED_IN:
    case ERR_NOT_AUTHORIZED:
    case ERR_TOO_MANY_REQUESTS:
    case ERR_OVERLOADED:
    case ERR_NO_LEADER:
        return false;
    default:
        return true;
    }
}

static struct buf *begin(struct texts *t, enum text text)
{
    buf_init(&t->own[text], BUF_NO_CAP);
    return &t->own[text];
}

static void end(struct texts *t, enum text text)
{
    t->of[text] = buf_span(&t->own[text]);
}

/* A step may stand in quotes. */
static struct span unquoted(struct span step)
{
    bool is_quoted =
        step.n >= 2 && (step.p[0] == '\'' || step.p[0] == '"') && step.p[step.n - 1] == step.p[0];

    return is_quoted ? span_sub(step, 1, step.n - 1) : step;
}

static bool names_secret(const struct mask *m, struct span path)
{
    while (path.p != NULL) {
        struct span step = unquoted(span_split(&path, '.'));

        if (mask_is_secret_header(m, step) || mask_is_secret_list(step))
            return true;
    }
    return false;
}

static struct uri_condition *masked_conditions(const struct call *call,
                                               const struct uri_condition *conditions, size_t count)
{
    const struct mask *m = call->rest->mask;
    struct uri_condition *masked = ARENA_ARRAY(call->arena, struct uri_condition, count);

    for (size_t i = 0; i < count; i++) {
        masked[i] = conditions[i];
        masked[i].key = mask_text(m, conditions[i].key, call->arena);
        masked[i].value = names_secret(m, conditions[i].key)
                              ? SPAN(MASK)
                              : mask_text(m, conditions[i].value, call->arena);
    }
    return masked;
}

/* What is no target, or has parts that are none: as received, unless there is a secret in it. It
 * may be encoded. */
static struct span masked_target(const struct call *call, struct span target)
{
    struct span decoded, masked;

    (void)text_from_percent(target, call->arena, &decoded);
    masked = mask_text(call->rest->mask, decoded, call->arena);
    return masked.p == decoded.p ? target : masked;
}

/* `/<resource>/<conditions>/<meta-conditions>`, or the target as received when that has no parts.
 */
static void write_uri(struct texts *t, const struct call *call)
{
    struct span name = call->resource != NULL ? call->resource->name : call->uri->resource;
    struct uri masked = *call->uri;
    struct buf *uri = begin(t, TEXT_URI);

    masked.conditions = masked_conditions(call, masked.conditions, masked.condition_count);
    masked.metas = masked_conditions(call, masked.metas, masked.meta_count);
    if (call->uri_is_split)
        uri_add_normal(uri, &masked, mask_text(call->rest->mask, name, call->arena), true);
    else
        buf_add(uri, call->request->target);
    end(t, TEXT_URI);
    if (!call->uri_is_split || masked.is_unread)
        t->of[TEXT_URI] = masked_target(call, t->of[TEXT_URI]);
}

static void write_headers(struct texts *t, const struct call *call)
{
    const struct request *r = call->request;
    struct buf *all = begin(t, TEXT_HEADERS);

    for (size_t i = 0; i < r->header_count; i++) {
        const struct header_field *h = &r->headers[i];

        if (i > 0)
            buf_add_str(all, " | ");
        buf_add(all, h->name);
        buf_add_str(all, ": ");
        buf_add(all, mask_header_value(call->rest->mask, h->name, h->value, call->arena));
    }
    end(t, TEXT_HEADERS);
}

static struct span visible_body(const struct call *call)
{
    const struct limits *limits = call->rest->limits;
    const struct json_limits bounds = {(uint32_t)limits->json_depth, (uint32_t)limits->json_nodes};

    return mask_body(call->rest->mask, call->request->body, &bounds, call->arena);
}

static void write_body(struct texts *t, const struct call *call)
{
    struct span body;
    struct buf *encoded;

    if (call->request->body.n == 0)
        return;
    body = visible_body(call);
    if (text_is_utf8(body)) {
        t->of[TEXT_BODY] = body;
        return;
    }
    encoded = begin(t, TEXT_BODY);
    buf_add_str(encoded, "base64:");
    /* Four characters for three bytes: more than this would be cut again. */
    text_add_base64(encoded, span_sub(body, 0, (size_t)(TEXT_MAX_SCALARS - 7) / 4 * 3));
    end(t, TEXT_BODY);
}

static void texts_write(struct texts *t, const struct call *call, const struct err *e,
                        struct span message)
{
    *t = (struct texts){
        .of = {[TEXT_RESOURCE] =
                   call->error_resource.p == NULL ? SPAN("<unknown>") : call->error_resource,
               [TEXT_ACTION] = mask_text(call->rest->mask, call->request->method, call->arena),
               [TEXT_CODE] = err_info(err_code(e))->name,
               [TEXT_MESSAGE] = message},
    };
    err_add_trace(e, begin(t, TEXT_TRACE));
    end(t, TEXT_TRACE);
    write_uri(t, call);
    write_headers(t, call);
    write_body(t, call);
}

static void texts_done(struct texts *t)
{
    mem_wipe(t->own[TEXT_HEADERS].p, t->own[TEXT_HEADERS].n);
    for (unsigned i = 0; i < TEXT_COUNT; i++)
        buf_done(&t->own[i]);
}

/* The most bytes of each text so that all take at most `all`: what is shorter leaves its rest to
 * the others. */
static size_t level(const size_t bytes[TEXT_COUNT], size_t all)
{
    size_t most = all / TEXT_COUNT, was;

    do {
        size_t short_bytes = 0, longer = 0;

        for (unsigned i = 0; i < TEXT_COUNT; i++)
            if (bytes[i] <= most)
                short_bytes += bytes[i];
            else
                longer++;
        was = most;
        most = longer == 0 ? all : (all - short_bytes) / longer;
    } while (most > was && most < all);
    return most;
}

static void texts_fit(struct texts *t)
{
    size_t bytes[TEXT_COUNT], most;

    for (unsigned i = 0; i < TEXT_COUNT; i++)
        t->of[i] = json_cut_string(text_cut(t->of[i], TEXT_MAX_SCALARS), ENTITY_BYTES, &bytes[i]);
    most = level(bytes, ENTITY_BYTES - OTHER_BYTES);
    for (unsigned i = 0; i < TEXT_COUNT; i++)
        if (bytes[i] > most)
            t->of[i] = json_cut_string(t->of[i], most, &bytes[i]);
}

static void add_texts(struct buf *b, const struct texts *t)
{
    static const struct span names[] = {
#define TEXT_AS_NAME(symbol, name) SPAN_INIT(name),
        TEXTS(TEXT_AS_NAME)
#undef TEXT_AS_NAME
    };

    for (unsigned i = 0; i < TEXT_COUNT; i++) {
        json_add_plain_name(b, names[i]);
        if (i == TEXT_BODY && t->of[i].n == 0)
            buf_add_str(b, "null");
        else
            json_add_string(b, t->of[i]);
    }
}

static void add_entity(struct buf *b, const struct call *call, const struct err *e,
                       struct span message, const struct uuid *id, uint64_t object_no)
{
    struct texts texts;
    const struct access_key *key = call->key;
    struct span none = {NULL, 0};

    texts_write(&texts, call, e, message);
    texts_fit(&texts);
    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), id);
    member_add_time(b, SPAN("Time"), clock_unix_ns());
    add_texts(b, &texts);
    member_add_text_or_null(b, SPAN("KeyName"), key == NULL ? none : key->name);
    member_add_text_or_null(b, SPAN("Tenant"), key == NULL ? none : key->tenant);
    if (object_no != 0)
        member_add_u64(b, SPAN("ObjectNo"), object_no);
    buf_add_char(b, '}');
    texts_done(&texts);
}

/* For its normal form, when the error came before; conditions that cannot be read stay as received.
 */
static void read_conditions(struct call *call)
{
    if (call->uri->is_unread)
        err_free(uri_read_conditions(call->uri, call->arena));
}

static struct span link_to(const struct call *call, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES + 1];

    uuid_text(id, text);
    return arena_printf(call->arena, "/%.*s/id=%s", SPAN_FMT(error_log_resource), text);
}

/* Of a leader that is none any more there is a word already, not one for each. */
static bool put(const struct call *call, struct change *change, const struct uuid *id,
                struct span json)
{
    const struct rest_observer *observer = &call->rest->observer;
    uint64_t serial;
    struct err *e;

    change_put_entity(change, error_log_resource, id, change_next_serial(change), json);
    e = turn_apply(call->rest->turn, change, &serial);
    if (e != NULL && err_code(e) == ERR_NO_LEADER) {
        err_free(e);
        return false;
    }
    if (log_failed(LOG_WARN, "error", "an error could not be stored", e))
        return false;
    if (observer->error_stored != NULL)
        observer->error_stored(observer->context);
    return true;
}

/* On a node that follows it gets its ObjectNo from the leader. */
struct span error_log_store(struct call *call, const struct err *e, struct span message)
{
    struct rest *rest = call->rest;
    bool follows = rest->cluster != NULL && !rest->cluster->leads, is_stored;
    struct uuid id = uuid_new();
    struct change change;
    struct buf json;

    change_init(&change, rest->turn, call->arena);
    buf_init(&json, BUF_NO_CAP);
    read_conditions(call);
    add_entity(&json, call, e, message, &id, follows ? 0 : change_next_serial(&change));
    is_stored = follows ? handover_add_error(rest->handover, buf_span(&json))
                        : put(call, &change, &id, buf_span(&json));
    change_done(&change);
    buf_done(&json);
    return is_stored ? link_to(call, &id) : span_of(NULL, 0);
}
