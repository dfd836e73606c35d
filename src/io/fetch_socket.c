/* libcurl says with each request which events it wants, and takes it back at the request's end; the
 * socket itself lives on for the next. Followed to the letter that is six calls of epoll_ctl for a
 * request. Instead each socket stays watched for reading from the moment it is opened until libcurl
 * closes it, and only the wish to write is switched on and off: a request on an open connection,
 * small enough for the socket's buffer, needs no call at all.
 *
 * What comes in while no request wants the socket (the peer closes, or sends what nobody asked for)
 * must not wake the loop for ever: such a socket is not watched until it is wanted again. libcurl
 * looks at it before it uses it, and closes it when it has ended; but bytes it would take for the
 * next request's answer, so that we end the connection ourselves when bytes have come (RFC 9112,
 * section 9.2). Under TLS they may be a session ticket or frames of HTTP/2, and are left alone.
 * The loop sees such bytes when it sleeps next; a turn's task comes before that, so that it looks
 * itself before it starts a request that could be sent on a connection idle since that moment.
 *
 * An answer's head and body are measured as they come (fetch_answer.c). Of what libcurl keeps to
 * itself (extensions of chunks, frames and packed data that amount to nothing) there could be any
 * amount. So the kernel is asked now and then how many bytes the socket has had: far more than the
 * answers under way may have are noise, and end the connection.
 *
 * When an address fails or is refused, libcurl 7.88.1 takes the next one, but opens no socket for
 * it before it is called again, which nothing makes happen until some timer of its own ends. Such a
 * transfer is stalled: it is switched off and on again, which is how libcurl is told to call it.
 *
 * A socket that loses the race between a name's addresses is closed by libcurl 7.88.1 itself, and
 * not by way of fetch_socket_on_close; then it says that it does not want it any more. Nothing may
 * be done with such a descriptor, which may be another's soon.
 *
 * libcurl's timer: a time of zero is not acted upon inside the callback, where libcurl must not be
 * called, but in the turn's task. */
#include "fetch_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LEAST_SOCKETS = 64,
    READS_MOST = 128,
    READS_BETWEEN_LOOKS = 32,
    MESSAGES_MOST = 4096,
};

/* Answers are many over HTTP/2, and have some bytes around each of theirs. */
#define BYTES_MOST (UINT64_C(16) << 20)

struct fetch_socket {
    uv_poll_t poll;
    struct fetcher *fetcher;
    curl_socket_t fd;
    bool plain;                    /* no TLS */
    struct fetch_transfer *opener; /* for which it was opened, while that runs */
    struct list_link opened;       /* in its list */
    struct list_link rested;       /* in the fetcher's list */
    unsigned reads;                /* since a transfer last ended on it */
    uint64_t bytes_before;         /* that the socket had had at the first look since then */
    unsigned messages;             /* of TLS, since the loop last called */
    int wanted;  /* UV_READABLE, UV_WRITABLE: what libcurl waits for; 0: it is idle */
    int watched; /* what libuv watches for */
};

static struct fetch_socket *socket_at(const struct fetcher *f, curl_socket_t fd)
{
    return fd >= 0 && (size_t)fd < f->socket_count ? f->sockets[fd] : NULL;
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
        fetch_finish(MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, (void *)data), code);
    }
}

static void stall(struct fetch_transfer *t)
{
    if (!list_linked(&t->stalled))
        list_push_back(&t->fetcher->stalled, &t->stalled);
}

static void resume_stalled(struct fetcher *f)
{
    struct list_link *link;

    while ((link = list_pop_front(&f->stalled)) != NULL) {
        CURL *easy = CONTAINER_OF(link, struct fetch_transfer, stalled)->easy;

        curl_easy_pause(easy, CURLPAUSE_SEND);
        curl_easy_pause(easy, CURLPAUSE_CONT);
    }
}

static void act(struct fetcher *f, curl_socket_t fd, int events)
{
    int running;
    CURLMcode code = curl_multi_socket_action(f->multi, fd, events, &running);

    if (code != CURLM_OK)
        log_error("fetch", "libcurl: %s", curl_multi_strerror(code));
    drain(f);
    resume_stalled(f);
}

