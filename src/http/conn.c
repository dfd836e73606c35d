/* A connection.
 *
 *   read -> h1_feed -> dispatch_run -> reply_add -> output
 *
 * Output is one buffer of answers in the order of requests. In front may be answers that are
 * committed and can leave; behind the first one that is not, everything waits (`marks` says where
 * answers end and what they wait for). What can leave is written once a read, and once a commit; a
 * large body that can leave at once is not copied there, but written behind it.
 *
 * The parser and the output's memory are the server's, and are with the connection only while
 * something of a request or an answer is in them (equip, put_away).
 *
 * Bytes that arrived but were not evaluated, because enough answers are owed, enough requests were
 * evaluated in this turn, or one is held (conn_hold.c), wait in `input`; reading pauses meanwhile,
 * so `input` holds one read at most. While nothing waits there, a held request's client is read on,
 * to notice that it is gone.
 */
#include "http/conn_inner.h"

#include "access/clients.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/room.h"
#include "dispatch/dispatch.h"
#include "dispatch/node.h"
#include "fetch/fetch.h"
#include "http/forwarded.h"
#include "http/reply.h"
#include "journal/journal.h"
#include "rest/metrics.h"
#include "rest/stream.h"

enum {
    REQUESTS_PER_TURN = 64, /* of one connection, so that others get their turn */
    IDLE_LEAST_MS = 1000,   /* of one that is closed to make room */
    LAST_REQUEST_MS = 1000  /* for one that may be on its way when the server drains */
};

/* Time limits. ------------------------------------------------------------------------------ */

static uint64_t body_most_ms(const struct conn *c)
{
    return (uint64_t)c->server->limits->body_seconds * 1000;
}

/* A body earns its time: so long a time as what has come of it would take at the least rate. */
static uint64_t body_allowed_ms(const struct conn *c)
{
    const struct limits *limits = c->server->limits;
    uint64_t rate = (uint64_t)limits->body_bytes_per_second;
    uint64_t earned_ms;

    if (rate == 0)
        return body_most_ms(c);
    earned_ms = h1_phase_bytes(c->h1) * 1000 / rate;
    return MIN(body_most_ms(c), MAX(earned_ms, (uint64_t)limits->body_grace_seconds * 1000));
}

static uint64_t allowed_ms(const struct conn *c)
{
    switch (c->phase) {
    case H1_HEAD:
        return (uint64_t)c->server->limits->header_seconds * 1000;
    case H1_BODY:
        return body_allowed_ms(c);
    default:
        return c->server->is_patient ? LAST_REQUEST_MS : conn_idle_ms(c);
    }
}

void conn_look_within(struct conn *c, uint64_t ms)
{
    if (c->timer.deadline_ms > conn_now_ms(c) + ms)
        timer_start(c->server->loop, &c->timer, ms);
}

/* Requests. --------------------------------------------------------------------------------- */

/* When the first request is there: then whoever made the connection knows of it. */
static bool is_own(struct conn *c)
{
    struct ip_ends ends;

    if (!c->is_known)
        c->is_own = c->server->own != NULL && tcp_ends(c->tcp, &ends) &&
                    fetch_is_own(c->server->own, &ends);
    c->is_known = true;
    return c->is_own;
}

static void evaluate(struct http_server *s, struct request *request)
{
    const struct limits *limits = s->limits;

    if (s->held_bytes > room_most(limits, s->held_bytes, limits->unread_bytes)) {
        refusal_answer(s, REFUSAL_HELD);
        return;
    }
    if (s->rest->cluster != NULL) {
        arena_reset(&s->passed_on);
        if (!node_believe(s->rest, request, &s->passed_on, &s->response))
            return;
    }
    switch (clients_may_request(s->rest->clients, request->client)) {
    case CLIENTS_WELCOME:
        dispatch_run(s->rest, request, &s->response);
        break;
    case CLIENTS_TOO_MANY:
        refusal_answer(s, REFUSAL_REQUESTS);
        break;
    case CLIENTS_TOO_MANY_OF_ONE:
        refusal_answer(s, REFUSAL_REQUESTS_OF_ONE);
        break;
    }
}

