/* A request whose evaluation gave way to others is held while it is evaluated beside them
 * (rest/evaluation.h); in a cluster also while it waits for what comes before that, or in its place
 * (dispatch/passage.h). It is a copy, because what it came in is read into anew; the copy counts
 * among what is held for want of a commit. */
#include "http/conn_inner.h"

#include "access/clients.h"
#include "base/header_field.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/passage.h"
#include "protocol/node_headers.h"
#include "rest/evaluation.h"

struct held {
    struct arena arena;
    struct request request;
    struct evaluation *evaluation; /* one of the two: */
    struct passage *passage;
    struct asked asked;
    struct in6_addr address; /* of the client, if known */
    struct client *client;   /* that it counts for; NULL: nobody */
    uint64_t bytes;          /* that it counts as */
    bool keep_alive;
};

static void copy_headers(struct request *r, struct arena *a)
{
    struct header_field *headers = ARENA_ARRAY(a, struct header_field, r->header_count);

    for (size_t i = 0; i < r->header_count; i++)
        headers[i] = (struct header_field){arena_copy(a, r->headers[i].name),
                                           arena_copy(a, r->headers[i].value)};
    r->headers = headers;
}

static const struct passed_on *copy_origin(const struct passed_on *from, struct arena *a)
{
    struct passed_on *copy = ARENA_NEW(a, struct passed_on);

    *copy = *from;
    copy->node = arena_copy(a, from->node);
    copy->client = arena_copy(a, from->client);
    if (from->key.p != NULL)
        copy->key = arena_copy(a, from->key);
    return copy;
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
    if (request->from != NULL)
        r->from = copy_origin(request->from, a);
    if (request->client != NULL) {
        h->address = *request->client;
        r->client = &h->address;
    }
}

static void held_free(struct conn *c, struct held *h)
{
    evaluation_free(h->evaluation);
    passage_free(h->passage);
    clients_end(c->server->rest->clients, h->client);
    c->server->held_bytes -= h->bytes;
    arena_done(&h->arena);
    mem_free(h);
}

static void answer_held(struct conn *c, struct response *response)
{
    struct held *h = TAKE(c->held);

    conn_answer_held(c, response, &h->asked, h->keep_alive);
    held_free(c, h);
}

static void go_on(struct conn *c, struct response *response);

static void on_evaluated(void *context)
{
    struct conn *c = context;

    go_on(c, evaluation_response(c->held->evaluation));
}

/* It has waited, and is evaluated now. */
static void on_passed(void *context)
{
    struct conn *c = context;
    struct held *h = c->held;
    struct http_server *s = c->server;

    if (passage_response(h->passage) != NULL) {
        answer_held(c, passage_response(h->passage));
        return;
    }
    conn_look_at_serial(c, &h->asked);
    dispatch_run(s->rest, &h->request, &s->response);
    go_on(c, &s->response);
}

/* With what came of it so far: an answer, or another way to get one. */
static void go_on(struct conn *c, struct response *response)
{
    struct held *h = c->held;
    struct passage *next;

    if (!response->gives_way) {
        answer_held(c, response);
        return;
    }
    next = TAKE(response->passage);
    evaluation_free(TAKE(h->evaluation));
    passage_free(TAKE(h->passage));
    h->passage = next;
    if (next != NULL)
        passage_start(next, &h->request, on_passed, c);
    else
        h->evaluation = evaluation_start(c->server->rest, &h->request, on_evaluated, c);
}

void conn_hold(struct conn *c, const struct request *request, const struct asked *asked,
               bool keep_alive)
{
    struct http_server *s = c->server;
    struct held *h = NEW(struct held);

    arena_init(&h->arena);
    copy_request(h, request);
    h->asked = *asked;
    h->asked.client = h->request.client;
    h->keep_alive = keep_alive;
    h->client = clients_begin(s->rest->clients, h->request.client);
    h->bytes = h->arena.used_bytes + (s->response.passage != NULL ? request->body.n : 0);
    s->held_bytes += h->bytes;
    c->held = h;
    go_on(c, &s->response);
}

void conn_drop_held(struct conn *c)
{
    if (c->held != NULL)
        held_free(c, TAKE(c->held));
}
