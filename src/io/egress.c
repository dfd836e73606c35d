/* One table of ranges, most specific first, after the IANA special-purpose address registries
 * (RFC 6890, RFC 8190) and the addresses at which clouds hand out credentials. It is searched in
 * order: some fifty short comparisons are nothing beside the connection that they are made for, and
 * a table that can be read is what matters here.
 *
 * All addresses are IPv6 inside, IPv4 as IPv4-mapped; but no IPv6 range holds an IPv4 address:
 * `::/0` is not `0.0.0.0/0`. */
#include "io/egress.h"

#include "base/macros.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_BITS 128
#define MAPPED_BITS 96 /* of ::ffff:0:0/96 */
#define V4_BYTES 4u
#define SHOWN_BYTES_MOST 200u /* of a bad range, in messages */

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
    struct egress_cidr cidr;
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
    struct egress_cidr prefix;
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

static const struct in6_addr mapped_zero = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}};

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static bool is_v4_range(const struct egress_cidr *c)
{
    return c->bits >= MAPPED_BITS && same_bits(c->address, mapped_zero.s6_addr, MAPPED_BITS);
}

static bool holds(const struct egress_cidr *c, const struct in6_addr *ip)
{
    return is_v4_range(c) == (bool)IN6_IS_ADDR_V4MAPPED(ip) &&
           same_bits(c->address, ip->s6_addr, c->bits);
}

static bool any_holds(const struct egress_cidr *list, size_t count, const struct in6_addr *ip)
{
    for (size_t i = 0; i < count; i++)
        if (holds(&list[i], ip))
            return true;
    return false;
}

/* The last row of each family holds all of it. */
static const struct range *range_of(const struct in6_addr *ip)
{
    const struct range *range = ranges;

    while (!holds(&range->cidr, ip))
        range++;
    return range;
}

/* What is wrong with this one address, whatever it holds; NULL: nothing. */
static const char *judge(const struct egress_rules *rules, const struct in6_addr *ip)
{
    const struct range *range = range_of(ip);
    bool refused = range->class == RANGE_NEVER ||
                   (range->class == RANGE_LOCAL && rules->preset == EGRESS_PUBLIC_ONLY);

    if (any_holds(rules->deny, rules->deny_count, ip))
        return "on the Deny list";
    if (!refused || any_holds(rules->allow, rules->allow_count, ip))
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
 * 2.2). False when the address has not this form. */
static bool embedded(const struct form *form, const struct in6_addr *ip, struct in6_addr *out_inner)
{
    const uint8_t *from = ip->s6_addr + form->at, *end = ip->s6_addr + sizeof(ip->s6_addr);
    uint8_t *v4 = out_inner->s6_addr + MAPPED_BITS / 8;

    if (!holds(&form->prefix, ip))
        return false;
    *out_inner = mapped_zero;
    for (unsigned i = 0; i < V4_BYTES; i++, from++) {
        if (from == ip->s6_addr + 8)
            from++;
        v4[i] = form->inverted ? (uint8_t) ~*from : *from;
    }
    if (form->test == FORM_NOT_ZERO)
        return !all_zero(v4, v4 + V4_BYTES);
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

static bool read_sockaddr(const struct sockaddr *address, struct in6_addr *out_ip)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof(v6));
        *out_ip = v6.sin6_addr;
        return true;
    }
    if (address->sa_family != AF_INET)
        return false;
    memcpy(&v4, address, sizeof(v4));
    *out_ip = mapped_zero;
    memcpy(out_ip->s6_addr + MAPPED_BITS / 8, &v4.sin_addr, V4_BYTES);
    return true;
}

static const char *text_of(const struct in6_addr *ip, char out_text[INET6_ADDRSTRLEN])
{
    if (IN6_IS_ADDR_V4MAPPED(ip))
        return inet_ntop(AF_INET, ip->s6_addr + MAPPED_BITS / 8, out_text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, ip, out_text, INET6_ADDRSTRLEN);
}

