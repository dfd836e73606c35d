/* libcurl hands over the head line by line and the body in pieces. A head may be an interim one
 * (1xx), of which only the number counts; the trailers of the final answer are only measured. */
#include "fetch_private.h"

#include "base/clock.h"
#include "base/must.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define RETRY_AFTER_MOST_S (INT64_C(365) * 24 * 3600)
#define NS_PER_S 1000000000
#define NS_PER_MS 1000000u
#define US_PER_MS 1000

enum { INTERIM_MOST = 16, READ_BYTES = 65536, KEEP_BYTES = 4096, DATE_BYTES = 64 };

void fetch_answer_init(struct fetch_answer *a, const struct fetch *fetch)
{
    struct buf body = a->body;
    size_t keep = fetch->keep_bytes != 0 ? fetch->keep_bytes : KEEP_BYTES;

    buf_shrink(&body, MIN(keep, KEEP_BYTES));
    body.max = keep;
    *a = (struct fetch_answer){
        .retry_after_s = -1,
        .read_bytes = fetch->read_bytes != 0 ? fetch->read_bytes : READ_BYTES,
        .body = body,
    };
}

void fetch_answer_done(struct fetch_answer *a)
{
    buf_done(&a->body);
}

void fetch_answer_begin(struct fetch_answer *a, int status)
{
    a->in_head = true;
    a->retry_after_s = -1;
    if (status >= 200)
        a->status = status;
    else if (++a->interim > INTERIM_MOST)
        a->stop = FETCH_TOO_MANY_INTERIM;
}

/* `HTTP/1.1 200 OK`, `HTTP/2 200`; libcurl has looked at it before. */
static void read_status_line(struct fetch_answer *a, struct span line)
{
    size_t space = span_find_char(line, ' ', 0);
    uint64_t status;

    if (!span_to_u64(span_sub(line, space + 1, space + 4), &status))
        return;
    a->http2 = span_starts(line, SPAN("HTTP/2"));
    fetch_answer_begin(a, (int)status);
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

/* Nothing but chunks was asked for (RFC 9112, section 7.4). libcurl would unpack what is packed,
 * also when it is packed several times, and a few bytes may then keep it for minutes. */
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

/* Of several Retry-After the longest: never less than asked. */
void fetch_answer_field(struct fetch_answer *a, struct span name, struct span value)
{
    if (a->complete_head)
        return; /* a trailer */
    if (span_find_char(value, '\0', 0) < value.n)
        a->stop = FETCH_NUL;
    if (span_ieq(name, SPAN("Retry-After")))
        a->retry_after_s = MAX(a->retry_after_s, parse_retry_after(span_trim(value)));
    else if (span_ieq(name, SPAN("Transfer-Encoding")) && is_packed(value))
        a->stop = FETCH_PACKED;
}

static struct span without_line_end(struct span line)
{
    while (line.n > 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == '\n'))
        line.n--;
    return line;
}

void fetch_answer_end_head(struct fetch_answer *a)
{
    a->in_head = false;
    a->complete_head = a->status != 0;
}

static void read_header(struct fetch_answer *a, struct span line)
{
    struct span value = line;
    struct span name = span_split(&value, ':');

    fetch_answer_field(a, name, value);
}

size_t fetch_answer_on_head(char *p, size_t size, size_t n, void *data)
{
    struct fetch_answer *a = &MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, data)->answer;
    struct span line = without_line_end(span_of(p, size * n));

    a->head_bytes += size * n;
    if (a->head_bytes > FETCH_HEAD_BYTES)
        a->stop = FETCH_HEAD_TOO_LONG;
    if (a->stop != FETCH_GOES_ON)
        return 0;
    if (a->complete_head)
        return size * n;
    if (!a->in_head)
        read_status_line(a, line);
    else if (line.n > 0)
        read_header(a, line);
    else
        fetch_answer_end_head(a);
    return a->stop == FETCH_GOES_ON ? size * n : 0;
}

void fetch_answer_body(struct fetch_answer *a, struct span bytes)
{
    a->body_bytes += bytes.n;
    buf_add(&a->body, span_sub(bytes, 0, a->body.max - a->body.n));
    if (a->body_bytes > a->read_bytes)
        a->stop = FETCH_BODY_READ;
}