static void add_answer(struct conn *c, struct response *response, const struct asked *asked,
                       bool keep_alive)
{
    struct http_server *s = c->server;

    if (response->has_flow) {
        conn_take_flow(c, response, asked);
        return;
    }
    if (!keep_alive || s->is_draining)
        conn_close_when_sent(c, s->is_draining ? TCP_CLOSE_SHUTDOWN : TCP_CLOSE_DONE);
    conn_add_reply(c, response, asked);
}

/* `room` is for the address of a client that others speak for. */
static struct request request_of(struct conn *c, const struct h1_request *r, struct in6_addr *room)
{
    struct request request = {
        .method = r->method,
        .target = r->target,
        .host = r->host,
        .headers = r->headers,
        .header_count = r->header_count,
        .body = r->has_body ? r->body : (struct span){NULL, 0},
        .gives_way = true,
    };

    if (c->client != NULL)
        request.client = client_address(c->client);
    else if (is_own(c))
        request.client = tcp_peer_ip(c->tcp, room) ? room : NULL;
    else if (forwarded_client(r->headers, r->header_count, c->server->proxies, room))
        request.client = room;
    return request;
}

void conn_look_at_serial(const struct conn *c, struct asked *asked)
{
    asked->applied = journal_committed_serial(turn_journal(c->server->rest->turn));
}

static void answer(struct conn *c)
{
    struct http_server *s = c->server;
    const struct h1_request *r = h1_request(c->h1);
    struct in6_addr forwarded;
    struct request request = request_of(c, r, &forwarded);
    struct asked asked = {r->known_method, r->is_http10, s->now_ns, NULL, 0};

    if (s->rest->cluster != NULL)
        conn_look_at_serial(c, &asked);
    evaluate(s, &request);
    asked.client = request.client;
    if (s->response.gives_way)
        conn_hold(c, &request, &asked, r->keep_alive);
    else
        add_answer(c, &s->response, &asked, r->keep_alive);
}

/* Of a request whose head has come and whose body has not: who may not ask, need not send it, and
 * is heard no more. */
static bool admit(struct conn *c)
{
    struct http_server *s = c->server;
    const struct h1_request *r;
    struct in6_addr forwarded;
    struct request request;
    struct asked asked;

    if (c->is_admitted || h1_phase(c->h1) != H1_BODY)
        return true;
    r = h1_awaiting(c->h1);
    request = request_of(c, r, &forwarded);
    asked = (struct asked){r->known_method, r->is_http10, s->now_ns, request.client, 0};
    c->is_admitted = dispatch_admit(s->rest, &request, &s->response);
    if (!c->is_admitted)
        add_answer(c, &s->response, &asked, false);
    return c->is_admitted;
}

/* An answer to what is no request, after which the connection ends. */
static void refuse(struct conn *c, enum err_code code, struct span why,
                   enum tcp_close_reason reason)
{
    struct response *response = &c->server->response;
    int status = err_info(code)->status;
    const struct asked nothing = {.method = METHOD_OTHER, .began_ns = clock_mono_ns()};

    conn_close_when_sent(c, reason);
    dispatch_refuse(response, status, code, why, status == 503 ? 1 : 0);
    conn_add_reply(c, response, &nothing);
}

static void count_limit(const struct conn *c, enum err_code code)
{
    switch (code) {
    case ERR_PAYLOAD_TOO_LARGE:
        c->server->metrics->limit_hits[METRIC_BODY_BYTES]++;
        break;
    case ERR_URI_TOO_LONG:
        c->server->metrics->limit_hits[METRIC_URI_BYTES]++;
        break;
    case ERR_HEADERS_TOO_LARGE:
        c->server->metrics->limit_hits[METRIC_HEADER_BYTES]++;
        break;
    default:
        break;
    }
}

static void refuse_failure(struct conn *c)
{
    const struct h1_failure *failure = h1_failure(c->h1);

    count_limit(c, failure->code);
    refuse(c, failure->code, span_str(failure->why), TCP_CLOSE_BAD_REQUEST);
}

static void leave_incoming(struct conn *c)
{
    heap_remove(&c->server->incoming, &c->incoming);
    c->server->metrics->incoming_bytes -= c->incoming_bytes;
    c->incoming_bytes = 0;
}

