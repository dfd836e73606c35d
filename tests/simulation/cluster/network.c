/* Everything on its way is a message with the moment at which it arrives. What belongs to one
 * connection arrives in order. */
#include "network.h"

#include "gateway.h"
#include "machine.h"
#include "receivers.h"
#include "serving.h"
#include "simulated.h"

#include "base/blob.h"
#include "base/heap.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "fetch/fetch_url.h"

#include <stdio.h>
#include <string.h>

enum {
    ORIGINS = 16,
    TIMEOUT_MS = 30000,
    READ_BYTES = 65536,
    KEEP_BYTES = 4096,
    TWICE_ONE_IN = 150
};

#define QUICK_NS (NS_PER_MS / 10)
#define SLOW_NS (8 * NS_PER_MS)
#define LATE_LEAST_NS NS_PER_S
#define LATE_MOST_NS (30 * NS_PER_S)

struct fetch_origin {
    struct fetcher *fetcher;
    unsigned refs;
    void *user;
    char *text;
};

struct fetcher {
    struct loop *loop;
    unsigned node;
    struct list under_way; /* struct fetch */
    struct fetch_origin origins[ORIGINS];
};

enum kind { REQUEST, HEAD, BODY, END, GONE };

struct message {
    struct heap_node node;
    struct list_link link; /* kept back, or waiting for a node that is stopped */
    uint64_t due_ns, order;
    enum kind kind;
    struct exchange *x;
    struct blob *bytes;
    int status;
    enum fetch_error error;
    bool was_sent, is_whole;
    struct header_field *headers; /* HEAD, in the exchange's arena */
    size_t header_count;
};

struct cut {
    bool requests, answers;
};

static struct {
    struct heap messages;
    struct list exchanges;
    struct list waiting[NETWORK_NODES]; /* struct message */
    struct cut cuts[NETWORK_NODES][AT_RECEIVER + 1][NETWORK_NODES];
    uint64_t order, numbers;
    unsigned late_one_in;
} net;

static const char *const node_urls[] = {"http://node-0.test:8080", "http://node-1.test:8080",
                                        "http://node-2.test:8080", "http://node-3.test:8080",
                                        "http://node-4.test:8080"};
static const char *const member_urls[] = {"http://etcd-0.test:2379", "http://etcd-1.test:2379",
                                          "http://etcd-2.test:2379"};
static const char *const receiver_urls[] = {"http://receiver-0.test/", "http://receiver-1.test/"};

const char *network_node_url(unsigned node)
{
    return node_urls[node];
}

const char *network_member_url(unsigned member)
{
    return member_urls[member];
}

const char *network_receiver_url(unsigned receiver)
{
    return receiver_urls[receiver];
}

static bool comes_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct message *x = CONTAINER_OF_CONST(a, struct message, node);
    const struct message *y = CONTAINER_OF_CONST(b, struct message, node);

    return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->order < y->order;
}

/* Exchanges. -------------------------------------------------------------------------------- */

struct exchange *network_ref(struct exchange *x)
{
    x->refs++;
    return x;
}

static void free_message(struct message *m)
{
    struct exchange *x = m->x;

    blob_unref(m->bytes);
    mem_free(m);
    network_unref(x);
}

void network_unref(struct exchange *x)
{
    if (x == NULL || --x->refs > 0)
        return;
    MUST(x->fetch == NULL && list_empty(&x->kept_back));
    list_remove(&net.exchanges, &x->link);
    buf_done(&x->answer);
    arena_done(&x->arena);
    mem_free(x);
}

static struct message *new_message(struct exchange *x, enum kind kind)
{
    struct message *m = NEW(struct message);

    m->x = network_ref(x);
    m->kind = kind;
    return m;
}

static void post(struct message *m, uint64_t due_ns)
{
    m->due_ns = due_ns;
    m->order = net.order++;
    heap_add(&net.messages, &m->node);
}

/* Behind what is on its way back already. */
static void post_back(struct message *m, uint64_t later_ns)
{
    struct exchange *x = m->x;
    uint64_t due_ns = sim.now_ns + later_ns + sim_delay(QUICK_NS, SLOW_NS);

    x->back_ns = MAX(x->back_ns, due_ns);
    post(m, x->back_ns);
}

static struct cut *cut_of(const struct exchange *x)
{
    return &net.cuts[x->client][x->place][x->server];
}

