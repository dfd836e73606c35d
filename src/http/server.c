#include "http/server.h"

#include "access/clients.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "http/conn.h"
#include "http/h1.h"
#include "io/tcp_passed.h"
#include "journal/journal.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/turn.h"

enum { COMPLAINT_MS = 1000 };

struct http_listener {
    struct list_link link;
    struct http_server *server;
    struct tcp_listener *tcp;
    bool is_proxied;
};

/* A proxy that is trusted may have as many connections as it likes. Who may use a UNIX socket, its
 * file's mode says. */
static bool is_proxy(const struct http_server *s, const struct tcp_conn *tcp,
                     struct in6_addr *out_ip)
{
    return !tcp_peer_ip(tcp, out_ip) || ip_ranges_contain(s->proxies, out_ip);
}

void server_admit(struct http_server *s, struct tcp_conn *tcp, struct span first)
{
    struct client *client = NULL;
    struct in6_addr ip;

    if (!is_proxy(s, tcp, &ip)) {
        client = clients_connect(s->rest->clients, &ip);
        if (client == NULL) {
            refusal_send(s, tcp, REFUSAL_CONNECTIONS_OF_ONE);
            return;
        }
    }
    conn_new(s, tcp, client, first);
}

static void on_accept(void *context, struct tcp_conn *tcp)
{
    struct http_listener *listener = context;
    struct http_server *s = listener->server;
    struct in6_addr ip;

    s->connections++;
    s->metrics->connections_accepted++;
    s->metrics->connections = s->connections;
    if (s->connections > (size_t)s->limits->connections && !conn_make_room(s))
        refusal_send(s, tcp, REFUSAL_CONNECTIONS);
    else if (listener->is_proxied)
        proxied_new(s, tcp, is_proxy(s, tcp, &ip));
    else
        server_admit(s, tcp, (struct span){NULL, 0});
}

static void post_ended(struct http_server *s)
{
    bool is_awaited = s->is_closing || s->is_draining;

    if (is_awaited && s->connections == 0 && !loop_posted(&s->ended))
        loop_post(s->loop, &s->ended);
}

void server_conn_gone(struct http_server *s, enum tcp_close_reason reason)
{
    s->connections--;
    s->metrics->connections = s->connections;
    s->metrics->connections_closed[reason]++;
    post_ended(s);
}

/* No more than the answer has seen, for which the time of asking is good, or what it waits for. */
struct span server_applied(const struct http_server *server, uint64_t serial, uint64_t since,
                           char room[SPAN_U64_BYTES])
{
    if (since == 0)
        since = journal_committed_serial(turn_journal(server->rest->turn));
    return span_u64(MAX(serial, since), room);
}

bool server_may_complain(struct http_server *s)
{
    uint64_t now_ms = loop_now_ms(s->loop);

    if (now_ms < s->silent_until_ms)
        return false;
    s->silent_until_ms = now_ms + COMPLAINT_MS;
    return true;
}

static void close_listeners(struct http_server *s)
{
    struct list_link *link;

    while ((link = list_pop_front(&s->listeners)) != NULL) {
        struct http_listener *listener = CONTAINER_OF(link, struct http_listener, link);

        tcp_listener_close(listener->tcp);
        mem_free(listener);
    }
}

static void close_proxied(struct http_server *s)
{
    LIST_EACH(&s->proxied, at)
        proxied_close(at);
}

static void server_free(struct http_server *s)
{
    heap_done(&s->incoming);
    buf_done(&s->common);
    response_done(&s->response);
    arena_done(&s->passed_on);
    h1_free(s->spare_h1);
    while (s->spare_output_count > 0)
        buf_done(&s->spare_outputs[--s->spare_output_count]);
    mem_free(s);
}

static void on_ended(struct loop_task *task)
{
    struct http_server *s = CONTAINER_OF(task, struct http_server, ended);
    void (*on_closed)(void *context) = s->on_closed;
    void *closed_context = s->closed_context;

    if (s->is_draining && s->on_drained != NULL) {
        void (*on_drained)(void *context) = TAKE(s->on_drained);

        on_drained(s->drained_context);
    }
    if (!s->is_closing)
        return;
    server_free(s);
    on_closed(closed_context);
}

struct http_server *http_server_new(struct loop *loop, struct rest *rest)
{
    static const struct ip_ranges none = {NULL, 0};
    struct http_server *s = NEW(struct http_server);

    s->proxies = &none;
    s->loop = loop;
    s->rest = rest;
    s->limits = rest->limits;
    s->metrics = rest->metrics;
    list_init(&s->listeners);
    list_init(&s->conns);
    list_init(&s->proxied);
    heap_init(&s->incoming, conn_holds_more);
    list_init(&s->unread);
    list_init(&s->idle);
    response_init(&s->response, (size_t)rest->limits->answer_bytes);
    arena_init(&s->passed_on);
    buf_init(&s->common, 128);
    s->wait = UINT64_MAX;
    s->ended.run = on_ended;
    return s;
}

void http_server_trust(struct http_server *s, const struct ip_ranges *proxies)
{
    s->proxies = proxies;
}

void http_server_distrust(struct http_server *s, const struct fetcher *own)
{
    s->own = own;
}

struct err *http_server_bind(struct http_server *s, const struct tcp_address *address,
                             struct tcp_passed *passed, uint16_t *out_port)
{
    struct http_listener *listener = NEW(struct http_listener);
    struct err *e = tcp_bind(s->loop, address, passed, &listener->tcp);

    if (e != NULL) {
        mem_free(listener);
        return e;
    }
    listener->server = s;
    listener->is_proxied = address->is_proxied;
    list_push_back(&s->listeners, &listener->link);
    *out_port = tcp_listener_port(listener->tcp);
    return NULL;
}

struct err *http_server_start(struct http_server *s)
{
    LIST_EACH(&s->listeners, link) {
        struct http_listener *listener = CONTAINER_OF(link, struct http_listener, link);

        TRY(tcp_listener_start(listener->tcp, on_accept, listener));
    }
    return NULL;
}

struct err *http_server_keep(struct http_server *s, struct tcp_passed *kept)
{
    s->is_patient = true;
    LIST_EACH(&s->listeners, link)
        TRY(tcp_passed_keep(kept, CONTAINER_OF(link, struct http_listener, link)->tcp));
    return NULL;
}

void http_server_drain(struct http_server *s, void (*on_drained)(void *context), void *context)
{
    s->is_draining = true;
    s->on_drained = on_drained;
    s->drained_context = context;
    close_listeners(s);
    if (!s->is_patient)
        close_proxied(s);
    LIST_EACH(&s->conns, at)
        conn_drain(at);
    post_ended(s);
}

void http_server_close(struct http_server *s, void (*on_closed)(void *context), void *context)
{
    s->is_closing = true;
    s->on_closed = on_closed;
    s->closed_context = context;
    close_listeners(s);
    close_proxied(s);
    LIST_EACH(&s->conns, at)
        conn_close(at, TCP_CLOSE_SHUTDOWN);
    post_ended(s);
}