bool conn_holds_more(const struct heap_node *a, const struct heap_node *b)
{
    return CONTAINER_OF_CONST(a, struct conn, incoming)->incoming_bytes >
           CONTAINER_OF_CONST(b, struct conn, incoming)->incoming_bytes;
}

/* Who takes most makes room, not who came first. Its parser goes at once, for the sake of which
 * this is done. */
static void refuse_largest_incoming(struct http_server *s)
{
    struct conn *c = CONTAINER_OF(heap_first(&s->incoming), struct conn, incoming);

    leave_incoming(c);
    c->server->metrics->limit_hits[METRIC_INCOMING_BYTES]++;
    refuse(c, ERR_OVERLOADED, SPAN("the limit IncomingBytes is reached"), TCP_CLOSE_UNFINISHED);
    h1_free(TAKE(c->h1));
    c->phase = H1_IDLE;
    conn_flush(c);
}

/* What has come of a request that is not whole. */
static void note_incoming(struct conn *c)
{
    struct http_server *s = c->server;
    struct metrics *m = c->server->metrics;
    uint64_t bytes = h1_held_bytes(c->h1), most;

    m->incoming_bytes += bytes - c->incoming_bytes;
    c->incoming_bytes = bytes;
    if (heap_contains(&c->incoming))
        heap_update(&s->incoming, &c->incoming);
    else
        heap_add(&s->incoming, &c->incoming);
    most = room_most(c->server->limits, m->incoming_bytes, c->server->limits->incoming_bytes);
    while (m->incoming_bytes > most)
        refuse_largest_incoming(s);
}

static bool owes_enough(const struct conn *c)
{
    return c->mark_count >= (size_t)c->server->limits->pipelined_requests ||
           c->output.n + tcp_pending(c->tcp) > (size_t)c->server->limits->connection_unread_bytes;
}

static void note_phase(struct conn *c)
{
    enum h1_phase phase = h1_phase(c->h1);

    if (phase == c->phase)
        return;
    c->phase = phase;
    c->phase_since_ms = conn_now_ms(c);
    if (phase != H1_IDLE)
        conn_look_within(c, allowed_ms(c));
}

static void answer_continue(struct conn *c)
{
    if (h1_take_continue(c->h1) && !conn_owes_answers(c))
        reply_add_continue(&c->output);
}

/* Answers come in the order of requests: nothing is evaluated while one is held. */
static bool may_evaluate(const struct conn *c)
{
    return c->held == NULL && !c->has_flow && !owes_enough(c);
}

/* Evaluates the requests in `bytes`, and gives back what is left for later. */
static struct span take_requests(struct conn *c, struct span bytes)
{
    unsigned budget = REQUESTS_PER_TURN;

    conn_equip(c);
    conn_look_at_clocks(c->server);
    while (bytes.n > 0 && budget > 0 && !c->closes_when_sent && may_evaluate(c)) {
        size_t taken;
        enum h1_result result = h1_feed(c->h1, bytes, &taken);

        bytes = span_sub(bytes, taken, bytes.n);
        if (result == H1_NEED_MORE) {
            if (admit(c))
                answer_continue(c);
            continue;
        }
        if (result == H1_FAILED) {
            refuse_failure(c);
            break;
        }
        answer(c);
        h1_next(c->h1);
        c->is_admitted = false;
        if (heap_contains(&c->incoming))
            leave_incoming(c); /* what comes next has begun later */
        c->phase_since_ms = c->server->now_ns / 1000000;
        /* Who asks for much at once has others answered in between. */
        budget = c->server->response.was_long ? 0 : budget - 1;
    }
    note_phase(c);
    if (c->phase != H1_IDLE && !c->closes_when_sent)
        note_incoming(c);
    else if (heap_contains(&c->incoming))
        leave_incoming(c);
    return c->closes_when_sent ? (struct span){NULL, 0} : bytes;
}

static void pause_reading(struct conn *c, bool pause)
{
    c->is_paused = pause;
    if (pause) {
        tcp_pause(c->tcp);
        return;
    }
    c->phase_since_ms = conn_now_ms(c); /* until now it waited for us */
    tcp_resume(c->tcp);
}

static void post_waiting_input(struct conn *c)
{
    if (!c->is_closing && may_evaluate(c) && !loop_posted(&c->more))
        loop_post(c->server->loop, &c->more);
}