size_t fetch_answer_on_body(char *p, size_t size, size_t n, void *data)
{
    struct fetch_answer *a = &MUST_BE(struct fetch_transfer, FETCH_KIND_TRANSFER, data)->answer;

    fetch_answer_body(a, span_of(p, size * n));
    return a->stop == FETCH_GOES_ON ? size * n : 0;
}

/* The verdict. */

static const struct {
    CURLcode code;
    enum fetch_error error;
} verdicts[] = {
    {CURLE_OK, FETCH_OK},
    {CURLE_COULDNT_RESOLVE_HOST, FETCH_NAME},
    {CURLE_COULDNT_RESOLVE_PROXY, FETCH_NAME},
    {CURLE_COULDNT_CONNECT, FETCH_CONNECT},
    {CURLE_PROXY, FETCH_CONNECT},
    {CURLE_OPERATION_TIMEDOUT, FETCH_TIMEOUT},
    {CURLE_SSL_CONNECT_ERROR, FETCH_TLS},
    {CURLE_SSL_CERTPROBLEM, FETCH_TLS},
    {CURLE_SSL_CIPHER, FETCH_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_TLS},
    {CURLE_SSL_CACERT_BADFILE, FETCH_TLS},
    {CURLE_SSL_ISSUER_ERROR, FETCH_TLS},
    {CURLE_USE_SSL_FAILED, FETCH_TLS},
    {CURLE_GOT_NOTHING, FETCH_CLOSED},
    {CURLE_SEND_ERROR, FETCH_CLOSED},
    {CURLE_RECV_ERROR, FETCH_CLOSED},
    {CURLE_PARTIAL_FILE, FETCH_CLOSED},
    {CURLE_UNSUPPORTED_PROTOCOL, FETCH_PROTOCOL}, /* of the answer: HTTP/0.9 */
    {CURLE_WEIRD_SERVER_REPLY, FETCH_PROTOCOL},
    {CURLE_BAD_CONTENT_ENCODING, FETCH_PROTOCOL},
    {CURLE_HTTP2, FETCH_PROTOCOL},
    {CURLE_HTTP2_STREAM, FETCH_PROTOCOL},
};

/* libcurl 7.88.1 may call a stream broken that ended after a complete answer. */
static bool counts_over_http2(const struct fetch_answer *a, CURLcode code)
{
    return a->http2 && a->complete_head &&
           (code == CURLE_HTTP2_STREAM || code == CURLE_HTTP2 || code == CURLE_PARTIAL_FILE ||
            code == CURLE_RECV_ERROR);
}

/* It calls a line of more than 100 KiB a lack of memory. */
static bool line_too_long(const struct fetch_answer *a, CURLcode code)
{
    return code == CURLE_OUT_OF_MEMORY && a->in_head;
}

static enum fetch_error verdict(const struct fetch_transfer *t, CURLcode code)
{
    const struct fetch_answer *a = &t->answer;

    if (a->stop != FETCH_GOES_ON)
        return a->stop == FETCH_BODY_READ ? FETCH_OK : FETCH_PROTOCOL;
    if (line_too_long(a, code))
        return FETCH_PROTOCOL;
    if (code == CURLE_OK && !a->complete_head)
        return FETCH_CLOSED; /* in the head: libcurl takes that for its end */
    if (code == CURLE_COULDNT_CONNECT && t->refused[0] != '\0' && t->allowed_addresses == 0)
        return FETCH_REFUSED_ADDRESS;
    if (counts_over_http2(a, code))
        return FETCH_OK;
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
        if (verdicts[i].code == code)
            return verdicts[i].error;
    return FETCH_OTHER;
}

