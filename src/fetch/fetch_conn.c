/* Connections.
 *
 *            +--> MAKING --+           +--- kept, taken again ---+
 *   SPARE ---|             |--> BUSY --|                         |
 *     ^      +-- closed    |           +--> IDLE ----------------+
 *     |                    |           |      |
 *     +--------------------+-----------+------+  closed
 *
 * A connection belongs to its easy handle, without which libcurl would close it; a closed one
 * leaves the handle for the next. It stays watched for reading from its beginning to its end, so
 * that a request on a kept one needs no call but those that send and receive. What comes on one
 * that is idle closes it, unless it is TLS's own; and since the loop may not have looked yet, it is
 * looked for before the connection is used again. Not so in the turn in which the answer was read
 * to where there was no more: to look once more would cost each request of a busy receiver a call.
 * What comes in that moment is as what comes while the request is on its way; a receiver that is
 * known to end connections without a word is asked each time, and so is each before what must not
 * be done twice.
 *
 * Which are this process's own is known by their ends: one that a webhook leads to this server
 * itself comes from loopback, as a proxy's does, but says what the webhook's maker wants.
 *
 * There are max_connections at most, in use and idle; the one that has been idle for longest makes
 * room. They live for five minutes at most, which is how long a move of a name can take to be
 * noticed. */
#include "fetch_private.h"

#include "base/mem.h"
#include "base/sm.h"

enum { LIFE_MS = 300000, SWEEP_MS = 60000, SPARE_MOST = 64 };

#define CLOSED SM_TO(FETCH_CONN_SPARE)

static const struct sm_state states[] = {
    [FETCH_CONN_SPARE] = {"spare", SM_TO(FETCH_CONN_MAKING)},
    [FETCH_CONN_MAKING] = {"making", SM_TO(FETCH_CONN_BUSY) | CLOSED},
    [FETCH_CONN_BUSY] = {"busy", SM_TO(FETCH_CONN_IDLE) | CLOSED},
    [FETCH_CONN_IDLE] = {"idle", SM_TO(FETCH_CONN_BUSY) | CLOSED},
};

static const struct sm_table machine = {"connection", states, FETCH_CONN_STATE_COUNT};

static struct fetch_conn *conn_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct fetch_conn, link);
}

static struct span ends_key(const void *item)
{
    const struct fetch_conn *c = item;

    return span_of((const char *)&c->ends, sizeof(c->ends));
}

bool fetch_is_own(const struct fetcher *f, const struct ip_ends *ends)
{
    const struct fetch_conn wanted = {.ends = ip_ends_reversed(ends)};

    return map_count(&f->own) > 0 && map_find(&f->own, ends_key(&wanted)) != NULL;
}

static void move(struct fetch_conn *c, enum fetch_conn_state to)
{
    struct fetcher *f = c->fetcher;

    list_remove(&f->conns[c->state], &c->link);
    if (c->state == FETCH_CONN_IDLE)
        list_remove(&c->origin->kept, &c->kept);
    sm_move(&machine, &c->state, to);
    list_push_back(&f->conns[to], &c->link);
    if (to == FETCH_CONN_IDLE)
        list_push_front(&c->origin->kept, &c->kept);
}

static void on_again(struct loop_task *task)
{
    struct fetch_conn *c = CONTAINER_OF(task, struct fetch_conn, again);

    c->messages = 0;
    if (c->state == FETCH_CONN_BUSY)
        fetch_exchange_read(c);
}

static struct fetch_conn *spare_new(struct fetcher *f)
{
    struct fetch_conn *c = NEW(struct fetch_conn);
    struct err *e;

    c->kind = FETCH_KIND_CONN;
    c->fetcher = f;
    c->again.run = on_again;
    buf_init(&c->pin_text, BUF_NO_CAP);
    list_init(&c->sockets);
    e = fetch_connect_open(c);
    if (e != NULL) {
        err_free(e);
        mem_free(c);
        return NULL;
    }
    list_push_back(&f->conns[FETCH_CONN_SPARE], &c->link);
    return c;
}

static void spare_free(struct fetch_conn *c)
{
    list_remove(&c->fetcher->conns[FETCH_CONN_SPARE], &c->link);
    fetch_connect_close(c);
    buf_done(&c->pin_text);
    mem_free(c);
}

static size_t count_open(const struct fetcher *f)
{
    return list_count(&f->conns[FETCH_CONN_MAKING]) + list_count(&f->conns[FETCH_CONN_BUSY]) +
           list_count(&f->conns[FETCH_CONN_IDLE]);
}

struct fetch_conn *fetch_conn_new(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    struct list *idle = &f->conns[FETCH_CONN_IDLE], *spare = &f->conns[FETCH_CONN_SPARE];
    struct fetch_conn *c;

    while (count_open(f) >= f->options.max_connections && !list_empty(idle))
        fetch_conn_close(conn_at(list_first(idle)));
    c = list_empty(spare) ? spare_new(f) : conn_at(list_last(spare));
    if (c == NULL)
        return NULL;
    c->origin = fetch_origin_ref(t->origin);
    c->transfer = t;
    t->conn = c;
    c->was_used = c->is_noisy = c->is_direct = false;
    c->opened_ms = loop_now_ms(f->loop);
    c->allowed_addresses = 0;
    c->messages = 0;
    c->no_socket = NULL;
    c->refused[0] = c->text[0] = '\0';
    move(c, FETCH_CONN_MAKING);
    return c;
}

