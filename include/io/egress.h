/* Which addresses outgoing requests may go to (protocol.md, section 8, "Outgoing addresses").
 * Pure: rules and an address in, a verdict out. An IPv4-mapped address is its IPv4 address.
 * IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 and Teredo addresses are judged as
 * what they are and by the IPv4 address inside as well: each must pass by itself, the lists
 * included. */
#ifndef IO_EGRESS_H
#define IO_EGRESS_H

#include "base/err.h"

#include <sys/socket.h>

enum egress_preset { EGRESS_LOCAL_NETWORK, EGRESS_PUBLIC_ONLY };

/* An IPv6 range holds no IPv4 address: `::/0` is all of IPv6 only. */
struct egress_cidr {
    uint8_t address[16]; /* IPv4 as IPv4-mapped */
    uint8_t bits;        /* 0 to 128 */
};

struct egress_rules {
    enum egress_preset preset;
    struct egress_cidr *allow; /* owned */
    size_t allow_count;
    struct egress_cidr *deny;
    size_t deny_count;
};

void egress_init(struct egress_rules *rules); /* local-network, no lists */
void egress_done(struct egress_rules *rules);
/* `10.0.0.0/8`, `fd00::/8`, or a single address. ERR_UNKNOWN names what is wrong, also with an
 * address that has bits set after its length (10.0.0.1/8). */
struct err *egress_add(struct egress_rules *rules, bool allow, struct span cidr) MUST_USE;
bool egress_preset_parse(struct span name, enum egress_preset *out_preset);

#define EGRESS_WHY_BYTES 128u

/* NULL when allowed, otherwise words: "169.254.169.254 is a link-local address", "2002:7f00:1::
 * holds 127.0.0.1, which is a loopback address". Deny wins over Allow, Allow over the preset. The
 * text is static or in `out_why`. */
const char *egress_refuses(const struct egress_rules *rules, const struct sockaddr *address,
                           char out_why[EGRESS_WHY_BYTES]);

#endif
