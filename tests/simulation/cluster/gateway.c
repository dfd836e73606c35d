/* JSON as etcd 3.4 takes and gives it: bytes in base64, 64-bit integers as strings, and what is
 * false, 0 or empty is left out. It is read and written here by other code than the client's. */
#include "gateway.h"

#include "etcd_store.h"
#include "plants.h"
#include "simulated.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/text.h"
#include "json/json.h"

#include <inttypes.h>
#include <string.h>

enum {
    COMPARES_MOST = 8,
    OPS_MOST = 8,
    ERROR_NOT_FOUND = 5,
    ERROR_EXHAUSTED = 8,
    ERROR_RANGE = 11
};

#define HANGS_NS (7 * NS_PER_S)
#define NO_LEADER_NS (4 * NS_PER_S)

struct watcher {
    struct list_link link;
    struct exchange *x;
    struct buf key, range_end;
    int64_t revision; /* that was told */
};

/* A request that was taken without a quorum. */
struct aside {
    struct list_link link;
    struct exchange *x;
};

static struct {
    enum gateway_state states[NETWORK_MEMBERS];
    bool has_no_quorum;
    struct list watchers, aside;
} gateway;

/* Reading. ---------------------------------------------------------------------------------- */

static struct span bytes_of(struct json_value object, struct span name, struct arena *a)
{
    struct json_value v = json_member(object, name);
    struct span bytes = {"", 0};

    if (json_exists(v))
        MUST(text_from_base64(json_string(v, a), a, &bytes));
    return bytes;
}

static int64_t i64_of(struct json_value object, struct span name, struct arena *a)
{
    struct json_value v = json_member(object, name);
    int64_t value = 0;

    if (json_exists(v))
        MUST(span_to_i64(json_type(v) == JSON_STRING ? json_string(v, a) : json_text(v), &value));
    return value;
}

static bool is_text(struct json_value object, struct span name, struct span text)
{
    struct json_value v = json_member(object, name);
    struct span quoted = json_text(v);

    return json_exists(v) && span_eq(span_sub(quoted, 1, quoted.n - 1), text);
}

static struct etcd_compare read_compare(struct json_value v, struct arena *a)
{
    MUST(is_text(v, SPAN("result"), SPAN("EQUAL")) && is_text(v, SPAN("target"), SPAN("CREATE")));
    return (struct etcd_compare){
        .key = bytes_of(v, SPAN("key"), a),
        .range_end = bytes_of(v, SPAN("range_end"), a),
        .create_revision = i64_of(v, SPAN("create_revision"), a),
    };
}

static struct etcd_op read_range(struct json_value v, struct arena *a)
{
    return (struct etcd_op){
        .kind = ETCD_GET,
        .key = bytes_of(v, SPAN("key"), a),
        .range_end = bytes_of(v, SPAN("range_end"), a),
        .limit = i64_of(v, SPAN("limit"), a),
        .keys_only = json_is_true(json_member(v, SPAN("keys_only"))),
        .descending = is_text(v, SPAN("sort_order"), SPAN("DESCEND")),
    };
}

static struct etcd_op read_op(struct json_value v, struct arena *a)
{
    struct json_value put = json_member(v, SPAN("request_put"));
    struct json_value deletion = json_member(v, SPAN("request_delete_range"));

    if (json_exists(put))
        return (struct etcd_op){.kind = ETCD_PUT,
                                .key = bytes_of(put, SPAN("key"), a),
                                .value = bytes_of(put, SPAN("value"), a),
                                .lease = i64_of(put, SPAN("lease"), a)};
    if (json_exists(deletion))
        return (struct etcd_op){.kind = ETCD_DELETE,
                                .key = bytes_of(deletion, SPAN("key"), a),
                                .range_end = bytes_of(deletion, SPAN("range_end"), a)};
    return read_range(json_member(v, SPAN("request_range")), a);
}

static size_t read_ops(struct json_value root, struct span name, struct etcd_op ops[OPS_MOST],
                       struct arena *a)
{
    struct json_value list = json_member(root, name);
    size_t count = 0;

