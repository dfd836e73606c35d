/* Connections. All are read into the loop's scratch memory. What the kernel does not take at once
 * is copied into an output, which exists only as long as something is pending: one uv_write is
 * under way, and what comes meanwhile is gathered for the next.
 *
 *   tcp_finish: output drained -> half-close -> the client's end, or 1 s -> uv_close -> on_close
 *   tcp_close, errors of the socket:                                        uv_close -> on_close */
#include "tcp_private.h"

#include "io/timer.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define LINGER_MS 1000

struct tcp_output {
    uv_write_t request;
    struct buf sending; /* libuv's until on_written */
    struct buf waiting;
};

struct tcp_conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    int fd; /* libuv's */
    struct loop *loop;
    const struct tcp_callbacks *callbacks; /* NULL until tcp_start */
    void *context;
    struct tcp_output *output; /* NULL: nothing is pending */
    struct timer linger;
    enum tcp_close_reason reason; /* the first */
    bool finishing;
    bool ended; /* the peer sends no more */
    char peer[INET6_ADDRSTRLEN];
};

const char *tcp_close_reason_text(enum tcp_close_reason reason)
{
    static const char *const texts[] = {
#define TCP_REASON_AS_TEXT(symbol, text) [symbol] = text,
        TCP_CLOSE_REASONS(TCP_REASON_AS_TEXT)
#undef TCP_REASON_AS_TEXT
    };

    MUST((size_t)reason < ARRAY_LEN(texts));
    return texts[reason];
}

static void on_linger_over(struct timer *timer)
{
    struct tcp_conn *conn = CONTAINER_OF(timer, struct tcp_conn, linger);

    tcp_close(conn, conn->reason);
}

static void note_peer(struct tcp_conn *conn, const struct tcp_sockaddr *peer)
{
    struct in6_addr ip;

    if (ip_of_sockaddr(&peer->any, &ip))
        tcp_set_peer(conn, &ip);
    else
        snprintf(conn->peer, sizeof(conn->peer), "unix");
}

struct tcp_conn *tcp_conn_new(struct loop *loop, int fd, const struct tcp_sockaddr *peer)
{
    struct tcp_conn *conn = NEW(struct tcp_conn);
    int status;

    conn->fd = fd;
    conn->loop = loop;
    timer_init(&conn->linger, on_linger_over);
    note_peer(conn, peer);
    if (peer->any.sa_family == AF_UNIX) {
        uv_pipe_init(&loop->uv, &conn->uv.pipe, 0);
        status = uv_pipe_open(&conn->uv.pipe, fd);
    } else {
        uv_tcp_init(&loop->uv, &conn->uv.tcp);
        status = uv_tcp_open(&conn->uv.tcp, fd);
    }
    MUST(status == 0); /* it fails for what is no socket, or one that the loop has already */
    return conn;
}

static struct tcp_conn *conn_of(uv_stream_t *stream)
{
    return CONTAINER_OF(stream, struct tcp_conn, uv.stream);
}

static bool is_closing(const struct tcp_conn *conn)
{
    return uv_is_closing(&conn->uv.handle);
}

/* --- Closing --- */

static void empty_output(struct tcp_conn *conn)
{
    if (conn->output == NULL)
        return;
    buf_done(&conn->output->sending);
    buf_done(&conn->output->waiting);
}

static void free_output(struct tcp_conn *conn)
{
    empty_output(conn);
    mem_free(TAKE(conn->output));
}

static void on_closed(uv_handle_t *handle)
{
    struct tcp_conn *conn = CONTAINER_OF(handle, struct tcp_conn, uv.handle);

    log_debug("tcp", "%s: %s", conn->peer, tcp_close_reason_text(conn->reason));
    if (conn->callbacks != NULL)
        conn->callbacks->on_close(conn->context, conn->reason);
    free_output(conn);
    mem_free(conn);
}

/* Of tcp_finish and what ends it before all has been sent, the latter is the reason. */
void tcp_close(struct tcp_conn *conn, enum tcp_close_reason reason)
{
    if (is_closing(conn))
        return;
    if (conn->reason == TCP_CLOSE_NONE || conn->output != NULL)
        conn->reason = reason;
    timer_stop(conn->loop, &conn->linger);
    uv_close(&conn->uv.handle, on_closed);
    /* Now: a turn may close many that hold much, and libuv does not look at it any more. */
    empty_output(conn);
}

static void fail(struct tcp_conn *conn, int status)
{
    bool reset = status == UV_ECONNRESET || status == UV_EPIPE;

    tcp_close(conn, reset ? TCP_CLOSE_RESET : TCP_CLOSE_ERROR);
}

/* shutdown itself, not libuv's: nothing is queued there, so the request would have nothing to wait
 * for. */
static void half_close(struct tcp_conn *conn)
{
    if (conn->ended || shutdown(conn->fd, SHUT_WR) != 0)
        tcp_close(conn, conn->reason);
    else
        timer_start(conn->loop, &conn->linger, LINGER_MS);
}

