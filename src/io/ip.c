/* All addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2), so that one
 * comparison of bits serves both families. A range remembers its family by its length: one of IPv4
 * has 96 bits or more and the mapped prefix. */
#include "io/ip.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <string.h>

#define SHOWN_BYTES_MOST 200u /* of a bad range, in messages */

static const struct in6_addr mapped_zero = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}};

struct in6_addr ip_of_v4(const void *bytes)
{
    struct in6_addr ip = mapped_zero;

    memcpy(ip.s6_addr + IP_V4_AT, bytes, IP_V4_BYTES);
    return ip;
}

bool ip_parse(struct span text, struct in6_addr *out_ip)
{
    char copy[INET6_ADDRSTRLEN] = "";
    struct in6_addr ip = mapped_zero;

    if (text.n == 0 || text.n >= sizeof(copy) || span_find_char(text, '\0', 0) < text.n)
        return false;
    memcpy(copy, text.p, text.n);
    if (inet_pton(AF_INET, copy, ip.s6_addr + IP_V4_AT) != 1 &&
        inet_pton(AF_INET6, copy, ip.s6_addr) != 1)
        return false;
    *out_ip = ip;
    return true;
}

bool ip_of_sockaddr(const struct sockaddr *address, struct in6_addr *out_ip)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    switch (address->sa_family) {
    case AF_INET:
        memcpy(&v4, address, sizeof(v4));
        *out_ip = ip_of_v4(&v4.sin_addr);
        return true;
    case AF_INET6:
        memcpy(&v6, address, sizeof(v6));
        *out_ip = v6.sin6_addr;
        return true;
    default:
        return false;
    }
}

const char *ip_text(const struct in6_addr *ip, char out_text[INET6_ADDRSTRLEN])
{
    if (IN6_IS_ADDR_V4MAPPED(ip))
        return inet_ntop(AF_INET, ip->s6_addr + IP_V4_AT, out_text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, ip, out_text, INET6_ADDRSTRLEN);
}

static bool read_end(const struct sockaddr_storage *address, struct in6_addr *out_ip,
                     uint16_t *out_port)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (!ip_of_sockaddr((const struct sockaddr *)address, out_ip))
        return false;
    memcpy(&v4, address, sizeof(v4));
    memcpy(&v6, address, sizeof(v6));
    *out_port = ntohs(address->ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
    return true;
}

bool ip_ends_of(int fd, struct ip_ends *out_ends)
{
    struct sockaddr_storage local, remote;
    socklen_t local_bytes = sizeof(local), remote_bytes = sizeof(remote);

    return getsockname(fd, (struct sockaddr *)&local, &local_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&remote, &remote_bytes) == 0 &&
           read_end(&local, &out_ends->local, &out_ends->local_port) &&
           read_end(&remote, &out_ends->remote, &out_ends->remote_port);
}

struct ip_ends ip_ends_reversed(const struct ip_ends *ends)
{
    return (struct ip_ends){ends->remote, ends->local, ends->remote_port, ends->local_port};
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static bool is_v4_range(const struct ip_range *range)
{
    return range->bits >= IP_V4_AT * 8 &&
           memcmp(range->address, mapped_zero.s6_addr, IP_V4_AT) == 0;
}

bool ip_range_contains(const struct ip_range *range, const struct in6_addr *ip)
{
    return is_v4_range(range) == (bool)IN6_IS_ADDR_V4MAPPED(ip) &&
           same_bits(range->address, ip->s6_addr, range->bits);
}

static bool has_bits_after(const struct ip_range *range)
{
    for (unsigned bit = range->bits; bit < IP_BITS; bit++)
        if ((range->address[bit / 8] & 0x80 >> bit % 8) != 0)
            return true;
    return false;
}

static struct err *parse_range(struct span text, struct ip_range *out_range)
{
    struct span length = text;
    struct span address = span_split(&length, '/');
    bool v4 = span_find_char(address, ':', 0) == address.n;
    uint64_t most = v4 ? IP_V4_BYTES * 8 : IP_BITS, bits = most;
    int shown = (int)MIN(text.n, SHOWN_BYTES_MOST);
    struct in6_addr ip;

    if (!ip_parse(address, &ip))
        return ERR(ERR_UNKNOWN, "'%.*s' is neither an IP address nor a range like 10.0.0.0/8",
                   shown, text.p);
    if (length.p != NULL && (!span_to_u64(length, &bits) || bits > most))
        return ERR(ERR_UNKNOWN, "'%.*s' has no number from 0 to %u after its slash", shown, text.p,
                   (unsigned)most);
    memcpy(out_range->address, ip.s6_addr, sizeof(out_range->address));
    out_range->bits = (uint8_t)(IP_BITS - most + bits);
    if (has_bits_after(out_range))
        return ERR(ERR_UNKNOWN, "'%.*s' is no range: the address goes on after its first %u bits",
                   shown, text.p, (unsigned)bits);
    return NULL;
}

struct err *ip_ranges_add(struct ip_ranges *ranges, struct span text)
{
    struct ip_range range;

    TRY(parse_range(text, &range));
    ranges->items = mem_resize(ranges->items, (ranges->count + 1) * sizeof(range));
    ranges->items[ranges->count++] = range;
    return NULL;
}

bool ip_ranges_contain(const struct ip_ranges *ranges, const struct in6_addr *ip)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (ip_range_contains(&ranges->items[i], ip))
            return true;
    return false;
}

void ip_ranges_done(struct ip_ranges *ranges)
{
    if (ranges == NULL)
        return;
    mem_free(ranges->items);
    *ranges = (struct ip_ranges){NULL, 0};
}
