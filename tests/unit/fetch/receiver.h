/* For the tests of fetch: a receiver on the same loop that answers as a script says, and a fetcher
 * that sends to it. The functions are inline because no test program uses all of them. */
#ifndef RECEIVER_H
#define RECEIVER_H

#include "fetch/fetch.h"
#include "io/timer.h"

#include "testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/macros.h"
#include "fetch/egress.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECEIVER_CONNS = 1200, TURNS_MOST = 200000 };

/* What follows the script's bytes. */
enum receiver_then { THEN_KEEP, THEN_CLOSE, THEN_RESET, THEN_HANG, THEN_REPEAT, THEN_TRICKLE };

struct receiver_script {
    const char *bytes;
    size_t n; /* 0: up to the NUL */
    enum receiver_then then;
    const char *again; /* for REPEAT at full speed, for TRICKLE a byte each 10 ms */
};

struct receiver_conn {
    uv_tcp_t tcp;
    uv_write_t write;
    bool writing, closing, delayed;
    struct receiver *receiver;
    struct timer timer;
    struct buf in;
    unsigned requests;
    size_t trickled;
};

struct receiver {
    struct loop *loop;
    uv_tcp_t tcp;
    uint16_t port;
    struct receiver_script script;
    bool reset_at_accept;
    bool speaks_first;    /* without having read anything */
    bool answer_at_once;  /* to the head, and reads no more */
    bool close_at_second; /* a second request on a connection gets no answer but its end */
    uint64_t delay_ms;    /* before an answer */
    unsigned connections, requests, open, waiting, most_waiting;
    struct buf last; /* the last request, head and body */
    struct receiver_conn *conns[RECEIVER_CONNS];
    char chunk[65536];
};

static inline void receiver_on_conn_closed(uv_handle_t *handle)
{
    struct receiver_conn *c = CONTAINER_OF(handle, struct receiver_conn, tcp);

    buf_done(&c->in);
    mem_free(c);
}

static inline void receiver_drop(struct receiver_conn *c, bool reset)
{
    struct receiver *r = c->receiver;

    if (c->closing)
        return;
    c->closing = true;
    r->open--;
    if (timer_running(&c->timer))
        r->waiting--;
    timer_stop(r->loop, &c->timer);
    for (size_t i = 0; i < RECEIVER_CONNS; i++)
        if (r->conns[i] == c)
            r->conns[i] = NULL;
    if (!reset || uv_tcp_close_reset(&c->tcp, receiver_on_conn_closed) != 0)
        uv_close((uv_handle_t *)&c->tcp, receiver_on_conn_closed);
}

static inline void receiver_write(struct receiver_conn *c, struct span bytes);

static inline void receiver_go_on(struct receiver_conn *c)
{
    const struct receiver_script *script = &c->receiver->script;

    switch (script->then) {
    case THEN_CLOSE:
    case THEN_RESET:
        receiver_drop(c, script->then == THEN_RESET);
        break;
    case THEN_REPEAT:
        receiver_write(c, span_str(script->again));
        break;
    case THEN_TRICKLE:
        c->receiver->waiting++;
        timer_start(c->receiver->loop, &c->timer, 10);
        break;
    case THEN_KEEP:
    case THEN_HANG:
        break;
    }
}

static inline void receiver_on_written(uv_write_t *write, int status)
{
    struct receiver_conn *c = CONTAINER_OF(write, struct receiver_conn, write);

    c->writing = false;
    if (status == 0 && !c->closing)
        receiver_go_on(c);
}

static inline void receiver_write(struct receiver_conn *c, struct span bytes)
{
    uv_buf_t out = uv_buf_init((char *)(uintptr_t)bytes.p, (unsigned)bytes.n);

    ck_assert(!c->writing);
    c->writing = true;
    ck_assert_int_eq(uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, receiver_on_written), 0);
}

static inline void receiver_answer(struct receiver_conn *c)
{
    const struct receiver_script *script = &c->receiver->script;
    size_t n = script->n != 0 ? script->n : strlen(script->bytes);

    if (n > 0)
        receiver_write(c, span_of(script->bytes, n));
    else
        receiver_go_on(c);
}

static inline void receiver_on_time(struct timer *timer)
{
    struct receiver_conn *c = CONTAINER_OF(timer, struct receiver_conn, timer);
    const struct receiver_script *script = &c->receiver->script;

    c->receiver->waiting--;
    if (c->delayed)
        receiver_answer(c);
    else
        receiver_write(c, span_of(&script->again[c->trickled++ % strlen(script->again)], 1));
    c->delayed = false;
}

/* The length of the first request in the bytes, 0 while it is not whole. */
static inline size_t receiver_request_length(struct span in)
{
    size_t head = span_find(in, SPAN("\r\n\r\n"));
    struct span rest = span_sub(in, 0, head);
    uint64_t body = 0;

    if (head == SIZE_MAX)
        return 0;
    while (rest.p != NULL) {
        struct span value = span_split(&rest, '\n');

        if (span_ieq(span_split(&value, ':'), SPAN("Content-Length")))
            ck_assert(span_to_u64(span_trim(span_split(&value, '\r')), &body));
    }
    return in.n >= head + 4 + body ? head + 4 + body : 0;
}

