/* Destinations and where they lead. Three lines: ranges to allow, ranges to deny, a URL; the rest
 * is an address. A URL that is let through is its own normal form's, and a host that the C library
 * takes for an address is one that a naive reading of the rules allows. */
#include "base/span.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/fetch_url.h"
#include "fuzzing.h"
#include "io/ip.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

enum { RANGES_MOST = 8, HOST_BYTES = 300 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* ---- a naive reading of the rules ---- */

static bool in_v4(uint32_t ip, const char *network, unsigned bits)
{
    struct in_addr in;

    MUST(inet_pton(AF_INET, network, &in) == 1);
    return (ip ^ ntohl(in.s_addr)) >> (32 - bits) == 0;
}

static bool is_v4_forbidden(uint32_t ip, enum egress_preset preset)
{
    bool never = in_v4(ip, "0.0.0.0", 8) || in_v4(ip, "169.254.0.0", 16) ||
                 in_v4(ip, "224.0.0.0", 4) || in_v4(ip, "240.0.0.0", 4) ||
                 in_v4(ip, "168.63.129.16", 32) || in_v4(ip, "100.100.100.200", 32);
    bool local = in_v4(ip, "10.0.0.0", 8) || in_v4(ip, "127.0.0.0", 8) ||
                 in_v4(ip, "172.16.0.0", 12) || in_v4(ip, "192.168.0.0", 16) ||
                 in_v4(ip, "100.64.0.0", 10) || in_v4(ip, "198.18.0.0", 15);

    return never || (local && preset == EGRESS_PUBLIC_ONLY);
}

static uint32_t v4_at(const struct in6_addr *ip, size_t at)
{
    uint32_t v4;

    memcpy(&v4, ip->s6_addr + at, sizeof(v4));
    return ntohl(v4);
}

/* Addresses that hold one of IPv4: mapped, compatible, NAT64, 6to4, Teredo's server. */
static bool holds_forbidden(const struct in6_addr *ip, enum egress_preset preset)
{
    const uint8_t *b = ip->s6_addr;

    if (IN6_IS_ADDR_V4MAPPED(ip) || IN6_IS_ADDR_V4COMPAT(ip) ||
        memcmp(b, "\0\x64\xff\x9b\0\0\0\0\0\0\0\0", 12) == 0)
        return is_v4_forbidden(v4_at(ip, 12), preset);
    if (b[0] == 0x20 && b[1] == 0x02)
        return is_v4_forbidden(v4_at(ip, 2), preset);
    if (b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0)
        return is_v4_forbidden(v4_at(ip, 4), preset) || is_v4_forbidden(~v4_at(ip, 12), preset);
    return false;
}

static bool is_v6_forbidden(const struct in6_addr *ip, enum egress_preset preset)
{
    bool never =
        IN6_IS_ADDR_UNSPECIFIED(ip) || IN6_IS_ADDR_LINKLOCAL(ip) || IN6_IS_ADDR_MULTICAST(ip);
    bool local =
        IN6_IS_ADDR_LOOPBACK(ip) || IN6_IS_ADDR_SITELOCAL(ip) || (ip->s6_addr[0] & 0xfe) == 0xfc;

    return never || (local && preset == EGRESS_PUBLIC_ONLY) || holds_forbidden(ip, preset);
}

static bool is_forbidden(const union address *address, enum egress_preset preset)
{
    if (address->any.sa_family == AF_INET)
        return is_v4_forbidden(ntohl(address->v4.sin_addr.s_addr), preset);
    return is_v6_forbidden(&address->v6.sin6_addr, preset);
}

/* ---- rules ---- */

/* Ranges with blanks between them. True when some were understood. */
static bool add_ranges(struct egress_rules *rules, bool allow, struct span line)
{
    bool any = false;

    for (size_t i = 0; i < RANGES_MOST && line.p != NULL; i++) {
        struct err *e = ip_ranges_add(allow ? &rules->allow : &rules->deny, span_split(&line, ' '));

        any = any || e == NULL;
        err_free(e);
    }
    return any;
}

static const char *refusal(const struct egress_rules *rules, const union address *address)
{
    static char why[EGRESS_WHY_BYTES];
    const char *text = egress_refuses(rules, &address->any, why);

    MUST(text == NULL || (text[0] != '\0' && strlen(text) < EGRESS_WHY_BYTES));
    return text;
}

/* What a range denies stays denied whatever is allowed; nothing more is allowed by more denials. */
static void check_lists(const struct egress_rules *rules, struct span allow,
                        const union address *address)
{
    struct egress_rules only_allow;

    egress_init(&only_allow);
    only_allow.preset = rules->preset;
    add_ranges(&only_allow, true, allow);
    if (refusal(&only_allow, address) != NULL)
        MUST(refusal(rules, address) != NULL);
    egress_done(&only_allow);
}

static void check_address(const struct egress_rules *rules, const struct egress_rules *strict,
                          const union address *address)
{
    MUST(!is_forbidden(address, rules->preset) || refusal(rules, address) != NULL);
    if (refusal(rules, address) != NULL)
        MUST(refusal(strict, address) != NULL);
}

/* ---- URLs ---- */

/* The host of a normal form, without brackets. */
static struct span host_of(struct span url)
{
    size_t from = span_find(url, SPAN("://")) + 3, to = from;