    for (struct json_value at = json_first(list); json_exists(at); at = json_next(list, at)) {
        MUST(count < OPS_MOST);
        ops[count++] = read_op(at, a);
    }
    return count;
}

/* Writing. ---------------------------------------------------------------------------------- */

static void add_bytes(struct buf *b, struct span name, struct span bytes)
{
    if (bytes.n == 0)
        return;
    json_add_name(b, name);
    buf_add_char(b, '"');
    text_add_base64(b, bytes);
    buf_add_char(b, '"');
}

static void add_i64(struct buf *b, struct span name, int64_t value)
{
    if (value == 0)
        return;
    json_add_name(b, name);
    buf_printf(b, "\"%" PRId64 "\"", value);
}

static void add_header(struct buf *b)
{
    json_add_name(b, SPAN("header"));
    buf_printf(b, "{\"cluster_id\":\"%s\",\"revision\":\"%" PRId64 "\"}",
               etcd_store_is_other() && planted != PLANT_SAME ? "1234567890123456789"
                                                              : "14841639068965178418",
               etcd_store_revision());
}

static void add_kv(struct buf *b, const struct etcd_kv *kv)
{
    buf_add_char(b, '{');
    add_bytes(b, SPAN("key"), kv->key);
    add_i64(b, SPAN("create_revision"), kv->create_revision);
    add_i64(b, SPAN("mod_revision"), kv->mod_revision);
    add_bytes(b, SPAN("value"), kv->value);
    add_i64(b, SPAN("lease"), kv->lease);
    buf_add_char(b, '}');
}

static void add_page(struct buf *b, const struct etcd_op_answer *op)
{
    add_header(b);
    if (op->kv_count > 0) {
        json_add_name(b, SPAN("kvs"));
        buf_add_char(b, '[');
        for (size_t i = 0; i < op->kv_count; i++) {
            if (i > 0)
                buf_add_char(b, ',');
            add_kv(b, &op->kvs[i]);
        }
        buf_add_char(b, ']');
    }
    if (op->more)
        buf_add_str(b, ",\"more\":true");
    add_i64(b, SPAN("count"), op->count);
}

static void add_op(struct buf *b, const struct etcd_op_answer *op)
{
    static const char *const names[] = {[ETCD_PUT] = "{\"response_put\":{",
                                        [ETCD_GET] = "{\"response_range\":{",
                                        [ETCD_DELETE] = "{\"response_delete_range\":{"};

    buf_add_str(b, names[op->kind]);
    if (op->kind == ETCD_GET)
        add_page(b, op);
    else
        add_header(b);
    if (op->kind == ETCD_DELETE)
        add_i64(b, SPAN("deleted"), op->deleted);
    buf_add_str(b, "}}");
}

static void add_txn(struct buf *b, const struct etcd_answer *answer)
{
    buf_add_char(b, '{');
    add_header(b);
    if (answer->outcome == ETCD_DONE)
        buf_add_str(b, ",\"succeeded\":true");
    json_add_name(b, SPAN("responses"));
    buf_add_char(b, '[');
    for (size_t i = 0; i < answer->op_count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_op(b, &answer->ops[i]);
    }
    buf_add_str(b, "]}");
}

static void add_lease(struct buf *b, const struct etcd_answer *answer)
{
    buf_add_char(b, '{');
    add_header(b);
    add_i64(b, SPAN("ID"), answer->lease);
    add_i64(b, SPAN("TTL"), answer->ttl_s);
    buf_add_char(b, '}');
}

static void add_error(struct buf *b, int code, const char *message)
{
    buf_printf(b, "{\"error\":\"%s\",\"message\":\"%s\",\"code\":%d}", message, message, code);
}

/* Calls. Each writes the answer and gives its status. --------------------------------------- */

