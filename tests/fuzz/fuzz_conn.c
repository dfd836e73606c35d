/* Connections, between sockets and requests that are made up here: io/tcp, dispatch_run and the
 * turn's waiting are replaced at link time. The first bytes of the input say how the others are
 * cut, how the kernel, the disk and the loop get along meanwhile, and whether a proxy says first
 * whose the connections are. Some requests give way, and what becomes of them is made up too. Two
 * connections that share a server get the same bytes in different pieces: both answer what one
 * answers that gets them whole. No answer leaves before what it says is committed, all that was
 * asked for is answered, and everything ends. */
#include "access/access.h"
#include "access/access_keys.h"
#include "access/clients.h"
#include "base/clock.h"
#include "base/header_field.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "fuzzing.h"
#include "http/server.h"
#include "rest/evaluation.h"
#include "rest/evaluation_state.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"
#include "store/turn.h"
#include "store/turn_wait.h"

enum { CONNS_MOST = 2, TURNS_MOST = 20000, LARGE_BYTES = 20000, SERIAL_DIGITS = 10 };

#define SERIAL_HEADER "Serial: "

/* ---- what the connections stand on ---- */

struct tcp_conn {
    const struct tcp_callbacks *callbacks;
    void *context;
    struct buf sent;
    size_t pending;
    bool is_paused, is_finished, is_closed, is_ended, is_gone;
    bool has_peer; /* a proxy said so; else it is a UNIX socket */
    struct in6_addr peer;
    enum tcp_close_reason reason;
};

struct turn {
    uint64_t next, committed;
    struct heap waits;
};

static struct {
    struct loop loop;
    struct rest *rest;
    struct limits *limits;
    struct turn turn;
    bool kernel_is_slow, is_proxied;
    tcp_accept_fn *on_accept;
    void *accept_context;
    size_t requests;
    size_t evaluations;
    bool is_beside; /* others: a request that gave way */
} world;

static struct turn_wait *wait_at(const struct heap_node *node)
{
    return (struct turn_wait *)(uintptr_t)CONTAINER_OF_CONST(node, struct turn_wait, node);
}

static bool is_less(const struct heap_node *a, const struct heap_node *b)
{
    return wait_at(a)->serial < wait_at(b)->serial;
}

bool turn_is_committed(const struct turn *t, uint64_t serial)
{
    return serial <= t->committed;
}

void turn_wait(struct turn *t, struct turn_wait *wait, uint64_t serial)
{
    MUST(serial > t->committed && serial <= t->next);
    wait->serial = serial;
    heap_add(&t->waits, &wait->node);
}

void turn_unwait(struct turn *t, struct turn_wait *wait)
{
    if (heap_contains(&wait->node))
        heap_remove(&t->waits, &wait->node);
}

static void commit(uint64_t serials)
{
    struct turn *t = &world.turn;
    struct heap_node *first;

    t->committed = MIN(t->next, t->committed + serials);
    while ((first = heap_first(&t->waits)) != NULL && wait_at(first)->serial <= t->committed) {
        heap_remove(&t->waits, first);
        wait_at(first)->on_committed(wait_at(first));
    }
}

/* Every answer says what it waits for. */
static void check_committed(struct span bytes)
{
    size_t at;

    while ((at = span_find(bytes, SPAN(SERIAL_HEADER))) != SIZE_MAX) {
        uint64_t serial;

        bytes = span_sub(bytes, at + strlen(SERIAL_HEADER), bytes.n);
        MUST(span_to_u64(span_sub(bytes, 0, SERIAL_DIGITS), &serial));
        MUST(serial <= world.turn.committed);
    }
}

void tcp_start(struct tcp_conn *conn, const struct tcp_callbacks *callbacks, void *context)
{
    conn->callbacks = callbacks;
    conn->context = context;
}

void tcp_pause(struct tcp_conn *conn)
{
    MUST(!conn->is_paused);
    conn->is_paused = true;
}

void tcp_resume(struct tcp_conn *conn)
{
    MUST(conn->is_paused);
    conn->is_paused = false;
}

void tcp_write_two(struct tcp_conn *conn, struct span first, struct span second)
{
    size_t before = conn->sent.n;

    MUST(!conn->is_finished && !conn->is_closed);
    buf_add(&conn->sent, first);
    buf_add(&conn->sent, second);
    check_committed(span_sub(buf_span(&conn->sent), before, conn->sent.n));
    if (world.kernel_is_slow)
        conn->pending += first.n + second.n;
}

