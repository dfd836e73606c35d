/* A connection that is refused stays for up to a second, so that its client gets the answer. Those
 * are few: past REFUSED_MOST they are closed without a word, or a flood of them would take the
 * place of connections that are welcome. */
#include "http/conn.h"

#include "base/log.h"
#include "dispatch/dispatch.h"
#include "http/reply.h"
#include "rest/metrics.h"
#include "rest/rest.h"

enum { OUTPUT_BYTES = 4096, RETRY_AFTER_S = 1, REFUSED_MOST = 16 };

static const struct row {
    enum err_code code;
    enum metric_limit limit;
    struct span why;
} rows[] = {
    [REFUSAL_CONNECTIONS] = {ERR_OVERLOADED, METRIC_CONNECTIONS,
                             SPAN_INIT("the limit Connections is reached")},
    [REFUSAL_CONNECTIONS_OF_ONE] = {ERR_TOO_MANY_REQUESTS, METRIC_CONNECTIONS_PER_ADDRESS,
                                    SPAN_INIT("the limit ConnectionsPerAddress is reached")},
    [REFUSAL_REQUESTS] = {ERR_OVERLOADED, METRIC_REQUESTS,
                          SPAN_INIT("the limit Requests is reached")},
    [REFUSAL_REQUESTS_OF_ONE] = {ERR_TOO_MANY_REQUESTS, METRIC_REQUESTS_PER_ADDRESS,
                                 SPAN_INIT("the limit RequestsPerAddress is reached")},
    [REFUSAL_HELD] =
        {ERR_OVERLOADED, METRIC_UNREAD_BYTES,
         SPAN_INIT("the limit UnreadBytes is reached by what waits for the disk, or for a scan")},
};

void refusal_answer(struct http_server *server, enum refusal refusal)
{
    const struct row *row = &rows[refusal];

    server->metrics->limit_hits[row->limit]++;
    dispatch_refuse(&server->response, err_info(row->code)->status, row->code, row->why,
                    RETRY_AFTER_S);
}

static void on_read(void *context, struct span bytes)
{
    (void)context;
    (void)bytes;
}

static void on_event(void *context)
{
    (void)context;
}

static void on_close(void *context, enum tcp_close_reason reason)
{
    struct http_server *s = context;

    s->refused--;
    server_conn_gone(s, reason);
}

static void answer(struct http_server *server, struct tcp_conn *tcp)
{
    char room[SPAN_U64_BYTES];
    struct reply_options options = {.close = true};
    struct buf b;

    conn_look_at_clocks(server);
    options.common = buf_span(&server->common);
    if (server->rest->cluster != NULL)
        options.applied = server_applied(server, 0, 0, room);
    buf_init(&b, OUTPUT_BYTES);
    reply_add(&b, &server->response, &options);
    tcp_write(tcp, buf_span(&b));
    tcp_finish(tcp, TCP_CLOSE_TOO_MANY);
    buf_done(&b);
}

void refusal_send(struct http_server *server, struct tcp_conn *tcp, enum refusal refusal)
{
    static const struct tcp_callbacks callbacks = {
        .on_read = on_read,
        .on_end = on_event,
        .on_drain = on_event,
        .on_close = on_close,
    };

    if (server_may_complain(server))
        log_warn("http", "%s: refused, %.*s", tcp_peer(tcp), SPAN_FMT(rows[refusal].why));
    refusal_answer(server, refusal);
    tcp_start(tcp, &callbacks, server);
    if (server->refused++ < REFUSED_MOST)
        answer(server, tcp);
    else
        tcp_close(tcp, TCP_CLOSE_TOO_MANY);
}
