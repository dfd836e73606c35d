#include "http/reply.h"
#include "base/header_field.h"

#include "base/datetime.h"
#include "protocol/status.h"
#include "rest/response.h"

#include <string.h>

/* The statuses of every day are ready to be copied. */
static void add_status(struct buf *b, int status)
{
    switch (status) {
    case 200:
        buf_add(b, SPAN("HTTP/1.1 200 OK\r\n"));
        break;
    case 201:
        buf_add(b, SPAN("HTTP/1.1 201 Created\r\n"));
        break;
    case 204:
        buf_add(b, SPAN("HTTP/1.1 204 No Content\r\n"));
        break;
    case 304:
        buf_add(b, SPAN("HTTP/1.1 304 Not Modified\r\n"));
        break;
    case 404:
        buf_add(b, SPAN("HTTP/1.1 404 Not Found\r\n"));
        break;
    default:
        buf_add_str(b, "HTTP/1.1 ");
        buf_add_u64(b, (uint64_t)status);
        buf_add_char(b, ' ');
        buf_add_str(b, status_reason(status));
        buf_add_str(b, "\r\n");
        break;
    }
}

static char *put(char *at, struct span s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static inline char *put_header(char *at, struct span name, struct span value)
{
    at = put(put(at, name), SPAN(": "));
    return put(put(at, value), SPAN("\r\n"));
}

static bool has_body(const struct response *response)
{
    return response->status != 204 && response->status != 304;
}

static char *put_body_headers(char *at, const struct response *response, bool is_http10)
{
    char room[SPAN_U64_BYTES];

    if (!has_body(response))
        return at;
    if (response->content_type.p != NULL) {
        at = put_header(at, SPAN("Content-Type"), response->content_type);
        at = put(at, SPAN("X-Content-Type-Options: nosniff\r\n"));
    }
    if (response->is_stream)
        return is_http10 ? at : put(at, SPAN("Transfer-Encoding: chunked\r\n"));
    return put_header(at, SPAN("Content-Length"),
                      span_u64(response->body.n + response->later_bytes, room));
}

/* What put_headers needs at most. */
static size_t headers_bytes(const struct response *response, const struct reply_options *options)
{
    static const char ours[] = "Content-Type: \r\n"
                               "X-Content-Type-Options: nosniff\r\n"
                               "Content-Length: 18446744073709551615\r\n"
                               "Connection: keep-alive\r\n"
                               "Svc-applied: \r\n"
                               "\r\n";
    size_t n = sizeof(ours) + options->common.n + options->applied.n + response->content_type.n;

    for (size_t i = 0; i < response->header_count; i++)
        n += response->headers[i].name.n + response->headers[i].value.n + SPAN(": \r\n").n;
    return n;
}

static char *put_headers(char *at, const struct response *response,
                         const struct reply_options *options)
{
    at = put(at, options->common);
    if (options->applied.p != NULL)
        at = put_header(at, SPAN("Svc-applied"), options->applied);
    for (size_t i = 0; i < response->header_count; i++)
        at = put_header(at, response->headers[i].name, response->headers[i].value);
    at = put_body_headers(at, response, options->is_http10);
    if (options->close)
        at = put(at, SPAN("Connection: close\r\n"));
    else if (options->is_http10)
        at = put(at, SPAN("Connection: keep-alive\r\n"));
    return put(at, SPAN("\r\n"));
}

void reply_add_head(struct buf *b, const struct response *response,
                    const struct reply_options *options)
{
    char *at;

    add_status(b, response->status);
    at = buf_reserve(b, headers_bytes(response, options)); /* once: there are several headers */
    if (at != NULL)
        buf_commit(b, (size_t)(put_headers(at, response, options) - at));
}

struct span reply_body(const struct response *response, const struct reply_options *options)
{
    return has_body(response) && !options->is_head ? buf_span(&response->body)
                                                   : (struct span){NULL, 0};
}

void reply_add(struct buf *b, const struct response *response, const struct reply_options *options)
{
    reply_add_head(b, response, options);
    buf_add(b, reply_body(response, options));
}

const struct span reply_last_chunk = SPAN_INIT("0\r\n\r\n");

void reply_add_chunk_head(struct buf *b, size_t bytes)
{
    buf_printf(b, "%zx\r\n", bytes);
}

void reply_add_continue(struct buf *b)
{
    buf_add(b, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

void reply_add_common(struct buf *b, int64_t unix_s)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct datetime_parts at;

    datetime_parts((struct instant){unix_s, 0}, &at);
    buf_printf(b, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\nSvc-version: " SVCD_VERSION "\r\n",
               days[at.day_of_week], at.day, months[at.month - 1], at.year, at.hour, at.minute,
               at.second);
}