void tcp_write(struct tcp_conn *conn, struct span bytes)
{
    tcp_write_two(conn, bytes, (struct span){NULL, 0});
}

size_t tcp_pending(const struct tcp_conn *conn)
{
    return conn->pending;
}

void tcp_finish(struct tcp_conn *conn, enum tcp_close_reason reason)
{
    MUST(!conn->is_finished);
    conn->is_finished = true;
    conn->reason = reason;
}

void tcp_close(struct tcp_conn *conn, enum tcp_close_reason reason)
{
    if (!conn->is_finished)
        conn->reason = reason;
    conn->is_closed = true;
}

const char *tcp_peer(const struct tcp_conn *conn)
{
    (void)conn;
    return "unix";
}

bool tcp_peer_ip(const struct tcp_conn *conn, struct in6_addr *out_ip)
{
    if (conn->has_peer)
        *out_ip = conn->peer;
    return conn->has_peer;
}

void tcp_set_peer(struct tcp_conn *conn, const struct in6_addr *ip)
{
    MUST(!conn->has_peer);
    conn->has_peer = true;
    conn->peer = *ip;
}

struct err *tcp_bind(struct loop *loop, const struct tcp_address *address,
                     struct tcp_passed *passed, struct tcp_listener **out_listener)
{
    (void)loop;
    (void)address;
    (void)passed;
    *out_listener = NULL;
    return NULL;
}

struct err *tcp_listener_start(struct tcp_listener *l, tcp_accept_fn *on_accept, void *context)
{
    (void)l;
    world.on_accept = on_accept;
    world.accept_context = context;
    return NULL;
}

uint16_t tcp_listener_port(const struct tcp_listener *l)
{
    (void)l;
    return 1;
}

void tcp_listener_close(struct tcp_listener *l)
{
    (void)l;
}

/* ---- answers ---- */

static uint64_t hash(uint64_t h, struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (uint8_t)text.p[i]) * UINT64_C(0x100000001b3);
    return h;
}

struct made {
    struct evaluation evaluation;
    struct loop_task task;
    unsigned turns;
};

static void on_made(struct loop_task *task)
{
    struct made *made = CONTAINER_OF(task, struct made, task);
    struct evaluation *e = &made->evaluation;

    if (made->turns-- > 0) {
        loop_post(&world.loop, task);
        return;
    }
    world.is_beside = true;
    dispatch_run(e->rest, e->request, &e->response);
    world.is_beside = false;
    e->on_done(e->context);
}

struct evaluation *evaluation_start(struct rest *rest, const struct request *request,
                                    void (*on_done)(void *context), void *context)
{
    struct made *made = NEW(struct made);

    world.evaluations++;
    made->evaluation = (struct evaluation){
        .rest = rest, .request = request, .on_done = on_done, .context = context};
    response_init(&made->evaluation.response, BUF_NO_CAP);
    made->turns = 2;
    made->task.run = on_made;
    loop_post(&world.loop, &made->task);
    return &made->evaluation;
}

struct response *evaluation_response(struct evaluation *e)
{
    return &e->response;
}

void evaluation_free(struct evaluation *e)
{
    struct made *made;

    if (e == NULL)
        return;
    made = CONTAINER_OF(e, struct made, evaluation);
    loop_unpost(&world.loop, &made->task);
    world.evaluations--;
    response_done(&e->response);
    mem_free(made);
}

/* An `s` in the target makes it give way, once. */
static bool gives_way(const struct request *request, struct response *response)
{
    response->gives_way = request->gives_way && !world.is_beside &&
                          span_find_char(request->target, 's', 0) < request->target.n;
    return response->gives_way;
}

/* What was asked is in the answer, and nothing that a client could take for the end of one. A `w`
 * in the target makes it a change, an `r` a look at what was changed last, an `L` a long one. */
