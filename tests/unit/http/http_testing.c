#include "http_testing.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/tcp_passed.h"
#include "rest/evaluation.h"
#include "store/collection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_NS (INT64_C(1800000000) * 1000000000)
#define START_MONO_NS UINT64_C(5000000000)

enum { PEERS = 64, SETTLED = 12 };

struct http_server *server;
uint16_t server_port;
static struct peer peers[PEERS];
static size_t peer_count;
static uint64_t expected[TCP_CLOSE_REASON_COUNT]; /* ends of connections */
static struct list hooks_held;                    /* of the loop: the turn's commit is one */
static bool disk_is_held;

/* ---- the server ---- */

static struct http_server *make_server(void)
{
    return http_server_new(&loop, &service->rest);
}

struct limits *limits(void)
{
    return &service->limits;
}

const struct metrics *metrics(void)
{
    return service->metrics;
}

static struct store *store(void)
{
    return service->store;
}

size_t count_messages(void)
{
    return collection_count(store_collection(store(), SPAN("Shop.Message")));
}

size_t count_scans(void)
{
    return evaluations_count(service->rest.evaluations);
}

static void make_service_and_server(void)
{
    clock_fake(START_NS, START_MONO_NS);
    log_configure(LOG_ERROR, LOG_TEXT);
    set_up();
    commit();
    memset(peers, 0, sizeof(peers));
    memset(expected, 0, sizeof(expected));
    peer_count = 0;
    disk_is_held = false;
    server = make_server();
}

static void bind_to(const char *text, bool is_proxied)
{
    struct tcp_passed passed = {.count = 0};
    struct tcp_address address;

    ck_ok(tcp_parse_address(span_str(text), &address));
    address.is_proxied = is_proxied;
    ck_ok(http_server_bind(server, &address, &passed, &server_port));
}

void serve(void)
{
    make_service_and_server();
    bind_to("127.0.0.1:0", false);
    ck_ok(http_server_start(server));
}

