/* Answers, as conn.c says. A client need not take them as fast as they come: what the kernel does
 * not take is held, past ConnectionUnreadBytes only of requests that were read before, and
 * UnreadBytes for all. Past the latter those are closed that have taken nothing for longest:
 * `unread` of the server has them in that order. What waits for a commit is bounded by the same
 * number: then requests are refused (conn.c). In a cluster the wait may end without a commit: then
 * it is not known whether what the answers say has been done, and they never leave. */
#include "http/conn_inner.h"

#include "access/clients.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/room.h"
#include "dispatch/dispatch.h"
#include "http/reply.h"
#include "rest/metrics.h"

enum {
    KEPT_OUTPUT_BYTES = 16384,
    LARGE_BODY_BYTES = 16384,
    IDLE_ORDER_MS = 50,
    RETRY_AFTER_S = 1 /* of what was not confirmed in time */
};

static void leave_idle(struct conn *c)
{
    if (list_linked(&c->idle))
        list_remove(&c->server->idle, &c->idle);
}

void conn_equip(struct conn *c)
{
    struct http_server *s = c->server;

    if (c->h1 == NULL)
        c->h1 = s->spare_h1 != NULL ? TAKE(s->spare_h1) : h1_new(c->server->limits);
    if (c->output.p == NULL && s->spare_output_count > 0)
        c->output = s->spare_outputs[--s->spare_output_count];
}

static void put_output_away(struct conn *c)
{
    struct http_server *s = c->server;

    if (s->spare_output_count == HTTP_SPARE_OUTPUTS) {
        buf_done(&c->output);
        return;
    }
    s->spare_outputs[s->spare_output_count++] = c->output;
    buf_init(&c->output, BUF_NO_CAP);
}

bool conn_owes_answers(const struct conn *c)
{
    return c->mark_count > 0 || c->output.n > 0 || c->held != NULL;
}

static bool is_unread(const struct conn *c)
{
    return list_linked(&c->unread);
}

/* Who asks again at once keeps the place among the idle: their order is right to within
 * IDLE_ORDER_MS, and a connection's neighbours in it need not be touched for each request. */
static void note_idle(struct conn *c, bool is_idle)
{
    uint64_t now_ms = c->server->now_ns / 1000000;

    if (is_idle && list_linked(&c->idle) && now_ms - c->idle_since_ms < IDLE_ORDER_MS)
        return;
    leave_idle(c);
    if (!is_idle)
        return;
    c->idle_since_ms = now_ms;
    list_push_back(&c->server->idle, &c->idle);
}

static void put_away(struct conn *c)
{
    struct http_server *s = c->server;

    if (c->output.n == 0 && c->output.p != NULL)
        put_output_away(c);
    if (c->h1 != NULL && h1_is_fresh(c->h1)) {
        if (s->spare_h1 != NULL)
            h1_free(s->spare_h1);
        s->spare_h1 = TAKE(c->h1);
    }
    note_idle(c, c->h1 == NULL && !conn_owes_answers(c) && !is_unread(c) && !c->is_closing &&
                     !c->has_flow);
}

void conn_close_now(struct conn *c, enum tcp_close_reason reason)
{
    leave_idle(c);
    conn_drop_held(c);
    conn_drop_flow(c);
    c->is_closing = c->closes_when_sent = true;
    tcp_close(c->tcp, reason);
}

void conn_close_when_sent(struct conn *c, enum tcp_close_reason reason)
{
    if (!c->closes_when_sent)
        c->close_reason = reason;
    c->closes_when_sent = true;
}

void conn_note_taken(struct conn *c)
{
    if (!is_unread(c))
        return;
    list_remove(&c->server->unread, &c->unread);
    c->server->metrics->unread_bytes -= c->unread_bytes;
    c->unread_bytes = 0;
}

