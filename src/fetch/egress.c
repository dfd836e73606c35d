/* One table of ranges, most specific first, after the IANA special-purpose address registries
 * (RFC 6890, RFC 8190) and the addresses at which clouds hand out credentials. It is searched in
 * order: some fifty short comparisons are nothing beside the connection that they are made for, and
 * a table that can be read is what matters here. */
#include "fetch/egress.h"

#include <stdio.h>

#define MAPPED_BITS 96 /* of ::ffff:0:0/96 */

#define GROUP(g) (uint8_t)((g) >> 8), (uint8_t)((g)&0xff)
#define V6(a, b, c, d, e, f, g, h, bits)                                                           \
    {                                                                                              \
        {GROUP(a), GROUP(b), GROUP(c), GROUP(d), GROUP(e), GROUP(f), GROUP(g), GROUP(h)}, (bits)   \
    }
#define V4(a, b, c, d, bits)                                                                       \
    V6(0, 0, 0, 0, 0, 0xffff, (a) << 8 | (b), (c) << 8 | (d), MAPPED_BITS + (bits))

enum range_class {
    RANGE_PUBLIC,
    RANGE_LOCAL, /* refused by public-only */
    RANGE_NEVER, /* refused by both presets */
};

static const struct range {
    struct ip_range cidr;
    enum range_class class;
    const char *what;
} ranges[] = {
    {V4(168, 63, 129, 16, 32), RANGE_NEVER, "a cloud metadata address"},
    {V4(100, 100, 100, 200, 32), RANGE_NEVER, "a cloud metadata address"},
    {V4(192, 0, 0, 192, 32), RANGE_NEVER, "a cloud metadata address"},
    {V4(192, 0, 0, 9, 32), RANGE_PUBLIC, "a port control anycast address"},
    {V4(192, 0, 0, 10, 32), RANGE_PUBLIC, "a relay anycast address"},
    {V4(255, 255, 255, 255, 32), RANGE_NEVER, "the broadcast address"},
    {V4(192, 0, 0, 0, 24), RANGE_LOCAL, "a protocol assignment"},
    {V4(192, 0, 2, 0, 24), RANGE_LOCAL, "a documentation address"},
    {V4(192, 88, 99, 0, 24), RANGE_LOCAL, "a 6to4 relay address"},
    {V4(198, 51, 100, 0, 24), RANGE_LOCAL, "a documentation address"},
    {V4(203, 0, 113, 0, 24), RANGE_LOCAL, "a documentation address"},
    {V4(169, 254, 0, 0, 16), RANGE_NEVER, "a link-local address"},
    {V4(192, 168, 0, 0, 16), RANGE_LOCAL, "a private address"},
    {V4(198, 18, 0, 0, 15), RANGE_LOCAL, "a benchmarking address"},
    {V4(172, 16, 0, 0, 12), RANGE_LOCAL, "a private address"},
    {V4(100, 64, 0, 0, 10), RANGE_LOCAL, "a shared address"},
    {V4(0, 0, 0, 0, 8), RANGE_NEVER, "an address of 0.0.0.0/8"},
    {V4(10, 0, 0, 0, 8), RANGE_LOCAL, "a private address"},
    {V4(127, 0, 0, 0, 8), RANGE_LOCAL, "a loopback address"},
    {V4(224, 0, 0, 0, 4), RANGE_NEVER, "a multicast address"},
    {V4(240, 0, 0, 0, 4), RANGE_NEVER, "a reserved address"},
    {V4(0, 0, 0, 0, 0), RANGE_PUBLIC, "a public address"},

    {V6(0, 0, 0, 0, 0, 0, 0, 0, 128), RANGE_NEVER, "the unspecified address"},
    {V6(0, 0, 0, 0, 0, 0, 0, 1, 128), RANGE_LOCAL, "a loopback address"},
    {V6(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe, 128), RANGE_NEVER, "a cloud metadata address"},
    {V6(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42, 128), RANGE_NEVER, "a cloud metadata address"},
    {V6(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200, 128), RANGE_NEVER, "a cloud metadata address"},
    {V6(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1, 128), RANGE_NEVER, "a cloud metadata address"},
    {V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254, 128), RANGE_NEVER, "a cloud metadata address"},
    {V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0, 32), RANGE_NEVER, "a cloud metadata address"},
    {V6(0x2001, 1, 0, 0, 0, 0, 0, 1, 128), RANGE_PUBLIC, "a port control anycast address"},
    {V6(0x2001, 1, 0, 0, 0, 0, 0, 2, 127), RANGE_PUBLIC, "a service anycast address"},
    {V6(0, 0, 0, 0, 0, 0, 0, 0, 96), RANGE_LOCAL, "an IPv4-compatible address"},
    {V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0, 96), RANGE_PUBLIC, "a NAT64 address"},
    {V6(0x100, 0, 0, 0, 0, 0, 0, 0, 64), RANGE_LOCAL, "a discard address"},
    {V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48), RANGE_LOCAL, "a local NAT64 address"},
    {V6(0x2001, 4, 0x112, 0, 0, 0, 0, 0, 48), RANGE_PUBLIC, "a name server sink address"},
    {V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32), RANGE_PUBLIC, "a Teredo address"},
    {V6(0x2001, 3, 0, 0, 0, 0, 0, 0, 32), RANGE_PUBLIC, "a multicast tunnel address"},
    {V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0, 32), RANGE_LOCAL, "a documentation address"},
    {V6(0x2001, 0x20, 0, 0, 0, 0, 0, 0, 28), RANGE_PUBLIC, "a hash identifier"},
    {V6(0x2001, 0x30, 0, 0, 0, 0, 0, 0, 28), RANGE_PUBLIC, "a drone identifier"},
    {V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 23), RANGE_LOCAL, "a protocol assignment"},
    {V6(0x3fff, 0, 0, 0, 0, 0, 0, 0, 20), RANGE_LOCAL, "a documentation address"},
    {V6(0x5f00, 0, 0, 0, 0, 0, 0, 0, 16), RANGE_LOCAL, "a segment identifier"},
    {V6(0xfe80, 0, 0, 0, 0, 0, 0, 0, 10), RANGE_NEVER, "a link-local address"},
    {V6(0xfec0, 0, 0, 0, 0, 0, 0, 0, 10), RANGE_LOCAL, "a site-local address"},
    {V6(0xff00, 0, 0, 0, 0, 0, 0, 0, 8), RANGE_NEVER, "a multicast address"},
    {V6(0xfc00, 0, 0, 0, 0, 0, 0, 0, 7), RANGE_LOCAL, "a private address"},
    {V6(0x2000, 0, 0, 0, 0, 0, 0, 0, 3), RANGE_PUBLIC, "a public address"},
    {V6(0, 0, 0, 0, 0, 0, 0, 0, 0), RANGE_NEVER, "a reserved address"},
};

