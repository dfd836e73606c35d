#include "fetch_plain.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTION_LIFE_MS = 300000, SWEEP_MS = 60000 };

static struct span origin_key(const void *item)
{
    const struct plain_origin *origin = item;

    return span_of(origin->text, origin->bytes);
}

void plain_watch(struct plain_conn *c, int events)
{
    if (c->watched == events)
        return;
    c->watched = events;
    uv_poll_start(&c->poll, events, plain_on_poll);
}

static void leave_idle(struct plain_conn *c)
{
    struct fetch_plain *p = &c->fetcher->plain;
    struct plain_origin *origin = TAKE(c->origin);

    list_remove(&p->idle, &c->link);
    list_remove(&origin->conns, &c->kept);
    if (list_empty(&origin->conns)) {
        map_remove(&p->origins, origin_key(origin));
        mem_free(origin);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct plain_conn *c = CONTAINER_OF((uv_poll_t *)handle, struct plain_conn, poll);

    buf_done(&c->line);
    mem_free(c);
}

/* Also of one that is connecting. */
void plain_close(struct plain_conn *c)
{
    if (c->state == IDLE)
        leave_idle(c);
    else
        list_remove(&c->t->conns, &c->link);
    c->t = NULL;
    c->fetcher->plain.open--;
    uv_poll_stop(&c->poll);
    close(c->fd);
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

static struct plain_conn *oldest_idle(const struct fetcher *f)
{
    struct list_link *first = list_first(&f->plain.idle);

    return first == NULL ? NULL : CONTAINER_OF(first, struct plain_conn, link);
}

static bool is_too_old(const struct plain_conn *c)
{
    return loop_now_ms(c->fetcher->loop) - c->opened_ms > CONNECTION_LIFE_MS;
}

static void on_sweep(struct timer *timer)
{
    struct fetcher *f = CONTAINER_OF(timer, struct fetcher, plain.sweep);

    LIST_EACH(&f->plain.idle, at)
        if (is_too_old(CONTAINER_OF(at, struct plain_conn, link)))
            plain_close(CONTAINER_OF(at, struct plain_conn, link));
    if (!list_empty(&f->plain.idle))
        timer_start(f->loop, timer, SWEEP_MS);
}

/* The one used last is the first to be used again. */
void plain_keep(struct plain_conn *c, struct span key)
{
    struct fetch_plain *p = &c->fetcher->plain;
    struct plain_origin *origin = map_find(&p->origins, key);

    if (origin == NULL) {
        origin = mem_zero(sizeof(*origin) + key.n);
        list_init(&origin->conns);
        origin->bytes = key.n;
        memcpy(origin->text, key.p, key.n);
        map_add(&p->origins, origin);
    }
    list_remove(&c->t->conns, &c->link);
    c->t = NULL;
    c->state = IDLE;
    c->idle_since_turn = c->fetcher->loop->turns;
    c->origin = origin;
    list_push_front(&origin->conns, &c->kept);
    list_push_back(&p->idle, &c->link);
    if (!timer_running(&p->sweep))
        timer_start(c->fetcher->loop, &p->sweep, SWEEP_MS);
}

/* Nothing has come on it that nobody asked for, and it has not ended. When the loop has looked
 * since the last answer, it would have been closed. */
static bool is_quiet(const struct plain_conn *c)
{
    char byte;

    if (c->fetcher->loop->turns >= c->idle_since_turn + 2)
        return true;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

struct plain_conn *plain_take_kept(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    struct plain_origin *origin;

    while ((origin = map_find(&f->plain.origins,
                              span_of(t->host->origin, t->host->origin_bytes))) != NULL) {
        struct plain_conn *c = CONTAINER_OF(list_first(&origin->conns), struct plain_conn, kept);

        if (is_too_old(c) || !is_quiet(c)) {
            plain_close(c);
            continue;
        }
        leave_idle(c);
        return c;
    }
    return NULL;
}

/* Of all connections, used and kept, there are max_connections at most. */
void plain_make_room(struct fetcher *f)
{
    while (f->plain.open >= f->max_connections && oldest_idle(f) != NULL)
        plain_close(oldest_idle(f));
}

struct plain_conn *plain_new(struct fetch_transfer *t, int fd)
{
    struct plain_conn *c = NEW(struct plain_conn);

    if (uv_poll_init(&t->fetcher->loop->uv, &c->poll, fd) != 0) {
        close(fd);
        mem_free(c);
        return NULL;
    }
    c->t = t;
    c->fetcher = t->fetcher;
    c->fd = fd;
    c->state = CONNECTING;
    c->opened_ms = loop_now_ms(c->fetcher->loop);
    buf_init(&c->line, BUF_NO_CAP);
    list_push_back(&t->conns, &c->link);
    c->fetcher->plain.open++;
    return c;
}

void fetch_plain_attach(struct fetcher *f)
{
    list_init(&f->plain.idle);
    map_init(&f->plain.origins, origin_key);
    timer_init(&f->plain.sweep, on_sweep);
}

void fetch_plain_detach(struct fetcher *f)
{
    while (oldest_idle(f) != NULL)
        plain_close(oldest_idle(f));
    timer_stop(f->loop, &f->plain.sweep);
    map_done(&f->plain.origins);
}
