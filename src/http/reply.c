#include "http/reply.h"

#include "base/must.h"
#include "service/status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The statuses of every day, ready to be copied. */
static struct span status_line(int status)
{
    switch (status) {
    case 200:
        return SPAN("HTTP/1.1 200 OK\r\n");
    case 201:
        return SPAN("HTTP/1.1 201 Created\r\n");
    case 204:
        return SPAN("HTTP/1.1 204 No Content\r\n");
    case 304:
        return SPAN("HTTP/1.1 304 Not Modified\r\n");
    case 404:
        return SPAN("HTTP/1.1 404 Not Found\r\n");
    default:
        return (struct span){NULL, 0};
    }
}

static void add_status(struct buf *b, int status)
{
    struct span line = status_line(status);

    if (line.p != NULL) {
        buf_add(b, line);
        return;
    }
    buf_add_str(b, "HTTP/1.1 ");
    buf_add_u64(b, (uint64_t)status);
    buf_add_char(b, ' ');
    buf_add_str(b, status_reason(status));
    buf_add_str(b, "\r\n");
}

static char *put(char *at, struct span s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

/* Room is made once for the four parts: there are several headers in each answer. */
static void add_header(struct buf *b, struct span name, struct span value)
{
    size_t n = name.n + SPAN(": ").n + value.n + SPAN("\r\n").n;
    char *at = buf_reserve(b, n);

    if (at == NULL)
        return;
    at = put(put(at, name), SPAN(": "));
    put(put(at, value), SPAN("\r\n"));
    buf_commit(b, n);
}

static bool has_body(const struct response *response)
{
    return response->status != 204 && response->status != 304;
}

static void add_body_headers(struct buf *b, const struct response *response)
{
    if (!has_body(response))
        return;
    if (response->content_type.p != NULL) {
        add_header(b, SPAN("Content-Type"), response->content_type);
        buf_add(b, SPAN("X-Content-Type-Options: nosniff\r\n"));
    }
    buf_add(b, SPAN("Content-Length: "));
    buf_add_u64(b, response->body.n);
    buf_add(b, SPAN("\r\n"));
}

void reply_add_head(struct buf *b, const struct response *response,
                    const struct reply_options *options)
{
    add_status(b, response->status);
    add_header(b, SPAN("Date"), options->date);
    for (size_t i = 0; i < response->header_count; i++)
        add_header(b, response->headers[i].name, response->headers[i].value);
    add_body_headers(b, response);
    if (options->close)
        buf_add(b, SPAN("Connection: close\r\n"));
    else if (options->is_http10)
        buf_add(b, SPAN("Connection: keep-alive\r\n"));
    buf_add(b, SPAN("\r\n"));
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

void reply_add_continue(struct buf *b)
{
    buf_add(b, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

void reply_add_date(struct buf *b, int64_t unix_ns)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;

    MUST(gmtime_r(&seconds, &tm) != NULL);
    buf_printf(b, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
               months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}
