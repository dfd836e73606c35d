/* See etcd_wire.h. What bites is met here and nowhere else: an answer's `succeeded`, `count`, `kvs`
 * or `TTL` that is not there is false, 0 or none; a lease's id passes 2^53, and is never a number
 * in between; `target` of a comparison is always said, because left out it means VERSION; a
 * keepalive of a lease that is gone is a 200 without TTL; errors of a watch come inside a 200. */
#include "etcd_wire.h"

#include "base/text.h"
#include "json/json.h"
#include "json/member.h"

#include <stdio.h>

/* gRPC's codes, as etcd uses them. */
enum {
    CODE_INVALID_ARGUMENT = 3,
    CODE_NOT_FOUND = 5,
    CODE_PERMISSION_DENIED = 7,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_UNAUTHENTICATED = 16,
};

enum { QUOTED_BYTES = 160 };

static const struct json_limits limits = {.depth = 16, .members = 2000000};

const char *etcd_wire_path(enum etcd_call_kind kind)
{
    static const char *const paths[] = {
#define ETCD_AS_TEXT(symbol, path) [symbol] = path,
        ETCD_CALLS(ETCD_AS_TEXT)
#undef ETCD_AS_TEXT
    };

    return paths[kind];
}

/* Requests. */

static void add_bytes(struct buf *b, struct span name, struct span bytes)
{
    json_add_plain_name(b, name);
    buf_add_char(b, '"');
    text_add_base64(b, bytes);
    buf_add_char(b, '"');
}

static void add_i64(struct buf *b, struct span name, int64_t value)
{
    json_add_plain_name(b, name);
    buf_add_char(b, '"');
    buf_add_i64(b, value);
    buf_add_char(b, '"');
}

/* Of one key, or of a range. */
static void add_keys(struct buf *b, struct span key, struct span range_end)
{
    add_bytes(b, SPAN("key"), key);
    if (range_end.n > 0)
        add_bytes(b, SPAN("range_end"), range_end);
}

static void add_compare(struct buf *b, const struct etcd_compare *c)
{
    buf_add_str(b, "{\"result\":\"EQUAL\",\"target\":\"CREATE\"");
    add_keys(b, c->key, c->range_end);
    add_i64(b, SPAN("create_revision"), c->create_revision);
    buf_add_char(b, '}');
}

void etcd_wire_add_range(struct buf *b, const struct etcd_op *get)
{
    buf_add_char(b, '{');
    add_keys(b, get->key, get->range_end);
    if (get->limit > 0)
        add_i64(b, SPAN("limit"), get->limit);
    if (get->revision > 0)
        add_i64(b, SPAN("revision"), get->revision);
    member_add_text(b, SPAN("sort_order"), get->descending ? SPAN("DESCEND") : SPAN("ASCEND"));
    member_add_text(b, SPAN("sort_target"), SPAN("KEY"));
    if (get->keys_only)
        member_add_bool(b, SPAN("keys_only"), true);
    buf_add_char(b, '}');
}

static void add_put(struct buf *b, const struct etcd_op *put)
{
    buf_add_char(b, '{');
    add_bytes(b, SPAN("key"), put->key);
    add_bytes(b, SPAN("value"), put->value);
    if (put->lease != 0)
        add_i64(b, SPAN("lease"), put->lease);
    buf_add_char(b, '}');
}

static void add_delete(struct buf *b, const struct etcd_op *op)
{
    buf_add_char(b, '{');
    add_keys(b, op->key, op->range_end);
    buf_add_char(b, '}');
}

static void add_op(struct buf *b, const struct etcd_op *op)
{
    static const struct {
        struct span name;
        void (*add)(struct buf *b, const struct etcd_op *op);
    } kinds[] = {
        [ETCD_PUT] = {SPAN_INIT("request_put"), add_put},
        [ETCD_GET] = {SPAN_INIT("request_range"), etcd_wire_add_range},
        [ETCD_DELETE] = {SPAN_INIT("request_delete_range"), add_delete},
    };

    buf_add_char(b, '{');
    json_add_plain_name(b, kinds[op->kind].name);
    kinds[op->kind].add(b, op);
    buf_add_char(b, '}');
}

