/* sink: a receiver for trying things out. Prints each request as it arrives, and answers 200, or
 * what the path asks for: /status/500, /gone, /slow/3 (seconds). On loopback only, one thread, one
 * poll; a connection is kept until its client closes it. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/http_text.h"
#include "cli/signature.h"
#include "cli/stop.h"
#include "svc/command.h"
#include "json/member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT = 8081,
    CONNECTIONS_MOST = 256,
    REQUEST_BYTES_MOST = 64 << 20,
    SLOW_MS_MOST = 120000,
    READ_BYTES = 65536,
};

struct connection {
    int fd;
    struct buf in, out;
    uint64_t answer_at_ms; /* 0: nothing waits to be sent later */
    bool ends;             /* closed once `out` is sent */
};

struct sink {
    struct cli *cli;
    int listener;
    uint64_t fail_percent;
    struct span secret; /* absent: signatures are not looked at */
    struct connection connections[CONNECTIONS_MOST];
    size_t count;
};

/* ---- a request ---- */

/* What the path asks for. */
static int status_of(const struct sink *sink, const struct http_text *request, int *out_slow_ms)
{
    struct span rest = request->path, first, second;
    uint64_t number;

    *out_slow_ms = 0;
    (void)span_split(&rest, '/');
    first = span_split(&rest, '/');
    second = span_split(&rest, '?');
    if (span_eq(first, SPAN("status")) && span_to_u64(second, &number) && number >= 200 &&
        number <= 599)
        return (int)number;
    if (span_eq(first, SPAN("gone")))
        return 410;
    if (span_eq(first, SPAN("slow")) && span_to_u64(second, &number))
        *out_slow_ms = (int)MIN(number * 1000, SLOW_MS_MOST);
    return rng_below(100) < sink->fail_percent ? 500 : 200;
}

static void add_shown_field(struct buf *b, struct look look, struct span name, struct span value)
{
    buf_add_str(b, "   ");
    table_add_painted(b, look, PAINT_FAINT, name);
    buf_add_str(b, ": ");
    text_add_shown(b, value);
    buf_add_char(b, '\n');
}

static int print_request(const struct sink *sink, const struct http_text *request, struct span body,
                         int status, const struct err *bad)
{
    struct look look = sink->cli->look;
    struct buf b;
    int printed;

    buf_init(&b, BUF_NO_CAP);
    buf_add_str(&b, "<- ");
    text_add_shown(&b, request->method);
    buf_add_char(&b, ' ');
    text_add_shown(&b, request->path);
    buf_add_char(&b, '\n');
    for (size_t i = 0; i < request->field_count; i++)
        add_shown_field(&b, look, request->fields[i].name, request->fields[i].value);
    buf_add_str(&b, "\n   ");
    text_add_shown(&b, body);
    buf_add_char(&b, '\n');
    if (bad != NULL)
        table_add_painted(&b, look, PAINT_BAD, SPAN("   signature bad: "));
    else if (sink->secret.p != NULL)
        table_add_painted(&b, look, PAINT_GOOD, SPAN("   signature good\n"));
    if (bad != NULL) {
        buf_add(&b, err_message(bad));
        buf_add_char(&b, '\n');
    }
    if (status >= 300)
        buf_printf(&b, "-> %d\n", status);
    printed = cli_print(buf_span(&b));
    buf_done(&b);
    return printed;
}

/* One object a line. */
static int print_json(const struct sink *sink, const struct http_text *request, struct span body,
                      int status, const struct err *bad)
{
    struct buf b;
    int printed;

    buf_init(&b, BUF_NO_CAP);
    buf_add_char(&b, '{');
    member_add_text(&b, SPAN("Method"), request->method);
    member_add_text(&b, SPAN("Path"), request->path);
    buf_add_str(&b, ",\"Headers\":{");
    for (size_t i = 0; i < request->field_count; i++) {
        json_add_name(&b, request->fields[i].name);
        json_add_string(&b, request->fields[i].value);
    }
    buf_add_char(&b, '}');
    member_add_text(&b, SPAN("Body"), body);
    member_add_u64(&b, SPAN("Status"), (uint64_t)status);
    if (sink->secret.p != NULL)
        member_add_bool(&b, SPAN("Good"), bad == NULL);
    buf_add_char(&b, '}');
    printed = cli_print_line(buf_span(&b));
    buf_done(&b);
    return printed;
}

