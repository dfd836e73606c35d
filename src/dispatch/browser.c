/* A page of another site cannot leave `Origin` or `Sec-Fetch-Site` out, nor give another `Host`
 * than the name that it reached this server by. Programs send neither of the first two, and name
 * the address that they connect to. */
#include "dispatch/browser.h"

#include "dispatch/cors.h"
#include "io/ip.h"
#include "rest/call.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"

/* Browsers take names below localhost for the machine itself (RFC 6761, section 6.3). */
static bool is_loopback(struct span host)
{
    struct in6_addr ip;

    if (span_ieq(host, SPAN("localhost")) || span_eq(host, SPAN("127.0.0.1")))
        return true;
    if (host.n > SPAN(".localhost").n &&
        span_ieq(span_sub(host, host.n - SPAN(".localhost").n, host.n), SPAN(".localhost")))
        return true;
    return ip_parse(host, &ip) && (IN6_IS_ADDR_LOOPBACK(&ip) ||
                                   (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[IP_V4_AT] == 127));
}

/* The name is without the port, and an IPv6 address without its brackets. */
static bool is_own_host(const struct rest *rest, struct span authority)
{
    struct span host = span_starts(authority, SPAN("["))
                           ? span_sub(authority, 1, span_find_char(authority, ']', 0))
                           : span_sub(authority, 0, span_find_char(authority, ':', 0));

    if (is_loopback(host))
        return true;
    for (const char **at = rest->hosts; *at != NULL; at++)
        if (span_ieq(span_str(*at), host))
            return true;
    return false;
}

/* Which scheme the client sees, a proxy knows. */
static bool is_own_origin(struct span origin, struct span authority)
{
    size_t at = span_istarts(origin, SPAN("http://"))    ? SPAN("http://").n
                : span_istarts(origin, SPAN("https://")) ? SPAN("https://").n
                                                         : 0;

    return at > 0 && span_ieq(span_sub(origin, at, origin.n), authority);
}

static bool is_foreign(const struct call *call)
{
    const struct request *r = call->request;
    struct span origin = request_header(r, SPAN("Origin"));

    if (origin.p != NULL)
        return !is_own_origin(origin, r->host) && !cors_allows(call->rest, origin);
    return span_ieq(request_header(r, SPAN("Sec-Fetch-Site")), SPAN("cross-site"));
}

struct err *browser_check(const struct call *call)
{
    const struct request *r = call->request;

    /* HTTP/1.0 may leave the host out; browsers do not. */
    if (call->rest->hosts != NULL && r->host.p != NULL && !is_own_host(call->rest, r->host))
        return ERR(ERR_NOT_AUTHORIZED,
                   "the host '%.*s' is neither this machine's loopback nor among the "
                   "configuration's Hosts, and no API key is required here",
                   SPAN_FMT(r->host));
    if (is_foreign(call))
        return ERR(ERR_NOT_AUTHORIZED, "pages of other sites may not act here, where no API key is "
                                       "required, unless AllowedCorsOrigins has their origin");
    return NULL;
}

void browser_confine(struct call *call)
{
    static const struct span name = SPAN_INIT("Content-Security-Policy");

    if (call->request->is_local || response_header(call->response, name).p != NULL)
        return;
    response_add_own_header(call->response, name, SPAN("sandbox"));
}
