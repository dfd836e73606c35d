#include "receiver.h"

#include "testing.h"

#include "base/macros.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static void receiver_on_conn_closed(uv_handle_t *handle)
{
    struct receiver_conn *c = CONTAINER_OF(handle, struct receiver_conn, tcp);

    buf_done(&c->in);
    mem_free(c);
}

static void receiver_drop(struct receiver_conn *c, bool reset)
{
    struct receiver *r = c->receiver;

    if (c->closing)
        return;
    c->closing = true;
    r->open--;
    if (timer_running(&c->timer))
        r->waiting--;
    timer_stop(r->loop, &c->timer);
    for (size_t i = 0; i < RECEIVER_CONNS; i++)
        if (r->conns[i] == c)
            r->conns[i] = NULL;
    if (!reset || uv_tcp_close_reset(&c->tcp, receiver_on_conn_closed) != 0)
        uv_close((uv_handle_t *)&c->tcp, receiver_on_conn_closed);
}

static void receiver_go_on(struct receiver_conn *c)
{
    const struct receiver_script *script = &c->receiver->script;
    int fd;

    switch (script->then) {
    case THEN_CLOSE:
    case THEN_RESET:
        receiver_drop(c, script->then == THEN_RESET);
        break;
    case THEN_SHUT:
        ck_assert_int_eq(uv_fileno((uv_handle_t *)&c->tcp, &fd), 0);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        break;
    case THEN_REPEAT:
        receiver_write(c, span_str(script->again));
        break;
    case THEN_TRICKLE:
        c->receiver->waiting++;
        timer_start(c->receiver->loop, &c->timer, 10);
        break;
    case THEN_KEEP:
    case THEN_HANG:
        break;
    }
}

static void receiver_on_written(uv_write_t *write, int status)
{
    struct receiver_conn *c = CONTAINER_OF(write, struct receiver_conn, write);

    c->writing = false;
    if (status == 0 && !c->closing)
        receiver_go_on(c);
}

void receiver_write(struct receiver_conn *c, struct span bytes)
{
    uv_buf_t out = uv_buf_init((char *)(uintptr_t)bytes.p, (unsigned)bytes.n);

    ck_assert(!c->writing);
    c->writing = true;
    ck_assert_int_eq(uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, receiver_on_written), 0);
}

static void receiver_answer(struct receiver_conn *c)
{
    const struct receiver_script *script = &c->receiver->script;
    size_t n = script->n != 0 ? script->n : strlen(script->bytes);

    if (n > 0)
        receiver_write(c, span_of(script->bytes, n));
    else
        receiver_go_on(c);
}

static void receiver_on_time(struct timer *timer)
{
    struct receiver_conn *c = CONTAINER_OF(timer, struct receiver_conn, timer);
    const struct receiver_script *script = &c->receiver->script;

    c->receiver->waiting--;
    if (c->delayed)
        receiver_answer(c);
    else
        receiver_write(c, span_of(&script->again[c->trickled++ % strlen(script->again)], 1));
    c->delayed = false;
}

/* The length of the first request in the bytes, 0 while it is not whole. */
static size_t receiver_request_length(struct span in)
{
    size_t head = span_find(in, SPAN("\r\n\r\n"));
    struct span rest = span_sub(in, 0, head);
    uint64_t body = 0;

    if (head == SIZE_MAX)
        return 0;
    while (rest.p != NULL) {
        struct span value = span_split(&rest, '\n');

        if (span_ieq(span_split(&value, ':'), SPAN("Content-Length")))
            ck_assert(span_to_u64(span_trim(span_split(&value, '\r')), &body));
    }
    return in.n >= head + 4 + body ? head + 4 + body : 0;
}

static void receiver_take_request(struct receiver_conn *c, size_t n)
{
    struct receiver *r = c->receiver;

    buf_clear(&r->last);
    buf_add(&r->last, span_sub(buf_span(&c->in), 0, n));
    buf_drop_front(&c->in, n);
    r->requests++;
    if (r->close_at_second && c->requests++ > 0) {
        receiver_drop(c, false);
    } else if (r->delay_ms > 0) {
        c->delayed = true;
        r->waiting++;
        r->most_waiting = MAX(r->most_waiting, r->waiting);
        timer_start(r->loop, &c->timer, r->delay_ms);
    } else {
        receiver_answer(c);
    }
}

static void receiver_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct receiver_conn *c = CONTAINER_OF(stream, struct receiver_conn, tcp);
    size_t whole;

    if (n < 0) {
        receiver_drop(c, false);
        return;
    }
    buf_add(&c->in, span_of(bytes->base, (size_t)n));
    if (c->receiver->answer_at_once && span_find(buf_span(&c->in), SPAN("\r\n\r\n")) != SIZE_MAX) {
        uv_read_stop(stream);
        receiver_answer(c);
        return;
    }
    whole = receiver_request_length(buf_span(&c->in));
    if (whole > 0)
        receiver_take_request(c, whole);
}

static void receiver_give_chunk(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buf)
{
    struct receiver_conn *c = CONTAINER_OF(handle, struct receiver_conn, tcp);

    (void)suggested;
    *out_buf = uv_buf_init(c->receiver->chunk, sizeof(c->receiver->chunk));
}

static void receiver_on_conn(uv_stream_t *listener, int status)
{
    struct receiver *r = CONTAINER_OF(listener, struct receiver, tcp);
    struct receiver_conn *c = NEW(struct receiver_conn);

    ck_assert_int_eq(status, 0);
    c->receiver = r;
    c->in.max = BUF_NO_CAP;
    timer_init(&c->timer, receiver_on_time);
    uv_tcp_init(&r->loop->uv, &c->tcp);
    ck_assert_int_eq(uv_accept(listener, (uv_stream_t *)&c->tcp), 0);
    ck_assert_uint_lt(r->connections, RECEIVER_CONNS);
    r->conns[r->connections++] = c;
    r->open++;
    if (r->reset_at_accept)
        receiver_drop(c, true);
    else
        uv_read_start((uv_stream_t *)&c->tcp, receiver_give_chunk, receiver_on_read);
    if (r->speaks_first)
        receiver_answer(c);
}

void receiver_listen(struct receiver *r, struct loop *loop, const char *ip, uint16_t port)
{
    struct sockaddr_storage address;
    int n = sizeof(address);

    *r = (struct receiver){.loop = loop, .script = {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"}};
    r->last.max = BUF_NO_CAP;
    if (uv_ip4_addr(ip, port, (struct sockaddr_in *)&address) != 0)
        ck_assert_int_eq(uv_ip6_addr(ip, port, (struct sockaddr_in6 *)&address), 0);
    uv_tcp_init(&loop->uv, &r->tcp);
    ck_assert_int_eq(uv_tcp_bind(&r->tcp, (struct sockaddr *)&address, 0), 0);
    ck_assert_int_eq(uv_listen((uv_stream_t *)&r->tcp, 1024, receiver_on_conn), 0);
    uv_tcp_getsockname(&r->tcp, (struct sockaddr *)&address, &n);
    r->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
}

void receiver_drop_all(struct receiver *r)
{
    for (size_t i = 0; i < RECEIVER_CONNS; i++)
        if (r->conns[i] != NULL)
            receiver_drop(r->conns[i], false);
}

void receiver_close(struct receiver *r)
{
    receiver_drop_all(r);
    buf_done(&r->last);
    uv_close((uv_handle_t *)&r->tcp, NULL);
}