/* The network chooses the prefix of its local NAT64 inside a /48: of 48, 56, 64 or 96 bits (RFC
 * 8215). Each reading of an address that its zeros admit must pass. */
enum form_test { FORM_ALWAYS, FORM_ZEROS_AFTER, FORM_NOT_ZERO };

/* Where an IPv6 address holds an IPv4 address that its packets end up at. */
static const struct form {
    struct ip_range prefix;
    uint8_t at;    /* first byte of the IPv4 address */
    bool inverted; /* all its bits */
    enum form_test test;
} forms[] = {
    {V6(0, 0, 0, 0, 0, 0, 0, 0, 96), 12, false, FORM_ALWAYS},             /* compatible, RFC 4291 */
    {V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0, 96), 12, false, FORM_ALWAYS},     /* NAT64, RFC 6052 */
    {V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48), 6, false, FORM_ZEROS_AFTER}, /* local NAT64 */
    {V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48), 7, false, FORM_ZEROS_AFTER},
    {V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48), 9, false, FORM_ZEROS_AFTER},
    {V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48), 12, false, FORM_NOT_ZERO},
    {V6(0x2002, 0, 0, 0, 0, 0, 0, 0, 16), 2, false, FORM_ALWAYS}, /* 6to4, RFC 3056 */
    {V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32), 4, false, FORM_ALWAYS}, /* Teredo server, RFC 4380 */
    {V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32), 12, true, FORM_ALWAYS}, /* Teredo client */
};