size_t network_on_way(const struct exchange *x)
{
    size_t bytes = 0;

    for (size_t i = 0; i < net.messages.count; i++) {
        const struct message *m = CONTAINER_OF(net.messages.nodes[i], struct message, node);

        if (m->x == x && m->bytes != NULL)
            bytes += blob_span(m->bytes).n;
    }
    LIST_EACH(&x->kept_back, at)
        bytes += blob_span(CONTAINER_OF(at, struct message, link)->bytes).n;
    return bytes;
}

/* The other end. ---------------------------------------------------------------------------- */

static void send_head(struct exchange *x, int status, const struct header_field *headers,
                      size_t count, uint64_t later_ns)
{
    struct message *m = new_message(x, HEAD);

    m->status = status;
    m->headers = ARENA_ARRAY(&x->arena, struct header_field, count + 1);
    for (size_t i = 0; i < count; i++)
        m->headers[i] = (struct header_field){arena_copy(&x->arena, headers[i].name),
                                              arena_copy(&x->arena, headers[i].value)};
    m->header_count = count;
    post_back(m, later_ns);
}

void network_begin_answer(struct exchange *x, int status)
{
    send_head(x, status, NULL, 0, 0);
}

void network_send(struct exchange *x, struct span bytes)
{
    while (bytes.n > 0) {
        size_t n = sim_chance(8) ? 1 + (size_t)rng_below(bytes.n) : MIN(bytes.n, 65536u);
        struct message *m = new_message(x, BODY);

        m->bytes = blob_new(span_sub(bytes, 0, n));
        bytes = span_sub(bytes, n, bytes.n);
        post_back(m, 0);
    }
}

void network_end_answer(struct exchange *x, bool is_whole)
{
    struct message *m = new_message(x, END);

    m->is_whole = is_whole;
    m->error = is_whole ? FETCH_OK : FETCH_CLOSED;
    m->was_sent = true;
    post_back(m, 0);
}

void network_answer(struct exchange *x, int status, const struct header_field *headers,
                    size_t count, struct span body)
{
    send_head(x, status, headers, count, 0);
    network_send(x, body);
    network_end_answer(x, true);
}

void network_answer_later(struct exchange *x, int status, struct span body, uint64_t later_ns)
{
    send_head(x, status, NULL, 0, later_ns);
    network_send(x, body);
    network_end_answer(x, true);
}

void network_drop(struct exchange *x)
{
    network_end_answer(x, false);
}

static void refuse(struct exchange *x)
{
    struct message *m = new_message(x, END);

    m->error = FETCH_CONNECT;
    post_back(m, 0);
}

static void arrive(struct exchange *x)
{
    if (cut_of(x)->requests || x->is_broken) {
        x->is_broken = true;
    } else if (x->place == AT_ETCD) {
        if (!gateway_is_open(x->server))
            refuse(x);
        else
            gateway_take(x);
    } else if (x->place == AT_NODE) {
        if (!machine_is_up(x->server))
            refuse(x);
        else
            serving_take(x);
    } else {
        receivers_take(x);
    }
}

static void gone(struct exchange *x)
{
    if (x->served == NULL)
        return;
    if (x->place == AT_ETCD)
        gateway_forget(x);
    else if (x->place == AT_NODE)
        serving_forget(x);
}

/* The end that asks. ------------------------------------------------------------------------ */

static struct fetch *let_go(struct exchange *x)
{
    struct fetch *f = x->fetch;

    timer_stop(x->fetcher->loop, &x->timer);
    x->fetch = NULL;
    f->transfer = NULL;
    list_remove(&x->fetcher->under_way, &f->link);
    while (!list_empty(&x->kept_back))
        free_message(CONTAINER_OF(list_pop_front(&x->kept_back), struct message, link));
    return f;
}

/* The other end sees that nobody reads any more, unless the link is cut. */
static void tell_gone(struct exchange *x)
{
    if (x->served != NULL && !cut_of(x)->requests)
        post(new_message(x, GONE), sim.now_ns + sim_delay(QUICK_NS, SLOW_NS));
}

