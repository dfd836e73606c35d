/* Several headers of that name are one list (RFC 9110, section 5.3). Some proxies append the port
 * as well. */
#include "http/forwarded.h"
#include "base/header_field.h"
#include "io/ip.h"

/* Of proxies in a row; a list of the client's making may hold thousands. */
enum { HOPS_MOST = 32 };

/* Cuts the part after the last comma off the end of *list. */
static struct span take_last(struct span *list)
{
    size_t from = list->n;
    struct span last;

    while (from > 0 && list->p[from - 1] != ',')
        from--;
    last = span_sub(*list, from, list->n);
    list->n = from > 0 ? from - 1 : 0;
    return span_trim(last);
}

/* `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80` */
static struct span without_port(struct span hop)
{
    size_t colon = span_find_char(hop, ':', 0);

    if (span_starts(hop, SPAN("[")))
        return span_sub(hop, 1, span_find_char(hop, ']', 0));
    if (span_find_char(hop, ':', colon + 1) < hop.n)
        return hop;
    return span_sub(hop, 0, colon);
}

enum finding { FOUND_CLIENT, FOUND_NONE, FOUND_NONSENSE };

static enum finding search(struct span list, const struct ip_ranges *trusted, unsigned *hops,
                           struct in6_addr *out_ip)
{
    while (list.n > 0) {
        struct span hop = take_last(&list);

        if (hop.n == 0)
            continue;
        if (++*hops > HOPS_MOST || !ip_parse(without_port(hop), out_ip))
            return FOUND_NONSENSE;
        if (!ip_ranges_contain(trusted, out_ip))
            return FOUND_CLIENT;
    }
    return FOUND_NONE;
}

bool forwarded_client(const struct header_field *headers, size_t count,
                      const struct ip_ranges *trusted, struct in6_addr *out_ip)
{
    enum finding found = FOUND_NONE;
    unsigned hops = 0;

    for (size_t i = count; i > 0 && found == FOUND_NONE; i--)
        if (span_ieq(headers[i - 1].name, SPAN("X-Forwarded-For")))
            found = search(headers[i - 1].value, trusted, &hops, out_ip);
    return found == FOUND_CLIENT;
}
