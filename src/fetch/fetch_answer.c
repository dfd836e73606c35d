/* llhttp calls back with the parts of an answer: heads, interim ones (1xx) among them, of which
 * only the number counts; the body; trailers, which matter to nobody and are only measured. Heads
 * and trailers have a limit, the body is read so far and no further, and what chunks have around
 * them may be some times as long as the body. Bytes are fed in pieces that end where a limit is
 * reached, so that the verdict is the same however they come.
 *
 * What llhttp does not take after a complete head leaves the status as it is: the receiver has
 * answered, though nobody can say where the answer ends. */
#include "fetch_answer.h"

#include "base/clock.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#define RETRY_AFTER_MOST_S (INT64_C(365) * 24 * 3600)
#define NS_PER_S 1000000000
#define NOISE_FACTOR 8 /* chunks of one byte have six around it */
#define NOISE_BYTES ((uint64_t)1 << 20)

enum {
    INTERIM_MOST = 16,
    READ_BYTES = 65536,
    KEEP_BYTES = 4096,
    DATE_BYTES = 64,
    WANTED_BYTES = 256
};

static struct fetch_answer *answer_of(llhttp_t *parser)
{
    return CONTAINER_OF(parser, struct fetch_answer, parser);
}

static int verdict_of(const struct fetch_answer *a)
{
    return a->stop == FETCH_GOES_ON ? 0 : HPE_USER;
}

static void begin_head(struct fetch_answer *a)
{
    if (a->in_head || a->complete_head)
        return;
    a->in_head = true;
    a->retry_after_s = -1;
    for (size_t i = 0; i < a->fetch->wanted_count; i++)
        buf_clear(&a->found[i]);
    if (a->parser.status_code >= 200)
        a->status = a->parser.status_code;
    else if (++a->interim > INTERIM_MOST)
        a->stop = FETCH_TOO_MANY_INTERIM;
}

static int on_status(llhttp_t *parser)
{
    begin_head(answer_of(parser));
    return verdict_of(answer_of(parser));
}

static int on_value(llhttp_t *parser, const char *p, size_t n)
{
    struct fetch_answer *a = answer_of(parser);

    if (!a->complete_head) /* else a trailer */
        buf_add(&a->line, span_of(p, n));
    return 0;
}

static int on_name(llhttp_t *parser, const char *p, size_t n)
{
    on_value(parser, p, n);
    answer_of(parser)->name_bytes = answer_of(parser)->line.n;
    return 0;
}

/* RFC 9110, section 10.2.3: seconds, or a date in one of three forms that all begin with the name
 * of a day. -1 when it is neither. */
static int64_t parse_retry_after(struct span value)
{
    char text[DATE_BYTES];
    uint64_t seconds;
    time_t date;

    if (value.n == 0 || value.n >= sizeof(text))
        return -1;
    if (span_to_u64(value, &seconds))
        return (int64_t)MIN(seconds, (uint64_t)RETRY_AFTER_MOST_S);
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    if (strspn(text, "0123456789") == value.n)
        return RETRY_AFTER_MOST_S; /* too large for 64 bits */
    if (!isalpha((unsigned char)text[0]))
        return -1;
    date = curl_getdate(text, NULL);
    if (date < 0)
        return -1;
    return MIN(MAX((int64_t)date - clock_unix_ns() / NS_PER_S, 0), RETRY_AFTER_MOST_S);
}

/* Nothing but chunks was asked for (RFC 9112, section 7.4). */
static bool is_packed(struct span codings)
{
    struct span rest = codings;

    while (rest.p != NULL) {
        struct span coding = span_trim(span_split(&rest, ','));

        if (coding.n > 0 && !span_ieq(coding, SPAN("chunked")) &&
            !span_ieq(coding, SPAN("identity")))
            return true;
    }
    return false;
}

static void find_wanted(struct fetch_answer *a, struct span name, struct span value)
{
    for (size_t i = 0; i < a->fetch->wanted_count; i++) {
        if (!span_ieq(name, a->fetch->wanted[i]))
            continue;
        if (a->found[i].n > 0)
            buf_add(&a->found[i], SPAN(", "));
        buf_add(&a->found[i], value);
    }
}

