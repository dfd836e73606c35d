/* libcurl's sockets while it makes a connection, and the connection's own afterwards, which stays
 * watched as it is. What libcurl wants to be called for is done in the turn's task, for a bounded
 * time: each step of a handshake may take a third of a millisecond, and there may be very many.
 *
 * When an address fails or is refused, libcurl 7.88.1 takes the next one, but opens no socket for
 * it before it is called again, which nothing makes happen until some timer of its own ends. Such a
 * connection is stalled: it is switched off and on again, which is how libcurl is told to call it.
 *
 * A socket that loses the race between a name's addresses is closed by libcurl 7.88.1 itself, and
 * not by way of fetch_socket_on_close; then it says that it does not want it any more. Nothing may
 * be done with such a descriptor, which may be another's soon.
 *
 * libcurl's timer: a time of zero is not acted upon inside the callback, where libcurl must not be
 * called, but in the turn's task. */
#include "fetch_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LEAST_SOCKETS = 64,
    READS_MOST = 128,
    DROP_BYTES = 1 << 20,
    CALLS_NS = 2000000, /* a turn */
};

struct fetch_socket {
    uv_poll_t poll;
    struct fetcher *fetcher;
    curl_socket_t fd;
    struct fetch_conn *conn; /* for which it was opened; NULL: that is over */
    struct list_link opened; /* in its list */
    struct list_link woken;  /* in the fetcher's list */
    int flags;               /* CURL_CSELECT_IN, ...: what it was woken for */
    int wanted;              /* UV_READABLE, UV_WRITABLE: what libcurl waits for; 0: nothing */
    int watched;             /* what libuv watches for */
};

struct fetch_socket *fetch_socket_at(const struct fetcher *f, curl_socket_t fd)
{
    return fd >= 0 && (size_t)fd < f->socket_count ? f->sockets[fd] : NULL;
}

curl_socket_t fetch_socket_fd(const struct fetch_socket *s)
{
    return s->fd;
}

static void socket_put(struct fetcher *f, curl_socket_t fd, struct fetch_socket *s)
{
    size_t count = MAX(f->socket_count, (size_t)LEAST_SOCKETS);

    while (count <= (size_t)fd)
        count *= 2;
    if (count > f->socket_count) {
        f->sockets = mem_resize(f->sockets, count * sizeof(struct fetch_socket *));
        memset(&f->sockets[f->socket_count], 0,
               (count - f->socket_count) * sizeof(struct fetch_socket *));
        f->socket_count = count;
    }
    f->sockets[fd] = s;
}

/* After every action, whatever libcurl says of how many are still running: the last completion
 * would be missed. */
static void drain(struct fetcher *f)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(f->multi, &left)) != NULL) {
        CURLcode code = message->data.result;
        char *data = NULL;

        MUST(message->msg == CURLMSG_DONE);
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &data);
        fetch_connect_finish(MUST_BE(struct fetch_conn, FETCH_KIND_CONN, (void *)data), code);
    }
}

static void stall(struct fetch_conn *c)
{
    if (!list_linked(&c->stalled))
        list_push_back(&c->fetcher->stalled, &c->stalled);
}

static void resume_stalled(struct fetcher *f)
{
    struct list_link *link;

    while ((link = list_pop_front(&f->stalled)) != NULL) {
        CURL *easy = CONTAINER_OF(link, struct fetch_conn, stalled)->easy;

        curl_easy_pause(easy, CURLPAUSE_SEND);
        curl_easy_pause(easy, CURLPAUSE_CONT);
    }
}

/* It has a connection that is made. */
static bool is_in_use(const struct fetch_socket *s)
{
    return s->conn != NULL && s->conn->socket == s;
}

static void act(struct fetcher *f, curl_socket_t fd, int flags)
{
    int running;
    CURLMcode code = curl_multi_socket_action(f->multi, fd, flags, &running);

    if (code != CURLM_OK)
        log_error("fetch", "libcurl: %s", curl_multi_strerror(code));
    drain(f);
    resume_stalled(f);
}

static void on_event(uv_poll_t *poll, int status, int events);

