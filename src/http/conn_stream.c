/* An answer without an end is the connection's last one: a stream (rest/stream.h) writes into it
 * until it ends, or the client goes. So is a download (rest/download.h), which has an end, and is
 * cut off where it cannot come so far. Behind their heads nothing is read but the client's end.
 * What the kernel does not take at once is unread as any other answer, and who takes nothing for
 * IdleSeconds is closed. */
#include "http/conn_inner.h"

#include "base/mem.h"
#include "http/reply.h"
#include "rest/download.h"
#include "rest/stream.h"

enum { HEAD_BYTES = 32, CRLF_BYTES = 2 };

static void put(struct conn *c, struct span first, struct span second)
{
    tcp_write_two(c->tcp, first, second);
    if (tcp_pending(c->tcp) > 0)
        conn_note_unread(c, tcp_pending(c->tcp));
}

static void on_text(void *context, struct span text)
{
    struct conn *c = context;
    struct buf head;

    if (c->is_http10) {
        put(c, text, span_of(NULL, 0));
        return;
    }
    buf_init(&head, HEAD_BYTES);
    reply_add_chunk_head(&head, text.n);
    put(c, buf_span(&head), span_of(text.p, text.n + CRLF_BYTES));
    buf_done(&head);
}

static bool is_free(void *context)
{
    const struct conn *c = context;

    return tcp_pending(c->tcp) == 0;
}

static void on_stream_end(void *context, enum stream_end why)
{
    struct conn *c = context;

    c->stream = NULL; /* is gone */
    c->is_streaming = c->has_flow = false;
    if (!c->is_http10)
        tcp_write(c->tcp, reply_last_chunk);
    conn_close_when_sent(c, why == STREAM_SHUTDOWN ? TCP_CLOSE_SHUTDOWN : TCP_CLOSE_STREAM);
    conn_flush(c);
}

static void on_bytes(void *context, struct span bytes)
{
    put(context, bytes, span_of(NULL, 0));
}

static void on_download_end(void *context, bool is_whole)
{
    struct conn *c = context;

    c->download = NULL; /* is gone */
    c->is_streaming = c->has_flow = false;
    if (!is_whole) {
        conn_close_now(c, TCP_CLOSE_CUT_OFF);
        return;
    }
    conn_close_when_sent(c, TCP_CLOSE_DONE);
    conn_flush(c);
}

void conn_take_flow(struct conn *c, struct response *response, const struct asked *asked)
{
    conn_add_reply(c, response, asked);
    c->stream = TAKE(response->stream);
    c->download = TAKE(response->download);
    c->has_flow = true;
    c->is_http10 = asked->is_http10;
}

void conn_start_flow(struct conn *c)
{
    static const struct stream_sink stream_sink = {on_text, is_free, on_stream_end};
    static const struct download_sink download_sink = {on_bytes, is_free, on_download_end};

    if (c->is_streaming || conn_owes_answers(c))
        return;
    if (c->is_ended && c->stream != NULL) {
        conn_close_now(c, TCP_CLOSE_PEER);
        return;
    }
    c->is_streaming = true;
    if (c->stream != NULL)
        stream_start(c->stream, &stream_sink, c);
    else
        download_start(c->download, &download_sink, c);
}

void conn_go_on(struct conn *c)
{
    if (c->stream != NULL)
        stream_go_on(c->stream);
    else
        download_go_on(c->download);
}

void conn_drop_flow(struct conn *c)
{
    c->is_streaming = c->has_flow = false;
    stream_close(TAKE(c->stream));
    download_close(TAKE(c->download));
}