void fetch_conn_made(struct fetch_conn *c, struct fetch_socket *socket)
{
    c->socket = socket;
    c->text[0] = '\0';
    fetch_sockets_forget(c, socket);
    c->is_drained = c->has_hung_up = false;
    fetch_socket_watch(socket, UV_READABLE | UV_DISCONNECT);
    if (ip_ends_of(fetch_socket_fd(socket), &c->ends) &&
        map_find(&c->fetcher->own, ends_key(c)) == NULL)
        map_add(&c->fetcher->own, c);
    move(c, FETCH_CONN_BUSY);
}

void fetch_conn_close(struct fetch_conn *c)
{
    struct fetcher *f = c->fetcher;

    if (c->transfer != NULL)
        TAKE(c->transfer)->conn = NULL;
    loop_unpost(f->loop, &c->again);
    if (map_find(&f->own, ends_key(c)) == c)
        map_remove(&f->own, ends_key(c));
    fetch_connect_stop(c);
    c->socket = NULL;
    c->ssl = NULL;
    move(c, FETCH_CONN_SPARE);
    fetch_origin_put(TAKE(c->origin));
    if (list_count(&f->conns[FETCH_CONN_SPARE]) > SPARE_MOST)
        spare_free(conn_at(list_first(&f->conns[FETCH_CONN_SPARE])));
}

static bool is_too_old(const struct fetch_conn *c, uint64_t now_ms)
{
    return now_ms > c->opened_ms + LIFE_MS;
}

static void on_sweep(struct timer *timer)
{
    struct fetcher *f = CONTAINER_OF(timer, struct fetcher, sweep);
    struct list *idle = &f->conns[FETCH_CONN_IDLE];
    uint64_t now_ms = loop_now_ms(f->loop);

    LIST_EACH(idle, at)
        if (is_too_old(conn_at(at), now_ms))
            fetch_conn_close(conn_at(at));
    if (!list_empty(idle))
        timer_start(f->loop, timer, SWEEP_MS);
}

void fetch_conn_keep(struct fetch_conn *c)
{
    struct fetcher *f = c->fetcher;

    c->was_used = true;
    c->idle_since_turn = f->loop->turns;
    c->idle_since_wait = f->loop->waits;
    fetch_channel_settle(c);
    move(c, FETCH_CONN_IDLE);
    if (!timer_running(&f->sweep))
        timer_start(f->loop, &f->sweep, SWEEP_MS);
}

static bool was_just_read(const struct fetch_conn *c)
{
    return c->is_drained && !c->has_hung_up && !c->origin->hangs_up &&
           c->fetcher->loop->waits == c->idle_since_wait;
}

/* When the loop has looked since the last answer, it would have closed one that is not. */
static bool is_quiet(struct fetch_conn *c)
{
    bool has_been_looked_at = c->fetcher->loop->turns >= c->idle_since_turn + 2;

    return (has_been_looked_at && !fetch_channel_holds_bytes(c)) || fetch_channel_is_quiet(c);
}

struct fetch_conn *fetch_conn_take(struct fetch_transfer *t)
{
    uint64_t now_ms = t->begun_ns / NS_PER_MS; /* or a moment before, when it had to resolve */
    struct list_link *first;

    while ((first = list_first(&t->origin->kept)) != NULL) {
        struct fetch_conn *c = CONTAINER_OF(first, struct fetch_conn, kept);

        c->messages = 0;
        if (is_too_old(c, now_ms) || !((was_just_read(c) && !t->fetch->is_once) || is_quiet(c))) {
            fetch_conn_close(c);
            continue;
        }
        c->transfer = t;
        t->conn = c;
        move(c, FETCH_CONN_BUSY);
        return c;
    }
    return NULL;
}

void fetch_conn_on_event(struct fetch_conn *c, int status, int events)
{
    c->messages = 0;
    c->has_hung_up = (events & UV_DISCONNECT) != 0;
    if (c->state == FETCH_CONN_BUSY)
        fetch_exchange_on_event(c, status, events);
    else if (status != 0 || !fetch_channel_is_quiet(c))
        fetch_conn_close(c);
}

void fetch_conns_init(struct fetcher *f)
{
    for (size_t i = 0; i < FETCH_CONN_STATE_COUNT; i++)
        list_init(&f->conns[i]);
    timer_init(&f->sweep, on_sweep);
    map_init(&f->own, ends_key);
}

void fetch_conns_done(struct fetcher *f)
{
    struct list *idle = &f->conns[FETCH_CONN_IDLE], *spare = &f->conns[FETCH_CONN_SPARE];

    timer_stop(f->loop, &f->sweep);
    while (!list_empty(idle))
        fetch_conn_close(conn_at(list_first(idle)));
    while (!list_empty(spare))
        spare_free(conn_at(list_first(spare)));
    map_done(&f->own);
}