/* The longest of several Retry-After counts: never less than was asked. */
static int on_field(llhttp_t *parser)
{
    struct fetch_answer *a = answer_of(parser);
    struct span line = buf_span(&a->line);
    struct span name = span_sub(line, 0, a->name_bytes);
    struct span value = span_sub(line, a->name_bytes, line.n);

    if (a->complete_head)
        return 0;
    if (span_find_char(value, '\0', 0) < value.n)
        a->stop = FETCH_NUL;
    if (span_ieq(name, SPAN("Retry-After")))
        a->retry_after_s = MAX(a->retry_after_s, parse_retry_after(span_trim(value)));
    else if (span_ieq(name, SPAN("Transfer-Encoding")) && is_packed(value))
        a->stop = FETCH_PACKED;
    find_wanted(a, name, span_trim(value));
    if (a->fetch->on_field != NULL && a->status != 0)
        a->fetch->on_field(a->fetch, name, span_trim(value));
    buf_clear(&a->line);
    return verdict_of(a);
}

static bool has_no_body(const struct fetch_answer *a)
{
    int status = a->parser.status_code;

    return status < 200 || status == 204 || status == 304 ||
           span_eq(a->fetch->method, SPAN("HEAD"));
}

static int on_head(llhttp_t *parser)
{
    struct fetch_answer *a = answer_of(parser);

    begin_head(a);
    if (a->stop != FETCH_GOES_ON)
        return -1;
    a->in_head = false;
    a->complete_head = a->status != 0;
    return has_no_body(a) ? 1 : 0;
}

bool fetch_answer_is_stream(const struct fetch_answer *a)
{
    return a->fetch->on_body != NULL && a->complete_head && a->status / 100 == 2;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    struct fetch_answer *a = answer_of(parser);

    a->body_bytes += n;
    if (fetch_answer_is_stream(a)) {
        if (!a->fetch->on_body(a->fetch, span_of(p, n)))
            a->stop = FETCH_BODY_READ;
        return verdict_of(a);
    }
    buf_add(&a->body, span_sub(span_of(p, n), 0, a->body.max - a->body.n));
    if (a->body_bytes > a->read_bytes)
        a->stop = FETCH_BODY_READ;
    return verdict_of(a);
}

/* Behind the last chunk trailers may follow: from there on another limit holds. */
static int on_chunk(llhttp_t *parser)
{
    answer_of(parser)->has_body = parser->content_length == 0;
    return parser->content_length == 0 ? HPE_PAUSED : 0;
}

