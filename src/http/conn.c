/* A connection.
 *
 *   read -> h1_feed -> request_run -> reply_add -> output
 *
 * Output is one buffer of answers in the order of requests. In front may be answers that are
 * committed and can leave; behind the first one that is not, everything waits (`marks` says where
 * answers end and what they wait for). What can leave is written once a read, and once a commit; a
 * large body that can leave at once is not copied there, but written behind it.
 *
 * The parser and the output's memory are the server's, and are with the connection only while
 * something of a request or an answer is in them (equip, put_away).
 *
 * Bytes that arrived but were not evaluated, because enough answers are owed or enough requests
 * were evaluated in this turn, wait in `input`; reading pauses meanwhile, so `input` holds one read
 * at most.
 */
#include "http/conn.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"
#include "http/forwarded.h"

enum {
    REQUESTS_PER_TURN = 64, /* of one connection, so that others get their turn */
    KEPT_OUTPUT_BYTES = 16384,
    LARGE_BODY_BYTES = 16384
};

/* An answer's end in the output, and the serial that must be committed before it leaves. */
struct mark {
    size_t end;
    uint64_t serial;
    uint64_t began_ns;     /* its evaluation */
    struct client *client; /* that it counts for; NULL: nobody */
};

struct conn {
    struct list_link link;
    struct http_server *server;
    struct tcp_conn *tcp;
    struct client *client; /* NULL: a proxy, whose requests are other clients' */
    struct h1 *h1;         /* NULL between requests */
    struct buf output, input;
    struct mark *marks; /* of answers that wait, first in first out; grown on demand */
    size_t mark_count, mark_size;
    struct turn_wait wait; /* for the first mark */
    struct timer timer;
    struct loop_task more; /* goes on with `input` in the next turn */
    uint64_t phase_since_ms;
    uint64_t output_since_ms; /* when the client last took something, while something is pending */
    enum h1_phase phase;
    bool is_paused, is_closing, is_ended;
    bool closes_when_sent;
    enum tcp_close_reason close_reason;
};

static uint64_t now_ms(const struct conn *c)
{
    return loop_now_ms(c->server->loop);
}

static const struct limits *limits_of(const struct conn *c)
{
    return &c->server->service->limits;
}

