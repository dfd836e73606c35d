/* The request line and what may stand in it (RFC 9112, section 3), and the Host field's syntax.
 * llhttp accepts several spaces between the parts, HTTP/0.9, a target that does not fit the method,
 * and bytes beyond ASCII; this does not. */
#include "base/limits.h"
#include "base/text.h"
#include "h1_private.h"
#include "io/ip.h"

enum { MAX_PORT = 65535 };

/* In the name of a host: what RFC 3986 does not reserve. */
static const bool name_chars[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true,
    ['.'] = true,         ['_'] = true,         ['~'] = true,
};

static bool is_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!name_chars[(unsigned char)s.p[i]])
            return false;
    return s.n > 0;
}

static bool is_ipv6(struct span s)
{
    struct in6_addr address;

    return span_find_char(s, ':', 0) < s.n && ip_parse(s, &address);
}

/* What follows the host: nothing, or a colon and a port, which may be empty. */
static bool is_port(struct span s)
{
    uint64_t port;

    if (s.n <= 1)
        return s.n == 0 || s.p[0] == ':';
    return s.p[0] == ':' && span_to_u64(span_sub(s, 1, s.n), &port) && port <= MAX_PORT;
}

bool h1_is_authority(struct span s)
{
    size_t end;

    if (s.n > 0 && s.p[0] == '[') {
        end = span_find_char(s, ']', 1);
        return end < s.n && is_ipv6(span_sub(s, 1, end)) && is_port(span_sub(s, end + 1, s.n));
    }
    end = span_find_char(s, ':', 0);
    return is_name(span_sub(s, 0, end)) && is_port(span_sub(s, end, s.n));
}

/* A higher minor version would have to be answered too (RFC 9110, section 2.5), but there is none,
 * and none will come. */
static enum h1_fail read_version(struct span s, bool *out_is_http10)
{
    uint64_t major, minor;

    if (s.n != 8 || !span_starts(s, SPAN("HTTP/")) || s.p[6] != '.' ||
        !span_to_u64(span_sub(s, 5, 6), &major) || !span_to_u64(span_sub(s, 7, 8), &minor))
        return H1_BAD_LINE;
    if (major != 1 || minor > 1)
        return H1_BAD_VERSION;
    *out_is_http10 = minor == 0;
    return H1_OK;
}

/* Cuts an absolute-form target down to its path, and finds the host it names. */
static bool split_absolute(struct h1_request *r)
{
    struct span s = r->target;
    size_t host_at = span_istarts(s, SPAN("http://"))    ? 7
                     : span_istarts(s, SPAN("https://")) ? 8
                                                         : 0;
    size_t path_at;

    if (host_at == 0)
        return false;
    path_at = span_find_char(s, '/', host_at);
    r->host = span_sub(s, host_at, path_at);
    /* An empty path means `/`: the slash before the host is one, and lives as long as the rest. */
    r->target = path_at < s.n ? span_sub(s, path_at, s.n) : span_sub(s, host_at - 1, host_at);
    return h1_is_authority(r->host);
}

/* RFC 9112, section 3.2: visible ASCII without a fragment. RFC 3986 would have more of it escaped,
 * but people type `<`, `>` and quotes into conditions as they are, and they do no harm. The
 * authority-form belongs to CONNECT alone. */
static enum h1_fail read_target(struct h1_request *r)
{
    if (r->target.n == 0 || !span_holds_only(r->target, '!', '~', '#'))
        return H1_BAD_TARGET;
    if (r->target.p[0] == '/')
        return H1_OK;
    if (span_eq(r->target, SPAN("*")))
        return span_eq(r->method, SPAN("OPTIONS")) ? H1_OK : H1_BAD_TARGET;
    return split_absolute(r) ? H1_OK : H1_BAD_TARGET;
}

enum h1_fail h1_read_request_line(struct span line, const struct limits *limits,
                                  struct h1_request *r)
{
    struct span rest = line;
    enum h1_fail fail;

    r->method = span_split(&rest, ' ');
    r->target = span_split(&rest, ' ');
    r->host = (struct span){NULL, 0};
    if (!text_is_token(r->method))
        return H1_BAD_LINE;
    fail = read_version(rest, &r->is_http10);
    if (fail != H1_OK)
        return fail;
    if (span_eq(r->method, SPAN("CONNECT")))
        return H1_BAD_CONNECT;
    r->known_method = method_of(r->method);
    if (r->target.n > (size_t)limits->uri_bytes)
        return H1_LONG_TARGET;
    return read_target(r);
}
