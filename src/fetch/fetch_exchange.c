/* A request goes out over its connection and the answer comes in. The answer is read as soon as it
 * comes, also while the request is still being sent: it may be an early refusal. When the
 * connection ends while the request is being sent, there may be an answer already, which is read
 * and counts.
 *
 * When a kept connection has ended before a byte of the answer came, the request is sent once more,
 * on a new one; if it must not be done twice, only where not a byte of it had gone out. */
#include "fetch_private.h"

#include "base/blob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { READS_MOST = 16, WRITES_MOST = 64 /* in one go */ };

static size_t request_bytes(const struct fetch_transfer *t)
{
    return t->head.n + (t->sends_body ? blob_span(t->fetch->body).n : 0);
}

static void let_go(struct fetch_conn *c, bool is_usable)
{
    c->transfer->conn = NULL;
    c->transfer = NULL;
    if (is_usable)
        fetch_conn_keep(c);
    else
        fetch_conn_close(c);
}

static void complete(struct fetch_conn *c)
{
    struct fetch_transfer *t = c->transfer;

    let_go(c, fetch_answer_keeps_connection(&t->answer) && t->sent == request_bytes(t));
    fetch_end(t, FETCH_OK, "");
}

static void fail(struct fetch_conn *c, enum fetch_error error, const char *why)
{
    struct fetch_transfer *t = c->transfer;

    let_go(c, false);
    fetch_end(t, error, why);
}

static void refuse(struct fetch_conn *c)
{
    char why[CURL_ERROR_SIZE];
    enum fetch_error error = fetch_answer_fault(&c->transfer->answer, why, sizeof(why));

    fail(c, error, why);
}

/* `error`: as of fetch_channel_read, 0 at the end. */
static void lose(struct fetch_conn *c, ssize_t error)
{
    struct fetch_transfer *t = c->transfer;
    char why[CURL_ERROR_SIZE];

    if (c->was_used && !t->answer.has_bytes && !(t->fetch->is_once && t->result.was_sent)) {
        c->origin->hangs_up = true;
        let_go(c, false);
        fetch_try_again(t);
        return;
    }
    if (c->is_noisy)
        t->answer.stop = FETCH_NOISE;
    if (error == 0 || c->is_noisy) {
        refuse(c);
        return;
    }
    if (error == -ECONNRESET)
        snprintf(why, sizeof(why), "Connection was reset by the receiver");
    else
        snprintf(why, sizeof(why), "%s", error == -EPROTO ? c->text : strerror((int)-error));
    fail(c, FETCH_CLOSED, why);
}

/* False: the connection is not the request's any more. */
static bool take(struct fetch_conn *c, struct span bytes)
{
    struct fetch_transfer *t = c->transfer;

    if (!t->answer.has_bytes)
        t->result.first_byte_ms = fetch_age_ms(t);
    switch (fetch_answer_feed(&t->answer, bytes)) {
    case FETCH_MORE:
        if (fetch_answer_is_stream(&t->answer))
            fetch_go_on(t);
        return true;
    case FETCH_WHOLE:
        complete(c);
        return false;
    case FETCH_BAD:
        refuse(c);
        return false;
    }
    return false;
}

static void end_of_input(struct fetch_conn *c)
{
    if (fetch_answer_end(&c->transfer->answer) == FETCH_WHOLE)
        complete(c);
    else
        lose(c, 0);
}

/* `is_last`: the socket has failed, and the loop will not look at it again. False: the connection
 * is not the request's any more. */
static bool read_answer(struct fetch_conn *c, bool is_last)
{
    char *scratch = c->fetcher->loop->scratch;

    for (int reads = 0; reads < READS_MOST || is_last; reads++) {
        ssize_t n = fetch_channel_read(c, scratch, LOOP_SCRATCH_BYTES);

        c->is_drained = c->is_direct && c->ssl == NULL && n < (ssize_t)LOOP_SCRATCH_BYTES;
        if (n == -EAGAIN && !is_last)
            return true;
        if (n < 0) {
            lose(c, n == -EAGAIN ? -ECONNRESET : n);
            return false;
        }
        if (n == 0) {
            end_of_input(c);
            return false;
        }
        if (!take(c, span_of(scratch, (size_t)n)))
            return false;
        if (c->transfer->is_paused || (c->is_drained && !is_last))
            return true;
    }
    loop_post(c->fetcher->loop, &c->again); /* of TLS no event tells what has been read already */
    return true;
}

/* Of the socket, by what is still to be sent and may be read. */
static int wanted_events(const struct fetch_conn *c)
{
    const struct fetch_transfer *t = c->transfer;

    return (t->is_paused ? 0 : UV_READABLE | UV_DISCONNECT) |
           (t->sent < request_bytes(t) ? UV_WRITABLE : 0);
}

/* Sends what has not been sent of the request. False: the connection is not the request's any more.
 */
static bool send_request(struct fetch_conn *c)
{
    struct fetch_transfer *t = c->transfer;
    struct span head = buf_span(&t->head);
    struct span body = t->sends_body ? blob_span(t->fetch->body) : SPAN("");
    bool is_all = false;

    for (int writes = 0; writes < WRITES_MOST && !is_all; writes++) {
        size_t of_head = MIN(t->sent, head.n);
        ssize_t n = fetch_channel_write(c, span_sub(head, of_head, head.n),
                                        span_sub(body, t->sent - of_head, body.n));

        if (n == -EAGAIN)
            break;
        if (n < 0) {
            (void)read_answer(c, true);
            return false;
        }
        t->sent += (size_t)n;
        t->result.was_sent = t->result.was_sent || n > 0;
        is_all = t->sent == request_bytes(t);
    }
    fetch_socket_watch(c->socket, wanted_events(c));
    return true;
}

/* TLS may hold what no event tells of. */
void fetch_exchange_pause(struct fetch_conn *c)
{
    fetch_socket_watch(c->socket, wanted_events(c));
    if (!c->transfer->is_paused)
        loop_post(c->fetcher->loop, &c->again);
}

void fetch_exchange_begin(struct fetch_conn *c)
{
    c->transfer->sent = 0;
    fetch_answer_begin(&c->transfer->answer, c->transfer->fetch);
    if (send_request(c) && c->has_early)
        loop_post(c->fetcher->loop, &c->again);
}

void fetch_exchange_read(struct fetch_conn *c)
{
    if (!c->transfer->is_paused)
        (void)read_answer(c, false);
}

/* An error of the socket shows when it is read. TLS may have to read before it can send. */
void fetch_exchange_on_event(struct fetch_conn *c, int status, int events)
{
    if (((events & UV_READABLE) != 0 || status != 0) && !read_answer(c, status != 0))
        return;
    if (c->transfer->sent < request_bytes(c->transfer))
        (void)send_request(c);
}