static void equip(struct conn *c)
{
    struct http_server *s = c->server;

    if (c->h1 == NULL)
        c->h1 = s->spare_h1 != NULL ? TAKE(s->spare_h1) : h1_new(limits_of(c));
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

static void put_away(struct conn *c)
{
    if (c->output.n == 0 && c->output.p != NULL)
        put_output_away(c);
    if (c->h1 == NULL || !h1_is_fresh(c->h1))
        return;
    if (c->server->spare_h1 == NULL)
        c->server->spare_h1 = TAKE(c->h1);
    else
        h1_free(TAKE(c->h1));
}

/* Time limits. ------------------------------------------------------------------------------ */

static uint64_t body_most_ms(const struct conn *c)
{
    return (uint64_t)limits_of(c)->body_seconds * 1000;
}

/* A body earns its time: so long a time as what has come of it would take at the least rate. */
static uint64_t body_allowed_ms(const struct conn *c)
{
    const struct limits *limits = limits_of(c);
    uint64_t rate = (uint64_t)limits->body_bytes_per_second;
    uint64_t earned_ms;

    if (rate == 0)
        return body_most_ms(c);
    earned_ms = h1_phase_bytes(c->h1) * 1000 / rate;
    return MIN(body_most_ms(c), MAX(earned_ms, (uint64_t)limits->body_grace_seconds * 1000));
}

static uint64_t idle_ms(const struct conn *c)
{
    return (uint64_t)limits_of(c)->idle_seconds * 1000;
}

static uint64_t allowed_ms(const struct conn *c)
{
    switch (c->phase) {
    case H1_HEAD:
        return (uint64_t)limits_of(c)->header_seconds * 1000;
    case H1_BODY:
        return body_allowed_ms(c);
    default:
        return idle_ms(c);
    }
}

/* One timer a connection, not touched while whole requests come and go: it is moved only where it
 * would fire too late. */
static void look_within(struct conn *c, uint64_t ms)
{
    if (c->timer.deadline_ms > now_ms(c) + ms)
        timer_start(c->server->loop, &c->timer, ms);
}

/* Output. ----------------------------------------------------------------------------------- */

static bool owes_answers(const struct conn *c)
{
    return c->mark_count > 0 || c->output.n > 0;
}

static struct metrics *metrics_of(const struct conn *c)
{
    return &c->server->service->metrics;
}

static void close_now(struct conn *c, enum tcp_close_reason reason)
{
    c->is_closing = true;
    tcp_close(c->tcp, reason);
}

/* No further request is read; what is owed still leaves. */
static void close_when_sent(struct conn *c, enum tcp_close_reason reason)
{
    if (!c->closes_when_sent)
        c->close_reason = reason;
    c->closes_when_sent = true;
}

/* The first bytes of the output, and what comes behind them. */
static void send_ready(struct conn *c, size_t ready, struct span behind)
{
    if (ready == 0)
        return;
    if (tcp_pending(c->tcp) == 0)
        c->output_since_ms = now_ms(c);
    tcp_write_two(c->tcp, span_of(c->output.p, ready), behind);
    buf_drop_front(&c->output, ready);
    for (size_t i = 0; i < c->mark_count; i++)
        c->marks[i].end -= ready;
    if (c->output.n == 0)
        buf_shrink(&c->output, KEPT_OUTPUT_BYTES);
}

/* The first answers, as many as `count`, may leave. */
static void end_passed(const struct conn *c, size_t count)
{
    uint64_t now_ns = count > 0 ? clock_mono_ns() : 0;

    for (size_t i = 0; i < count; i++) {
        histogram_add(&metrics_of(c)->request_time, now_ns - c->marks[i].began_ns);
        clients_end(c->server->service->clients, c->marks[i].client);
    }
}

/* Drops the marks of answers that are committed; the bytes before the first of the others may go.
 */
static size_t ready_bytes(struct conn *c)
{
    struct turn *turn = c->server->service->turn;
    size_t passed = 0, ready;

    while (passed < c->mark_count && turn_is_committed(turn, c->marks[passed].serial))
        passed++;
    if (passed == c->mark_count)
        ready = c->output.n;
    else
        ready = passed == 0 ? 0 : c->marks[passed - 1].end;
    end_passed(c, passed);
    c->mark_count -= passed;
    for (size_t i = 0; i < c->mark_count; i++)
        c->marks[i] = c->marks[i + passed];
    return ready;
}

static void flush(struct conn *c)
{
    if (c->is_closing)
        return;
    send_ready(c, ready_bytes(c), (struct span){NULL, 0});
    if (c->mark_count > 0 && !heap_holds(&c->wait.node))
        turn_wait(c->server->service->turn, &c->wait, c->marks[0].serial);
    if (c->closes_when_sent && !owes_answers(c) && !c->is_closing) {
        c->is_closing = true;
        tcp_finish(c->tcp, c->close_reason);
    }
    put_away(c);
}

/* What is answered. */
struct asked {
    struct span method; /* absent: what came is no request */
    bool is_http10;
    uint64_t began_ns;
    const struct in6_addr *client; /* NULL: nobody's that could be told */
};

static void add_mark(struct conn *c, uint64_t serial, const struct asked *asked)
{
    struct client *client = clients_begin(c->server->service->clients, asked->client);

    if (c->mark_count == c->mark_size) {
        c->mark_size = MAX(8, c->mark_size * 2);
        c->marks = mem_resize(c->marks, c->mark_size * sizeof(struct mark));
    }
    c->marks[c->mark_count++] = (struct mark){c->output.n, serial, asked->began_ns, client};
}

static void add_reply(struct conn *c, const struct response *response, const struct asked *asked)
{
    const struct reply_options options = {
        .is_head = span_eq(asked->method, SPAN("HEAD")),
        .close = c->closes_when_sent,
        .is_http10 = asked->is_http10,
        .date = server_date(c->server),
    };

    struct span body = reply_body(response, &options);
    bool waits =
        c->mark_count > 0 || !turn_is_committed(c->server->service->turn, response->serial);

    reply_add_head(&c->output, response, &options);
    metrics_count_answer(metrics_of(c), method_parse(asked->method), response->status,
                         response->error);
    if (!waits)
        histogram_add(&metrics_of(c)->request_time, clock_mono_ns() - asked->began_ns);
    if (!waits && body.n >= LARGE_BODY_BYTES && !c->is_closing) {
        send_ready(c, c->output.n, body);
        return;
    }
    buf_add(&c->output, body);
    if (waits)
        add_mark(c, response->serial, asked);
}

/* Requests. --------------------------------------------------------------------------------- */

static void find_client(const struct conn *c, struct request *request, struct in6_addr *room)
{
    const struct ip_ranges *proxies = c->server->proxies;

    if (c->client != NULL)
        request->client = client_address(c->client);
    else if (forwarded_client(request->headers, request->header_count, proxies, room))
        request->client = room;
}

static void evaluate(struct http_server *s, const struct request *request)
{
    switch (clients_may_request(s->service->clients, request->client)) {
    case CLIENTS_WELCOME:
        request_run(s->service, request, &s->response);
        break;
    case CLIENTS_TOO_MANY:
        refusal_answer(s, REFUSAL_REQUESTS);
        break;
    case CLIENTS_TOO_MANY_OF_ONE:
        refusal_answer(s, REFUSAL_REQUESTS_OF_ONE);
        break;
    }
}

static void answer(struct conn *c)
{
    struct http_server *s = c->server;
    const struct h1_request *r = h1_request(c->h1);
    struct request_header headers[H1_MAX_FIELDS];
    struct in6_addr forwarded;
    struct request request = {
        .method = r->method,
        .target = r->target,
        .headers = headers,
        .header_count = r->header_count,
        .body = r->has_body ? r->body : (struct span){NULL, 0},
    };
    struct asked asked = {r->method, r->is_http10, clock_mono_ns(), NULL};

    MUST(r->header_count <= H1_MAX_FIELDS);
    for (size_t i = 0; i < r->header_count; i++)
        headers[i] = (struct request_header){r->headers[i].name, r->headers[i].value};
    find_client(c, &request, &forwarded);
    asked.client = request.client;
    evaluate(s, &request);
    if (!r->keep_alive || s->is_draining)
        close_when_sent(c, s->is_draining ? TCP_CLOSE_SHUTDOWN : TCP_CLOSE_DONE);
    add_reply(c, &s->response, &asked);
}

static enum err_code code_of_status(int status)
{
    switch (status) {
    case 413:
        return ERR_PAYLOAD_TOO_LARGE;
    case 501:
        return ERR_UNKNOWN_METHOD;
    default:
        return ERR_INVALID_URI_SYNTAX;
    }
}

/* An answer to what is no request, after which the connection ends. */
static void refuse(struct conn *c, int status, enum err_code code, struct span why,
                   enum tcp_close_reason reason)
{
    struct response *response = &c->server->response;
    const struct asked nothing = {.began_ns = clock_mono_ns()};

    close_when_sent(c, reason);
    request_refuse(response, status, code, why, status == 503 ? 1 : 0);
    add_reply(c, response, &nothing);
}

static void count_limit(const struct conn *c, int status)
{
    switch (status) {
    case 413:
        metrics_of(c)->limit_hits[METRIC_BODY_BYTES]++;
        break;
    case 414:
        metrics_of(c)->limit_hits[METRIC_URI_BYTES]++;
        break;
    case 431:
        metrics_of(c)->limit_hits[METRIC_HEADER_BYTES]++;
        break;
    default:
        break;
    }
}

static void refuse_failure(struct conn *c)
{
    const struct h1_failure *failure = h1_failure(c->h1);

    count_limit(c, failure->status);
    refuse(c, failure->status, code_of_status(failure->status), span_str(failure->why),
           TCP_CLOSE_BAD_REQUEST);
}

static bool owes_enough(const struct conn *c)
{
    return c->mark_count >= (size_t)limits_of(c)->pipelined_requests ||
           c->output.n + tcp_pending(c->tcp) >= (size_t)limits_of(c)->output_bytes;
}

static void note_phase(struct conn *c)
{
    enum h1_phase phase = h1_phase(c->h1);

    if (phase == c->phase)
        return;
    c->phase = phase;
    c->phase_since_ms = now_ms(c);
    if (phase != H1_IDLE)
        look_within(c, allowed_ms(c));
}

static void answer_continue(struct conn *c)
{
    if (h1_take_continue(c->h1) && !owes_answers(c))
        reply_add_continue(&c->output);
}

/* Evaluates the requests in `bytes`, and gives back what is left for later. */
static struct span take_requests(struct conn *c, struct span bytes)
{
    unsigned budget = REQUESTS_PER_TURN;

    equip(c);
    while (bytes.n > 0 && budget > 0 && !c->closes_when_sent && !owes_enough(c)) {
        size_t taken;
        enum h1_result result = h1_feed(c->h1, bytes, &taken);

        bytes = span_sub(bytes, taken, bytes.n);
        if (result == H1_NEED_MORE) {
            answer_continue(c);
            continue;
        }
        if (result == H1_FAILED) {
            refuse_failure(c);
            break;
        }
        answer(c);
        h1_next(c->h1);
        c->phase_since_ms = now_ms(c);
        budget--;
    }
    note_phase(c);
    return c->closes_when_sent ? (struct span){NULL, 0} : bytes;
}

static void pause_reading(struct conn *c, bool pause)
{
    if (c->is_paused == pause || c->is_closing || c->is_ended)
        return;
    c->is_paused = pause;
    if (pause) {
        tcp_pause(c->tcp);
        return;
    }
    c->phase_since_ms = now_ms(c); /* until now it waited for us */
    tcp_resume(c->tcp);
}

static void post_more(struct conn *c)
{
    if (!c->is_closing && c->input.n > 0 && !owes_enough(c) && !loop_posted(&c->more))
        loop_post(c->server->loop, &c->more);
}

static void go_on(struct conn *c)
{
    struct span rest = take_requests(c, buf_span(&c->input));

    buf_drop_front(&c->input, c->input.n - rest.n);
    if (c->input.n == 0)
        buf_shrink(&c->input, 0);
    flush(c);
    post_more(c);
    if (c->input.n == 0 && c->is_ended && !c->closes_when_sent) {
        close_when_sent(c, TCP_CLOSE_PEER);
        flush(c);
    }
    pause_reading(c, c->input.n > 0 || owes_enough(c) || c->closes_when_sent);
}

static void on_more(struct loop_task *task)
{
    go_on(CONTAINER_OF(task, struct conn, more));
}

static void on_committed(struct turn_wait *wait)
{
    struct conn *c = CONTAINER_OF(wait, struct conn, wait);

    flush(c);
    post_more(c);
    if (!c->is_closing)
        pause_reading(c, c->input.n > 0 || owes_enough(c) || c->closes_when_sent);
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
    flush(c);
    post_more(c);
    pause_reading(c, c->input.n > 0 || owes_enough(c) || c->closes_when_sent);
}

/* The client sends no more; what it asked for is still answered. */
static void on_end(void *context)
{
    struct conn *c = context;

    c->is_ended = true;
    if (c->input.n > 0)
        return;
    close_when_sent(c, TCP_CLOSE_PEER);
    flush(c);
}

static void on_drain(void *context)
{
    struct conn *c = context;

    if (c->is_closing)
        return;
    c->output_since_ms = now_ms(c);
    post_more(c);
    pause_reading(c, c->input.n > 0 || owes_enough(c) || c->closes_when_sent);
}

static void on_close(void *context, enum tcp_close_reason reason)
{
    struct conn *c = context;
    struct http_server *s = c->server;

    timer_stop(s->loop, &c->timer);
    loop_unpost(s->loop, &c->more);
    turn_unwait(s->service->turn, &c->wait);
    list_remove(&s->conns, &c->link);
    for (size_t i = 0; i < c->mark_count; i++)
        clients_end(s->service->clients, c->marks[i].client);
    if (c->client != NULL)
        clients_disconnect(s->service->clients, c->client);
    buf_done(&c->output);
    buf_done(&c->input);
    h1_free(c->h1);
    mem_free(c->marks);
    mem_free(c);
    server_conn_gone(s, reason);
}

/* A time limit is up. ----------------------------------------------------------------------- */

static void end_body(struct conn *c)
{
    if (now_ms(c) - c->phase_since_ms >= body_most_ms(c)) {
        metrics_of(c)->limit_hits[METRIC_BODY_SECONDS]++;
        refuse(c, 408, ERR_INVALID_URI_SYNTAX, SPAN("the request body took too long"),
               TCP_CLOSE_BODY_TIME);
    } else {
        metrics_of(c)->limit_hits[METRIC_BODY_RATE]++;
        refuse(c, 408, ERR_INVALID_URI_SYNTAX, SPAN("the request body came too slowly"),
               TCP_CLOSE_BODY_RATE);
    }
}

static void end_phase(struct conn *c)
{
    switch (c->phase) {
    case H1_HEAD:
        metrics_of(c)->limit_hits[METRIC_HEADER_SECONDS]++;
        refuse(c, 408, ERR_INVALID_URI_SYNTAX, SPAN("the request head took too long"),
               TCP_CLOSE_HEADER_TIME);
        break;
    case H1_BODY:
        end_body(c);
        break;
    default:
        close_now(c, TCP_CLOSE_IDLE);
        return;
    }
    flush(c);
}

static uint64_t left_ms(const struct conn *c, uint64_t since_ms, uint64_t allowed_ms)
{
    uint64_t passed = now_ms(c) - since_ms;

    return allowed_ms - MIN(allowed_ms, passed);
}

/* For how long the client may still keep this connection waiting. That it takes its answers comes
 * first; while it waits for us, or is about to hear its last answer, nothing is asked of it. */
static uint64_t patience_ms(const struct conn *c)
{
    if (tcp_pending(c->tcp) > 0)
        return left_ms(c, c->output_since_ms, idle_ms(c));
    if (owes_answers(c) || c->is_paused || c->closes_when_sent || c->is_closing)
        return idle_ms(c);
    return left_ms(c, c->phase_since_ms, allowed_ms(c));
}

static void on_time(struct timer *timer)
{
    struct conn *c = CONTAINER_OF(timer, struct conn, timer);
    uint64_t ms = patience_ms(c);

    if (ms > 0) {
        timer_start(c->server->loop, timer, MIN(ms, allowed_ms(c)));
    } else if (tcp_pending(c->tcp) > 0) {
        close_now(c, TCP_CLOSE_NOT_READ);
    } else {
        end_phase(c);
        timer_start(c->server->loop, timer, idle_ms(c)); /* to take the answer to that */
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
    c->more.run = on_more;
    c->phase_since_ms = now_ms(c);
    timer_init(&c->timer, on_time);
    /* Heads have the shortest time: the first look must not come later. */
    timer_start(server->loop, &c->timer, (uint64_t)limits_of(c)->header_seconds * 1000);
    list_push_back(&server->conns, &c->link);
    tcp_start(tcp, &callbacks, c);
    if (first.n > 0)
        on_read(c, first);
}

void conn_drain(struct list_link *link)
{
    struct conn *c = CONTAINER_OF(link, struct conn, link);

    if (c->is_closing || c->phase != H1_IDLE || c->input.n > 0)
        return; /* a request under way is still answered, with Connection: close */
    close_when_sent(c, TCP_CLOSE_SHUTDOWN);
    flush(c);
}

void conn_close(struct list_link *link, enum tcp_close_reason reason)
{
    close_now(CONTAINER_OF(link, struct conn, link), reason);
}