/* Whether more is read depends on what waits already, on either side. */
static void update_reading(struct conn *c)
{
    bool pause = c->input.n > 0 || c->closes_when_sent || owes_enough(c);

    if (pause != c->is_paused && !c->is_closing && !c->is_ended)
        pause_reading(c, pause);
}

static void on_waiting_input(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, more);
    struct span rest = take_requests(c, buf_span(&c->input));

    buf_drop_front(&c->input, c->input.n - rest.n);
    if (c->input.n == 0)
        buf_shrink(&c->input, 0);
    conn_flush(c);
    if (c->input.n > 0)
        post_waiting_input(c);
    if (c->input.n == 0 && c->is_ended && !c->closes_when_sent) {
        conn_close_when_sent(c, TCP_CLOSE_PEER);
        conn_flush(c);
    }
    update_reading(c);
}

/* What the client waited for leaves, or has left: its time begins anew, and there is room for more.
 */
static void after_output(struct conn *c)
{
    conn_flush(c);
    if (c->phase == H1_IDLE)
        c->phase_since_ms = conn_now_ms(c);
    if (c->input.n > 0)
        post_waiting_input(c);
    update_reading(c);
}

static void on_committed(struct turn_wait *wait)
{
    after_output(CONTAINER_OF(wait, struct conn, wait));
}

static void on_late(struct turn_wait *wait)
{
    struct conn *c = CONTAINER_OF(wait, struct conn, wait);

    conn_give_up_waiting(c);
    after_output(c);
}

void conn_answer_held(struct conn *c, struct response *response, const struct asked *asked,
                      bool keep_alive)
{
    conn_equip(c);
    add_answer(c, response, asked, keep_alive);
    after_output(c);
}

static void on_read(void *context, struct span bytes)
{
    struct conn *c = context;
    struct span rest;

    if (c->is_closing || c->closes_when_sent)
        return;
    if (c->input.n > 0) { /* behind what waits already */
        buf_add(&c->input, bytes);
        return;
    }
    rest = take_requests(c, bytes);
    if (rest.n > 0)
        buf_add(&c->input, rest);
    conn_flush(c);
    if (c->input.n > 0)
        post_waiting_input(c);
    update_reading(c);
}

/* The client sends no more; what it asked for is still answered. */
static void on_end(void *context)
{
    struct conn *c = context;

    c->is_ended = true;
    if (c->stream != NULL) { /* that would never end */
        conn_close_now(c, TCP_CLOSE_PEER);
        return;
    }
    if (c->input.n > 0 || c->download != NULL)
        return;
    conn_close_when_sent(c, TCP_CLOSE_PEER);
    conn_flush(c);
}

static void on_drain(void *context)
{
    struct conn *c = context;

    conn_note_taken(c);
    if (c->is_closing)
        return;
    after_output(c);
    if (c->is_streaming && !c->is_closing)
        conn_go_on(c);
}

static void on_close(void *context, enum tcp_close_reason reason)
{
    struct conn *c = context;
    struct http_server *s = c->server;

    timer_stop(s->loop, &c->timer);
    loop_unpost(s->loop, &c->more);
    turn_unwait(s->rest->turn, &c->wait);
    list_remove(&s->conns, &c->link);
    if (heap_contains(&c->incoming))
        leave_incoming(c);
    conn_drop_held(c);
    conn_drop_flow(c);
    conn_drop_output(c);
    if (c->client != NULL)
        clients_disconnect(s->rest->clients, c->client);
    buf_done(&c->input);
    h1_free(c->h1);
    mem_free(c);
    server_conn_gone(s, reason);
}

/* A time limit is up. ----------------------------------------------------------------------- */

static void end_body(struct conn *c)
{
    if (conn_now_ms(c) - c->phase_since_ms >= body_most_ms(c)) {
        c->server->metrics->limit_hits[METRIC_BODY_SECONDS]++;
        refuse(c, ERR_REQUEST_TIMEOUT, SPAN("the request body took too long"), TCP_CLOSE_BODY_TIME);
    } else {
        c->server->metrics->limit_hits[METRIC_BODY_RATE]++;
        refuse(c, ERR_REQUEST_TIMEOUT, SPAN("the request body came too slowly"),
               TCP_CLOSE_BODY_RATE);
    }
}

