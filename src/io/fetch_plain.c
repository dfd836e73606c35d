/* Requests to http:// without a proxy, which is what most deliveries on a network of one's own are:
 * written and read here, at a fraction of what libcurl takes for them. Everything else is
 * libcurl's.
 *
 *                 +-> CONNECTING ->+            +<-- kept, used again --+
 *   launch ------>|                |--> BUSY --->                       |
 *                 +--- kept one -->+            +--> IDLE --------------+
 *
 * A name's addresses are tried in their order, a new one whenever one fails and every 250 ms; the
 * first that connects is used, the others are closed (RFC 8305, section 5). Each was let pass by
 * `egress` before.
 *
 * A connection stays watched for reading from its beginning to its end, so that a request on a kept
 * one needs no call but those that send and receive. What comes on one that is idle closes it; and
 * since the loop may not have looked yet, it is asked for such bytes before it is used.
 *
 * When a kept connection has ended before a byte of the answer came, the request is sent once more,
 * on a new one. When it ends while the request is being sent, there may be an answer already, which
 * is read and counts. */
#include "fetch_plain.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NEXT_ADDRESS_MS = 250 };

/* The end of a request. -------------------------------------------------------------------- */

void plain_finish(struct fetch_transfer *t, CURLcode code, const char *why)
{
    if (why != NULL && t->curl_text[0] == '\0')
        snprintf(t->curl_text, sizeof(t->curl_text), "%s", why);
    fetch_finish(t, code);
}

void fetch_plain_stop(struct fetch_transfer *t)
{
    struct list_link *link;

    timer_stop(t->fetcher->loop, &t->connecting);
    while ((link = list_first(&t->conns)) != NULL)
        plain_close(CONTAINER_OF(link, struct plain_conn, link));
}

static void try_addresses(struct fetch_transfer *t);

/* The connection has ended, or cannot be used any more; `error`: 0, or an errno. */
void plain_lose(struct plain_conn *c, int error)
{
    struct fetch_transfer *t = c->t;
    const struct fetch_answer *a = &t->answer;
    bool was_used = c->was_used, has_bytes = c->has_bytes;
    char why[CURL_ERROR_SIZE];

    if (error != 0)
        snprintf(why, sizeof(why), "%s",
                 error == ECONNRESET ? "Connection was reset by the receiver" : strerror(error));
    else if (!has_bytes)
        snprintf(why, sizeof(why), "Empty reply from the receiver");
    else if (a->complete_head && c->parser.content_length > 0 &&
             (c->parser.flags & F_CONTENT_LENGTH) != 0)
        snprintf(why, sizeof(why), "the answer ended early, with %llu bytes remaining to read",
                 (unsigned long long)c->parser.content_length);
    else
        snprintf(why, sizeof(why), "the connection ended in the %s of the answer",
                 a->complete_head ? "body" : "head");
    plain_close(c);
    if (was_used && !has_bytes)
        try_addresses(t);
    else
        plain_finish(t, CURLE_RECV_ERROR, why);
}

/* The request. ----------------------------------------------------------------------------- */

static bool has_header(const struct fetch *fetch, struct span name)
{
    for (size_t i = 0; i < fetch->header_count; i++)
        if (span_ieq(fetch->headers[i].name, name))
            return true;
    return false;
}

static void add_header(struct buf *b, struct span name, struct span value)
{
    buf_add(b, name);
    buf_add(b, value.n > 0 ? SPAN(": ") : SPAN(":"));
    buf_add(b, value);
    buf_add(b, SPAN("\r\n"));
}

static void add_request_line(struct buf *b, const struct fetch *fetch, struct span origin)
{
    struct span target = span_sub(fetch->url, origin.n, fetch->url.n);

    buf_add(b, fetch->method);
    buf_add_char(b, ' ');
    if (!span_starts(target, SPAN("/")))
        buf_add_char(b, '/');
    buf_add(b, span_sub(target, 0, span_find_char(target, '#', 0)));
    buf_add(b, SPAN(" HTTP/1.1\r\n"));
}