static void add_ops(struct buf *b, struct span name, const struct etcd_op *ops, size_t count)
{
    json_add_plain_name(b, name);
    buf_add_char(b, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_op(b, &ops[i]);
    }
    buf_add_char(b, ']');
}

void etcd_wire_add_txn(struct buf *b, const struct etcd_txn *txn)
{
    buf_add_str(b, "{\"compare\":[");
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_compare(b, &txn->compares[i]);
    }
    buf_add_char(b, ']');
    add_ops(b, SPAN("success"), txn->then, txn->then_count);
    add_ops(b, SPAN("failure"), txn->otherwise, txn->otherwise_count);
    buf_add_char(b, '}');
}

void etcd_wire_add_number(struct buf *b, struct span name, int64_t value)
{
    buf_add_char(b, '{');
    if (value != 0)
        add_i64(b, name, value);
    buf_add_char(b, '}');
}

void etcd_wire_add_sign_in(struct buf *b, struct span user, struct span password)
{
    buf_add_char(b, '{');
    member_add_text(b, SPAN("name"), user);
    member_add_text(b, SPAN("password"), password);
    buf_add_char(b, '}');
}

void etcd_wire_add_watch(struct buf *b, struct span key, struct span range_end, int64_t revision)
{
    buf_add_str(b, "{\"create_request\":{");
    add_keys(b, key, range_end);
    add_i64(b, SPAN("start_revision"), revision);
    buf_add_str(b, ",\"progress_notify\":true,\"fragment\":true}}");
}

/* Answers. Reading goes on over what is wrong, and is looked at once at the end. */

struct reading {
    struct arena *arena;
    bool failed;
};

static int64_t read_i64(struct reading *r, struct json_value object, struct span name)
{
    struct json_value v = json_member(object, name);
    struct span text;
    int64_t value = 0;

    if (!json_exists(v))
        return 0;
    text = json_type(v) == JSON_STRING ? json_string(v, r->arena) : json_text(v);
    if (!span_to_i64(text, &value))
        r->failed = true;
    return value;
}

static bool read_bool(struct reading *r, struct json_value object, struct span name)
{
    struct json_value v = json_member(object, name);

    if (json_exists(v) && json_type(v) != JSON_BOOLEAN)
        r->failed = true;
    return json_exists(v) && json_is_true(v);
}

static struct span read_text(struct reading *r, struct json_value object, struct span name)
{
    struct json_value v = json_member(object, name);

    if (!json_exists(v))
        return span_of("", 0);
    if (json_type(v) == JSON_STRING)
        return json_string(v, r->arena);
    r->failed = true;
    return span_of("", 0);
}

/* A header's; past 2^63 too. */
static uint64_t read_cluster_id(struct reading *r, struct json_value object)
{
    struct span text = read_text(r, json_member(object, SPAN("header")), SPAN("cluster_id"));
    uint64_t id = 0;

    if (text.n > 0 && !span_to_u64(text, &id))
        r->failed = true;
    return id;
}

static struct span read_bytes(struct reading *r, struct json_value object, struct span name)
{
    struct span bytes = {"", 0}, text = read_text(r, object, name);

    if (text.n > 0 && !text_from_base64(text, r->arena, &bytes))
        r->failed = true;
    return bytes;
}

/* An array that may be left out: then, or when it is something else, it has no elements. */
static struct json_value read_array(struct reading *r, struct json_value object, struct span name)
{
    struct json_value v = json_member(object, name);

    if (!json_exists(v) || json_type(v) == JSON_ARRAY)
        return v;
    r->failed = true;
    return (struct json_value){NULL, NULL};
}