static void end(struct exchange *x, enum fetch_error error, bool was_sent, bool is_truncated)
{
    struct fetch *f = let_go(x);
    struct span body = buf_span(&x->answer);
    struct fetch_result result = {
        .error = error,
        .status = x->status,
        .retry_after_s = -1,
        .body = body,
        .body_bytes = x->answer_bytes,
        .truncated = is_truncated,
        .was_sent = was_sent,
        .total_ms = 1,
    };

    if (error != FETCH_OK)
        snprintf(result.why, sizeof(result.why), "error %d", (int)error);
    tell_gone(x);
    f->on_done(f, &result);
    network_unref(x);
}

static void on_timeout(struct timer *timer)
{
    end(CONTAINER_OF(timer, struct exchange, timer), FETCH_TIMEOUT, true, false);
}

static void begin_time(struct exchange *x)
{
    unsigned ms = x->fetch->timeout_ms;

    timer_start(x->fetcher->loop, &x->timer, ms != 0 ? ms : TIMEOUT_MS);
}

static void take_head(struct exchange *x, const struct message *m)
{
    struct fetch *f = x->fetch;

    x->status = m->status;
    x->is_stream = f->on_body != NULL && m->status / 100 == 2;
    for (size_t i = 0; f->on_field != NULL && i < m->header_count; i++)
        f->on_field(f, m->headers[i].name, m->headers[i].value);
}

static void take_body(struct exchange *x, struct span bytes)
{
    struct fetch *f = x->fetch;
    size_t keep = f->keep_bytes != 0 ? f->keep_bytes : KEEP_BYTES;
    size_t most = f->read_bytes != 0 ? f->read_bytes : READ_BYTES;

    x->answer_bytes += bytes.n;
    if (x->is_stream) {
        if (!f->on_body(f, bytes))
            end(x, FETCH_OK, true, true);
        else if (!x->is_paused)
            begin_time(x);
        return;
    }
    buf_add(&x->answer, span_sub(bytes, 0, keep - MIN(keep, x->answer.n)));
    if (x->answer_bytes > most)
        end(x, FETCH_OK, true, true);
}

static void come_back(struct message *m)
{
    struct exchange *x = m->x;

    if (cut_of(x)->answers)
        x->is_broken = true;
    if (x->fetch == NULL || x->is_broken)
        return;
    machine_enter(x->client);
    if (m->kind == HEAD)
        take_head(x, m);
    else if (m->kind == BODY)
        take_body(x, blob_span(m->bytes));
    else if (m->is_whole)
        end(x, FETCH_OK, true, false);
    else
        end(x, m->error, m->was_sent, false);
    machine_leave(x->client);
}

/* Messages. --------------------------------------------------------------------------------- */

uint64_t network_next_ns(void)
{
    struct heap_node *first = heap_first(&net.messages);

    return first == NULL ? UINT64_MAX : CONTAINER_OF(first, struct message, node)->due_ns;
}

static bool is_for_server(const struct message *m)
{
    return m->kind == REQUEST || m->kind == GONE;
}

/* Whom it has to wait for, who is stopped; NETWORK_NODES: nobody. */
static unsigned waits_for(const struct message *m)
{
    const struct exchange *x = m->x;

    if (is_for_server(m))
        return x->place == AT_NODE && machine_is_stopped(x->server) ? x->server : NETWORK_NODES;
    return x->fetch != NULL && machine_is_stopped(x->client) ? x->client : NETWORK_NODES;
}

void network_step(void)
{
    struct message *m = CONTAINER_OF(heap_first(&net.messages), struct message, node);
    unsigned node = waits_for(m);

    heap_remove(&net.messages, &m->node);
    if (node < NETWORK_NODES) {
        list_push_back(&net.waiting[node], &m->link);
        return;
    }
    if (!is_for_server(m) && m->x->is_paused && m->x->fetch != NULL) {
        list_push_back(&m->x->kept_back, &m->link);
        return;
    }
    if (m->kind == REQUEST)
        arrive(m->x);
    else if (m->kind == GONE)
        gone(m->x);
    else
        come_back(m);
    free_message(m);
}

/* In their old places, before what has come behind them. */
static void release(struct list *list)
{
    struct list_link *at;

    while ((at = list_pop_front(list)) != NULL)
        heap_add(&net.messages, &CONTAINER_OF(at, struct message, link)->node);
}

void network_node_goes_on(unsigned node)
{
    release(&net.waiting[node]);
}