static int show(const struct sink *sink, const struct http_text *request, struct span body,
                int status, const struct err *bad)
{
    if (span_eq(request->method, SPAN("GET")) || span_eq(request->method, SPAN("HEAD")))
        return CLI_DONE; /* whether it is there */
    if (sink->cli->json)
        return print_json(sink, request, body, status, bad);
    return print_request(sink, request, body, status, bad);
}

static void add_answer(struct connection *c, int status)
{
    buf_printf(&c->out, "HTTP/1.1 %d Answer\r\nContent-Length: 0\r\n%s\r\n", status,
               c->ends ? "Connection: close\r\n" : "");
}

static bool answer(struct sink *sink, struct connection *c, const struct http_text *request,
                   struct span body)
{
    struct signed_request signed_request = signature_of(request, body);
    int slow_ms, status = status_of(sink, request, &slow_ms);
    struct err *bad = NULL;
    bool shown;

    if (sink->secret.p != NULL)
        bad = signature_verify(sink->secret, &signed_request, clock_unix_s(), false);
    if (bad != NULL)
        status = 400;
    if (span_ieq(http_text_field(request, SPAN("Connection")), SPAN("close")))
        c->ends = true;
    shown = show(sink, request, body, status, bad) == CLI_DONE;
    err_free(bad);
    add_answer(c, status);
    if (slow_ms > 0)
        c->answer_at_ms = clock_mono_ms() + (uint64_t)slow_ms;
    return shown;
}

static void refuse(struct connection *c, int status)
{
    c->ends = true;
    buf_clear(&c->in);
    add_answer(c, status);
}

/* The requests that have come whole. False: nobody sees what is printed. */
static bool take_requests(struct sink *sink, struct connection *c)
{
    struct http_text request;

    while (c->in.n > 0 && !c->ends && c->answer_at_ms == 0) {
        struct err *e = http_text_parse(buf_span(&c->in), &request);
        bool is_short = e != NULL && err_code(e) == ERR_NO_DATA_SOURCE;
        uint64_t length;
        size_t head;

        err_free(e);
        if (is_short)
            return true;
        if (e != NULL || request.method.p == NULL || !http_text_length(&request, &length)) {
            refuse(c, 400);
            return true;
        }
        if (http_text_field(&request, SPAN("Transfer-Encoding")).p != NULL) {
            refuse(c, 411);
            return true;
        }
        if (length > request.body.n)
            return true;
        head = c->in.n - request.body.n;
        if (!answer(sink, c, &request, span_sub(request.body, 0, (size_t)length)))
            return false;
        buf_drop_front(&c->in, head + (size_t)length);
    }
    return true;
}

/* ---- connections ---- */

static void close_connection(struct sink *sink, size_t i)
{
    struct connection *c = &sink->connections[i];

    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
    sink->connections[i] = sink->connections[--sink->count];
}

