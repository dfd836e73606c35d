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

static void begin_head(struct plain_conn *c)
{
    if (!c->t->answer.in_head && !c->t->answer.complete_head)
        fetch_answer_begin(&c->t->answer, c->parser.status_code);
}

static int on_status(llhttp_t *parser)
{
    begin_head(conn_of(parser));
    return go_on(parser);
}

static int on_name(llhttp_t *parser, const char *p, size_t n)
{
    struct plain_conn *c = conn_of(parser);

    if (!c->t->answer.complete_head) /* trailers matter to nobody */
        buf_add(&c->line, span_of(p, n));
    c->name_bytes = c->line.n;
    return 0;
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
    struct plain_conn *c = conn_of(parser);

    if (!c->t->answer.complete_head)
        buf_add(&c->line, span_of(p, n));
    return 0;
}

static int on_field(llhttp_t *parser)
{
    struct plain_conn *c = conn_of(parser);
    struct span line = buf_span(&c->line);

    fetch_answer_field(&c->t->answer, span_sub(line, 0, c->name_bytes),
                       span_sub(line, c->name_bytes, line.n));
    buf_clear(&c->line);
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

/* Behind the last chunk may follow trailers, which matter to nobody, but have a limit. */
static int on_chunk(llhttp_t *parser)
{
    conn_of(parser)->has_body = parser->content_length == 0;
    return parser->content_length == 0 ? HPE_PAUSED : 0;
}

static int on_complete(llhttp_t *parser)
{
    struct plain_conn *c = conn_of(parser);

    if (parser->status_code < 200)
        return parser->status_code == 101 ? HPE_USER : 0;
    c->is_done = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_status_complete = on_status,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_field,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_complete,
};

void plain_expect(struct plain_conn *c)
{
    c->has_bytes = c->has_body = c->is_done = c->is_unclear = false;
    c->received = c->trailers_at = 0;
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

/* How many bytes may have come by now. Heads come first, trailers last. */
static uint64_t most_bytes(const struct plain_conn *c)
{
    const struct fetch_answer *a = &c->t->answer;

    if (c->has_body)
        return c->trailers_at + FETCH_HEAD_BYTES;
    return a->complete_head ? NOISE_BYTES + NOISE_FACTOR * (uint64_t)a->read_bytes
                            : FETCH_HEAD_BYTES;
}

/* An unreadable body: chunks that llhttp does not take, or trailers. The status counts. */
static void complete_unreadable(struct plain_conn *c)
{
    c->t->answer.stop = c->has_body ? FETCH_GOES_ON : FETCH_BODY_READ;
    c->is_unclear = true;
    complete(c);
}

/* Takes what was understood off `bytes`. False: the connection is not the request's any more. */
static bool feed(struct plain_conn *c, struct span *bytes)
{
    struct fetch_answer *a = &c->t->answer;
    struct span piece = span_sub(*bytes, 0, (size_t)MIN(most_bytes(c) - c->received, bytes->n));
    llhttp_errno_t code = llhttp_execute(&c->parser, piece.p, piece.n);

    if (code == HPE_PAUSED)
        piece.n = (size_t)(llhttp_get_error_pos(&c->parser) - piece.p);
    *bytes = span_sub(*bytes, piece.n, bytes->n);
    c->received += piece.n;
    if (c->is_done) {
        c->is_unclear = code != HPE_PAUSED || bytes->n > 0;
        complete(c);
        return false;
    }
    if (code == HPE_PAUSED) {
        c->trailers_at = c->received;
        llhttp_resume(&c->parser);
    } else if (code != HPE_OK && a->stop == FETCH_GOES_ON && a->complete_head) {
        complete_unreadable(c);
        return false;
    } else if (code != HPE_OK) {
        refuse(c, code);
        return false;
    }
    return true;
}

/* In pieces that end where a limit is reached: an answer is the same however its bytes are cut.
 * False: as above. */
static bool feed_within_limits(struct plain_conn *c, struct span bytes)
{
    struct fetch_answer *a = &c->t->answer;

    if (!c->has_bytes)
        c->t->first_byte_ns = clock_mono_ns();
    c->has_bytes = true;
    while (bytes.n > 0) {
        if (c->received == most_bytes(c)) {
            a->stop = a->complete_head && !c->has_body ? FETCH_NOISE : FETCH_HEAD_TOO_LONG;
            refuse(c, HPE_USER);
            return false;
        }
        if (!feed(c, &bytes))
            return false;
    }
    return true;
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
        if (n <= 0 || !feed_within_limits(c, span_of(scratch, (size_t)n)) || is_all)
            return;
    }
}