static void close_longest_unread(struct http_server *s)
{
    struct conn *c = CONTAINER_OF(list_first(&s->unread), struct conn, unread);

    conn_note_taken(c); /* or never will be */
    c->server->metrics->limit_hits[METRIC_UNREAD_BYTES]++;
    conn_close_now(c, TCP_CLOSE_NOT_READ);
}

void conn_note_unread(struct conn *c, uint64_t bytes)
{
    struct http_server *s = c->server;
    struct metrics *m = c->server->metrics;
    uint64_t most;

    m->unread_bytes += bytes - c->unread_bytes;
    c->unread_bytes = bytes;
    if (!is_unread(c)) {
        c->unread_since_ms = conn_now_ms(c);
        list_push_back(&s->unread, &c->unread);
        conn_look_within(c, conn_idle_ms(c));
    }
    most = room_most(c->server->limits, m->unread_bytes, c->server->limits->unread_bytes);
    while (m->unread_bytes > most)
        close_longest_unread(s);
}

static void note_held(struct conn *c)
{
    c->server->held_bytes += c->output.n - c->held_bytes;
    c->held_bytes = c->output.n;
}

/* The first bytes of the output, and what comes behind them. */
static void send_ready(struct conn *c, size_t ready, struct span behind)
{
    if (ready == 0)
        return;
    tcp_write_two(c->tcp, span_of(c->output.p, ready), behind);
    if (tcp_pending(c->tcp) > 0)
        conn_note_unread(c, tcp_pending(c->tcp));
    buf_drop_front(&c->output, ready);
    for (size_t i = 0; i < c->mark_count; i++)
        c->marks[i].end -= ready;
    c->first_begin = 0;
    note_held(c);
    if (c->output.n == 0)
        buf_shrink(&c->output, KEPT_OUTPUT_BYTES);
}

static void end_mark(const struct conn *c, const struct mark *mark)
{
    metrics_count_answer(c->server->metrics, (enum method)mark->method, mark->status, mark->error);
    clients_end(c->server->rest->clients, mark->client);
}

/* The first answers, as many as `count`, may leave. */
static void end_passed(const struct conn *c, size_t count)
{
    uint64_t now_ns = clock_mono_ns();

    for (size_t i = 0; i < count; i++) {
        histogram_add(&c->server->metrics->request_time, now_ns - c->marks[i].began_ns);
        end_mark(c, &c->marks[i]);
    }
}

/* Drops the marks of answers that are committed; the bytes before the first of the others may go.
 */
static size_t ready_bytes(struct conn *c)
{
    struct turn *turn = c->server->rest->turn;
    size_t passed = 0, ready;

    while (passed < c->mark_count && turn_is_committed(turn, c->marks[passed].serial))
        passed++;
    if (passed == c->mark_count)
        ready = c->output.n;
    else
        ready = passed == 0 ? 0 : c->marks[passed - 1].end;
    if (passed > 0)
        end_passed(c, passed);
    c->mark_count -= passed;
    for (size_t i = 0; i < c->mark_count; i++)
        c->marks[i] = c->marks[i + passed];
    return ready;
}

void conn_flush(struct conn *c)
{
    if (c->is_closing)
        return;
    send_ready(c, ready_bytes(c), (struct span){NULL, 0});
    if (c->mark_count > 0 && !turn_waits(&c->wait))
        turn_wait(c->server->rest->turn, &c->wait, c->marks[0].serial);
    if (c->has_flow)
        conn_start_flow(c);
    else if (c->closes_when_sent && !conn_owes_answers(c) && !c->is_closing) {
        c->is_closing = true;
        tcp_finish(c->tcp, c->close_reason);
    }
    put_away(c);
}