/* Of what is neither done nor refused by a comparison. */
static int fail(const struct etcd_answer *answer, struct buf *b)
{
    switch (answer->outcome) {
    case ETCD_FULL:
        add_error(b, ERROR_EXHAUSTED, "etcdserver: mvcc: database space exceeded");
        return 429;
    case ETCD_COMPACTED:
        add_error(b, ERROR_RANGE, "etcdserver: mvcc: required revision has been compacted");
        return 400;
    default:
        add_error(b, ERROR_NOT_FOUND, "etcdserver: requested lease not found");
        return 404;
    }
}

static int do_txn(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_compare compares[COMPARES_MOST];
    struct etcd_op then[OPS_MOST], otherwise[OPS_MOST];
    struct json_value list = json_member(root, SPAN("compare"));
    struct etcd_txn txn = {.compares = compares, .then = then, .otherwise = otherwise};
    struct etcd_answer answer;

    for (struct json_value at = json_first(list); json_exists(at); at = json_next(list, at)) {
        MUST(txn.compare_count < COMPARES_MOST);
        compares[txn.compare_count++] = read_compare(at, a);
    }
    txn.then_count = read_ops(root, SPAN("success"), then, a);
    txn.otherwise_count = read_ops(root, SPAN("failure"), otherwise, a);
    etcd_store_txn(&txn, a, &answer);
    if (answer.ops == NULL)
        return fail(&answer, b);
    add_txn(b, &answer);
    return 200;
}

static int do_range(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_op get = read_range(root, a);
    const struct etcd_txn txn = {.then = &get, .then_count = 1};
    struct etcd_answer answer;

    etcd_store_txn(&txn, a, &answer);
    buf_add_char(b, '{');
    add_page(b, answer.ops);
    buf_add_char(b, '}');
    return 200;
}

static int do_grant(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_answer answer;

    etcd_store_grant(i64_of(root, SPAN("TTL"), a), &answer);
    if (answer.outcome != ETCD_DONE)
        return fail(&answer, b);
    add_lease(b, &answer);
    return 200;
}

/* Of a lease that is gone: no TTL, and 200 all the same. */
static int do_keepalive(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_answer answer;

    etcd_store_keepalive(i64_of(root, SPAN("ID"), a), &answer);
    buf_add_str(b, "{\"result\":");
    add_lease(b, &answer);
    buf_add_char(b, '}');
    return 200;
}

static int do_revoke(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_answer answer;

    etcd_store_revoke(i64_of(root, SPAN("ID"), a), &answer);
    if (answer.outcome != ETCD_DONE)
        return fail(&answer, b);
    buf_add_char(b, '{');
    add_header(b);
    buf_add_char(b, '}');
    return 200;
}

static int do_compact(struct json_value root, struct arena *a, struct buf *b)
{
    struct etcd_answer answer;

    etcd_store_compact(i64_of(root, SPAN("revision"), a), &answer);
    if (answer.outcome != ETCD_DONE)
        return fail(&answer, b);
    buf_add_char(b, '{');
    add_header(b);
    buf_add_char(b, '}');
    return 200;
}

static const struct call {
    struct span path;
    int (*run)(struct json_value root, struct arena *a, struct buf *b);
} calls[] = {
    {SPAN_INIT("/v3/kv/txn"), do_txn},          {SPAN_INIT("/v3/kv/range"), do_range},
    {SPAN_INIT("/v3/lease/grant"), do_grant},   {SPAN_INIT("/v3/lease/keepalive"), do_keepalive},
    {SPAN_INIT("/v3/lease/revoke"), do_revoke}, {SPAN_INIT("/v3/kv/compaction"), do_compact},
};

static struct json_value parse(struct span text, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);

    MUST(json_parse(text, NULL, a, doc) == NULL);
    return json_root(doc);
}

static int carry_out(const struct exchange *x, struct buf *b)
{
    struct arena a;
    int status = 0;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (span_eq(x->target, calls[i].path))
            status = calls[i].run(parse(x->body, &a), &a, b);
    MUST(status != 0);
    arena_done(&a);
    gateway_tell();
    return status;
}

/* Watches. ---------------------------------------------------------------------------------- */