static void end_phase(struct conn *c)
{
    switch (c->phase) {
    case H1_HEAD:
        c->server->metrics->limit_hits[METRIC_HEADER_SECONDS]++;
        refuse(c, ERR_REQUEST_TIMEOUT, SPAN("the request head took too long"),
               TCP_CLOSE_HEADER_TIME);
        break;
    case H1_BODY:
        end_body(c);
        break;
    default:
        conn_close_now(c, TCP_CLOSE_IDLE);
        return;
    }
    conn_flush(c);
}

static uint64_t left_ms(const struct conn *c, uint64_t since_ms, uint64_t allowed_ms)
{
    uint64_t passed = conn_now_ms(c) - since_ms;

    return allowed_ms - MIN(allowed_ms, passed);
}

/* For how long the client may still keep this connection waiting. That it takes its answers comes
 * first; while it waits for us, or is about to hear its last answer, nothing is asked of it. */
static uint64_t patience_ms(const struct conn *c)
{
    if (tcp_pending(c->tcp) > 0)
        return left_ms(c, c->unread_since_ms, conn_idle_ms(c));
    if (conn_owes_answers(c) || c->has_flow || c->is_paused || c->closes_when_sent || c->is_closing)
        return conn_idle_ms(c);
    return left_ms(c, c->phase_since_ms, allowed_ms(c));
}

static void on_time(struct timer *timer)
{
    struct conn *c = CONTAINER_OF(timer, struct conn, timer);
    uint64_t ms = patience_ms(c);

    if (ms > 0) {
        timer_start(c->server->loop, timer, MIN(ms, allowed_ms(c)));
    } else if (tcp_pending(c->tcp) > 0) {
        conn_close_now(c, TCP_CLOSE_NOT_READ);
    } else {
        end_phase(c);
        timer_start(c->server->loop, timer, conn_idle_ms(c)); /* to take the answer to that */
    }
}

/* Life. ------------------------------------------------------------------------------------- */

static const struct tcp_callbacks callbacks = {
    .on_read = on_read,
    .on_end = on_end,
    .on_drain = on_drain,
    .on_close = on_close,
};

void conn_new(struct http_server *server, struct tcp_conn *tcp, struct client *client,
              struct span first)
{
    struct conn *c = NEW(struct conn);

    c->server = server;
    c->tcp = tcp;
    c->client = client;
    buf_init(&c->output, BUF_NO_CAP); /* owes_enough bounds it, by one answer more than the limit */
    buf_init(&c->input, BUF_NO_CAP);  /* one read */
    c->wait.on_committed = on_committed;
    c->wait.on_late = on_late;
    c->more.run = on_waiting_input;
    c->phase_since_ms = conn_now_ms(c);
    timer_init(&c->timer, on_time);
    timer_start(server->loop, &c->timer, conn_idle_ms(c));
    list_push_back(&server->conns, &c->link);
    list_push_back(&server->idle, &c->idle);
    tcp_start(tcp, &callbacks, c);
    if (first.n > 0)
        on_read(c, first);
}

void conn_drain(struct list_link *link)
{
    struct conn *c = CONTAINER_OF(link, struct conn, link);

    if (c->is_closing || c->phase != H1_IDLE || c->input.n > 0 || c->has_flow)
        return; /* a request under way is still answered, with Connection: close */
    if (c->server->is_patient) {
        c->phase_since_ms = conn_now_ms(c);
        timer_start(c->server->loop, &c->timer, LAST_REQUEST_MS);
        return;
    }
    conn_close_when_sent(c, TCP_CLOSE_SHUTDOWN);
    conn_flush(c);
}

bool conn_make_room(struct http_server *server)
{
    struct conn *c = LIST_OBJECT(list_first(&server->idle), struct conn, idle);

    if (c == NULL || conn_now_ms(c) - c->phase_since_ms < IDLE_LEAST_MS)
        return false;
    conn_close_now(c, TCP_CLOSE_MADE_ROOM);
    return true;
}

void conn_close(struct list_link *link, enum tcp_close_reason reason)
{
    conn_close_now(CONTAINER_OF(link, struct conn, link), reason);
}