static struct etcd_kv read_kv(struct reading *r, struct json_value v)
{
    struct etcd_kv kv = {
        .key = read_bytes(r, v, SPAN("key")),
        .value = read_bytes(r, v, SPAN("value")),
        .create_revision = read_i64(r, v, SPAN("create_revision")),
        .mod_revision = read_i64(r, v, SPAN("mod_revision")),
        .lease = read_i64(r, v, SPAN("lease")),
    };

    if (kv.key.n == 0)
        r->failed = true;
    return kv;
}

static void read_range(struct reading *r, struct json_value v, struct etcd_op_answer *out)
{
    struct json_value kvs = read_array(r, v, SPAN("kvs"));
    size_t i = 0;

    out->kind = ETCD_GET;
    out->count = read_i64(r, v, SPAN("count"));
    out->more = read_bool(r, v, SPAN("more"));
    out->kv_count = json_count(kvs);
    out->kvs = ARENA_ARRAY(r->arena, struct etcd_kv, out->kv_count);
    for (struct json_value at = json_first(kvs); json_exists(at); at = json_next(kvs, at))
        out->kvs[i++] = read_kv(r, at);
}

static void read_op(struct reading *r, struct json_value v, struct etcd_op_answer *out)
{
    struct json_value range = json_member(v, SPAN("response_range"));
    struct json_value deletion = json_member(v, SPAN("response_delete_range"));

    if (json_exists(range)) {
        read_range(r, range, out);
    } else if (json_exists(deletion)) {
        out->kind = ETCD_DELETE;
        out->deleted = read_i64(r, deletion, SPAN("deleted"));
    } else if (json_exists(json_member(v, SPAN("response_put")))) {
        out->kind = ETCD_PUT;
    } else {
        r->failed = true;
    }
}

static void read_txn(struct reading *r, struct json_value root, struct etcd_answer *out)
{
    struct json_value ops = read_array(r, root, SPAN("responses"));
    size_t i = 0;

    out->outcome = read_bool(r, root, SPAN("succeeded")) ? ETCD_DONE : ETCD_REFUSED;
    out->op_count = json_count(ops);
    out->ops = ARENA_ARRAY(r->arena, struct etcd_op_answer, out->op_count);
    for (struct json_value at = json_first(ops); json_exists(at); at = json_next(ops, at))
        read_op(r, at, &out->ops[i++]);
}

static void read_lease(struct reading *r, struct json_value root, struct etcd_answer *out)
{
    out->lease = read_i64(r, root, SPAN("ID"));
    out->ttl_s = read_i64(r, root, SPAN("TTL"));
    if (out->lease == 0)
        r->failed = true;
    else if (out->ttl_s <= 0)
        out->outcome = ETCD_REFUSED;
}

static void read_good(enum etcd_call_kind kind, struct reading *r, struct json_value root,
                      struct etcd_answer *out, struct span *out_token)
{
    switch (kind) {
    case ETCD_CALL_TXN:
        read_txn(r, root, out);
        break;
    case ETCD_CALL_RANGE:
        out->op_count = 1;
        out->ops = ARENA_NEW(r->arena, struct etcd_op_answer);
        read_range(r, root, out->ops);
        break;
    case ETCD_CALL_GRANT:
        read_lease(r, root, out);
        break;
    case ETCD_CALL_KEEPALIVE:
        read_lease(r, json_member(root, SPAN("result")), out);
        break;
    case ETCD_CALL_SIGN_IN:
        *out_token = read_text(r, root, SPAN("token"));
        r->failed = r->failed || out_token->n == 0;
        break;
    case ETCD_CALL_COMPACT:
    case ETCD_CALL_REVOKE:
    case ETCD_CALL_WATCH:
        break;
    }
}

static void say(char why[ETCD_WHY_BYTES], const char *what, struct span quoted)
{
    snprintf(why, ETCD_WHY_BYTES, "%s%s%.*s", what, quoted.n > 0 ? ": " : "",
             SPAN_FMT(text_cut_bytes(quoted, QUOTED_BYTES)));
}