static void add_event(struct buf *b, const struct etcd_event *e)
{
    buf_add_char(b, '{');
    if (e->is_delete)
        buf_add_str(b, "\"type\":\"DELETE\",");
    buf_add_str(b, "\"kv\":");
    add_kv(b, &e->kv);
    buf_add_char(b, '}');
}

static void add_line(struct buf *b, const struct etcd_event *events, size_t count, bool is_cut)
{
    buf_add_str(b, "{\"result\":{");
    add_header(b);
    if (is_cut)
        buf_add_str(b, ",\"fragment\":true");
    json_add_name(b, SPAN("events"));
    buf_add_char(b, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        add_event(b, &events[i]);
    }
    buf_add_str(b, "]}}\n");
}

static void tell(struct watcher *w)
{
    struct etcd_event *events;
    struct buf lines;
    struct arena a;
    size_t count;

    buf_init(&lines, BUF_NO_CAP);
    arena_init(&a);
    while (etcd_store_next_events(buf_span(&w->key), buf_span(&w->range_end), &w->revision, &a,
                                  &events, &count)) {
        size_t first = count > 1 && sim_chance(3) ? 1 + (size_t)rng_below(count - 1) : count;

        add_line(&lines, events, first, first < count);
        if (first < count)
            add_line(&lines, events + first, count - first, false);
    }
    network_send(w->x, buf_span(&lines));
    arena_done(&a);
    buf_done(&lines);
}

void gateway_tell(void)
{
    LIST_EACH(&gateway.watchers, at) {
        struct watcher *w = CONTAINER_OF(at, struct watcher, link);

        bool is_other = gateway.states[w->x->server] == GATEWAY_OTHER;

        if (is_other == etcd_store_is_other() && gateway.states[w->x->server] != GATEWAY_FROZEN)
            tell(w);
    }
}

static void free_watcher(struct watcher *w)
{
    struct exchange *x = w->x;

    list_remove(&gateway.watchers, &w->link);
    buf_done(&w->key);
    buf_done(&w->range_end);
    mem_free(w);
    x->served = NULL;
    network_unref(x);
}

void gateway_forget(struct exchange *x)
{
    free_watcher(x->served);
}

static void add_watcher(struct exchange *x, struct json_value create, struct arena *a)
{
    struct watcher *w = NEW(struct watcher);

    w->x = network_ref(x);
    x->served = w;
    buf_init(&w->key, BUF_NO_CAP);
    buf_init(&w->range_end, BUF_NO_CAP);
    buf_add(&w->key, bytes_of(create, SPAN("key"), a));
    buf_add(&w->range_end, bytes_of(create, SPAN("range_end"), a));
    w->revision = i64_of(create, SPAN("start_revision"), a) - 1;
    list_push_back(&gateway.watchers, &w->link);
    tell(w);
}

static void watch(struct exchange *x)
{
    struct json_value create;
    struct arena a;
    struct buf line;
    bool is_compacted;

    arena_init(&a);
    buf_init(&line, BUF_NO_CAP);
    create = json_member(parse(x->body, &a), SPAN("create_request"));
    is_compacted = i64_of(create, SPAN("start_revision"), &a) <= etcd_store_compacted();
    buf_add_str(&line, "{\"result\":{");
    add_header(&line);
    buf_add_str(&line, ",\"created\":true}}\n");
    if (is_compacted) {
        buf_add_str(&line, "{\"result\":{");
        add_header(&line);
        buf_add_str(&line, ",\"canceled\":true");
        add_i64(&line, SPAN("compact_revision"), etcd_store_compacted());
        buf_add_str(&line, "}}\n");
    }
    network_begin_answer(x, 200);
    network_send(x, buf_span(&line));
    if (!is_compacted)
        add_watcher(x, create, &a);
    buf_done(&line);
    arena_done(&a);
}

/* Members. ---------------------------------------------------------------------------------- */

void gateway_open(void)
{
    memset(&gateway, 0, sizeof(gateway));
    list_init(&gateway.watchers);
    list_init(&gateway.aside);
}