static void on_event(uv_poll_t *poll, int status, int events);

static void watch(struct fetch_socket *s, int events)
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
    while (reads < READS_MOST &&
           recv(s->fd, s->fetcher->loop->scratch, LOOP_SCRATCH_BYTES, MSG_DONTWAIT) > 0)
        reads++;
}

/* libcurl finds the connection at its end, and fails those who wait for it. */
static void end_noise(const struct fetch_socket *s)
{
    LIST_EACH(&s->fetcher->transfers[FETCH_RUNNING], link) {
        struct fetch_transfer *t = CONTAINER_OF(link, struct fetch_transfer, link);

        if (t->fd == s->fd)
            t->answer.stop = FETCH_NOISE;
    }
    end(s);
}

/* All that the socket has had; 0 when the kernel does not say. Its tcp_info goes on where that of
 * libc's header ends. */
static uint64_t bytes_received(const struct fetch_socket *s)
{
    struct {
        char others[128];
        uint64_t bytes_received;
    } info = {.bytes_received = 0};
    socklen_t size = sizeof(info);

    if (getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return 0;
    return info.bytes_received;
}

static void note_reading(struct fetch_socket *s)
{
    uint64_t bytes;

    if (++s->reads % READS_BETWEEN_LOOKS != 0)
        return;
    bytes = bytes_received(s);
    if (s->reads == READS_BETWEEN_LOOKS)
        s->bytes_before = bytes;
    else if (bytes > s->bytes_before + BYTES_MOST)
        end_noise(s);
}

struct fetch_socket *fetch_socket_of(const struct fetch_transfer *t)
{
    struct list_link *last = list_last(&t->sockets);

    return last == NULL ? NULL : CONTAINER_OF(last, struct fetch_socket, opened);
}

void fetch_socket_note_message(struct fetch_socket *s)
{
    if (++s->messages == MESSAGES_MOST)
        end_noise(s);
}

/* On an error of the socket libuv stops watching it and says UV_EBADF: libcurl then finds out by
 * reading and writing. */
static void on_event(uv_poll_t *poll, int status, int events)
{
    struct fetch_socket *s = CONTAINER_OF(poll, struct fetch_socket, poll);
    struct fetcher *f = s->fetcher;
    curl_socket_t fd = s->fd;
    int flags = CURL_CSELECT_IN | CURL_CSELECT_OUT;

    if (status < 0)
        s->watched = 0;
    else
        flags = ((events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
                ((events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0);
    if (s->wanted == 0) {
        watch(s, 0);
        if (s->plain)
            end(s);
        return;
    }
    s->messages = 0;
    act(f, fd, flags);
    s = socket_at(f, fd);
    if (s != NULL && s->watched == 0 && s->wanted != 0)
        watch(s, s->wanted);
    if (s != NULL)
        note_reading(s);
}

static void rest(struct fetch_socket *s)
{
    if (s->plain && !list_linked(&s->rested))
        list_push_back(&s->fetcher->rested, &s->rested);
}

static bool has_bytes(const struct fetch_socket *s)
{
    char byte;

    return recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void fetch_socket_settle(struct fetcher *f, bool starts)
{
    struct list_link *link;

    while ((link = list_pop_front(&f->rested)) != NULL) {
        struct fetch_socket *s = CONTAINER_OF(link, struct fetch_socket, rested);

        if (starts && s->wanted == 0 && has_bytes(s))
            end(s);
    }
}

static void note_user(CURL *easy, curl_socket_t fd)
{
    char *data = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &data);
    MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, (void *)data)->fd = fd;
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
    if (s->opener != NULL) {
        list_remove(&s->opener->sockets, &s->opened);
        stall(s->opener);
    }
    if (list_linked(&s->rested))
        list_remove(&f->rested, &s->rested);
    uv_close((uv_handle_t *)&s->poll, on_closed);
}

static bool was_closed(const struct fetch_socket *s)
{
    return s->opener != NULL && fcntl(s->fd, F_GETFD) < 0;
}

/* CURLMOPT_SOCKETFUNCTION. CURL_POLL_REMOVE is neither in nor out. */
static int on_want(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    struct fetcher *f = MUST_BE(struct fetcher, FETCH_KIND_FETCHER, data);
    struct fetch_socket *s = socket_at(f, fd);

    (void)socket_data;
    MUST(s != NULL);
    s->wanted = ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) |
                ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    if (s->wanted == 0 && was_closed(s)) {
        drop(s);
        return 0;
    }
    watch(s, UV_READABLE | s->wanted);
    if (s->wanted != 0)
        note_user(easy, fd);
    else
        rest(s);
    return 0;
}

static bool is_plain(const struct fetch_transfer *t)
{
    const char *proxy = t->fetcher->proxy;

    return span_istarts(span_str(t->host->origin), SPAN("http://")) &&
           (proxy == NULL || !span_istarts(span_str(proxy), SPAN("https://")));
}

static struct fetch_socket *socket_new(struct fetch_transfer *t, curl_socket_t fd)
{
    struct fetcher *f = t->fetcher;
    struct fetch_socket *s = NEW(struct fetch_socket), *old = socket_at(f, fd);

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
    s->plain = is_plain(t);
    s->opener = t;
    list_push_back(&t->sockets, &s->opened);
    socket_put(f, fd, s);
    if (s->wanted != 0)
        watch(s, UV_READABLE | s->wanted);
    return s;
}

/* Returns -1 when there is none, and keeps the reason: libcurl's words for it say nothing. */
static curl_socket_t socket_open(struct fetch_transfer *t, const struct curl_sockaddr *address)
{
    curl_socket_t fd = socket(address->family, address->socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                              address->protocol);

    if (fd < 0) {
        t->no_socket = uv_strerror(uv_translate_sys_error(errno));
    } else if (socket_new(t, fd) == NULL) {
        t->no_socket = "the loop cannot watch it";
        close(fd);
        fd = -1;
    }
    return fd;
}

curl_socket_t fetch_socket_on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct fetch_transfer *t = MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, data);
    struct fetcher *f = t->fetcher;
    char why[EGRESS_WHY_BYTES];
    const char *refusal = NULL;
    curl_socket_t fd;

    (void)purpose;
    if (f->proxy == NULL)
        refusal = egress_refuses(f->rules, &address->addr, why);
    if (refusal != NULL) {
        stall(t);
        if (t->refused[0] == '\0')
            snprintf(t->refused, sizeof(t->refused), "%s", refusal);
        return CURL_SOCKET_BAD;
    }
    t->allowed_addresses++;
    fd = socket_open(t, address);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

int fetch_socket_on_close(void *data, curl_socket_t fd)
{
    struct fetch_socket *s = socket_at(MUST_BE(struct fetcher, FETCH_KIND_FETCHER, data), fd);

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
        fetch_wake(f);
    return 0;
}

static void on_time(struct timer *timer)
{
    act(CONTAINER_OF(timer, struct fetcher, timer), CURL_SOCKET_TIMEOUT, 0);
}

void fetch_socket_begin(struct fetch_transfer *t)
{
    list_init(&t->sockets);
}

void fetch_socket_forget(struct fetch_transfer *t)
{
    struct fetch_socket *s = socket_at(t->fetcher, t->fd);
    struct list_link *link;

    if (s != NULL)
        s->reads = 0;
    while ((link = list_pop_front(&t->sockets)) != NULL)
        CONTAINER_OF(link, struct fetch_socket, opened)->opener = NULL;
    if (list_linked(&t->stalled))
        list_remove(&t->fetcher->stalled, &t->stalled);
}

void fetch_socket_run_due(struct fetcher *f)
{
    if (!f->due)
        return;
    f->due = false;
    act(f, CURL_SOCKET_TIMEOUT, 0);
}

void fetch_socket_attach(struct fetcher *f)
{
    timer_init(&f->timer, on_time);
    list_init(&f->stalled);
    list_init(&f->rested);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, on_want);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
}

void fetch_socket_detach(struct fetcher *f)
{
    timer_stop(f->loop, &f->timer);
    mem_free(TAKE(f->sockets));
    f->socket_count = 0;
}