void serve_proxied(const struct ip_ranges *trusted)
{
    make_service_and_server();
    http_server_trust(server, trusted);
    bind_to("127.0.0.1:0", true);
    ck_ok(http_server_start(server));
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static void check_ends(void)
{
    for (size_t i = 0; i < TCP_CLOSE_REASON_COUNT; i++)
        ck_assert_msg(metrics()->connections_closed[i] == expected[i],
                      "%s: %llu connections, should be %llu", tcp_close_reason_text(i),
                      (unsigned long long)metrics()->connections_closed[i],
                      (unsigned long long)expected[i]);
}

void end_serving(void)
{
    bool is_closed = false;

    ck_assert(!disk_is_held);
    check_ends();
    if (server != NULL)
        http_server_close(TAKE(server), on_closed, &is_closed);
    else
        is_closed = true;
    for (size_t i = 0; i < peer_count; i++)
        peer_close(&peers[i]);
    await(is_closed);
    ck_assert_uint_eq(metrics()->connections, 0);
    ck_assert_uint_eq(metrics()->unread_bytes, 0);
    ck_assert_uint_eq(metrics()->incoming_bytes, 0);
    tear_down();
    clock_real();
}

void settle(void)
{
    for (int i = 0; i < SETTLED; i++) {
        loop_wake(&loop);
        loop_run_once(&loop);
    }
}

void pass_ms(uint64_t ms)
{
    clock_advance(ms * 1000000);
    settle();
}

void hold_disk(void)
{
    list_init(&hooks_held);
    list_take_all(&hooks_held, &loop.hooks);
    disk_is_held = true;
}

void release_disk(void)
{
    list_take_all(&loop.hooks, &hooks_held);
    disk_is_held = false;
    loop_wake(&loop);
}

/* ---- clients ---- */

static int try_to_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

void expect_another_connection(void)
{
    ck_assert_uint_lt(peer_count, PEERS);
    peers[peer_count++].fd = -1;
}

bool peer_may_connect(uint16_t port)
{
    int fd = try_to_connect(port);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* What comes late out of the kernel wakes the loop, which need not have anything to do with it. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
}

/* What it sends leaves at once: else the kernel keeps it back until the server's has said that it
 * has what was sent before, which takes 40 ms where no answer goes out. */
struct peer *peer_open_at(uint16_t port)
{
    struct peer *p = &peers[peer_count++];

    ck_assert_uint_le(peer_count, PEERS);
    p->fd = try_to_connect(port);
    ck_assert_int_ge(p->fd, 0);
    ck_assert_int_eq(setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    buf_init(&p->got, BUF_NO_CAP);
    ck_assert_int_eq(uv_poll_init(&loop.uv, &p->poll, p->fd), 0);
    uv_poll_start(&p->poll, UV_READABLE, on_readable);
    return p;
}

struct peer *peer_open(void)
{
    return peer_open_at(server_port);
}

void peer_close(struct peer *p)
{
    if (p->fd >= 0) {
        uv_close((uv_handle_t *)&p->poll, NULL);
        close(p->fd);
    }
    p->fd = -1;
    buf_done(&p->got);
}

void peer_reset(struct peer *p)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    ck_assert_int_eq(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    peer_close(p);
}

void peer_finish(struct peer *p)
{
    ck_assert_int_eq(shutdown(p->fd, SHUT_WR), 0);
}

size_t peer_try_to_send(struct peer *p, struct span bytes)
{
    ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);

    ck_assert(n >= 0 || errno == EAGAIN);
    return n < 0 ? 0 : (size_t)n;
}

void peer_send_bytes(struct peer *p, struct span bytes)
{
    ck_assert_uint_eq(peer_try_to_send(p, bytes), bytes.n);
}

void peer_send(struct peer *p, const char *text)
{
    peer_send_bytes(p, span_str(text));
}

void peer_send_pieces(struct peer *p, struct span bytes, size_t piece)
{
    for (size_t at = 0; at < bytes.n; at += piece) {
        peer_send_bytes(p, span_sub(bytes, at, MIN(bytes.n, at + piece)));
        settle();
    }
}

void peer_read(struct peer *p)
{
    static char room[65536];

    while (!p->is_ended && !p->is_reset) {
        ssize_t n = recv(p->fd, room, sizeof(room), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0) {
            ck_assert_int_eq(errno, ECONNRESET);
            p->is_reset = true;
        } else if (n == 0) {
            p->is_ended = true;
        } else {
            buf_add(&p->got, span_of(room, (size_t)n));
        }
    }
}

struct span peer_got(const struct peer *p)
{
    return span_sub(buf_span(&p->got), p->taken, p->got.n);
}

/* Much may come after an answer, which is not moved for each. */
static void take(struct peer *p, size_t n)
{
    p->taken += n;
    if (p->taken < p->got.n)
        return;
    buf_clear(&p->got);
    p->taken = 0;
}

/* ---- answers ---- */

struct span answer_field(const struct answer *a, struct span name)
{
    struct span rest = a->head;

    while (rest.p != NULL) {
        struct span line = span_split(&rest, '\r');
        struct span field = span_split(&line, ':');

        if (span_ieq(field, name))
            return span_trim(line);
        rest = span_sub(rest, 1, rest.n); /* LF */
    }
    return (struct span){NULL, 0};
}

static bool has_body(const struct answer *a, bool is_to_head)
{
    return !is_to_head && a->status >= 200 && a->status != 204 && a->status != 304;
}

/* Takes the answer off what has come, when it is whole. */
static bool take_answer(struct peer *p, bool is_to_head, struct answer *out_answer)
{
    struct span got;
    struct answer a = {0};
    uint64_t status, length = 0;
    size_t end;

    peer_read(p);
    got = peer_got(p);
    end = span_find(got, SPAN("\r\n\r\n"));
    ck_assert_msg(end != SIZE_MAX || (!p->is_ended && !p->is_reset), "no answer, but '%.*s'",
                  SPAN_FMT(got));
    if (end == SIZE_MAX)
        return false;
    a.head = span_sub(got, 0, end + 2);
    ck_assert(span_starts(a.head, SPAN("HTTP/1.1 ")));
    ck_assert(span_to_u64(span_sub(a.head, 9, 12), &status));
    a.status = (int)status;
    if (has_body(&a, is_to_head))
        ck_assert(span_to_u64(answer_field(&a, SPAN("Content-Length")), &length));
    if (got.n < end + 4 + length)
        return false;
    a.head = arena_copy(&arena, a.head);
    a.body = arena_copy(&arena, span_sub(got, end + 4, end + 4 + length));
    take(p, end + 4 + length);
    *out_answer = a;
    return true;
}

struct answer peer_answer(struct peer *p)
{
    struct answer a;

    await(take_answer(p, false, &a));
    return a;
}

struct answer peer_answer_to_head(struct peer *p)
{
    struct answer a;

    await(take_answer(p, true, &a));
    return a;
}

void peer_expect(struct peer *p, int status)
{
    struct answer a = peer_answer(p);

    ck_assert_msg(a.status == status, "%d, should be %d: %.*s", a.status, status, SPAN_FMT(a.body));
}

void peer_expect_silence(struct peer *p)
{
    settle();
    peer_read(p);
    ck_assert_msg(peer_got(p).n == 0, "'%.*s'", SPAN_FMT(peer_got(p)));
    ck_assert(!p->is_ended && !p->is_reset);
}

/* ---- ends ---- */

static bool is_over(struct peer *p)
{
    peer_read(p);
    return p->is_ended || p->is_reset;
}

static size_t count_open(void)
{
    size_t count = 0;

    for (size_t i = 0; i < peer_count; i++)
        count += peers[i].fd >= 0;
    return count;
}

static void expect_ends(uint64_t count, enum tcp_close_reason reason)
{
    await(metrics()->connections_accepted == peer_count && metrics()->connections <= count_open());
    expected[reason] += count;
    check_ends();
}

void expect_gone(enum tcp_close_reason reason)
{
    expect_ends(1, reason);
}

void peers_expect_closed(struct peer **all, size_t count, enum tcp_close_reason reason)
{
    for (size_t i = 0; i < count; i++) {
        await(is_over(all[i]));
        ck_assert_msg(peer_got(all[i]).n == 0, "'%.*s'", SPAN_FMT(peer_got(all[i])));
        peer_close(all[i]);
    }
    expect_ends(count, reason);
}

void peer_expect_closed(struct peer *p, enum tcp_close_reason reason)
{
    peers_expect_closed(&p, 1, reason);
}
