/* The head of a request, as RFC 9112 has it: the line, then Host, User-Agent and Accept unless the
 * caller brings its own, then the caller's fields in their order, then the body's length. An http
 * proxy that makes no tunnel is asked by the whole URL, and shown who asks. */
#include "base/blob.h"
#include "fetch_private.h"

#include <string.h>

enum { HEAD_KEPT = 4096 }; /* bytes, for the next request */

static bool breaks_line(struct span s)
{
    if (span_holds_only(s, ' ', UINT8_MAX, '\0')) /* as nearly always: no control character */
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0')
            return true;
    return false;
}

/* RFC 9110, section 8.6: with this method a missing body is an empty one. */
static bool means_a_body(struct span method)
{
    return span_eq(method, SPAN("POST")) || span_eq(method, SPAN("PUT")) ||
           span_eq(method, SPAN("PATCH"));
}

static void add_header(struct buf *b, struct span name, struct span value)
{
    buf_add(b, name);
    buf_add(b, value.n > 0 ? SPAN(": ") : SPAN(":"));
    buf_add(b, value);
    buf_add(b, SPAN("\r\n"));
}

/* False when its name or its value would be more than a line. */
static bool add_given_header(struct buf *b, const struct header_field *h)
{
    size_t from = b->n;

    add_header(b, h->name, h->value);
    return !breaks_line(span_sub(buf_span(b), from, b->n - strlen("\r\n")));
}

static bool asks_by_url(const struct fetch_transfer *t)
{
    return t->fetcher->sends_url && !t->origin->is_tls;
}

static void add_request_line(struct buf *b, const struct fetch_transfer *t, struct span origin)
{
    struct span url = t->fetch->url;
    struct span target = span_sub(url, origin.n, url.n);

    buf_add(b, t->fetch->method);
    buf_add_char(b, ' ');
    if (asks_by_url(t))
        buf_add(b, origin);
    if (!span_starts(target, SPAN("/")))
        buf_add_char(b, '/');
    buf_add(b, span_sub(target, 0, span_find_char(target, '#', 0)));
    buf_add(b, SPAN(" HTTP/1.1\r\n"));
}

static void add_own_headers(struct buf *b, const struct fetch_transfer *t, struct span origin)
{
    const struct fetch *fetch = t->fetch;
    size_t scheme = t->origin->is_tls ? strlen("https://") : strlen("http://");
    const struct header_field own[] = {{SPAN("Host"), span_sub(origin, scheme, origin.n)},
                                       {SPAN("User-Agent"), SPAN(FETCH_USER_AGENT)},
                                       {SPAN("Accept"), SPAN("*/*")}};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (header_field_find(fetch->headers, fetch->header_count, own[i].name) == NULL)
            add_header(b, own[i].name, own[i].value);
    if (asks_by_url(t) && t->fetcher->proxy_authorization.n > 0)
        add_header(b, SPAN("Proxy-Authorization"), buf_span(&t->fetcher->proxy_authorization));
}

const char *fetch_request_write(struct fetch_transfer *t)
{
    const struct fetch *fetch = t->fetch;
    struct span origin = fetch_origin_text(t->origin);
    struct buf *b = &t->head;

    buf_shrink(b, HEAD_KEPT);
    add_request_line(b, t, origin);
    add_own_headers(b, t, origin);
    for (size_t i = 0; i < fetch->header_count; i++)
        if (!add_given_header(b, &fetch->headers[i]))
            return "a request header holds a line break";
    t->sends_body = fetch->body != NULL && !span_eq(fetch->method, SPAN("HEAD"));
    if (t->sends_body || means_a_body(fetch->method)) {
        buf_add(b, SPAN("Content-Length: "));
        buf_add_u64(b, t->sends_body ? blob_span(fetch->body).n : 0);
        buf_add(b, SPAN("\r\n"));
    }
    buf_add(b, SPAN("\r\n"));
    return NULL;
}
