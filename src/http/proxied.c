/* A connection of a listener for proxies, as long as it has not said whose it is: then it becomes
 * one like all others. Only trusted proxies are believed, and there is as much time as for a
 * request's head. */
#include "http/conn.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/proxy_protocol.h"
#include "io/timer.h"
#include "rest/metrics.h"
#include "rest/rest.h"

struct proxied {
    struct list_link link;
    struct http_server *server;
    struct tcp_conn *tcp;
    struct timer timer;
    struct proxy_protocol header;
};

static void forget(struct proxied *p)
{
    timer_stop(p->server->loop, &p->timer);
    list_remove(&p->server->proxied, &p->link);
    mem_free(p);
}

static void refuse(struct proxied *p, const char *why)
{
    if (server_may_complain(p->server))
        log_warn("http", "%s: no PROXY header: %s", tcp_peer(p->tcp), why);
    tcp_close(p->tcp, TCP_CLOSE_BAD_PROXY);
}

static void hand_over(struct proxied *p, struct span rest)
{
    struct http_server *s = p->server;
    struct tcp_conn *tcp = p->tcp;

    if (p->header.has_client)
        tcp_set_peer(tcp, &p->header.client);
    forget(p);
    server_admit(s, tcp, rest);
}

static void on_read(void *context, struct span bytes)
{
    struct proxied *p = context;
    size_t taken;

    switch (proxy_protocol_feed(&p->header, bytes, &taken)) {
    case PROXY_NEED_MORE:
        break;
    case PROXY_DONE:
        hand_over(p, span_sub(bytes, taken, bytes.n));
        break;
    case PROXY_FAILED:
        refuse(p, p->header.why);
        break;
    }
}

static void on_end(void *context)
{
    struct proxied *p = context;

    tcp_close(p->tcp, TCP_CLOSE_PEER);
}

static void on_drain(void *context)
{
    (void)context; /* nothing is written */
}

static void on_close(void *context, enum tcp_close_reason reason)
{
    struct proxied *p = context;
    struct http_server *s = p->server;

    forget(p);
    server_conn_gone(s, reason);
}

static void on_time(struct timer *timer)
{
    struct proxied *p = CONTAINER_OF(timer, struct proxied, timer);

    p->server->metrics->limit_hits[METRIC_HEADER_SECONDS]++;
    tcp_close(p->tcp, TCP_CLOSE_HEADER_TIME);
}

void proxied_new(struct http_server *server, struct tcp_conn *tcp, bool is_trusted)
{
    static const struct tcp_callbacks callbacks = {
        .on_read = on_read,
        .on_end = on_end,
        .on_drain = on_drain,
        .on_close = on_close,
    };
    struct proxied *p = NEW(struct proxied);

    p->server = server;
    p->tcp = tcp;
    timer_init(&p->timer, on_time);
    list_push_back(&server->proxied, &p->link);
    tcp_start(tcp, &callbacks, p);
    if (is_trusted)
        timer_start(server->loop, &p->timer, (uint64_t)server->limits->header_seconds * 1000);
    else
        refuse(p, "the peer is not in TrustedProxies");
}

void proxied_close(struct list_link *link)
{
    tcp_close(CONTAINER_OF(link, struct proxied, link)->tcp, TCP_CLOSE_SHUTDOWN);
}