static void add_mark(struct conn *c, const struct response *response, const struct asked *asked,
                     size_t begin)
{
    struct client *client = clients_begin(c->server->rest->clients, asked->client);

    if (c->mark_count == c->mark_size) {
        c->mark_size = MAX(8, c->mark_size * 2);
        c->marks = mem_resize(c->marks, c->mark_size * sizeof(struct mark));
    }
    if (c->mark_count == 0)
        c->first_begin = begin;
    c->marks[c->mark_count++] = (struct mark){
        .end = c->output.n,
        .serial = response->serial,
        .began_ns = asked->began_ns,
        .client = client,
        .error = response->error,
        .status = (uint16_t)response->status,
        .method = (uint8_t)asked->method,
        .is_http10 = asked->is_http10,
    };
}

void conn_look_at_clocks(struct http_server *s)
{
    int64_t now_s;

    if (s->wait == s->loop->waits)
        return;
    s->wait = s->loop->waits;
    s->now_ns = clock_mono_ns();
    now_s = clock_unix_s();
    if (s->common.n > 0 && now_s == s->common_s)
        return;
    buf_clear(&s->common);
    reply_add_common(&s->common, now_s);
    s->common_s = now_s;
}

void conn_add_reply(struct conn *c, const struct response *response, const struct asked *asked)
{
    struct http_server *s = c->server;
    char room[SPAN_U64_BYTES];
    struct reply_options options = {
        .is_head = asked->method == METHOD_HEAD,
        .close = c->closes_when_sent || response->has_flow,
        .is_http10 = asked->is_http10,
    };
    struct span body = reply_body(response, &options);
    bool waits = c->mark_count > 0 || !turn_is_committed(s->rest->turn, response->serial);
    size_t begin = c->output.n;

    conn_look_at_clocks(s);
    options.common = buf_span(&s->common);
    if (s->rest->cluster != NULL)
        options.applied = server_applied(s, response->serial, asked->applied, room);
    reply_add_head(&c->output, response, &options);
    s->now_ns = clock_mono_ns();
    if (!waits) {
        metrics_count_answer(c->server->metrics, asked->method, response->status, response->error);
        histogram_add(&c->server->metrics->request_time, s->now_ns - asked->began_ns);
    }
    if (!waits && body.n >= LARGE_BODY_BYTES && !c->is_closing) {
        send_ready(c, c->output.n, body);
        return;
    }
    buf_add(&c->output, body);
    note_held(c);
    if (waits)
        add_mark(c, response, asked, begin);
}

/* Of the answers that wait: the first is answered otherwise, the others never. */
static struct asked drop_waiting(struct conn *c)
{
    const struct mark *first = &c->marks[0];
    const struct asked asked = {
        .method = (enum method)first->method,
        .is_http10 = first->is_http10,
        .began_ns = first->began_ns,
    };

    for (size_t i = 0; i < c->mark_count; i++)
        clients_end(c->server->rest->clients, c->marks[i].client);
    c->mark_count = 0;
    c->output.n = c->first_begin;
    note_held(c);
    return asked;
}

void conn_give_up_waiting(struct conn *c)
{
    struct response *response = &c->server->response;
    struct asked asked;

    if (c->is_closing)
        return;
    send_ready(c, ready_bytes(c), (struct span){NULL, 0});
    if (c->mark_count == 0)
        return;
    conn_drop_held(c);
    conn_drop_flow(c);
    asked = drop_waiting(c);
    conn_close_when_sent(c, TCP_CLOSE_CUT_OFF);
    dispatch_refuse(response, err_info(ERR_NO_LEADER)->status, ERR_NO_LEADER,
                    SPAN("the cluster's log has not confirmed the change in time, and it may have "
                         "been done: ClientId and If-Match make it safe to repeat"),
                    RETRY_AFTER_S);
    conn_add_reply(c, response, &asked);
}

void conn_drop_output(struct conn *c)
{
    for (size_t i = 0; i < c->mark_count; i++)
        end_mark(c, &c->marks[i]);
    conn_note_taken(c);
    leave_idle(c);
    buf_done(&c->output);
    note_held(c);
    mem_free(c->marks);
}