static int on_complete(llhttp_t *parser)
{
    if (parser->status_code < 200)
        return parser->status_code == 101 ? HPE_USER : 0;
    answer_of(parser)->is_done = true;
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

void fetch_answer_begin(struct fetch_answer *a, struct fetch *fetch)
{
    struct buf body = a->body, line = a->line;
    size_t keep = fetch->keep_bytes != 0 ? fetch->keep_bytes : KEEP_BYTES;

    buf_shrink(&body, MIN(keep, KEEP_BYTES));
    body.max = keep;
    for (size_t i = 0; i < FETCH_WANTED_MOST; i++)
        buf_done(&a->found[i]);
    buf_shrink(&line, KEEP_BYTES);
    line.max = BUF_NO_CAP; /* the head has a limit */
    *a = (struct fetch_answer){
        .fetch = fetch,
        .retry_after_s = -1,
        .read_bytes = fetch->read_bytes != 0 ? fetch->read_bytes : READ_BYTES,
        .body = body,
        .line = line,
    };
    for (size_t i = 0; i < fetch->wanted_count; i++)
        buf_init(&a->found[i], WANTED_BYTES);
    llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
    llhttp_set_lenient_headers(&a->parser, 1); /* for what it costs nobody to overlook */
}

void fetch_answer_done(struct fetch_answer *a)
{
    for (size_t i = 0; i < FETCH_WANTED_MOST; i++)
        buf_done(&a->found[i]);
    buf_done(&a->line);
    buf_done(&a->body);
}

/* How many bytes may have come by now. Heads come first, trailers last. */
static uint64_t most_bytes(const struct fetch_answer *a)
{
    if (a->has_body)
        return a->trailers_at + FETCH_HEAD_BYTES;
    if (fetch_answer_is_stream(a))
        return UINT64_MAX;
    return a->complete_head ? NOISE_BYTES + NOISE_FACTOR * (uint64_t)a->read_bytes
                            : FETCH_HEAD_BYTES;
}

static enum fetch_progress refuse(struct fetch_answer *a, llhttp_errno_t code)
{
    a->code = code;
    a->is_unclear = true;
    return FETCH_BAD;
}

/* Chunks that llhttp does not take, or trailers, or more of a body than is read. */
static enum fetch_progress leave_unread(struct fetch_answer *a)
{
    a->stop = a->has_body ? FETCH_GOES_ON : FETCH_BODY_READ;
    a->is_unclear = true;
    return FETCH_WHOLE;
}

/* Takes what was understood off `bytes`. */
static enum fetch_progress feed_piece(struct fetch_answer *a, struct span *bytes)
{
    struct span piece = span_sub(*bytes, 0, (size_t)MIN(most_bytes(a) - a->received, bytes->n));
    llhttp_errno_t code = llhttp_execute(&a->parser, piece.p, piece.n);

    if (code == HPE_PAUSED)
        piece.n = (size_t)(llhttp_get_error_pos(&a->parser) - piece.p);
    *bytes = span_sub(*bytes, piece.n, bytes->n);
    a->received += piece.n;
    if (a->is_done) {
        a->is_unclear = code != HPE_PAUSED || bytes->n > 0;
        return FETCH_WHOLE;
    }
    if (code == HPE_PAUSED) {
        a->trailers_at = a->received;
        llhttp_resume(&a->parser);
    } else if (code != HPE_OK) {
        bool counts = a->complete_head && (a->stop == FETCH_GOES_ON || a->stop == FETCH_BODY_READ);

        return counts ? leave_unread(a) : refuse(a, code);
    }
    return FETCH_MORE;
}

enum fetch_progress fetch_answer_feed(struct fetch_answer *a, struct span bytes)
{
    a->has_bytes = a->has_bytes || bytes.n > 0;
    while (bytes.n > 0) {
        enum fetch_progress progress;

        if (a->received == most_bytes(a)) {
            a->stop = a->complete_head && !a->has_body ? FETCH_NOISE : FETCH_HEAD_TOO_LONG;
            return refuse(a, HPE_USER);
        }
        progress = feed_piece(a, &bytes);
        if (progress != FETCH_MORE)
            return progress;
    }
    return FETCH_MORE;
}

enum fetch_progress fetch_answer_end(struct fetch_answer *a)
{
    if (a->has_bytes)
        llhttp_finish(&a->parser); /* completes a body without a length */
    a->is_unclear = true;
    return a->is_done ? FETCH_WHOLE : FETCH_BAD;
}

bool fetch_answer_keeps_connection(const struct fetch_answer *a)
{
    return !a->is_unclear && llhttp_should_keep_alive(&a->parser);
}

static const char *const stop_texts[] = {
    [FETCH_HEAD_TOO_LONG] = "the head of the answer is longer than 64 KiB",
    [FETCH_TOO_MANY_INTERIM] = "more than 16 interim answers (1xx)",
    [FETCH_PACKED] = "the answer has a Transfer-Encoding that was not asked for",
    [FETCH_NUL] = "a header of the answer holds a Nul byte",
    [FETCH_NOISE] = "far more bytes came than an answer may have",
};

static enum fetch_error ended_early(const struct fetch_answer *a, char *why, size_t size)
{
    if (!a->has_bytes)
        snprintf(why, size, "Empty reply from the receiver");
    else if (a->complete_head && a->parser.content_length > 0 &&
             (a->parser.flags & F_CONTENT_LENGTH) != 0)
        snprintf(why, size, "the answer ended early, with %llu bytes remaining to read",
                 (unsigned long long)a->parser.content_length);
    else
        snprintf(why, size, "the connection ended in the %s of the answer",
                 a->complete_head ? "body" : "head");
    return FETCH_CLOSED;
}

enum fetch_error fetch_answer_fault(const struct fetch_answer *a, char *why, size_t size)
{
    const char *reason = llhttp_get_error_reason(&a->parser);

    if (a->stop != FETCH_GOES_ON) {
        snprintf(why, size, "%s", stop_texts[a->stop]);
        return FETCH_PROTOCOL;
    }
    if (a->code == HPE_OK)
        return ended_early(a, why, size);
    if (a->parser.status_code == 101) {
        snprintf(why, size, "the receiver switches to another protocol (101)");
        return FETCH_CLOSED;
    }
    snprintf(why, size, "the answer is not HTTP%s: %s", a->parser.http_major == 1 ? "/1.1" : "",
             reason != NULL && reason[0] != '\0' ? reason : llhttp_errno_name(a->code));
    return FETCH_PROTOCOL;
}
