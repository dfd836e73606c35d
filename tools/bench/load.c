/* Sends one request over and over and times the answers. wrk does that too; this one also keeps a
 * rate, ends after a number of requests, numbers them, and notes when each was acknowledged.
 *
 *     bench_load PORT FILE CONNECTIONS SECONDS COUNT RATE [STAMPS SLOTS]
 *
 * FILE holds the request; ten '@' in it become the request's number. It ends after SECONDS, or
 * after COUNT answers when that is not 0. With a RATE (requests a second) a request's time counts
 * from when it was due, so that a stall is seen by all that it held up; with 0 each connection
 * sends as soon as it was answered. Prints one line of JSON. */
#include "wire.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS = 512,
    READ_BYTES = 65536,
    CONNECTIONS_MAX = 20000,
    SLOTS_MAX = 100000000,
    ANSWER_MAX = 64 << 20,
    MAX_US = 5000000, /* one bucket a microsecond up to here */
};
static const uint64_t NS_PER_S = 1000000000, SLEEP_NS_MOST = 100000000, SPIN_NS = 100000;

struct connection {
    int fd;
    uint64_t serial;
    uint64_t due_ns; /* of the request under way; 0: none */
    struct buf in;
};

struct load {
    int epoll;
    uint16_t port;
    struct connection *connections;
    size_t connection_count;
    char *request; /* with the number of the last one sent */
    size_t request_bytes;
    char *number; /* in `request`; NULL: it has none */
    struct connection **idle;
    size_t idle_count;
    uint64_t start_ns, end_ns, last_ns, rate, count;
    uint64_t sent, answers, errors, broken;
    struct wire_stamps *stamps;
    size_t slots;
    uint32_t *latencies; /* how many took so many microseconds */
};

static void write_number(char *digits, uint64_t value)
{
    for (size_t i = WIRE_SERIAL_DIGITS; i-- > 0; value /= 10)
        digits[i] = (char)('0' + value % 10);
}

static void connect_one(struct load *l, struct connection *c)
{
    c->fd = wire_connect(l->port);
    c->due_ns = 0;
    buf_clear(&c->in);
    wire_watch(l->epoll, c->fd, EPOLLIN, c);
}

static void send_request(struct load *l, struct connection *c, uint64_t due_ns)
{
    c->serial = l->sent++;
    c->due_ns = due_ns;
    if (l->number != NULL)
        write_number(l->number, c->serial);
    wire_send(c->fd, span_of(l->request, l->request_bytes));
}

static bool wants_more(const struct load *l)
{
    return l->count == 0 || l->sent < l->count;
}

static uint64_t next_due_ns(const struct load *l)
{
    return l->start_ns + l->sent * NS_PER_S / l->rate;
}

/* With a rate, those that are due; without, one for each idle connection. */
static void send_due(struct load *l, uint64_t now_ns)
{
    while (l->idle_count > 0 && wants_more(l)) {
        uint64_t due_ns = now_ns;

        if (l->rate > 0) {
            due_ns = next_due_ns(l);
            if (due_ns > now_ns)
                return;
        }
        send_request(l, l->idle[--l->idle_count], due_ns);
    }
}

static void count_answer(struct load *l, struct connection *c, struct span answer)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t us = (now_ns - c->due_ns) / 1000;

    l->answers++;
    l->last_ns = now_ns;
    l->errors += answer.n < 12 || answer.p[9] != '2';
    l->latencies[us < MAX_US ? us : MAX_US]++;
    if (l->stamps != NULL && c->serial < l->slots)
        l->stamps->at_ns[c->serial] = now_ns;
}

/* A server that closes is connected to again, and counted. */
static void on_broken(struct load *l, struct connection *c)
{
    l->broken++;
    close(c->fd);
    if (c->due_ns != 0)
        l->idle[l->idle_count++] = c;
    connect_one(l, c);
}

static void on_readable(struct load *l, struct connection *c)
{
    ssize_t n = recv(c->fd, buf_reserve(&c->in, READ_BYTES), READ_BYTES, 0);
    size_t length;

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        on_broken(l, c);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    length = wire_message(buf_span(&c->in));
    if (length == 0)
        return;
    count_answer(l, c, buf_span(&c->in));
    buf_drop_front(&c->in, length);
    c->due_ns = 0;
    l->idle[l->idle_count++] = c;
}

