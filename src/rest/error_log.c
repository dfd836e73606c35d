#include "rest/error_log.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/text.h"
#include "query/shape.h"
#include "query/uri.h"
#include "rest/access.h"
#include "rest/call.h"
#include "rest/mask.h"
#include "rest/request.h"
#include "rest/resource.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/turn.h"

enum { TEXT_MAX_SCALARS = 10000 };

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
    READ_ONLY_PROPERTY("Action", TYPE_STRING, 0, "The action that failed: the request's method"),
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
    .properties = properties, .count = ARRAY_LEN(properties), .hides = true};

bool error_log_keeps(enum err_code code)
{
    switch (code) {
    case ERR_NOT_SIGNED_IN:
    case ERR_NOT_AUTHORIZED:
    case ERR_TOO_MANY_REQUESTS:
    case ERR_OVERLOADED:
        return false;
    default:
        return true;
    }
}

static void add_member(struct buf *b, const char *name, struct span text)
{
    json_add_name(b, span_str(name));
    json_add_string(b, text_cut(text, TEXT_MAX_SCALARS));
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
    const struct mask *m = &call->rest->mask;
    struct uri_condition *masked = ARENA_ARRAY(call->arena, struct uri_condition, count);

    for (size_t i = 0; i < count; i++) {
        masked[i] = conditions[i];
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
    struct span decoded = uri_decoded(target, call->arena);
    struct span masked = mask_text(&call->rest->mask, decoded, call->arena);

    return masked.p == decoded.p ? target : masked;
}

/* `/<resource>/<conditions>/<meta-conditions>`, or the target as received when that has no parts.
 */
static void add_uri(struct buf *b, const struct call *call)
{
    struct span name = call->resource != NULL ? call->resource->name : call->uri->resource;
    struct uri masked = *call->uri;
    struct buf uri;

    buf_init(&uri, BUF_NO_CAP);
    masked.conditions = masked_conditions(call, masked.conditions, masked.condition_count);
    masked.metas = masked_conditions(call, masked.metas, masked.meta_count);
    if (call->uri_is_split)
        uri_add_normal(&uri, &masked, mask_text(&call->rest->mask, name, call->arena), true);
    else
        buf_add(&uri, call->request->target);
    if (!call->uri_is_split || masked.is_unread)
        add_member(b, "Uri", masked_target(call, buf_span(&uri)));
    else
        add_member(b, "Uri", buf_span(&uri));
    buf_done(&uri);
}

static void add_headers(struct buf *b, const struct call *call)
{
    const struct request *r = call->request;
    struct buf all;

    buf_init(&all, BUF_NO_CAP);
    for (size_t i = 0; i < r->header_count; i++) {
        const struct request_header *h = &r->headers[i];

        if (i > 0)
            buf_add_str(&all, " | ");
        buf_add(&all, h->name);
        buf_add_str(&all, ": ");
        buf_add(&all, mask_header_value(&call->rest->mask, h->name, h->value, call->arena));
    }
    add_member(b, "Headers", buf_span(&all));
    mem_wipe(all.p, all.n);
    buf_done(&all);
}

static struct span visible_body(const struct call *call)
{
    const struct limits *limits = call->rest->limits;
    const struct json_limits bounds = {(uint32_t)limits->json_depth, (uint32_t)limits->json_nodes};

    return mask_body(&call->rest->mask, call->request->body, &bounds, call->arena);
}

static void add_body(struct buf *b, const struct call *call)
{
    struct span body;
    struct buf encoded;

    if (call->request->body.n == 0) {
        json_add_name(b, SPAN("Body"));
        buf_add_str(b, "null");
        return;
    }
    body = visible_body(call);
    if (text_is_utf8(body)) {
        add_member(b, "Body", body);
        return;
    }
    buf_init(&encoded, BUF_NO_CAP);
    buf_add_str(&encoded, "base64:");
    /* Four characters for three bytes: more than this would be cut again. */
    text_add_base64(&encoded, span_sub(body, 0, (size_t)(TEXT_MAX_SCALARS - 7) / 4 * 3));
    add_member(b, "Body", buf_span(&encoded));
    buf_done(&encoded);
}

static void add_trace(struct buf *b, const struct err *e)
{
    struct buf trace;

    buf_init(&trace, BUF_NO_CAP);
    err_add_trace(e, &trace);
    add_member(b, "StackTrace", buf_span(&trace));
    buf_done(&trace);
}

static void add_entity(struct buf *b, const struct call *call, const struct err *e,
                       struct span message, const struct uuid *id, uint64_t object_no)
{
    struct span resource = call->error_resource, none = {NULL, 0};
    const struct access_key *key = call->key;

    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), id);
    member_add_time(b, SPAN("Time"), clock_unix_ns());
    add_member(b, "ResourceName", resource.p == NULL ? SPAN("<unknown>") : resource);
    add_member(b, "Action", mask_text(&call->rest->mask, call->request->method, call->arena));
    add_member(b, "ErrorCode", err_info(err_code(e))->name);
    add_trace(b, e);
    add_member(b, "Message", message);
    add_uri(b, call);
    add_headers(b, call);
    add_body(b, call);
    member_add_text_or_null(b, SPAN("KeyName"), key == NULL ? none : key->name);
    member_add_text_or_null(b, SPAN("Tenant"), key == NULL ? none : key->tenant);
    member_add_u64(b, SPAN("ObjectNo"), object_no);
    buf_add_char(b, '}');
}

/* For its normal form, when the error came before; conditions that cannot be read stay as received.
 */
static void read_conditions(struct call *call)
{
    if (call->uri->is_unread)
        err_free(uri_read_conditions(call->uri, call->arena));
}

struct span error_log_store(struct call *call, const struct err *e, struct span message)
{
    struct turn *turn = call->rest->turn;
    struct uuid id = uuid_new();
    struct change change;
    struct buf json;
    struct err *failed;
    char text[UUID_TEXT_BYTES + 1];
    uint64_t serial;

    change_init(&change, turn, call->arena);
    buf_init(&json, BUF_NO_CAP);
    read_conditions(call);
    add_entity(&json, call, e, message, &id, change_next_serial(&change));
    change_put_entity(&change, error_log_resource, &id, change_next_serial(&change),
                      buf_span(&json));
    failed = turn_apply(turn, &change, &serial);
    change_done(&change);
    buf_done(&json);
    if (failed != NULL) {
        log_warn("error", "an error could not be stored: %.*s", SPAN_FMT(err_message(failed)));
        err_free(failed);
        return (struct span){NULL, 0};
    }
    if (call->rest->observer.error_stored != NULL)
        call->rest->observer.error_stored(call->rest->observer.context);
    uuid_text(&id, text);
    return arena_printf(call->arena, "/%.*s/id=%s", SPAN_FMT(error_log_resource), text);
}