void fetch_socket_watch(struct fetch_socket *s, int events)
{
    if (s->watched == events)
        return;
    if (events == 0)
        uv_poll_stop(&s->poll);
    else
        MUST(uv_poll_start(&s->poll, events, on_event) == 0);
    s->watched = events;
}

/* The bytes are taken out, for libcurl sees the end of a socket only behind them. Behind a shutdown
 * no more can come than is there: what the kernel keeps for a socket. */
static void end(const struct fetch_socket *s)
{
    unsigned reads = 0;

    shutdown(s->fd, SHUT_RDWR);
    while (reads < READS_MOST && recv(s->fd, NULL, DROP_BYTES, MSG_TRUNC | MSG_DONTWAIT) > 0)
        reads++;
}

void fetch_sockets_end_noise(struct fetch_conn *c)
{
    c->is_noisy = true;
    LIST_EACH(&c->sockets, at)
        end(CONTAINER_OF(at, struct fetch_socket, opened));
}

static void call_libcurl(struct fetch_socket *s)
{
    struct fetcher *f = s->fetcher;
    curl_socket_t fd = s->fd;
    int flags = s->flags;

    s->flags = 0;
    if (s->conn != NULL)
        s->conn->messages = 0;
    act(f, fd, flags);
    s = fetch_socket_at(f, fd);
    if (s != NULL && s->watched == 0 && s->wanted != 0)
        fetch_socket_watch(s, s->wanted);
}

/* On an error of the socket libuv stops watching it and says UV_EBADF: libcurl then finds out by
 * reading and writing. */