static bool is_over(const struct load *l, uint64_t now_ns)
{
    return now_ns >= l->end_ns || (l->count > 0 && l->answers >= l->count);
}

/* Until something may be to do. Shortly before a request is due it spins, as sleep would round to
 * its own resolution; until then the core is for others, who may be what is measured. */
static uint64_t may_sleep_ns(const struct load *l, uint64_t now_ns)
{
    uint64_t due_ns;

    if (l->rate == 0 || l->idle_count == 0 || !wants_more(l))
        return SLEEP_NS_MOST;
    due_ns = next_due_ns(l);
    return due_ns <= now_ns + SPIN_NS ? 0 : MIN(due_ns - now_ns - SPIN_NS, SLEEP_NS_MOST);
}

static int wait_for(struct load *l, struct epoll_event *events, uint64_t ns)
{
    struct timespec most = {.tv_sec = 0, .tv_nsec = (long)ns};

    return epoll_pwait2(l->epoll, events, EVENTS, &most, NULL);
}

static void run(struct load *l)
{
    struct epoll_event events[EVENTS];
    uint64_t now_ns;

    while (!is_over(l, now_ns = clock_mono_ns())) {
        int count;

        send_due(l, now_ns);
        count = wait_for(l, events, may_sleep_ns(l, clock_mono_ns()));
        for (int i = 0; i < count; i++)
            on_readable(l, events[i].data.ptr);
    }
}

static double percentile(const struct load *l, double part)
{
    uint64_t wanted = (uint64_t)((double)l->answers * part), seen = 0;

    for (size_t us = 0; us <= MAX_US; us++) {
        seen += l->latencies[us];
        if (seen > wanted)
            return (double)us;
    }
    return MAX_US;
}

static void report(const struct load *l)
{
    double seconds = (double)(l->last_ns - l->start_ns) / (double)NS_PER_S;

    printf("{\"answers\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"broken\": %" PRIu64
           ", \"seconds\": %.6f, \"p50_us\": %.0f, \"p99_us\": %.0f, \"p999_us\": %.0f}\n",
           l->answers, l->errors, l->broken, seconds, percentile(l, 0.5), percentile(l, 0.99),
           percentile(l, 0.999));
}

static void prepare(struct load *l, char **argv)
{
    struct span request = wire_read_file(argv[2]);

    l->port = (uint16_t)wire_number(argv[1], UINT16_MAX);
    l->request = mem_string(request);
    l->request_bytes = request.n;
    l->number = strstr(l->request, "@@@@@@@@@@");
    l->connection_count = wire_number(argv[3], CONNECTIONS_MAX);
    l->connections = mem_zero(l->connection_count * sizeof(*l->connections));
    l->idle = mem_zero(l->connection_count * sizeof(struct connection *));
    l->latencies = mem_zero((MAX_US + 1) * sizeof(*l->latencies));
    l->epoll = epoll_create1(0);
    for (size_t i = 0; i < l->connection_count; i++) {
        buf_init(&l->connections[i].in, ANSWER_MAX);
        connect_one(l, &l->connections[i]);
        l->idle[l->idle_count++] = &l->connections[i];
    }
    l->count = wire_number(argv[5], SLOTS_MAX);
    l->rate = wire_number(argv[6], SLOTS_MAX);
    l->start_ns = l->last_ns = clock_mono_ns();
    l->end_ns = l->start_ns + wire_number(argv[4], 86400) * NS_PER_S;
}

int main(int argc, char **argv)
{
    struct load l = {.epoll = -1};

    if (argc != 7 && argc != 9)
        return EXIT_FAILURE;
    if (argc == 9) {
        l.slots = wire_number(argv[8], SLOTS_MAX);
        l.stamps = wire_stamps(argv[7], l.slots);
    }
    prepare(&l, argv);
    run(&l);
    report(&l);
    return EXIT_SUCCESS;
}