static inline void receiver_take_request(struct receiver_conn *c, size_t n)
{
    struct receiver *r = c->receiver;

    buf_clear(&r->last);
    buf_add(&r->last, span_sub(buf_span(&c->in), 0, n));
    buf_drop_front(&c->in, n);
    r->requests++;
    if (r->close_at_second && c->requests++ > 0) {
        receiver_drop(c, false);
    } else if (r->delay_ms > 0) {
        c->delayed = true;
        r->waiting++;
        r->most_waiting = MAX(r->most_waiting, r->waiting);
        timer_start(r->loop, &c->timer, r->delay_ms);
    } else {
        receiver_answer(c);
    }
}

static inline void receiver_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct receiver_conn *c = CONTAINER_OF(stream, struct receiver_conn, tcp);
    size_t whole;

    if (n < 0) {
        receiver_drop(c, false);
        return;
    }
    buf_add(&c->in, span_of(bytes->base, (size_t)n));
    if (c->receiver->answer_at_once && span_find(buf_span(&c->in), SPAN("\r\n\r\n")) != SIZE_MAX) {
        uv_read_stop(stream);
        receiver_answer(c);
        return;
    }
    whole = receiver_request_length(buf_span(&c->in));
    if (whole > 0)
        receiver_take_request(c, whole);
}

static inline void receiver_give_chunk(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buf)
{
    struct receiver_conn *c = CONTAINER_OF(handle, struct receiver_conn, tcp);

    (void)suggested;
    *out_buf = uv_buf_init(c->receiver->chunk, sizeof(c->receiver->chunk));
}

static inline void receiver_on_conn(uv_stream_t *listener, int status)
{
    struct receiver *r = CONTAINER_OF(listener, struct receiver, tcp);
    struct receiver_conn *c = NEW(struct receiver_conn);

    ck_assert_int_eq(status, 0);
    c->receiver = r;
    c->in.max = BUF_NO_CAP;
    timer_init(&c->timer, receiver_on_time);
    uv_tcp_init(&r->loop->uv, &c->tcp);
    ck_assert_int_eq(uv_accept(listener, (uv_stream_t *)&c->tcp), 0);
    ck_assert_uint_lt(r->connections, RECEIVER_CONNS);
    r->conns[r->connections++] = c;
    r->open++;
    if (r->reset_at_accept)
        receiver_drop(c, true);
    else
        uv_read_start((uv_stream_t *)&c->tcp, receiver_give_chunk, receiver_on_read);
    if (r->speaks_first)
        receiver_answer(c);
}