const char *egress_refuses(const struct egress_rules *rules, const struct sockaddr *address,
                           char out_why[EGRESS_WHY_BYTES])
{
    struct in6_addr outer, inner;
    char text[INET6_ADDRSTRLEN], inner_text[INET6_ADDRSTRLEN];
    const char *what;

    if (!read_sockaddr(address, &outer))
        return "the address is neither IPv4 nor IPv6";
    what = judge(rules, &outer);
    if (what != NULL) {
        snprintf(out_why, EGRESS_WHY_BYTES, "%s is %s", text_of(&outer, text), what);
        return out_why;
    }
    what = judge_inside(rules, &outer, &inner);
    if (what == NULL)
        return NULL;
    snprintf(out_why, EGRESS_WHY_BYTES, "%s holds %s, which is %s", text_of(&outer, text),
             text_of(&inner, inner_text), what);
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
    mem_free(rules->allow);
    mem_free(rules->deny);
    egress_init(rules);
}

bool egress_preset_parse(struct span name, enum egress_preset *out_preset)
{
    static const struct span names[] = {
        [EGRESS_LOCAL_NETWORK] = SPAN_INIT("local-network"),
        [EGRESS_PUBLIC_ONLY] = SPAN_INIT("public-only"),
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (span_eq(name, names[i])) {
            *out_preset = (enum egress_preset)i;
            return true;
        }
    return false;
}

/* Of the address alone; *out_cidr holds just that. */
static bool parse_ip(struct span text, struct egress_cidr *out_cidr)
{
    char copy[INET6_ADDRSTRLEN] = "";
    struct egress_cidr c = {.bits = ADDRESS_BITS};

    if (text.n >= sizeof(copy) || span_find_char(text, '\0', 0) < text.n)
        return false;
    memcpy(copy, text.p, text.n);
    memcpy(c.address, mapped_zero.s6_addr, sizeof(c.address));
    if (inet_pton(AF_INET, copy, c.address + MAPPED_BITS / 8) != 1 &&
        inet_pton(AF_INET6, copy, c.address) != 1)
        return false;
    *out_cidr = c;
    return true;
}

static bool has_bits_after(const struct egress_cidr *c)
{
    for (unsigned bit = c->bits; bit < ADDRESS_BITS; bit++)
        if ((c->address[bit / 8] & 0x80 >> bit % 8) != 0)
            return true;
    return false;
}

static struct err *parse_cidr(struct span text, struct egress_cidr *out_cidr)
{
    struct span length = text;
    struct span ip = span_split(&length, '/');
    bool v4 = span_find_char(ip, ':', 0) == ip.n;
    uint64_t most = v4 ? V4_BYTES * 8 : ADDRESS_BITS, bits = most;

    if (!parse_ip(ip, out_cidr))
        return ERR(ERR_UNKNOWN, "'%.*s' is neither an IP address nor a range like 10.0.0.0/8",
                   (int)MIN(text.n, SHOWN_BYTES_MOST), text.p);
    if (length.p != NULL && (!span_to_u64(length, &bits) || bits > most))
        return ERR(ERR_UNKNOWN, "'%.*s' has no number from 0 to %u after its slash",
                   (int)MIN(text.n, SHOWN_BYTES_MOST), text.p, (unsigned)most);
    out_cidr->bits = (uint8_t)(ADDRESS_BITS - most + bits);
    if (has_bits_after(out_cidr))
        return ERR(ERR_UNKNOWN, "'%.*s' is no range: the address goes on after its first %u bits",
                   (int)MIN(text.n, SHOWN_BYTES_MOST), text.p, (unsigned)bits);
    return NULL;
}

struct err *egress_add(struct egress_rules *rules, bool allow, struct span cidr)
{
    struct egress_cidr **list = allow ? &rules->allow : &rules->deny;
    size_t *count = allow ? &rules->allow_count : &rules->deny_count;
    struct egress_cidr parsed;

    TRY(parse_cidr(cidr, &parsed));
    *list = mem_resize(*list, (*count + 1) * sizeof(**list));
    (*list)[(*count)++] = parsed;
    return NULL;
}