void dispatch_run(struct rest *rest, const struct request *request, struct response *response)
{
    uint64_t h = hash(hash(1, request->method), request->target);

    (void)rest;
    response_reset(response);
    if (gives_way(request, response))
        return;
    world.requests++;
    for (size_t i = 0; i < request->header_count; i++)
        h = hash(hash(h, request->headers[i].name), request->headers[i].value);
    response->status = 200;
    response->content_type = SPAN("text/plain");
    response->serial = 0;
    if (span_find_char(request->target, 'w', 0) < request->target.n)
        response->serial = ++world.turn.next;
    else if (span_find_char(request->target, 'r', 0) < request->target.n)
        response->serial = world.turn.next;
    response_add_header(response, SPAN("Serial"),
                        arena_printf(&response->arena, "%0*llu", SERIAL_DIGITS,
                                     (unsigned long long)response->serial));
    buf_printf(&response->body, "%zu %d %zu %016llx", request->header_count,
               request->body.p != NULL, request->body.n,
               (unsigned long long)hash(h, request->body));
    if (span_find_char(request->target, 'L', 0) < request->target.n)
        buf_printf(&response->body, "%*d", LARGE_BYTES, 0);
    if (span_eq(request->method, SPAN("HEAD")))
        response_add_header(response, SPAN("Head"), SPAN("1"));
}

static struct span header_of(struct span head, struct span name)
{
    size_t at = span_find(head, name);

    if (at == SIZE_MAX)
        return (struct span){NULL, 0};
    head = span_sub(head, at + name.n, head.n);
    return span_sub(head, 0, span_find_char(head, '\r', 0));
}

/* Takes one answer off *sent. Serials differ from run to run, and whether a client was told to go
 * on depends on the pieces: neither is noted. Returns whether it was a final one. */
static bool note_answer(struct span *sent, struct buf *notes)
{
    size_t end = span_find(*sent, SPAN("\r\n\r\n"));
    struct span head = span_sub(*sent, 0, end + 4), serial;
    uint64_t length;

    MUST(end != SIZE_MAX && span_starts(head, SPAN("HTTP/1.1 ")));
    *sent = span_sub(*sent, head.n, sent->n);
    if (span_starts(head, SPAN("HTTP/1.1 100 ")))
        return false;
    serial = header_of(head, SPAN(SERIAL_HEADER));
    buf_add(notes, span_sub(head, 0, serial.p == NULL ? head.n : (size_t)(serial.p - head.p)));
    if (serial.p != NULL)
        buf_add(notes, span_sub(head, (size_t)(serial.p - head.p) + serial.n, head.n));
    MUST(span_to_u64(header_of(head, SPAN("Content-Length: ")), &length));
    if (header_of(head, SPAN("Head: ")).p != NULL)
        length = 0;
    MUST(length <= sent->n);
    buf_add(notes, span_sub(*sent, 0, length));
    *sent = span_sub(*sent, length, sent->n);
    return true;
}

static size_t note_answers(struct span sent, struct buf *notes)
{
    size_t count = 0;

    while (sent.n > 0)
        count += note_answer(&sent, notes);
    return count;
}

/* ---- one run ---- */

struct run {
    struct http_server *server;
    struct tcp_conn conns[CONNS_MOST];
    struct span left[CONNS_MOST]; /* of the bytes */
    size_t conn_count;
    size_t most; /* bytes in a piece */
    uint32_t chance;
    bool server_is_gone;
};

static unsigned draw(struct run *r, unsigned below)
{
    r->chance = r->chance * 1664525 + 1013904223;
    return (r->chance >> 16) % below;
}

/* Each piece is a block of its own, so that reading past it, or later, is seen. */
static void deliver(struct run *r, size_t i)
{
    struct tcp_conn *conn = &r->conns[i];
    size_t n = r->most == SIZE_MAX ? r->left[i].n : 1 + draw(r, (unsigned)r->most);
    struct span piece = span_sub(r->left[i], 0, n);
    char *copy;

    if (conn->is_paused || conn->is_finished || conn->is_closed || conn->is_ended)
        return;
    if (piece.n == 0) {
        conn->is_ended = true;
        conn->callbacks->on_end(conn->context);
        return;
    }
    r->left[i] = span_sub(r->left[i], piece.n, r->left[i].n);
    copy = mem_alloc(piece.n);
    memcpy(copy, piece.p, piece.n);
    conn->callbacks->on_read(conn->context, span_of(copy, piece.n));
    mem_free(copy);
}

/* The kernel takes what it was given. */
static void drain(struct tcp_conn *conn)
{
    bool was_pending = conn->pending > 0;

    if (conn->is_gone)
        return;
    conn->pending = 0;
    if (conn->is_finished || conn->is_closed) {
        conn->is_gone = true;
        conn->callbacks->on_close(conn->context, conn->reason);
    } else if (was_pending) {
        conn->callbacks->on_drain(conn->context);
    }
}

