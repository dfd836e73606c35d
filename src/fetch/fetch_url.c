/* libcurl's parser takes a URL apart, so that what is checked here is what it will connect to; the
 * checks are ours. */
#include "fetch_private.h"

#include "base/text.h"
#include "fetch/fetch_url.h"
#include "fetch/resolve.h"

#include <string.h>

enum { URL_BYTES = 8192, NAME_BYTES = 253, LABEL_BYTES = 63, PORT_MOST = 65535 };

struct scheme {
    struct span prefix;
    unsigned port; /* when the URL names none; 0: it must */
};

static const struct scheme web_schemes[] = {{SPAN_INIT("http://"), 80},
                                            {SPAN_INIT("https://"), 443}};
/* The schemes of libcurl that leave it to the proxy to resolve the name. */
static const struct scheme proxy_schemes[] = {
    {SPAN_INIT("http://"), 0}, {SPAN_INIT("https://"), 0}, {SPAN_INIT("socks5h://"), 0}};

static bool is_number(struct span label)
{
    bool is_hex = span_istarts(label, SPAN("0x"));

    for (size_t i = is_hex ? 2 : 0; i < label.n; i++)
        if ((unsigned)text_hex_value(label.p[i]) >= (is_hex ? 16 : 10))
            return false;
    return true;
}

/* What ends in a number is no name: somebody behind us might read it as an address in one of the
 * old spellings (URL Standard, "ends in a number"). */
static bool is_name(struct span s)
{
    struct span rest = s, label = s;

    if (s.n == 0 || s.n > NAME_BYTES)
        return false;
    while (rest.p != NULL) {
        label = span_split(&rest, '.');
        if (label.n == 0 || label.n > LABEL_BYTES)
            return false;
        for (size_t i = 0; i < label.n; i++)
            if (memchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
                       label.p[i], 64) == NULL)
                return false;
    }
    return !is_number(label);
}

static bool parse_host(struct span host, struct fetch_target *target)
{
    bool brackets = span_starts(host, SPAN("[")) && span_ends(host, SPAN("]"));
    struct in6_addr ip;

    target->name = brackets ? span_sub(host, 1, host.n - 1) : host;
    target->literal = ip_parse(target->name, &ip);
    if (target->literal)
        return brackets == (span_find_char(host, ':', 0) < host.n);
    return !brackets && is_name(host);
}

/* Cuts `:port` off the end of *host, when it has one. */
static bool split_port(struct span *host, unsigned *port)
{
    size_t n = host->n;
    uint64_t value;

    while (n > 0 && host->p[n - 1] >= '0' && host->p[n - 1] <= '9')
        n--;
    if (n == 0 || n == host->n || host->p[n - 1] != ':')
        return true;
    if (!span_to_u64(span_sub(*host, n, host->n), &value) || value > PORT_MOST)
        return false;
    *host = span_sub(*host, 0, n - 1);
    *port = (unsigned)value;
    return true;
}

static const struct scheme *find_scheme(struct span url, const struct scheme *schemes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_istarts(url, schemes[i].prefix))
            return &schemes[i];
    return NULL;
}

static bool parse_authority(struct span authority, unsigned default_port,
                            struct fetch_target *out_target)
{
    struct fetch_target target = {.port = default_port};

    if (!split_port(&authority, &target.port) || target.port == 0 ||
        !parse_host(authority, &target))
        return false;
    *out_target = target;
    return true;
}

bool fetch_target_parse(struct span origin, struct fetch_target *out_target)
{
    const struct scheme *scheme = find_scheme(origin, web_schemes, ARRAY_LEN(web_schemes));

    return scheme != NULL &&
           parse_authority(span_sub(origin, scheme->prefix.n, origin.n), scheme->port, out_target);
}

bool fetch_proxy_parse(struct span url, struct fetch_target *out_target)
{
    const struct scheme *scheme = find_scheme(url, proxy_schemes, ARRAY_LEN(proxy_schemes));
    struct span authority = fetch_url_origin(url);
    size_t at = authority.n;

    if (scheme == NULL)
        return false;
    while (at > scheme->prefix.n && authority.p[at - 1] != '@')
        at--;
    return parse_authority(span_sub(authority, at, authority.n), scheme->port, out_target);
}

struct span fetch_url_origin(struct span url)
{
    size_t n = span_find(url, SPAN("://"));

    if (n == SIZE_MAX)
        return url;
    n += strlen("://");
    while (n < url.n && url.p[n] != '/' && url.p[n] != '?' && url.p[n] != '#')
        n++;
    return span_sub(url, 0, n);
}

static const char *refused(const struct egress_rules *rules, struct span name,
                           char out_why[EGRESS_WHY_BYTES])
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};

    if (!ip_parse(name, &address.sin6_addr))
        return NULL;
    return egress_refuses(rules, (const struct sockaddr *)&address, out_why);
}

const char *fetch_target_refused(const struct egress_rules *rules,
                                 const struct fetch_target *target, char out_why[EGRESS_WHY_BYTES])
{
    if (!resolve_is_localhost(target->name))
        return refused(rules, target->name, out_why);
    if (refused(rules, SPAN("::1"), out_why) == NULL)
        return NULL;
    return refused(rules, SPAN("127.0.0.1"), out_why);
}

