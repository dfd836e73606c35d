/* llhttp frames the answers; fetch_answer.c measures them. Whatever is unclear about an answer's
 * end closes the connection. */
#include "fetch_plain.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { READS_MOST = 16 /* in one go */ };

#define NOISE_FACTOR 8 /* chunks of one byte have six around it */
#define NOISE_BYTES ((uint64_t)1 << 20)

static struct plain_conn *conn_of(llhttp_t *parser)
{
    return CONTAINER_OF(parser, struct plain_conn, parser);
}

static struct fetch_answer *answer_of(llhttp_t *parser)
{
    return &conn_of(parser)->t->answer;
}

static int go_on(llhttp_t *parser)
{
    return answer_of(parser)->stop == FETCH_GOES_ON ? 0 : HPE_USER;
}

/* A field is whole when the next begins, or the head ends. */
static void take_field(struct plain_conn *c)
{
    struct span line = buf_span(&c->line);

    if (c->in_value)
        fetch_answer_field(&c->t->answer, span_sub(line, 0, c->name_bytes),
                           span_sub(line, c->name_bytes, line.n));
    buf_clear(&c->line);
    c->in_value = false;
    c->name_bytes = 0;
}

static void begin_head(struct plain_conn *c)
{
    if (!c->t->answer.in_head && !c->t->answer.complete_head)
        fetch_answer_begin(&c->t->answer, c->parser.status_code);
}

static int on_name(llhttp_t *parser, const char *p, size_t n)
{
    struct plain_conn *c = conn_of(parser);

    begin_head(c);
    if (c->in_value)
        take_field(c);
    fetch_answer_measure(&c->t->answer, n);
    buf_add(&c->line, span_of(p, n));
    c->name_bytes = c->line.n;
    return go_on(parser);
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
    struct plain_conn *c = conn_of(parser);

    c->in_value = true;
    fetch_answer_measure(&c->t->answer, n + strlen(": \r\n"));
    buf_add(&c->line, span_of(p, n));
    return go_on(parser);
}

static int on_reason(llhttp_t *parser, const char *p, size_t n)
{
    (void)p;
    fetch_answer_measure(answer_of(parser), n);
    return go_on(parser);
}

static bool has_no_body(const struct plain_conn *c)
{
    int status = c->parser.status_code;

    return status < 200 || status == 204 || status == 304 ||
           span_eq(c->t->fetch->method, SPAN("HEAD"));
}

static int on_head(llhttp_t *parser)
{
    struct plain_conn *c = conn_of(parser);

    begin_head(c);
    take_field(c);
    if (c->t->answer.stop != FETCH_GOES_ON)
        return -1;
    fetch_answer_end_head(&c->t->answer);
    return has_no_body(c) ? 1 : 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    fetch_answer_body(answer_of(parser), span_of(p, n));
    return go_on(parser);
}

/* The last chunk: what may follow are trailers, and they matter to nobody. */
static int on_chunk(llhttp_t *parser)
{
    conn_of(parser)->has_body = parser->content_length == 0;
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    struct plain_conn *c = conn_of(parser);

    take_field(c); /* of a trailer */
    if (parser->status_code < 200)
        return parser->status_code == 101 ? HPE_USER : 0;
    c->is_done = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_status = on_reason,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_complete,
};

void plain_expect(struct plain_conn *c)
{
    c->has_bytes = c->has_body = c->is_done = c->is_unclear = c->in_value = false;
    c->received = 0;
    c->name_bytes = 0;
    buf_clear(&c->line);
    llhttp_init(&c->parser, HTTP_RESPONSE, &settings);
    llhttp_set_lenient_headers(&c->parser, 1); /* for what it costs nobody to overlook */
}

static void complete(struct plain_conn *c)
{
    struct fetch_transfer *t = c->t;
    struct span origin = span_of(t->host->origin, t->host->origin_bytes);

    c->was_used = true;
    if (!c->is_unclear && plain_has_sent(c) && llhttp_should_keep_alive(&c->parser))
        plain_keep(c, origin);
    else
        plain_close(c);
    plain_finish(t, CURLE_OK, NULL);
}

static void refuse(struct plain_conn *c, llhttp_errno_t code)
{
    struct fetch_transfer *t = c->t;
    const char *reason = llhttp_get_error_reason(&c->parser);
    bool is_switch = c->parser.status_code == 101 && t->answer.stop == FETCH_GOES_ON;
    bool is_http = c->parser.http_major == 1;
    char why[CURL_ERROR_SIZE];

    if (is_switch)
        snprintf(why, sizeof(why), "the receiver switches to another protocol (101)");
    else
        snprintf(why, sizeof(why), "the answer is not HTTP%s: %s", is_http ? "/1.1" : "",
                 reason != NULL && reason[0] != '\0' ? reason : llhttp_errno_name(code));
    plain_close(c);
    plain_finish(t, is_switch ? CURLE_RECV_ERROR : CURLE_WEIRD_SERVER_REPLY, why);
}

/* False: the connection is not the request's any more. */
static bool feed(struct plain_conn *c, struct span bytes)
{
    struct fetch_answer *a = &c->t->answer;
    llhttp_errno_t code;

    if (!c->has_bytes)
        c->t->first_byte_ns = clock_mono_ns();
    c->has_bytes = true;
    c->received += bytes.n;
    if (c->received > NOISE_BYTES + NOISE_FACTOR * (uint64_t)a->read_bytes)
        a->stop = FETCH_NOISE;
    code = a->stop == FETCH_GOES_ON ? llhttp_execute(&c->parser, bytes.p, bytes.n) : HPE_USER;
    if (c->is_done) {
        c->is_unclear = code != HPE_PAUSED || llhttp_get_error_pos(&c->parser) != bytes.p + bytes.n;
        complete(c);
        return false;
    }
    if (code == HPE_OK)
        return true;
    if (a->stop == FETCH_GOES_ON && a->complete_head) {
        /* An unreadable body: chunks that llhttp does not take, or trailers. The status counts. */
        a->stop = c->has_body ? FETCH_GOES_ON : FETCH_BODY_READ;
        c->is_unclear = true;
        complete(c);
    } else {
        refuse(c, code);
    }
    return false;
}

static void end_of_input(struct plain_conn *c)
{
    if (c->has_bytes)
        llhttp_finish(&c->parser); /* completes a body without a length */
    c->is_unclear = true;
    if (c->is_done)
        complete(c);
    else
        plain_lose(c, 0);
}

void plain_read(struct plain_conn *c, bool is_last)
{
    char *scratch = c->fetcher->loop->scratch;

    for (int reads = 0; reads < READS_MOST || is_last; reads++) {
        ssize_t n = recv(c->fd, scratch, LOOP_SCRATCH_BYTES, MSG_DONTWAIT);
        bool is_all = n < (ssize_t)LOOP_SCRATCH_BYTES && !is_last;

        if (n == 0)
            end_of_input(c);
        else if (n < 0 && (is_last || (errno != EAGAIN && errno != EINTR)))
            plain_lose(c, errno == EAGAIN ? ECONNRESET : errno);
        if (n <= 0 || !feed(c, span_of(scratch, (size_t)n)) || is_all)
            return;
    }
}