static const char *verdict_text(const struct fetch_transfer *t, enum fetch_error error,
                                CURLcode code)
{
    static const char too_long[] = "the head of the answer is longer than 64 KiB";

    if (t->answer.stop == FETCH_HEAD_TOO_LONG || line_too_long(&t->answer, code))
        return too_long;
    if (t->answer.stop == FETCH_TOO_MANY_INTERIM)
        return "more than 16 interim answers (1xx)";
    if (t->answer.stop == FETCH_PACKED)
        return "the answer has a Transfer-Encoding that was not asked for";
    if (t->answer.stop == FETCH_NUL)
        return "a header of the answer holds a Nul byte";
    if (t->answer.stop == FETCH_NOISE)
        return "far more bytes came than an answer may have";
    if (error == FETCH_REFUSED_ADDRESS)
        return t->refused;
    if (error == FETCH_CONNECT && t->no_socket != NULL)
        return t->no_socket;
    if (code == CURLE_OK)
        return "the connection ended in the head of the answer";
    return t->curl_text[0] != '\0' ? t->curl_text : curl_easy_strerror(code);
}

static uint32_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (uint32_t)((to_ns - from_ns) / NS_PER_MS) : 0;
}

/* libcurl's clock starts when it gets the request. */
static uint32_t phase_ms(const struct fetch_transfer *t, CURLINFO info)
{
    curl_off_t us = 0;

    if (curl_easy_getinfo(t->easy, info, &us) != CURLE_OK || us <= 0)
        return 0;
    return ms_between(t->begun_ns, t->launched_ns) + (uint32_t)(us / US_PER_MS);
}

static void add_phases(const struct fetch_transfer *t, struct fetch_result *out_result)
{
    long connections = 0;

    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connections);
    out_result->reused = connections == 0 && t->answer.complete_head;
    if (!out_result->reused) {
        out_result->connect_ms = phase_ms(t, CURLINFO_CONNECT_TIME_T);
        out_result->tls_ms = phase_ms(t, CURLINFO_APPCONNECT_TIME_T);
    }
    out_result->first_byte_ms = phase_ms(t, CURLINFO_STARTTRANSFER_TIME_T);
}

static void add_plain_phases(const struct fetch_transfer *t, struct fetch_result *out_result)
{
    out_result->reused = t->is_reused && t->answer.complete_head;
    out_result->connect_ms = ms_between(t->begun_ns, t->connected_ns);
    out_result->first_byte_ms = ms_between(t->begun_ns, t->first_byte_ns);
}

static void describe(const struct fetch_transfer *t, struct fetch_result *out_result)
{
    const struct fetch_answer *a = &t->answer;

    *out_result = (struct fetch_result){
        .status = a->complete_head ? a->status : 0,
        .retry_after_s = a->complete_head ? a->retry_after_s : -1,
        .body = buf_span(&a->body),
        .body_bytes = a->body_bytes,
        .truncated = a->stop == FETCH_BODY_READ,
        .total_ms = ms_between(t->begun_ns, clock_mono_ns()),
        .dns_ms = ms_between(t->begun_ns, t->resolved_ns),
    };
    if (t->state == FETCH_RUNNING && t->is_plain)
        add_plain_phases(t, out_result);
    else if (t->state == FETCH_RUNNING)
        add_phases(t, out_result);
}

/* libcurl quotes the peer in some of its messages. */
static void keep_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void fetch_answer_judge(struct fetch_transfer *t, CURLcode code, struct fetch_result *out_result)
{
    enum fetch_error error = verdict(t, code);

    if (error == FETCH_OK)
        describe(t, out_result);
    else
        fetch_answer_fail(t, error, out_result, "%s", verdict_text(t, error, code));
}

void fetch_answer_fail(struct fetch_transfer *t, enum fetch_error error,
                       struct fetch_result *out_result, const char *fmt, ...)
{
    struct span authority = span_of(t->host->origin, t->host->origin_bytes);
    size_t scheme = span_find(authority, SPAN("://"));
    size_t size = sizeof(out_result->why), n;
    va_list args;

    describe(t, out_result);
    out_result->error = error;
    if (scheme != SIZE_MAX)
        authority = span_sub(authority, scheme + strlen("://"), authority.n);
    n = (size_t)snprintf(out_result->why, size, "%.*s: ", SPAN_FMT(span_sub(authority, 0, 96)));
    va_start(args, fmt);
    vsnprintf(out_result->why + n, size - n, fmt, args);
    va_end(args);
    keep_printable(out_result->why);
}
