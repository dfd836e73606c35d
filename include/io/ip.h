/* IP addresses and ranges of them. All are IPv6 inside, IPv4 as IPv4-mapped; but no IPv6 range
 * holds an IPv4 address: `::/0` is all of IPv6 only. Pure. */
#ifndef IO_IP_H
#define IO_IP_H

#include "base/err.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define IP_BITS 128u
#define IP_V4_BYTES 4u
#define IP_V4_AT 12u /* first byte of an IPv4 address */

struct ip_range {
    uint8_t address[16];
    uint8_t bits; /* 0 to 128 */
};

/* A list of ranges; all zero is the empty one. */
struct ip_ranges {
    struct ip_range *items; /* owned */
    size_t count;
};

/* `127.0.0.1` or `::1`, nothing else around it. */
bool ip_parse(struct span text, struct in6_addr *out_ip);
/* `bytes` in network order. */
struct in6_addr ip_of_v4(const void *bytes);
/* False for another family. */
bool ip_of_sockaddr(const struct sockaddr *address, struct in6_addr *out_ip);
/* Returns `out_text`. */
const char *ip_text(const struct in6_addr *ip, char out_text[INET6_ADDRSTRLEN]);

/* A connection, as the process at its one end knows it; ports in host order. Has no padding, so
 * that equal ones are equal bytes. */
struct ip_ends {
    struct in6_addr local, remote;
    uint16_t local_port, remote_port;
};

/* Of a socket that is connected; false for one that is not, or is of another family. */
bool ip_ends_of(int fd, struct ip_ends *out_ends);
/* As the process at the other end knows it. */
struct ip_ends ip_ends_reversed(const struct ip_ends *ends);

bool ip_range_contains(const struct ip_range *range, const struct in6_addr *ip);

/* `10.0.0.0/8`, `fd00::/8`, or a single address. ERR_UNKNOWN names what is wrong, also with an
 * address that has bits set after its length (10.0.0.1/8). */
struct err *ip_ranges_add(struct ip_ranges *ranges, struct span text) MUST_USE;
bool ip_ranges_contain(const struct ip_ranges *ranges, const struct in6_addr *ip);
/* It is empty afterwards. NULL is allowed. */
void ip_ranges_done(struct ip_ranges *ranges);

#endif