/* The last row of each family holds all of it. */
static const struct range *range_of(const struct in6_addr *ip)
{
    const struct range *range = ranges;

    while (!ip_range_contains(&range->cidr, ip))
        range++;
    return range;
}

/* What is wrong with this one address, whatever it holds; NULL: nothing. */
static const char *judge(const struct egress_rules *rules, const struct in6_addr *ip)
{
    const struct range *range = range_of(ip);
    bool refused = range->class == RANGE_NEVER ||
                   (range->class == RANGE_LOCAL && rules->preset == EGRESS_PUBLIC_ONLY);

    if (ip_ranges_contain(&rules->deny, ip))
        return "on the Deny list";
    if (!refused || ip_ranges_contain(&rules->allow, ip))
        return NULL;
    return range->what;
}

static bool all_zero(const uint8_t *from, const uint8_t *end)
{
    while (from < end && *from == 0)
        from++;
    return from == end;
}

/* The IPv4 address in this form, as IPv4-mapped. Byte 8 is never part of it (RFC 6052, section
 * 2.2). False when the address does not have this form. */
static bool embedded(const struct form *form, const struct in6_addr *ip, struct in6_addr *out_inner)
{
    const uint8_t *from = ip->s6_addr + form->at, *end = ip->s6_addr + sizeof(ip->s6_addr);
    uint8_t v4[IP_V4_BYTES];

    if (!ip_range_contains(&form->prefix, ip))
        return false;
    for (unsigned i = 0; i < IP_V4_BYTES; i++, from++) {
        if (from == ip->s6_addr + 8)
            from++;
        v4[i] = form->inverted ? (uint8_t) ~*from : *from;
    }
    *out_inner = ip_of_v4(v4);
    if (form->test == FORM_NOT_ZERO)
        return !all_zero(v4, v4 + IP_V4_BYTES);
    return form->test == FORM_ALWAYS || all_zero(from, end);
}

/* The first address inside this one that is refused, and why; NULL: none. */
static const char *judge_inside(const struct egress_rules *rules, const struct in6_addr *outer,
                                struct in6_addr *out_inner)
{
    if (IN6_IS_ADDR_LOOPBACK(outer)) /* looks IPv4-compatible */
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const char *what = NULL;

        if (embedded(&forms[i], outer, out_inner))
            what = judge(rules, out_inner);
        if (what != NULL)
            return what;
    }
    return NULL;
}

const char *egress_refuses(const struct egress_rules *rules, const struct sockaddr *address,
                           char out_why[EGRESS_WHY_BYTES])
{
    struct in6_addr outer, inner;
    char text[INET6_ADDRSTRLEN], inner_text[INET6_ADDRSTRLEN];
    const char *what;

    if (!ip_of_sockaddr(address, &outer))
        return "the address is neither IPv4 nor IPv6";
    what = judge(rules, &outer);
    if (what != NULL) {
        snprintf(out_why, EGRESS_WHY_BYTES, "%s is %s", ip_text(&outer, text), what);
        return out_why;
    }
    what = judge_inside(rules, &outer, &inner);
    if (what == NULL)
        return NULL;
    snprintf(out_why, EGRESS_WHY_BYTES, "%s holds %s, which is %s", ip_text(&outer, text),
             ip_text(&inner, inner_text), what);
    return out_why;
}

void egress_init(struct egress_rules *rules)
{
    *rules = (struct egress_rules){.preset = EGRESS_LOCAL_NETWORK};
}

void egress_done(struct egress_rules *rules)
{
    if (rules == NULL)
        return;
    ip_ranges_done(&rules->allow);
    ip_ranges_done(&rules->deny);
    egress_init(rules);
}