static void turn_loop(void)
{
    loop_wake(&world.loop);
    loop_run_once(&world.loop);
}

static void step(struct run *r, unsigned what)
{
    size_t i = what % 2 < r->conn_count ? what % 2 : 0;

    switch (what / 2) {
    case 0:
        commit(1 + draw(r, 3));
        break;
    case 1:
        drain(&r->conns[i]);
        break;
    case 2:
        turn_loop();
        break;
    default:
        deliver(r, i);
        break;
    }
}

static bool is_over(const struct run *r)
{
    for (size_t i = 0; i < r->conn_count; i++)
        if (!r->conns[i].is_gone)
            return false;
    return true;
}

static void on_closed(void *run)
{
    ((struct run *)run)->server_is_gone = true;
}

static void start(struct run *r, struct span bytes)
{
    const struct tcp_address address = {.is_unix = true, .is_proxied = world.is_proxied};
    uint16_t port;

    r->server = http_server_new(&world.loop, world.rest);
    MUST(http_server_bind(r->server, &address, NULL, &port) == NULL);
    MUST(http_server_start(r->server) == NULL);
    for (size_t i = 0; i < r->conn_count; i++) {
        buf_init(&r->conns[i].sent, BUF_NO_CAP);
        r->left[i] = bytes;
        world.on_accept(world.accept_context, &r->conns[i]);
    }
}

static void finish(struct run *r)
{
    http_server_close(r->server, on_closed, r);
    while (!r->server_is_gone)
        turn_loop();
    MUST(world.turn.waits.count == 0 && clients_count(world.rest->clients) == 0);
    MUST(world.evaluations == 0);
}

static void run(struct run *r, struct span bytes)
{
    size_t turns = 0;

    world.requests = 0;
    world.turn.next = world.turn.committed = 0;
    start(r, bytes);
    for (size_t i = 0; i < 4 * bytes.n && r->most != SIZE_MAX; i++)
        step(r, draw(r, 16));
    for (; !is_over(r); turns++) {
        MUST(turns < TURNS_MOST);
        for (unsigned what = 0; what < 8; what++)
            step(r, what);
    }
    finish(r);
}

/* ---- the whole ---- */

static void make_world(void)
{
    static struct access access;
    static struct limits limits;

    access_init(&access);
    clock_fake(1, 1);
    log_configure(LOG_ERROR, LOG_TEXT);
    MUST(loop_init(&world.loop) == NULL);
    heap_init(&world.turn.waits, is_less);
    limits_init(&limits);
    limits.uri_bytes = 64;
    limits.header_bytes = 256;
    limits.body_bytes = 64;
    limits.answer_bytes = 65536;
    limits.connection_unread_bytes = 4096;
    world.limits = &limits;
    world.rest = NEW(struct rest);
    world.rest->loop = &world.loop;
    world.rest->turn = &world.turn;
    world.rest->limits = &limits;
    world.rest->metrics = NEW(struct metrics);
    world.rest->clients = clients_new(&world.loop, &limits);
    world.rest->access = &access;
    world.rest->base_path = SPAN("/");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned size = input_byte(&in), chance = input_byte(&in), choices = input_byte(&in);
    struct run whole = {.conn_count = 1, .most = SIZE_MAX};
    struct run cut = {.conn_count = 2, .most = 1 + size % 64, .chance = chance};
    struct buf expected, notes;

    if (world.rest == NULL)
        make_world();
    world.is_proxied = choices % 16 >= 8;
    buf_init(&expected, BUF_NO_CAP);
    world.kernel_is_slow = false;
    world.limits->pipelined_requests = 64;
    run(&whole, input_rest(&in));
    MUST(note_answers(buf_span(&whole.conns[0].sent), &expected) - world.requests <= 1);
    world.kernel_is_slow = (choices & 1) != 0;
    world.limits->pipelined_requests = 1 + choices / 2 % 4;
    run(&cut, input_rest(&in));
    for (size_t i = 0; i < 2; i++) {
        buf_init(&notes, BUF_NO_CAP);
        note_answers(buf_span(&cut.conns[i].sent), &notes);
        MUST(span_eq(buf_span(&notes), buf_span(&expected)));
        buf_done(&notes);
        buf_done(&cut.conns[i].sent);
    }
    buf_done(&whole.conns[0].sent);
    buf_done(&expected);
    return 0;
}