    if (from < url.n && url.p[from] == '[')
        return span_sub(url, from + 1, span_find_char(url, ']', from));
    while (to < url.n && strchr("/:?", url.p[to]) == NULL)
        to++;
    return span_sub(url, from, to);
}

static void check_host(struct span host, enum egress_preset preset, bool has_allow)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char text[HOST_BYTES];
    union address address;

    MUST(host.n > 0 && host.n < sizeof(text) && !span_ends(host, SPAN(".")));
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    if (span_eq(host, SPAN("localhost")))
        MUST(preset != EGRESS_PUBLIC_ONLY || has_allow);
    if (getaddrinfo(text, NULL, &hints, &found) != 0)
        return;
    memcpy(&address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    MUST(has_allow || !is_forbidden(&address, preset));
}

static void check_url(const struct egress_rules *rules, struct span url, bool has_allow)
{
    struct span normal, again;
    struct arena a;
    struct err *e;

    arena_init(&a);
    e = fetch_check_url(rules, url, &a, &normal);
    if (e == NULL) {
        MUST(span_starts(normal, SPAN("http://")) || span_starts(normal, SPAN("https://")));
        check_host(host_of(normal), rules->preset, has_allow);
        MUST(fetch_check_url(rules, normal, &a, &again) == NULL && span_eq(normal, again));
    } else {
        MUST(err_code(e) == ERR_INVALID_ENTITY && err_message(e).n > 0);
    }
    err_free(e);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    unsigned choices = input_byte(&in);
    struct span allow = input_line(&in), deny = input_line(&in), url = input_line(&in);
    union address v4 = {.v4 = {.sin_family = AF_INET}}, v6 = {.v6 = {.sin6_family = AF_INET6}};
    struct egress_rules rules, strict;
    bool has_allow;

    egress_init(&rules);
    egress_init(&strict);
    rules.preset = choices & 1 ? EGRESS_PUBLIC_ONLY : EGRESS_LOCAL_NETWORK;
    strict.preset = EGRESS_PUBLIC_ONLY;
    memcpy(&v4.v4.sin_addr, in.p, MIN(in.n, sizeof(v4.v4.sin_addr)));
    memcpy(&v6.v6.sin6_addr, in.p, MIN(in.n, sizeof(v6.v6.sin6_addr)));
    check_address(&rules, &strict, &v4);
    check_address(&rules, &strict, &v6);
    has_allow = add_ranges(&rules, true, allow);
    add_ranges(&rules, false, deny);
    check_lists(&rules, allow, &v4);
    check_lists(&rules, allow, &v6);
    check_url(&rules, url, has_allow);
    egress_done(&rules);
    egress_done(&strict);
    return 0;
}