static void add_defaults(struct buf *b, const struct fetch_transfer *t, struct span origin)
{
    const struct fetch *fetch = t->fetch;

    if (!has_header(fetch, SPAN("Host")))
        add_header(b, SPAN("Host"), span_sub(origin, strlen("http://"), origin.n));
    if (!has_header(fetch, SPAN("User-Agent")))
        add_header(b, SPAN("User-Agent"), span_str(t->fetcher->user_agent));
    if (!has_header(fetch, SPAN("Accept")))
        add_header(b, SPAN("Accept"), SPAN("*/*"));
}

const char *fetch_plain_prepare(struct fetch_transfer *t)
{
    const struct fetch *fetch = t->fetch;
    struct span origin = {t->host->origin, t->host->origin_bytes};
    struct buf *b = &t->memory;

    buf_clear(b);
    add_request_line(b, fetch, origin);
    add_defaults(b, t, origin);
    for (size_t i = 0; i < fetch->header_count; i++) {
        const struct fetch_header *h = &fetch->headers[i];

        if (fetch_breaks_line(h->name) || fetch_breaks_line(h->value))
            return "a request header holds a line break";
        add_header(b, h->name, h->value);
    }
    t->sends_body = fetch->body != NULL && !span_eq(fetch->method, SPAN("HEAD"));
    if (t->sends_body || fetch_means_a_body(fetch->method)) {
        buf_add(b, SPAN("Content-Length: "));
        buf_add_u64(b, t->sends_body ? blob_span(fetch->body).n : 0);
        buf_add(b, SPAN("\r\n"));
    }
    buf_add(b, SPAN("\r\n"));
    return NULL;
}

/* Sends what of the request has not been sent. False: that failed, and the connection is gone. */
static bool plain_send(struct plain_conn *c)
{
    struct fetch_transfer *t = c->t;
    struct span head = buf_span(&t->memory);
    struct span body = t->sends_body ? blob_span(t->fetch->body) : (struct span){NULL, 0};
    struct span first = span_sub(head, MIN(c->sent, head.n), head.n);
    struct span second = span_sub(body, c->sent - MIN(c->sent, head.n), body.n);
    struct iovec parts[2] = {{(void *)(uintptr_t)first.p, first.n},
                             {(void *)(uintptr_t)second.p, second.n}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        plain_read(c, true); /* an answer may have come before */
        return false;
    }
    c->sent += n > 0 ? (size_t)n : 0;
    plain_watch(c, c->sent < head.n + body.n ? UV_READABLE | UV_WRITABLE : UV_READABLE);
    return true;
}

bool plain_has_sent(const struct plain_conn *c)
{
    const struct fetch_transfer *t = c->t;

    return c->sent == t->memory.n + (t->sends_body ? blob_span(t->fetch->body).n : 0);
}

/* Beginning. ------------------------------------------------------------------------------- */

static void use(struct plain_conn *c, struct fetch_transfer *t)
{
    c->t = t;
    c->state = BUSY;
    c->sent = 0;
    plain_expect(c);
    (void)plain_send(c);
}

static void connected(struct plain_conn *c)
{
    struct fetch_transfer *t = c->t;

    timer_stop(t->fetcher->loop, &t->connecting);
    list_remove(&t->conns, &c->link);
    fetch_plain_stop(t); /* the others */
    list_push_back(&t->conns, &c->link);
    t->connected_ns = clock_mono_ns();
    use(c, t);
}

static void try_next(struct fetch_transfer *t);

static void connection_failed(struct plain_conn *c, int error)
{
    struct fetch_transfer *t = c->t;

    if (t->curl_text[0] == '\0')
        snprintf(t->curl_text, sizeof(t->curl_text), "not connected: %s", strerror(error));
    plain_close(c);
    try_next(t);
}

static void on_connecting(struct plain_conn *c, int status)
{
    int error = 0;
    socklen_t n = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    else if (error == 0 && status != 0)
        error = ECONNRESET;
    if (error != 0)
        connection_failed(c, error);
    else
        connected(c);
}

void plain_on_poll(uv_poll_t *poll, int status, int events)
{
    struct plain_conn *c = CONTAINER_OF(poll, struct plain_conn, poll);

    if (c->state == IDLE) {
        plain_close(c);
        return;
    }
    if (c->state == CONNECTING) {
        on_connecting(c, status);
        return;
    }
    /* An error of the socket shows when it is read. */
    if ((events & UV_WRITABLE) != 0 && status == 0 && !plain_send(c))
        return;
    if ((events & UV_READABLE) != 0 || status != 0)
        plain_read(c, status != 0);
}

