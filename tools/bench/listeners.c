/* Clients of streams that cost as little as they can, and still look at each event: its id must be
 * greater than the one before. Of some it is noted how long ago they were raised.
 *
 *     bench_listeners PORT STREAMS COUNT
 *
 * Prints `ready` when all streams have begun, and a line of JSON when each has got COUNT events, or
 * has ended before. */
#include "wire.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS = 512,
    READ_BYTES = 262144,
    STREAMS_MAX = 10000,
    TEXT_MAX = 64 << 20,
    LAG_EACH = 64, /* events of a stream */
    LAGS_MAX = 1 << 20
};

struct listener {
    int fd;
    bool has_begun, has_ended;
    uint64_t last, count;
    struct buf in;
};

static struct {
    struct listener all[STREAMS_MAX];
    size_t streams, begun, done;
    uint64_t wanted, bytes, out_of_order, ended, first_ns, last_ns;
} bench;

static struct {
    uint32_t all[LAGS_MAX]; /* microseconds */
    size_t count;
} lags;

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static double lag_ms(double part)
{
    return lags.count == 0 ? 0 : lags.all[(size_t)((double)(lags.count - 1) * part)] / 1000.0;
}

/* By the member Time, when it has come too. */
static void note_lag(struct span behind)
{
    static const struct span mark = SPAN_INIT("\"Time\":\"");
    size_t at = span_find(span_sub(behind, 0, MIN(behind.n, 256)), mark);
    struct instant raised;

    if (at == SIZE_MAX || lags.count == LAGS_MAX)
        return;
    behind = span_sub(behind, at + mark.n, behind.n);
    if (!datetime_parse(span_sub(behind, 0, span_find_char(behind, '"', 0)), &raised))
        return;
    lags.all[lags.count++] =
        (uint32_t)((clock_unix_ns() - raised.seconds * 1000000000 - raised.nanos) / 1000);
}

static void note_id(struct listener *l, struct span line)
{
    uint64_t number;

    if (!span_to_u64(line, &number))
        wire_fail("an id is no number");
    bench.out_of_order += number <= l->last;
    l->last = number;
    if (++l->count == bench.wanted)
        bench.done++;
}

/* Each `id:` whose line is whole. What may be the beginning of another stays. */
static void look(struct listener *l)
{
    static const char mark[] = "\nid: ";
    const char *at = l->in.p, *end = l->in.p + l->in.n, *found;
    size_t kept = 32;

    while ((found = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL) {
        const char *line = found + sizeof(mark) - 1;
        const char *line_end = memchr(line, '\n', (size_t)(end - line));

        if (line_end == NULL) {
            kept = (size_t)(end - found);
            break;
        }
        note_id(l, span_of(line, (size_t)(line_end - line)));
        if (l->count % LAG_EACH == 0)
            note_lag(span_of(line_end, (size_t)(end - line_end)));
        at = line_end;
    }
    kept = MIN(kept, (size_t)(end - at));
    buf_drop_front(&l->in, l->in.n - kept);
}

static void take(struct listener *l)
{
    ssize_t n = recv(l->fd, buf_reserve(&l->in, READ_BYTES), READ_BYTES, 0);

    if (n <= 0) {
        close(l->fd);
        bench.ended++;
        bench.done += l->count < bench.wanted;
        return;
    }
    if (!l->has_begun && n > 0)
        bench.begun++;
    l->has_begun = true;
    bench.bytes += (uint64_t)n;
    buf_commit(&l->in, (size_t)n);
    look(l);
    bench.last_ns = clock_mono_ns();
    if (bench.first_ns == 0 && l->count > 0)
        bench.first_ns = bench.last_ns;
}

static void begin(struct listener *l, int epoll, uint16_t port)
{
    l->fd = wire_connect(port);
    buf_init(&l->in, TEXT_MAX);
    wire_watch(epoll, l->fd, EPOLLIN, l);
    wire_send(
        l->fd,
        SPAN("GET /Svc.Event HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"));
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(0);
    struct epoll_event events[EVENTS];
    bool is_told = false;

    if (argc != 4)
        return EXIT_FAILURE;
    bench.streams = wire_number(argv[2], STREAMS_MAX);
    bench.wanted = wire_number(argv[3], UINT32_MAX);
    for (size_t i = 0; i < bench.streams; i++)
        begin(&bench.all[i], epoll, (uint16_t)wire_number(argv[1], UINT16_MAX));
    while (bench.done < bench.streams) {
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++)
            take(events[i].data.ptr);
        if (bench.begun == bench.streams && !is_told) {
            puts("ready");
            fflush(stdout);
            is_told = true;
        }
    }
    qsort(lags.all, lags.count, sizeof(lags.all[0]), by_number);
    printf("{\"streams\":%zu,\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.3f,"
           "\"out_of_order\":%" PRIu64 ",\"ended\":%" PRIu64 ",\"last_s\":%.6f,"
           "\"lag_p50_ms\":%.1f,\"lag_p99_ms\":%.1f}\n",
           bench.streams, bench.wanted, bench.bytes, (double)(bench.last_ns - bench.first_ns) / 1e9,
           bench.out_of_order, bench.ended, (double)bench.last_ns / 1e9, lag_ms(0.5), lag_ms(0.99));
    return EXIT_SUCCESS;
}