static void accept_one(struct sink *sink)
{
    int fd = accept4(sink->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct connection *c = &sink->connections[sink->count];

    if (fd < 0)
        return;
    *c = (struct connection){.fd = fd};
    buf_init(&c->in, REQUEST_BYTES_MOST);
    buf_init(&c->out, BUF_NO_CAP);
    sink->count++;
}

/* False: the client has closed, or is no more. */
static bool read_some(struct connection *c)
{
    char *room = buf_reserve(&c->in, READ_BYTES);
    ssize_t n;

    if (room == NULL) {
        refuse(c, 413);
        return true;
    }
    n = read(c->fd, room, READ_BYTES);
    if (n > 0)
        buf_commit(&c->in, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool write_some(struct connection *c)
{
    ssize_t n;

    if (c->answer_at_ms != 0 && clock_mono_ms() < c->answer_at_ms)
        return true;
    c->answer_at_ms = 0;
    if (c->out.n == 0)
        return !c->ends;
    n = write(c->fd, c->out.p, c->out.n);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    buf_drop_front(&c->out, (size_t)n);
    return c->out.n > 0 || !c->ends;
}

static int wait_ms(const struct sink *sink)
{
    uint64_t now = clock_mono_ms(), least = 3600000;

    for (size_t i = 0; i < sink->count; i++) {
        uint64_t at = sink->connections[i].answer_at_ms;

        if (at != 0)
            least = MIN(least, at > now ? at - now : 0);
    }
    return (int)least;
}

static short events_of(const struct connection *c)
{
    if (c->answer_at_ms != 0)
        return 0;
    return (short)(c->out.n > 0 ? POLLOUT : POLLIN);
}

/* False: nobody sees what is printed. */
static bool serve_connection(struct sink *sink, size_t i, bool is_ready)
{
    struct connection *c = &sink->connections[i];
    bool is_open = true;

    if (is_ready && c->out.n == 0)
        is_open = read_some(c);
    if (is_open && !take_requests(sink, c))
        return false;
    if (is_open)
        is_open = write_some(c);
    if (!is_open)
        close_connection(sink, i);
    return true;
}

static int serve(struct sink *sink)
{
    struct pollfd fds[CONNECTIONS_MOST + 2];

    while (!stop_is_asked()) {
        size_t count = sink->count;

        fds[0] = (struct pollfd){.fd = stop_fd(), .events = POLLIN};
        fds[1] =
            (struct pollfd){.fd = count < CONNECTIONS_MOST ? sink->listener : -1, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            fds[i + 2] = (struct pollfd){.fd = sink->connections[i].fd,
                                         .events = events_of(&sink->connections[i])};
        if (poll(fds, count + 2, wait_ms(sink)) < 0 && errno != EINTR)
            return cli_fail(CLI_REFUSED, "poll: %s", strerror(errno));
        for (size_t i = count; i > 0; i--) /* one that is closed gives its place to the last */
            if (!serve_connection(sink, i - 1, fds[i + 1].revents != 0))
                return CLI_REFUSED;
        if (fds[1].revents != 0)
            accept_one(sink);
    }
    return CLI_DONE;
}

/* ---- setting up ---- */

static int listen_on(struct sink *sink, uint64_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
    };
    socklen_t n = sizeof(address);
    int on = 1;

    sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sink->listener < 0)
        return cli_fail(CLI_REFUSED, "socket: %s", strerror(errno));
    (void)setsockopt(sink->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(sink->listener, (struct sockaddr *)&address, n) != 0 ||
        listen(sink->listener, CONNECTIONS_MOST) != 0 ||
        getsockname(sink->listener, (struct sockaddr *)&address, &n) != 0)
        return cli_fail(CLI_REFUSED, "127.0.0.1:%llu: %s", (unsigned long long)port,
                        strerror(errno));
    (void)cli_fail(CLI_DONE, "listening on http://127.0.0.1:%u/", ntohs(address.sin_port));
    return CLI_DONE;
}

static int read_number(const struct cli *cli, enum option option, uint64_t most, uint64_t *out)
{
    struct span text = args_value(&cli->args, option);

    if (text.p == NULL || (span_to_u64(text, out) && *out <= most))
        return CLI_DONE;
    return cli_fail(CLI_MISUSE, "--%s: '%.*s' is no number from 0 to %llu",
                    args_option(option)->name, SPAN_FMT(text), (unsigned long long)most);
}

int run_sink(struct cli *cli)
{
    struct sink *sink = ARENA_NEW(cli->arena, struct sink);
    uint64_t port = PORT;
    int status;

    sink->cli = cli;
    sink->listener = -1;
    stop_watch();
    status = read_number(cli, OPTION_PORT, 65535, &port);
    if (status == CLI_DONE)
        status = read_number(cli, OPTION_FAIL, 100, &sink->fail_percent);
    if (status == CLI_DONE && args_has(&cli->args, OPTION_VERIFY))
        status = cli_read_secret(cli, OPTION_VERIFY, &sink->secret);
    if (status == CLI_DONE)
        status = listen_on(sink, port);
    if (status == CLI_DONE)
        status = serve(sink);
    while (sink->count > 0)
        close_connection(sink, 0);
    if (sink->listener >= 0)
        close(sink->listener);
    return status;
}
