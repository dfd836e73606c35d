/* A receiver of deliveries that costs as little as one can: an epoll loop that answers 200 to each
 * whole request, all answers to one read in one write.
 *
 *     bench_receiver PORT STAMPS SLOTS FIRST
 *
 * STAMPS is a file shared with who measures: requests and connections so far, and, for requests
 * with
 * `"Serial":"<ten digits>"` in them, when each was seen. FIRST gets the bytes of the first request.
 */
#include "wire.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, READ_BYTES = 65536, SLOTS_MAX = 100000000, REQUEST_MAX = 16 << 20 };

struct connection {
    int fd;
    struct buf in;
    struct buf out;
};

struct receiver {
    int epoll;
    int listener;
    struct wire_stamps *stamps;
    size_t slots;
    const char *first;
};

static void save(const char *path, struct span bytes)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fwrite(bytes.p, 1, bytes.n, file) != bytes.n || fclose(file) != 0)
        wire_fail(path);
}

static void stamp(struct receiver *r, struct span request, uint64_t now_ns)
{
    static const char mark[] = "\"Serial\":\"";
    const char *at = memmem(request.p, request.n, mark, sizeof(mark) - 1);
    uint64_t serial;

    if (r->stamps->messages == 0)
        save(r->first, request);
    r->stamps->messages++;
    if (at == NULL || at + sizeof(mark) + WIRE_SERIAL_DIGITS > request.p + request.n)
        return;
    if (span_to_u64(span_of(at + sizeof(mark) - 1, WIRE_SERIAL_DIGITS), &serial) &&
        serial < r->slots && r->stamps->at_ns[serial] == 0)
        r->stamps->at_ns[serial] = now_ns;
}

static void accept_all(struct receiver *r)
{
    int fd;

    while ((fd = wire_accept(r->listener)) >= 0) {
        struct connection *c = NEW(struct connection);

        c->fd = fd;
        buf_init(&c->in, REQUEST_MAX);
        buf_init(&c->out, REQUEST_MAX);
        wire_watch(r->epoll, fd, EPOLLIN, c);
        r->stamps->connections++;
    }
}

static void end(struct connection *c)
{
    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
    mem_free(c);
}

static void take(struct receiver *r, struct connection *c)
{
    ssize_t n = recv(c->fd, buf_reserve(&c->in, READ_BYTES), READ_BYTES, 0);
    uint64_t now_ns = clock_mono_ns();
    size_t at = 0, length;

    if (n <= 0) {
        end(c);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    while ((length = wire_message(span_sub(buf_span(&c->in), at, c->in.n))) > 0) {
        stamp(r, span_sub(buf_span(&c->in), at, at + length), now_ns);
        buf_add(&c->out, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        at += length;
    }
    wire_send(c->fd, buf_span(&c->out));
    buf_clear(&c->out);
    buf_drop_front(&c->in, at);
}

int main(int argc, char **argv)
{
    struct receiver r = {.epoll = epoll_create1(0)};
    struct epoll_event events[EVENTS];

    if (argc != 5)
        return EXIT_FAILURE;
    r.slots = wire_number(argv[3], SLOTS_MAX);
    r.stamps = wire_stamps(argv[2], r.slots);
    r.first = argv[4];
    r.listener = wire_listen((uint16_t)wire_number(argv[1], UINT16_MAX));
    wire_watch(r.epoll, r.listener, EPOLLIN, NULL);
    for (;;) {
        int count = epoll_wait(r.epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_all(&r);
            else
                take(&r, events[i].data.ptr);
        }
    }
}