static struct err *parse_error(CURLUcode code)
{
    static const struct {
        CURLUcode code;
        const char *text;
    } texts[] = {
        {CURLUE_USER_NOT_ALLOWED, "the URL must not hold a user name or password"},
        {CURLUE_BAD_PORT_NUMBER, "the port of the URL is not a number from 1 to 65535"},
        {CURLUE_NO_HOST, "the URL has no host"},
        {CURLUE_BAD_HOSTNAME, "the host of the URL is not a name or an address"},
        {CURLUE_BAD_IPV6, "the host of the URL is not an IPv6 address"},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].code == code)
            return ERR(ERR_INVALID_ENTITY, "%s", texts[i].text);
    return ERR(ERR_INVALID_ENTITY, "the URL is not valid: %s", curl_url_strerror(code));
}

/* libcurl would read names that are not ASCII as the process's locale says. An escaped name has
 * another spelling, and a zone has no meaning on another machine. */
static struct err *check_host_text(struct span origin)
{
    for (size_t i = 0; i < origin.n; i++) {
        if ((unsigned char)origin.p[i] >= 0x80)
            return ERR(ERR_INVALID_ENTITY, "the host of the URL is not ASCII: such names are "
                                           "written as punycode (xn--...)");
        if (origin.p[i] == '%')
            return parse_error(CURLUE_BAD_HOSTNAME);
    }
    return NULL;
}

static struct err *check_length(struct span url)
{
    if (url.n <= URL_BYTES)
        return NULL;
    return ERR(ERR_INVALID_ENTITY, "the URL is longer than %d bytes", URL_BYTES);
}

/* What libcurl's parser would repair, or refuse with fewer words. */
static struct err *check_text(struct span url)
{
    const struct scheme *scheme;

    TRY(check_length(url));
    for (size_t at = 0; at < url.n; at++)
        if ((unsigned char)url.p[at] <= ' ' || url.p[at] == 0x7f)
            return ERR(ERR_INVALID_ENTITY, "the URL has a space or control character at byte %zu",
                       at);
    scheme = find_scheme(url, web_schemes, ARRAY_LEN(web_schemes));
    if (scheme == NULL)
        return ERR(ERR_INVALID_ENTITY, "the URL does not begin with http:// or https://");
    if (span_eq(span_sub(url, scheme->prefix.n, scheme->prefix.n + 1), SPAN("/")))
        return parse_error(CURLUE_NO_HOST);
    return check_host_text(fetch_url_origin(url));
}

/* The part into the arena; absent when the URL has none. */
static CURLUcode get_part(CURLU *u, CURLUPart part, unsigned flags, struct arena *a,
                          struct span *out_text)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(u, part, &text, flags);

    *out_text = text != NULL ? arena_copy(a, span_str(text)) : span_str(NULL);
    curl_free(text);
    return code == CURLUE_NO_PORT || code == CURLUE_NO_QUERY ? CURLUE_OK : code;
}

struct url_parts {
    struct span scheme, host, port, path, query;
};

static CURLUcode take_apart(CURLU *u, const char *url, struct arena *a, struct url_parts *parts)
{
    CURLUcode code = curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER | CURLU_URLENCODE);

    if (code == CURLUE_OK)
        code = get_part(u, CURLUPART_SCHEME, 0, a, &parts->scheme);
    if (code == CURLUE_OK)
        code = get_part(u, CURLUPART_HOST, 0, a, &parts->host);
    if (code == CURLUE_OK)
        code = get_part(u, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT, a, &parts->port);
    if (code == CURLUE_OK)
        code = get_part(u, CURLUPART_PATH, 0, a, &parts->path);
    if (code == CURLUE_OK)
        code = get_part(u, CURLUPART_QUERY, 0, a, &parts->query);
    return code;
}

static struct err *check_target(const struct egress_rules *rules, const struct url_parts *parts,
                                struct arena *a, struct span *out_origin)
{
    struct fetch_target target;
    char why[EGRESS_WHY_BYTES];
    const char *refusal;
    bool has_port = parts->port.p != NULL;
    struct span origin =
        arena_printf(a, "%.*s://%.*s%s%.*s", SPAN_FMT(parts->scheme), SPAN_FMT(parts->host),
                     has_port ? ":" : "", SPAN_FMT(parts->port));

    if (span_eq(parts->port, SPAN("0")))
        return parse_error(CURLUE_BAD_PORT_NUMBER);
    if (!fetch_target_parse(origin, &target))
        return parse_error(CURLUE_BAD_HOSTNAME);
    refusal = fetch_target_refused(rules, &target, why);
    if (refusal != NULL)
        return ERR(ERR_INVALID_ENTITY, "the address is not allowed: %s", refusal);
    *out_origin = origin;
    return NULL;
}

struct err *fetch_check_url(const struct egress_rules *rules, struct span url, struct arena *a,
                            struct span *out_normal)
{
    struct url_parts parts;
    struct span origin = {NULL, 0}, normal;
    CURLU *u;
    CURLUcode code;

    TRY(check_text(url));
    u = curl_url();
    if (u == NULL)
        return ERR(ERR_UNKNOWN, "libcurl is out of memory");
    code = take_apart(u, arena_copy(a, url).p, a, &parts);
    curl_url_cleanup(u);
    if (code != CURLUE_OK)
        return parse_error(code);
    parts.host = text_fold(a, parts.host);
    if (span_ends(parts.host, SPAN(".")))
        parts.host.n--;
    TRY(check_target(rules, &parts, a, &origin));
    normal = arena_printf(a, "%.*s%.*s%s%.*s", SPAN_FMT(origin), SPAN_FMT(parts.path),
                          parts.query.p != NULL ? "?" : "", SPAN_FMT(parts.query));
    TRY(check_length(normal)); /* what is percent-encoded is three times as long */
    *out_normal = normal;
    return NULL;
}