void network_node_ended(unsigned node, bool is_seen)
{
    release(&net.waiting[node]);
    LIST_EACH(&net.exchanges, at) {
        struct exchange *x = CONTAINER_OF(at, struct exchange, link);

        if (x->place != AT_NODE || x->server != node || x->served == NULL)
            continue;
        x->served = NULL;
        if (is_seen)
            network_drop(x);
        else
            x->is_broken = true;
        network_unref(x);
    }
}

/* Links. ------------------------------------------------------------------------------------ */

void network_cut(unsigned node, enum network_place place, unsigned server, bool requests,
                 bool answers)
{
    net.cuts[node][place][server] = (struct cut){requests, answers};
}

void network_heal(void)
{
    memset(net.cuts, 0, sizeof(net.cuts));
}

void network_set_late(unsigned one_in)
{
    net.late_one_in = one_in;
}

void network_spoil_one(void)
{
    size_t count = list_count(&net.exchanges), at = 0;
    size_t chosen = count == 0 ? 0 : (size_t)rng_below(count);

    LIST_EACH(&net.exchanges, link) {
        struct exchange *x = CONTAINER_OF(link, struct exchange, link);

        if (at++ != chosen || x->fetch == NULL)
            continue;
        sim_note("network: exchange %llu of node %u is spoiled", (unsigned long long)x->number,
                 x->client);
        if (sim_chance(2))
            x->is_broken = true;
        else
            network_drop(x);
        return;
    }
}

/* fetch/fetch.h. ---------------------------------------------------------------------------- */

static bool find_place(struct span url, const char *const *urls, size_t count, unsigned *out)
{
    for (size_t i = 0; i < count; i++)
        if (span_starts(url, span_str(urls[i]))) {
            *out = (unsigned)i;
            return true;
        }
    return false;
}

static void find_server(struct exchange *x, struct span url)
{
    if (find_place(url, member_urls, ARRAY_LEN(member_urls), &x->server))
        x->place = AT_ETCD;
    else if (find_place(url, node_urls, ARRAY_LEN(node_urls), &x->server))
        x->place = AT_NODE;
    else if (find_place(url, receiver_urls, ARRAY_LEN(receiver_urls), &x->server))
        x->place = AT_RECEIVER;
    else
        MUST_NOT_REACH();
}

static void copy_request(struct exchange *x, const struct fetch *f)
{
    struct header_field *headers = ARENA_ARRAY(&x->arena, struct header_field, f->header_count + 1);
    struct span origin = fetch_url_origin(f->url);

    for (size_t i = 0; i < f->header_count; i++)
        headers[i] = (struct header_field){arena_copy(&x->arena, f->headers[i].name),
                                           arena_copy(&x->arena, f->headers[i].value)};
    x->headers = headers;
    x->header_count = f->header_count;
    x->method = arena_copy(&x->arena, f->method);
    x->target = arena_copy(&x->arena, span_sub(f->url, origin.n, f->url.n));
    x->body = f->body == NULL ? span_of(NULL, 0) : arena_copy(&x->arena, blob_span(f->body));
}

static uint64_t request_delay(const struct exchange *x)
{
    bool is_late = x->place == AT_ETCD && net.late_one_in > 0 && sim_chance(net.late_one_in);

    return is_late ? sim_delay(LATE_LEAST_NS, LATE_MOST_NS) : sim_delay(QUICK_NS, SLOW_NS);
}

static void send_request(struct exchange *x, bool is_once)
{
    uint64_t due_ns = sim.now_ns + request_delay(x);

    post(new_message(x, REQUEST), due_ns);
    if (is_once || x->place != AT_ETCD || !sim_chance(TWICE_ONE_IN))
        return;
    /* The first copy has no answer: another exchange, which nobody reads. */
    {
        struct exchange *copy = NEW(struct exchange);

        *copy = (struct exchange){.number = net.numbers++,
                                  .fetcher = x->fetcher,
                                  .client = x->client,
                                  .place = x->place,
                                  .server = x->server};
        arena_init(&copy->arena);
        list_init(&copy->kept_back);
        buf_init(&copy->answer, BUF_NO_CAP);
        copy->method = arena_copy(&copy->arena, x->method);
        copy->target = arena_copy(&copy->arena, x->target);
        copy->body = arena_copy(&copy->arena, x->body);
        list_push_back(&net.exchanges, &copy->link);
        post(new_message(copy, REQUEST), due_ns - 1);
    }
}