static bool has(struct span text, struct span part)
{
    return span_find(text, part) != SIZE_MAX;
}

/* RESOURCE_EXHAUSTED is a full store, a request that is too long, and a member that is too busy. */
static enum etcd_outcome outcome_of_exhausted(struct span message)
{
    if (has(message, SPAN("database space exceeded")))
        return ETCD_FULL;
    return has(message, SPAN("larger than max")) ? ETCD_TOO_LARGE : ETCD_UNKNOWN;
}

static enum etcd_outcome outcome_of_error(enum etcd_call_kind kind, int status, int code,
                                          struct span message)
{
    bool is_lease = has(message, SPAN("lease not found"));

    if (status == 401 || status == 403 || code == CODE_PERMISSION_DENIED ||
        code == CODE_UNAUTHENTICATED || has(message, SPAN("user name is empty")) ||
        has(message, SPAN("authentication failed")))
        return ETCD_DENIED;
    if (status == 413 || has(message, SPAN("request is too large")))
        return ETCD_TOO_LARGE;
    if (code == CODE_RESOURCE_EXHAUSTED || status == 429)
        return outcome_of_exhausted(message);
    if (code == CODE_NOT_FOUND && is_lease)
        return ETCD_REFUSED;
    if (code == CODE_OUT_OF_RANGE)
        return ETCD_COMPACTED;
    /* Signing in where nobody has to, and the like. */
    if (code == CODE_FAILED_PRECONDITION)
        return kind == ETCD_CALL_SIGN_IN ? ETCD_DENIED : ETCD_INVALID;
    if (code == CODE_INVALID_ARGUMENT || code == CODE_UNIMPLEMENTED || status == 400 ||
        status == 404 || status == 405 || status == 501)
        return ETCD_INVALID;
    return ETCD_UNKNOWN;
}

static void read_error(enum etcd_call_kind kind, int status, struct json_value root,
                       struct reading *r, struct etcd_answer *out)
{
    struct span message = read_text(r, root, SPAN("message"));
    int code = (int)read_i64(r, root, SPAN("code"));
    char what[32];

    if (message.n == 0)
        message = read_text(r, root, SPAN("error"));
    out->outcome = outcome_of_error(kind, status, code, message);
    snprintf(what, sizeof(what), "status %d", status);
    say(out->why, what, message);
}

/* Absent when it is no object. */
static struct json_value parse(struct span text, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct err *e = json_parse(text, &limits, a, doc);
    bool is_object = e == NULL && json_type(json_root(doc)) == JSON_OBJECT;

    err_free(e);
    return is_object ? json_root(doc) : (struct json_value){NULL, NULL};
}

void etcd_wire_read(enum etcd_call_kind kind, int status, struct span body, struct arena *a,
                    struct etcd_answer *out_answer, struct span *out_token)
{
    struct json_value root = parse(body, a), error = json_member(root, SPAN("error"));
    struct reading r = {.arena = a, .failed = !json_exists(root)};

    *out_answer = (struct etcd_answer){.outcome = ETCD_DONE};
    *out_token = span_of(NULL, 0);
    if (status != 200 || json_exists(error)) { /* the latter of a stream's answer */
        read_error(kind, status, status != 200 ? root : error, &r, out_answer);
        return;
    }
    out_answer->revision = read_i64(&r, json_member(root, SPAN("header")), SPAN("revision"));
    out_answer->cluster_id =
        read_cluster_id(&r, kind == ETCD_CALL_KEEPALIVE ? json_member(root, SPAN("result")) : root);
    read_good(kind, &r, root, out_answer, out_token);
    if (r.failed) {
        *out_answer = (struct etcd_answer){.outcome = ETCD_UNKNOWN};
        say(out_answer->why, "the answer is not etcd's", span_of(NULL, 0));
    } else if (out_answer->outcome == ETCD_REFUSED) {
        say(out_answer->why,
            kind == ETCD_CALL_TXN ? "a comparison did not hold" : "the lease is gone",
            span_of(NULL, 0));
    }
}