/* --- Reading --- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buf)
{
    const struct tcp_conn *conn = CONTAINER_OF(handle, struct tcp_conn, uv.handle);

    (void)suggested;
    *out_buf = (uv_buf_t){.base = conn->loop->scratch, .len = LOOP_SCRATCH_BYTES};
}

static void on_end(struct tcp_conn *conn)
{
    conn->ended = true;
    if (!conn->finishing)
        conn->callbacks->on_end(conn->context);
    else if (conn->output == NULL)
        tcp_close(conn, conn->reason);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct tcp_conn *conn = conn_of(stream);

    if (n == UV_EOF)
        on_end(conn);
    else if (n < 0)
        fail(conn, (int)n);
    else if (n > 0 && !conn->finishing)
        conn->callbacks->on_read(conn->context, span_of(buf->base, (size_t)n));
}

void tcp_start(struct tcp_conn *conn, const struct tcp_callbacks *callbacks, void *context)
{
    conn->callbacks = callbacks;
    conn->context = context;
    tcp_resume(conn);
}

void tcp_pause(struct tcp_conn *conn)
{
    if (!conn->finishing)
        uv_read_stop(&conn->uv.stream);
}

/* libuv refuses what is read already or closing, and would report a second end. */
void tcp_resume(struct tcp_conn *conn)
{
    if (!conn->ended)
        uv_read_start(&conn->uv.stream, on_alloc, on_read);
}

/* --- Writing --- */

/* For those that only read it. */
static uv_buf_t buf_of(struct span s)
{
    return (uv_buf_t){.base = (char *)(uintptr_t)s.p, .len = s.n};
}

static struct iovec iovec_of(struct span s)
{
    return (struct iovec){.iov_base = (char *)(uintptr_t)s.p, .iov_len = s.n};
}

static void send_waiting(struct tcp_conn *conn);

static void on_written(uv_write_t *request, int status)
{
    struct tcp_conn *conn = conn_of(request->handle);

    if (is_closing(conn)) /* status may be 0 all the same */
        return;
    if (status != 0) {
        fail(conn, status);
    } else if (conn->output->waiting.n > 0) {
        send_waiting(conn);
    } else {
        free_output(conn);
        if (conn->finishing)
            half_close(conn);
        else
            conn->callbacks->on_drain(conn->context);
    }
}

/* The two buffers change places, so that their memory is used again. */
static void send_waiting(struct tcp_conn *conn)
{
    struct tcp_output *output = conn->output;
    struct buf sent = output->sending;
    uv_buf_t bytes;
    int status;

    output->sending = output->waiting;
    output->waiting = sent;
    buf_clear(&output->waiting);
    bytes = buf_of(buf_span(&output->sending));
    status = uv_write(&output->request, &conn->uv.stream, &bytes, 1, on_written);
    if (status != 0)
        fail(conn, status);
}

static void send_later(struct tcp_conn *conn, struct span first, struct span second)
{
    conn->output = NEW(struct tcp_output);
    buf_init(&conn->output->sending, BUF_NO_CAP);
    buf_init(&conn->output->waiting, BUF_NO_CAP);
    buf_add(&conn->output->waiting, first);
    buf_add(&conn->output->waiting, second);
    send_waiting(conn);
}

/* What the kernel takes; negative: it fails. libuv would use write(2), which takes 40 ns longer to
 * come to the socket. Nothing of libuv's is under way here. */
static ssize_t send_now(const struct tcp_conn *conn, struct span first, struct span second)
{
    struct iovec parts[] = {iovec_of(first), iovec_of(second)};
    const struct msghdr both = {.msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts)};
    ssize_t sent;

    do
        sent = second.n == 0 ? send(conn->fd, first.p, first.n, MSG_NOSIGNAL)
                             : sendmsg(conn->fd, &both, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
    return sent;
}

void tcp_write_two(struct tcp_conn *conn, struct span first, struct span second)
{
    size_t taken;
    ssize_t sent;

    if (first.n + second.n == 0 || conn->finishing || is_closing(conn))
        return;
    if (conn->output != NULL) {
        buf_add(&conn->output->waiting, first);
        buf_add(&conn->output->waiting, second);
        return;
    }
    sent = send_now(conn, first, second);
    taken = (size_t)MAX(sent, 0);
    if (sent < 0)
        fail(conn, (int)sent);
    else if (taken < first.n + second.n)
        send_later(conn, span_sub(first, taken, first.n),
                   span_sub(second, taken - MIN(taken, first.n), second.n));
}

void tcp_write(struct tcp_conn *conn, struct span bytes)
{
    tcp_write_two(conn, bytes, (struct span){NULL, 0});
}

size_t tcp_pending(const struct tcp_conn *conn)
{
    if (conn->output == NULL)
        return 0;
    return uv_stream_get_write_queue_size(&conn->uv.stream) + conn->output->waiting.n;
}

void tcp_finish(struct tcp_conn *conn, enum tcp_close_reason reason)
{
    if (conn->finishing || is_closing(conn))
        return;
    conn->finishing = true;
    conn->reason = reason;
    tcp_resume(conn); /* a client may not read before it has sent all */
    if (conn->output == NULL)
        half_close(conn);
}

const char *tcp_peer(const struct tcp_conn *conn)
{
    return conn->peer;
}

void tcp_set_peer(struct tcp_conn *conn, const struct in6_addr *ip)
{
    ip_text(ip, conn->peer);
}

bool tcp_peer_ip(const struct tcp_conn *conn, struct in6_addr *out_ip)
{
    return ip_parse(span_str(conn->peer), out_ip);
}
