/* A batch is lines: `E` and the record of an error, or `U`, the Id of a key and an hour. It is a
 * POST of a node for itself, by Svc-cluster. */
#include "dispatch/handover.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "dispatch/api_key.h"
#include "dispatch/error_log.h"
#include "fetch/fetch.h"
#include "io/timer.h"
#include "protocol/node_headers.h"
#include "rest/call.h"
#include "rest/cluster_view.h"
#include "rest/crud.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/store.h"
#include "store/turn.h"
#include "json/json.h"
#include "json/member.h"

#include <stdio.h>

enum { KEPT_BYTES = 4096, ANSWER_MS = 10000 };

static const struct span internal_path = SPAN_INIT("/Svc.Cluster.Records");

struct handover {
    struct rest *rest;
    struct buf waiting;     /* lines */
    uint64_t dropped, told; /* records; how many of them the log knows of */
    struct timer timer;
    /* Under way: the first lines of `waiting`. */
    size_t sent; /* bytes; 0: nothing is */
    struct arena arena;
    struct fetcher *fetcher;
    struct fetch_origin *origin;
    struct fetch fetch;
    struct header_field header;
};

/* ---- the follower's side ---- */

static void tell_dropped(struct handover *h)
{
    if (h->dropped == h->told)
        return;
    log_warn("cluster", "%llu records of errors and uses were dropped: the leader takes none",
             (unsigned long long)(h->dropped - h->told));
    h->told = h->dropped;
}

static void look_again(struct handover *h)
{
    if (h->waiting.n > 0 && !timer_running(&h->timer))
        timer_start(h->rest->loop, &h->timer, HANDOVER_MS);
}

static bool add(struct handover *h, char kind, struct span text)
{
    if (h->waiting.n + text.n + 2 > HANDOVER_BYTES) {
        h->dropped++;
        return false;
    }
    buf_add_char(&h->waiting, kind);
    buf_add(&h->waiting, text);
    buf_add_char(&h->waiting, '\n');
    if (h->sent == 0)
        look_again(h);
    return true;
}

bool handover_add_error(struct handover *h, struct span json)
{
    return add(h, 'E', json);
}

bool handover_add_use(struct handover *h, const struct uuid *id, int64_t hour_unix_s)
{
    char text[UUID_TEXT_BYTES + 1 + 24];

    uuid_text(id, text);
    snprintf(text + UUID_TEXT_BYTES, sizeof(text) - UUID_TEXT_BYTES, " %lld",
             (long long)hour_unix_s);
    return add(h, 'U', span_str(text));
}

/* Whole lines. */
static size_t batch_bytes(const struct handover *h)
{
    struct span all = buf_span(&h->waiting);
    size_t end = 0, next;

    while (end < all.n) {
        next = span_find_char(all, '\n', end) + 1;
        if (end > 0 && next > HANDOVER_BATCH_BYTES)
            break;
        end = next;
    }
    return end;
}

static void end_batch(struct handover *h)
{
    fetch_origin_put(TAKE(h->origin));
    arena_reset(&h->arena);
    h->sent = 0;
}

/* Refused for what it holds, it would be refused again. */
static void on_answer(struct fetch *fetch, const struct fetch_result *result)
{
    struct handover *h = CONTAINER_OF(fetch, struct handover, fetch);
    bool is_refused = result->error == FETCH_OK && (result->status == 400 || result->status == 413);

    if (is_refused)
        log_error("cluster", "the leader does not understand %zu bytes of records", h->sent);
    if (is_refused || (result->error == FETCH_OK && result->status / 100 == 2)) {
        buf_drop_front(&h->waiting, h->sent);
        buf_shrink(&h->waiting, KEPT_BYTES);
        tell_dropped(h);
    }
    end_batch(h);
    look_again(h);
}

static void say_whose(struct handover *h, struct span target, struct span body)
{
    const struct cluster_view *view = h->rest->cluster;
    const struct passed_request request = {SPAN("POST"), target, body};
    const struct passed_on who = {
        .node = view->node, .client = PASSED_ON_ITSELF, .at_unix_ms = clock_unix_ns() / 1000000};
    struct buf b;

    buf_init_arena(&b, &h->arena);
    passed_on_add(&b, view->secret, &who, &request);
    h->header = (struct header_field){node_headers_passed_on, buf_span(&b)};
}

static void send_batch(struct handover *h)
{
    const struct cluster_view *view = h->rest->cluster;
    struct span target = rest_link(h->rest, internal_path, &h->arena), body;
    struct blob *blob;

    h->sent = batch_bytes(h);
    body = span_sub(buf_span(&h->waiting), 0, h->sent);
    say_whose(h, target, body);
    blob = blob_new(body);
    h->fetcher = view->fetcher;
    h->fetch = (struct fetch){
        .method = SPAN("POST"),
        .url = arena_printf(&h->arena, "%.*s%.*s", SPAN_FMT(view->leader_url), SPAN_FMT(target)),
        .headers = &h->header,
        .header_count = 1,
        .body = blob,
        .timeout_ms = view->commit_ms + ANSWER_MS,
        .on_done = on_answer,
    };
    h->origin = h->fetch.origin = fetch_origin_get(h->fetcher, h->fetch.url);
    fetch_start(h->fetcher, &h->fetch);
    blob_unref(blob);
}

static struct err *put_lines(struct rest *rest, struct span lines, struct change *change);
static void tell_stored(const struct rest *rest);