void fetch_start(struct fetcher *fetcher, struct fetch *f)
{
    struct exchange *x = NEW(struct exchange);

    *x = (struct exchange){.number = net.numbers++,
                           .refs = 1,
                           .fetcher = fetcher,
                           .fetch = f,
                           .client = fetcher->node};
    arena_init(&x->arena);
    list_init(&x->kept_back);
    buf_init(&x->answer, BUF_NO_CAP);
    timer_init(&x->timer, on_timeout);
    find_server(x, f->url);
    copy_request(x, f);
    if (x->place == AT_RECEIVER)
        receivers_check_start(x);
    list_push_back(&net.exchanges, &x->link);
    list_push_back(&fetcher->under_way, &f->link);
    f->transfer = (struct fetch_transfer *)x;
    begin_time(x);
    send_request(x, f->is_once || f->on_body != NULL);
}

static struct exchange *exchange_of(const struct fetch *f)
{
    return (struct exchange *)f->transfer;
}

void fetch_cancel(struct fetcher *fetcher, struct fetch *f)
{
    struct exchange *x = exchange_of(f);

    (void)fetcher;
    if (x == NULL)
        return;
    let_go(x);
    tell_gone(x);
    network_unref(x);
}

void fetch_pause(struct fetch *f)
{
    struct exchange *x = exchange_of(f);

    if (x == NULL)
        return;
    x->is_paused = true;
    timer_stop(x->fetcher->loop, &x->timer);
}

void fetch_resume(struct fetch *f)
{
    struct exchange *x = exchange_of(f);

    if (x == NULL || !x->is_paused)
        return;
    x->is_paused = false;
    begin_time(x);
    release(&x->kept_back);
}

size_t fetch_active(const struct fetcher *f)
{
    return list_count(&f->under_way);
}

struct err *fetcher_new(struct loop *loop, struct resolver *resolver,
                        const struct egress_rules *rules, const struct fetch_options *options,
                        struct fetcher **out_fetcher)
{
    struct fetcher *f = NEW(struct fetcher);

    (void)resolver, (void)rules, (void)options;
    f->loop = loop;
    f->node = machine_of_loop(loop);
    list_init(&f->under_way);
    *out_fetcher = f;
    return NULL;
}

void fetcher_free(struct fetcher *f)
{
    if (f == NULL)
        return;
    while (!list_empty(&f->under_way))
        fetch_cancel(f, CONTAINER_OF(list_first(&f->under_way), struct fetch, link));
    for (size_t i = 0; i < ORIGINS; i++)
        mem_free(f->origins[i].text);
    mem_free(f);
}

struct fetch_origin *fetch_origin_get(struct fetcher *f, struct span url)
{
    struct span text = fetch_url_origin(url);
    size_t i = 0;

    while (f->origins[i].text != NULL && !span_eq(span_str(f->origins[i].text), text))
        i++;
    MUST(i < ORIGINS);
    if (f->origins[i].text == NULL)
        f->origins[i] = (struct fetch_origin){.fetcher = f, .text = mem_string(text)};
    f->origins[i].refs++;
    return &f->origins[i];
}

void fetch_origin_put(struct fetch_origin *origin)
{
    if (origin == NULL)
        return;
    MUST(origin->refs > 0 && (origin->refs > 1 || origin->user == NULL));
    origin->refs--;
}

struct span fetch_origin_text(const struct fetch_origin *origin)
{
    return span_str(origin->text);
}

void **fetch_origin_user(struct fetch_origin *origin)
{
    return &origin->user;
}

bool fetch_origin_address(const struct fetch_origin *origin, struct in6_addr *out_address)
{
    (void)origin, (void)out_address;
    return false;
}

/* Opening. ---------------------------------------------------------------------------------- */

void network_open(void)
{
    memset(&net, 0, sizeof(net));
    heap_init(&net.messages, comes_before);
    list_init(&net.exchanges);
    for (unsigned i = 0; i < NETWORK_NODES; i++)
        list_init(&net.waiting[i]);
}

/* Nodes have been freed. */
void network_close(void)
{
    struct heap_node *first;

    for (unsigned i = 0; i < NETWORK_NODES; i++)
        release(&net.waiting[i]);
    while ((first = heap_first(&net.messages)) != NULL) {
        heap_remove(&net.messages, first);
        free_message(CONTAINER_OF(first, struct message, node));
    }
    MUST(list_empty(&net.exchanges));
    heap_done(&net.messages);
}
