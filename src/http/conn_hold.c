/* A request whose evaluation gave way to others (service/scan.h) is held until its scan has ended,
 * and then evaluated again. It is a copy, because what it came in is read into anew; the copy
 * counts among what is held for want of a commit. */
#include "http/conn_inner.h"

#include "base/mem.h"
#include "rest/clients.h"
#include "rest/scan.h"

struct held {
    struct arena arena;
    struct request request;
    struct asked asked;
    struct in6_addr address; /* of the client, if known */
    struct client *client;   /* that it counts for; NULL: nobody */
    bool keep_alive;
};

static void copy_headers(struct request *r, struct arena *a)
{
    struct request_header *headers = ARENA_ARRAY(a, struct request_header, r->header_count);

    for (size_t i = 0; i < r->header_count; i++)
        headers[i] = (struct request_header){arena_copy(a, r->headers[i].name),
                                             arena_copy(a, r->headers[i].value)};
    r->headers = headers;
}

static void copy_request(struct held *h, const struct request *request)
{
    struct request *r = &h->request;
    struct arena *a = &h->arena;

    *r = *request;
    r->method = arena_copy(a, request->method);
    r->target = arena_copy(a, request->target);
    if (request->host.p != NULL)
        r->host = arena_copy(a, request->host);
    if (request->body.p != NULL)
        r->body = arena_copy(a, request->body);
    copy_headers(r, a);
    if (request->client != NULL) {
        h->address = *request->client;
        r->client = &h->address;
    }
}

static void held_free(struct conn *c, struct held *h)
{
    scan_free(h->request.scan);
    clients_end(c->server->rest->clients, h->client);
    c->server->held_bytes -= h->arena.used_bytes;
    arena_done(&h->arena);
    mem_free(h);
}

static void on_scanned(void *context);

static void wait_for(struct conn *c, struct scan *scan)
{
    struct request *r = &c->held->request;

    if (r->scan != scan)
        scan_free(r->scan);
    r->scan = scan;
    scan_start(scan, on_scanned, c);
}

static void on_scanned(void *context)
{
    struct conn *c = context;
    struct response *response = &c->server->response;
    struct held *h = c->held;

    request_run(c->server->rest, &h->request, response);
    if (response->scan != NULL) {
        wait_for(c, response->scan);
        return;
    }
    c->held = NULL;
    conn_answer_held(c, &h->asked, h->keep_alive);
    held_free(c, h);
}

void conn_hold(struct conn *c, const struct request *request, const struct asked *asked,
               bool keep_alive)
{
    struct http_server *s = c->server;
    struct held *h = NEW(struct held);

    arena_init(&h->arena);
    copy_request(h, request);
    h->asked = *asked;
    h->asked.method = h->request.method;
    h->asked.client = h->request.client;
    h->keep_alive = keep_alive;
    h->client = clients_begin(s->rest->clients, h->request.client);
    s->held_bytes += h->arena.used_bytes;
    c->held = h;
    wait_for(c, s->response.scan);
}

void conn_drop_held(struct conn *c)
{
    if (c->held != NULL)
        held_free(c, TAKE(c->held));
}