/* This node leads by now: they are its own. */
static void take_own(struct handover *h)
{
    struct turn *turn = h->rest->turn;
    size_t bytes = batch_bytes(h);
    struct change change;
    uint64_t serial;
    struct err *e;

    if (turn_is_held(turn))
        return;
    change_init(&change, turn, &h->arena);
    e = put_lines(h->rest, span_sub(buf_span(&h->waiting), 0, bytes), &change);
    if (e == NULL)
        e = turn_apply(turn, &change, &serial);
    change_done(&change);
    if (!log_failed(LOG_WARN, "cluster", "own records are not written now", e)) {
        buf_drop_front(&h->waiting, bytes);
        tell_stored(h->rest);
    }
    arena_reset(&h->arena);
}

static void on_time(struct timer *timer)
{
    struct handover *h = CONTAINER_OF(timer, struct handover, timer);
    const struct cluster_view *view = h->rest->cluster;

    if (view->leads)
        take_own(h);
    else if (view->leader_url.n > 0 && view->secret.n >= PASSED_ON_SECRET_BYTES)
        send_batch(h);
    if (h->sent == 0)
        look_again(h);
}

struct handover *handover_new(struct rest *rest)
{
    struct handover *h = NEW(struct handover);

    h->rest = rest;
    arena_init(&h->arena);
    buf_init(&h->waiting, BUF_NO_CAP); /* HANDOVER_BYTES bounds it */
    timer_init(&h->timer, on_time);
    return h;
}

void handover_stop(struct handover *h)
{
    timer_stop(h->rest->loop, &h->timer);
    if (h->sent > 0)
        fetch_cancel(h->fetcher, &h->fetch);
    end_batch(h);
}

void handover_free(struct handover *h)
{
    if (h == NULL)
        return;
    handover_stop(h);
    buf_done(&h->waiting);
    arena_done(&h->arena);
    mem_free(h);
}

size_t handover_bytes(const struct handover *h)
{
    return h->waiting.n;
}

uint64_t handover_dropped(const struct handover *h)
{
    return h->dropped;
}

/* ---- the leader's side ---- */

static bool is_the_path(const struct rest *rest, struct span target)
{
    struct span prefix = rest->prefix;

    return span_starts(target, prefix) &&
           span_eq(span_sub(target, prefix.n, target.n), internal_path);
}

bool handover_is(const struct rest *rest, const struct request *request)
{
    return request->from != NULL && span_eq(request->from->client, PASSED_ON_ITSELF) &&
           span_eq(request->method, SPAN("POST")) && is_the_path(rest, request->target);
}

static struct err *bad_line(const char *what)
{
    return ERR(ERR_INVALID_ENTITY, "a node hands over what is no record: %s", what);
}

/* `{"Id":...}`, to which the ObjectNo is added. */
static struct err *put_error(struct rest *rest, struct span json, struct change *change)
{
    struct collection *errors = store_collection(rest->store, error_log_resource);
    struct arena *a = change->arena;
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct json_value root;
    struct uuid id;
    struct buf b;

    TRY(json_parse(json, NULL, a, doc));
    root = json_root(doc);
    if (json_type(root) != JSON_OBJECT || json_exists(json_member(root, SPAN("ObjectNo"))) ||
        json_type(json_member(root, SPAN("Id"))) != JSON_STRING ||
        !uuid_parse_own(json_string(json_member(root, SPAN("Id")), a), &id) ||
        !span_ends(json, SPAN("}")))
        return bad_line("an error");
    if (collection_find(errors, &id) != NULL)
        return NULL; /* it came before, and the answer to that was lost */
    buf_init_arena(&b, a);
    buf_add(&b, span_sub(json, 0, json.n - 1));
    member_add_u64(&b, SPAN("ObjectNo"), change_next_serial(change));
    buf_add_char(&b, '}');
    change_put_entity(change, error_log_resource, &id, change_next_serial(change), buf_span(&b));
    return NULL;
}

/* The key may be gone by now. */
static struct err *note_use(struct rest *rest, struct span line)
{
    struct span hour = line, id = span_split(&hour, ' ');
    struct uuid uuid;
    int64_t unix_s;

    if (!uuid_parse_own(id, &uuid) || hour.p == NULL || !span_to_i64(hour, &unix_s))
        return bad_line("a use");
    api_key_note_hour(rest->api_keys, &uuid, unix_s);
    return NULL;
}

static struct err *put_line(struct rest *rest, struct span line, struct change *change)
{
    struct span rest_of_line = span_sub(line, 1, line.n);

    if (line.n > 0 && line.p[0] == 'E')
        return put_error(rest, rest_of_line, change);
    if (line.n > 0 && line.p[0] == 'U')
        return note_use(rest, rest_of_line);
    return bad_line("a line");
}

static struct err *put_lines(struct rest *rest, struct span lines, struct change *change)
{
    while (lines.n > 0)
        TRY(put_line(rest, span_split(&lines, '\n'), change));
    return NULL;
}

static void tell_stored(const struct rest *rest)
{
    if (rest->observer.error_stored != NULL)
        rest->observer.error_stored(rest->observer.context);
}

struct err *handover_take(struct call *call)
{
    struct rest *rest = call->rest;

    if (!rest->cluster->leads)
        return ERR(ERR_NO_LEADER, "this node does not lead");
    TRY(evaluation_begin_change(call));
    TRY(put_lines(rest, call->request->body, call->change));
    call->response->status = 204;
    TRY(crud_apply(call));
    tell_stored(rest);
    return NULL;
}