static void on_event(uv_poll_t *poll, int status, int events)
{
    struct fetch_socket *s = CONTAINER_OF(poll, struct fetch_socket, poll);
    struct fetcher *f = s->fetcher;

    if (status < 0)
        s->watched = 0;
    if (is_in_use(s)) {
        fetch_conn_on_event(s->conn, status, events);
    } else if (s->wanted == 0) {
        fetch_socket_watch(s, 0);
    } else {
        s->flags |= status < 0 || (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
        s->flags |= status < 0 || (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
        if (!list_linked(&s->woken))
            list_push_back(&f->woken, &s->woken);
        loop_post(f->loop, &f->turn);
    }
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(CONTAINER_OF(handle, struct fetch_socket, poll));
}

/* Its descriptor is closed next, or is so already. */
static void drop(struct fetch_socket *s)
{
    struct fetcher *f = s->fetcher;

    f->sockets[s->fd] = NULL;
    if (s->conn != NULL) {
        list_remove(&s->conn->sockets, &s->opened);
        if (s->conn->state == FETCH_CONN_MAKING)
            stall(s->conn);
    }
    if (list_linked(&s->woken))
        list_remove(&f->woken, &s->woken);
    uv_close((uv_handle_t *)&s->poll, on_closed);
}

static bool was_closed(const struct fetch_socket *s)
{
    return s->conn != NULL && fcntl(s->fd, F_GETFD) < 0;
}

/* CURLMOPT_SOCKETFUNCTION. CURL_POLL_REMOVE is neither in nor out. */
static int on_want(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    struct fetcher *f = MUST_BE(struct fetcher, FETCH_KIND_FETCHER, data);
    struct fetch_socket *s = fetch_socket_at(f, fd);

    (void)easy;
    (void)socket_data;
    MUST(s != NULL);
    s->wanted = ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) |
                ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    if (s->wanted == 0 && was_closed(s))
        drop(s);
    else if (!is_in_use(s))
        fetch_socket_watch(s, UV_READABLE | s->wanted);
    return 0;
}

static struct fetch_socket *socket_new(struct fetch_conn *c, curl_socket_t fd)
{
    struct fetcher *f = c->fetcher;
    struct fetch_socket *s = NEW(struct fetch_socket), *old = fetch_socket_at(f, fd);

    if (old != NULL) { /* closed without a word: libcurl may take the new one for it */
        s->wanted = old->wanted;
        drop(old);
    }
    if (uv_poll_init(&f->loop->uv, &s->poll, fd) != 0) {
        mem_free(s);
        return NULL;
    }
    s->fetcher = f;
    s->fd = fd;
    s->conn = c;
    list_push_back(&c->sockets, &s->opened);
    socket_put(f, fd, s);
    if (s->wanted != 0)
        fetch_socket_watch(s, UV_READABLE | s->wanted);
    return s;
}

/* Returns -1 when there is none, and keeps the reason: libcurl's words for it say nothing. */
static curl_socket_t socket_open(struct fetch_conn *c, const struct curl_sockaddr *address)
{
    curl_socket_t fd = socket(address->family, address->socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                              address->protocol);

    if (fd < 0) {
        c->no_socket = uv_strerror(uv_translate_sys_error(errno));
    } else if (socket_new(c, fd) == NULL) {
        c->no_socket = "the loop cannot watch it";
        close(fd);
        fd = -1;
    }
    return fd;
}

curl_socket_t fetch_socket_on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct fetch_conn *c = MUST_BE(struct fetch_conn, FETCH_KIND_CONN, data);
    struct fetcher *f = c->fetcher;
    char why[EGRESS_WHY_BYTES];
    const char *refusal = NULL;
    curl_socket_t fd;

    (void)purpose;
    if (f->options.proxy == NULL)
        refusal = egress_refuses(f->rules, &address->addr, why);
    if (refusal != NULL) {
        stall(c);
        if (c->refused[0] == '\0')
            snprintf(c->refused, sizeof(c->refused), "%s", refusal);
        return CURL_SOCKET_BAD;
    }
    c->allowed_addresses++;
    fd = socket_open(c, address);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

int fetch_socket_on_close(void *data, curl_socket_t fd)
{
    struct fetch_socket *s = fetch_socket_at(MUST_BE(struct fetcher, FETCH_KIND_FETCHER, data), fd);

    MUST(s != NULL);
    drop(s);
    close(fd);
    return 0;
}

/* CURLMOPT_TIMERFUNCTION. */
static int on_timeout(CURLM *multi, long timeout_ms, void *data)
{
    struct fetcher *f = MUST_BE(struct fetcher, FETCH_KIND_FETCHER, data);

    (void)multi;
    f->due = timeout_ms == 0;
    if (timeout_ms > 0)
        timer_start(f->loop, &f->timer, (uint64_t)timeout_ms);
    else
        timer_stop(f->loop, &f->timer);
    if (f->due)
        loop_post(f->loop, &f->turn);
    return 0;
}

static void on_time(struct timer *timer)
{
    act(CONTAINER_OF(timer, struct fetcher, timer), CURL_SOCKET_TIMEOUT, 0);
}

void fetch_sockets_forget(struct fetch_conn *c, const struct fetch_socket *but)
{
    LIST_EACH(&c->sockets, at) {
        struct fetch_socket *s = CONTAINER_OF(at, struct fetch_socket, opened);

        if (s == but)
            continue;
        list_remove(&c->sockets, at);
        s->conn = NULL;
    }
    if (list_linked(&c->stalled))
        list_remove(&c->fetcher->stalled, &c->stalled);
}

void fetch_sockets_run(struct fetcher *f)
{
    struct list_link *link;
    uint64_t until_ns;

    if (f->due) {
        f->due = false;
        act(f, CURL_SOCKET_TIMEOUT, 0);
    }
    until_ns = clock_mono_ns() + CALLS_NS; /* those that begin do not hold up those that go on */
    while ((link = list_first(&f->woken)) != NULL && clock_mono_ns() < until_ns) {
        list_remove(&f->woken, link);
        call_libcurl(CONTAINER_OF(link, struct fetch_socket, woken));
    }
    if (f->due || !list_empty(&f->woken))
        loop_post(f->loop, &f->turn);
}

void fetch_sockets_init(struct fetcher *f)
{
    timer_init(&f->timer, on_time);
    list_init(&f->stalled);
    list_init(&f->woken);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, on_want);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
}

void fetch_sockets_done(struct fetcher *f)
{
    timer_stop(f->loop, &f->timer);
    mem_free(TAKE(f->sockets));
    f->socket_count = 0;
}