void gateway_close(void)
{
    struct list_link *at;

    while (!list_empty(&gateway.watchers))
        free_watcher(CONTAINER_OF(list_first(&gateway.watchers), struct watcher, link));
    while ((at = list_pop_front(&gateway.aside)) != NULL) {
        network_unref(CONTAINER_OF(at, struct aside, link)->x);
        mem_free(CONTAINER_OF(at, struct aside, link));
    }
}

bool gateway_is_open(unsigned member)
{
    return gateway.states[member] != GATEWAY_DOWN;
}

static void put_aside(struct exchange *x)
{
    struct aside *aside = NEW(struct aside);
    struct buf b;

    aside->x = network_ref(x);
    list_push_back(&gateway.aside, &aside->link);
    buf_init(&b, BUF_NO_CAP);
    add_error(&b, 14, "etcdserver: request timed out");
    network_answer_later(x, 503, buf_span(&b), HANGS_NS);
    buf_done(&b);
}

static void take(struct exchange *x)
{
    struct buf b;

    if (span_eq(x->target, SPAN("/v3/watch"))) {
        watch(x);
        return;
    }
    buf_init(&b, BUF_NO_CAP);
    {
        int status = carry_out(x, &b);

        network_answer(x, status, NULL, 0, buf_span(&b));
    }
    buf_done(&b);
}

void gateway_take(struct exchange *x)
{
    bool is_other = gateway.states[x->server] == GATEWAY_OTHER;

    if (gateway.states[x->server] == GATEWAY_FROZEN)
        return;
    if (gateway.has_no_quorum && !is_other) {
        put_aside(x);
        return;
    }
    etcd_store_enter_other(is_other);
    take(x);
    etcd_store_enter_other(false);
}

void gateway_set(unsigned member, enum gateway_state state)
{
    static const char *const words[] = {[GATEWAY_OPEN] = "open",
                                        [GATEWAY_DOWN] = "down",
                                        [GATEWAY_FROZEN] = "frozen",
                                        [GATEWAY_OTHER] = "another etcd's"};
    bool was_other = gateway.states[member] == GATEWAY_OTHER;
    bool closes = state == GATEWAY_DOWN || was_other != (state == GATEWAY_OTHER);

    gateway.states[member] = state;
    sim_note("etcd: member %u is %s", member, words[state]);
    LIST_EACH(&gateway.watchers, at) {
        struct watcher *w = CONTAINER_OF(at, struct watcher, link);

        if (w->x->server != member || !closes)
            continue;
        network_drop(w->x);
        free_watcher(w);
    }
    if (state == GATEWAY_OPEN)
        gateway_tell();
}

/* Those who watch are told that there is no leader, as they have asked for it. */
static void end_watches(void)
{
    while (!list_empty(&gateway.watchers)) {
        struct watcher *w = CONTAINER_OF(list_first(&gateway.watchers), struct watcher, link);

        w->x->back_ns = MAX(w->x->back_ns, sim.now_ns + NO_LEADER_NS);
        network_send(w->x, SPAN("{\"error\":{\"grpc_code\":14,\"http_code\":503,"
                                "\"message\":\"etcdserver: no leader\"}}\n"));
        network_end_answer(w->x, true);
        free_watcher(w);
    }
}

void gateway_set_quorum(bool has_quorum)
{
    struct list_link *at;

    if (has_quorum != gateway.has_no_quorum)
        return;
    gateway.has_no_quorum = !has_quorum;
    sim_note("etcd: quorum is %s", has_quorum ? "there" : "lost");
    if (!has_quorum) {
        end_watches();
        return;
    }
    etcd_store_restart_leases();
    while ((at = list_pop_front(&gateway.aside)) != NULL) {
        struct aside *aside = CONTAINER_OF(at, struct aside, link);
        struct buf b;

        buf_init(&b, BUF_NO_CAP);
        if (sim_chance(2) && !span_eq(aside->x->target, SPAN("/v3/watch")))
            carry_out(aside->x, &b);
        buf_done(&b);
        network_unref(aside->x);
        mem_free(aside);
    }
}

bool gateway_has_quorum(void)
{
    return !gateway.has_no_quorum;
}