static inline void receiver_listen(struct receiver *r, struct loop *loop, const char *ip,
                                   uint16_t port)
{
    struct sockaddr_storage address;
    int n = sizeof(address);

    *r = (struct receiver){.loop = loop, .script = {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"}};
    r->last.max = BUF_NO_CAP;
    if (uv_ip4_addr(ip, port, (struct sockaddr_in *)&address) != 0)
        ck_assert_int_eq(uv_ip6_addr(ip, port, (struct sockaddr_in6 *)&address), 0);
    uv_tcp_init(&loop->uv, &r->tcp);
    ck_assert_int_eq(uv_tcp_bind(&r->tcp, (struct sockaddr *)&address, 0), 0);
    ck_assert_int_eq(uv_listen((uv_stream_t *)&r->tcp, 1024, receiver_on_conn), 0);
    uv_tcp_getsockname(&r->tcp, (struct sockaddr *)&address, &n);
    r->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static inline void receiver_drop_all(struct receiver *r)
{
    for (size_t i = 0; i < RECEIVER_CONNS; i++)
        if (r->conns[i] != NULL)
            receiver_drop(r->conns[i], false);
}

static inline void receiver_close(struct receiver *r)
{
    receiver_drop_all(r);
    buf_done(&r->last);
    uv_close((uv_handle_t *)&r->tcp, NULL);
}

/* The fixture: loop, receiver, resolver, rules and fetcher. */

static struct loop loop;
static struct receiver receiver;
static struct resolver *resolver;
static struct egress_rules rules;
static struct fetcher *fetcher;
static char directory[64], hosts_path[80], settings_path[80];
static uv_udp_t silent_names; /* a name server that never answers */

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline unsigned tasks(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;

    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static inline void start_resolver(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int n = sizeof(address);
    char servers[64];
    struct resolve_options options = {
        .hosts_file = hosts_path, .resolv_file = settings_path, .servers = servers};

    uv_udp_init(&loop.uv, &silent_names);
    ck_assert_int_eq(uv_udp_bind(&silent_names, (struct sockaddr *)&address, 0), 0);
    uv_udp_getsockname(&silent_names, (struct sockaddr *)&address, &n);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(address.sin_port));
    ck_ok(resolver_new(&loop, &options, &resolver));
}

/* `hosts`: the hosts file. */
static inline void begin_with(const char *hosts, const struct fetch_options *options)
{
    snprintf(directory, sizeof(directory), "/tmp/check_fetch_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(hosts_path, sizeof(hosts_path), "%s/hosts", directory);
    snprintf(settings_path, sizeof(settings_path), "%s/resolv.conf", directory);
    write_file(hosts_path, hosts);
    write_file(settings_path, "");
    ck_ok(loop_init(&loop));
    receiver_listen(&receiver, &loop, "127.0.0.1", 0);
    start_resolver();
    egress_init(&rules);
    ck_ok(fetcher_new(&loop, resolver, &rules, options, &fetcher));
}

static inline void begin(void)
{
    begin_with("127.0.0.1 name.test\n", &(struct fetch_options){0});
}

static inline void end(void)
{
    ck_assert_uint_eq(tasks(), 1);
    fetcher_free(fetcher);
    resolver_free(resolver);
    receiver_close(&receiver);
    uv_close((uv_handle_t *)&silent_names, NULL);
    loop_done(&loop);
    egress_done(&rules);
    unlink(hosts_path);
    unlink(settings_path);
    rmdir(directory);
}

/* One fetch and what became of it. */
struct job {
    struct fetch fetch;
    struct fetch_result result;
    unsigned calls;
    char url[256];
    char body[8192]; /* of the answer, as far as kept */
    size_t body_bytes;
    void (*then)(struct job *job);
};

static inline void job_on_done(struct fetch *fetch, const struct fetch_result *result)
{
    struct job *job = CONTAINER_OF(fetch, struct job, fetch);

    job->result = *result;
    job->calls++;
    job->body_bytes = MIN(result->body.n, sizeof(job->body));
    if (job->body_bytes > 0)
        memcpy(job->body, result->body.p, job->body_bytes);
    ck_assert_int_eq(result->error == FETCH_OK, result->why[0] == '\0');
    if (job->then != NULL)
        job->then(job);
}

/* The receiver's port for `%u`. */
static inline void with_port(char *out, size_t size, const char *url)
{
    size_t at = span_find(span_str(url), SPAN("%u"));

    if (at == SIZE_MAX)
        snprintf(out, size, "%s", url);
    else
        snprintf(out, size, "%.*s%u%s", (int)at, url, receiver.port, url + at + strlen("%u"));
}

/* A GET. */
static inline void job_init(struct job *job, const char *url)
{
    *job = (struct job){.fetch = {.method = SPAN("GET"), .on_done = job_on_done}};
    with_port(job->url, sizeof(job->url), url);
    job->fetch.url = span_str(job->url);
}

static inline void job_start(struct job *job)
{
    unsigned calls = job->calls;

    job->fetch.origin = fetch_origin_get(fetcher, job->fetch.url);
    fetch_start(fetcher, &job->fetch);
    fetch_origin_put(job->fetch.origin);
    ck_assert_uint_eq(job->calls, calls);
}

static inline void job_await(struct job *job)
{
    for (unsigned turn = 0; job->calls == 0; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(job->calls, 1);
}

static inline void job_run(struct job *job, const char *url)
{
    job_init(job, url);
    job_start(job);
    job_await(job);
}

static inline void timer_ignored(struct timer *timer)
{
    (void)timer;
}

/* The number of turns that the loop makes in that time. */
static inline unsigned pass_ms(uint64_t ms)
{
    uint64_t until_ms = clock_mono_ms() + ms;
    struct timer timer = {0};
    unsigned turns = 0;

    timer_init(&timer, timer_ignored);
    timer_start(&loop, &timer, ms);
    for (; clock_mono_ms() < until_ms; turns++)
        loop_run_once(&loop);
    timer_stop(&loop, &timer);
    return turns;
}

/* The job has failed so, and the reason holds the text. */
/* `texts`: one, or several with '|' between them. */
static inline bool holds_one(const char *why, const char *texts)
{
    struct span rest = span_str(texts);
    bool holds = false;

    while (rest.p != NULL)
        holds = span_find(span_str(why), span_split(&rest, '|')) != SIZE_MAX || holds;
    return holds;
}

static inline void expect_error(const struct job *job, enum fetch_error error, const char *text)
{
    ck_assert_msg(job->result.error == error, "'%s', should be '%s': %s",
                  fetch_error_text(job->result.error), fetch_error_text(error), job->result.why);
    ck_assert_msg(holds_one(job->result.why, text), "'%s' lacks '%s'", job->result.why, text);
}

static inline void expect_ok(const struct job *job, int status)
{
    ck_assert_msg(job->result.error == FETCH_OK, "%s: %s", fetch_error_text(job->result.error),
                  job->result.why);
    ck_assert_int_eq(job->result.status, status);
}

#endif