bool etcd_wire_is_bad_token(int status, const struct etcd_answer *answer)
{
    struct span why = span_str(answer->why);

    return answer->outcome == ETCD_DENIED &&
           (status == 401 || has(why, SPAN("invalid auth token")) ||
            has(why, SPAN("revision of auth store is old")));
}

/* Watches. */

static void read_events(struct reading *r, struct json_value result, struct etcd_line *out)
{
    struct json_value events = read_array(r, result, SPAN("events"));
    size_t i = 0;

    out->count = json_count(events);
    out->events = ARENA_ARRAY(r->arena, struct etcd_event, out->count);
    for (struct json_value at = json_first(events); json_exists(at); at = json_next(events, at)) {
        struct span type = read_text(r, at, SPAN("type"));

        out->events[i].is_delete = span_eq(type, SPAN("DELETE"));
        r->failed =
            r->failed || (type.n > 0 && !out->events[i].is_delete && !span_eq(type, SPAN("PUT")));
        out->events[i++].kv = read_kv(r, json_member(at, SPAN("kv")));
    }
}

static void read_result(struct reading *r, struct json_value result, struct etcd_line *out)
{
    struct span reason = read_text(r, result, SPAN("cancel_reason"));

    out->revision = read_i64(r, json_member(result, SPAN("header")), SPAN("revision"));
    out->cluster_id = read_cluster_id(r, result);
    if (read_i64(r, result, SPAN("compact_revision")) > 0) {
        out->kind = ETCD_LINE_COMPACTED;
        say(out->why, "compacted", reason);
    } else if (read_bool(r, result, SPAN("canceled"))) {
        out->kind = has(reason, SPAN("invalid auth token"))  ? ETCD_LINE_BAD_TOKEN
                    : has(reason, SPAN("permission denied")) ? ETCD_LINE_DENIED
                    : has(reason, SPAN("no leader"))         ? ETCD_LINE_LOST
                                                             : ETCD_LINE_CANCELLED;
        say(out->why, "cancelled", reason);
    } else {
        out->is_cut = read_bool(r, result, SPAN("fragment"));
        read_events(r, result, out);
    }
}

static void read_line_error(struct reading *r, struct json_value error, struct etcd_line *out)
{
    struct span message = read_text(r, error, SPAN("message"));
    int64_t code = read_i64(r, error, SPAN("grpc_code"));

    if (code == 0)
        code = read_i64(r, error, SPAN("code"));
    if (code == CODE_UNAUTHENTICATED || has(message, SPAN("invalid auth token")))
        out->kind = ETCD_LINE_BAD_TOKEN;
    else if (code == CODE_PERMISSION_DENIED)
        out->kind = ETCD_LINE_DENIED;
    else if (code == CODE_OUT_OF_RANGE)
        out->kind = ETCD_LINE_COMPACTED;
    else
        out->kind = ETCD_LINE_LOST;
    say(out->why, "error", message);
}

void etcd_wire_read_line(struct span line, struct arena *a, struct etcd_line *out_line)
{
    struct reading r = {.arena = a};
    struct json_value root = parse(line, a), result = json_member(root, SPAN("result"));
    struct json_value error = json_member(root, SPAN("error"));

    *out_line = (struct etcd_line){.kind = ETCD_LINE_EVENTS};
    if (json_type(error) == JSON_OBJECT)
        read_line_error(&r, error, out_line);
    else if (json_type(result) == JSON_OBJECT)
        read_result(&r, result, out_line);
    else
        r.failed = true;
    if (r.failed) {
        *out_line = (struct etcd_line){.kind = ETCD_LINE_LOST};
        say(out_line->why, "the line is not etcd's", span_of(NULL, 0));
    }
}