static int open_socket(const struct sockaddr *address)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static socklen_t length_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

/* False: the next address is to be tried. */
static bool connect_to(struct fetch_transfer *t, const struct sockaddr *address)
{
    char why[EGRESS_WHY_BYTES];
    const char *refusal = egress_refuses(t->fetcher->rules, address, why);
    struct plain_conn *c;
    int fd;

    if (refusal != NULL) {
        if (t->refused[0] == '\0')
            snprintf(t->refused, sizeof(t->refused), "%s", refusal);
        return false;
    }
    t->allowed_addresses++;
    plain_make_room(t->fetcher);
    fd = open_socket(address);
    if (fd < 0) {
        t->no_socket = errno == EMFILE || errno == ENFILE ? "too many open files" : strerror(errno);
        return false;
    }
    c = plain_new(t, fd);
    if (c == NULL) {
        t->no_socket = "the loop cannot watch it";
        return false;
    }
    if (connect(fd, address, length_of(address)) != 0 && errno != EINPROGRESS) {
        snprintf(t->curl_text, sizeof(t->curl_text), "not connected: %s", strerror(errno));
        plain_close(c);
        return false;
    }
    plain_watch(c, UV_READABLE | UV_WRITABLE);
    return true;
}

static void wait_for_connection(struct fetch_transfer *t)
{
    struct fetcher *f = t->fetcher;
    uint64_t passed_ms = (clock_mono_ns() - t->tried_ns) / 1000000;
    uint64_t left_ms = f->connect_timeout_ms - MIN(passed_ms, f->connect_timeout_ms);
    bool is_last = t->addresses.next == t->addresses.count;

    timer_start(f->loop, &t->connecting, is_last ? left_ms : MIN(left_ms, NEXT_ADDRESS_MS));
}

/* The next address that can be tried; when there is none, and none is being tried, that is all. */
static void try_next(struct fetch_transfer *t)
{
    struct fetch_addresses *list = &t->addresses;

    while (list->next < list->count) {
        if (connect_to(t, (const struct sockaddr *)&list->items[list->next++])) {
            wait_for_connection(t);
            return;
        }
    }
    if (list_empty(&t->conns))
        plain_finish(t, CURLE_COULDNT_CONNECT, NULL);
}

static void on_connecting_time(struct timer *timer)
{
    struct fetch_transfer *t = CONTAINER_OF(timer, struct fetch_transfer, connecting);

    uint64_t passed_ms = (clock_mono_ns() - t->tried_ns) / 1000000;

    if (t->addresses.next < t->addresses.count && passed_ms < t->fetcher->connect_timeout_ms) {
        try_next(t);
        return;
    }
    fetch_plain_stop(t);
    plain_finish(t, CURLE_OPERATION_TIMEDOUT, "the connection is not made in time");
}

static void try_addresses(struct fetch_transfer *t)
{
    t->addresses.next = 0;
    t->tried_ns = clock_mono_ns();
    t->connected_ns = 0;
    t->is_reused = false;
    try_next(t);
}

void fetch_plain_launch(struct fetch_transfer *t)
{
    struct plain_conn *c = plain_take_kept(t);

    t->launched_ns = clock_mono_ns();
    t->is_reused = c != NULL;
    if (c == NULL) {
        try_addresses(t);
        return;
    }
    list_push_back(&t->conns, &c->link);
    use(c, t);
}

bool fetch_plain_suits(const struct fetcher *f, struct span url)
{
    return f->proxy == NULL && !f->only_libcurl && span_starts(url, SPAN("http://"));
}

void fetch_plain_pin(struct fetch_transfer *t, const struct fetch_target *target,
                     const struct resolve_result *addresses)
{
    struct fetch_addresses *list = &t->addresses;

    list->count = addresses->count;
    list->next = 0;
    for (unsigned i = 0; i < addresses->count; i++) {
        memcpy(&list->items[i], &addresses->addresses[i], sizeof(list->items[i]));
        list->items[i].sin6_port = htons((uint16_t)target->port); /* as in sockaddr_in */
    }
}

void fetch_plain_begin(struct fetch_transfer *t)
{
    list_init(&t->conns);
    timer_init(&t->connecting, on_connecting_time);
}
