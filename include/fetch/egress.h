/* Which addresses outgoing requests may go to (docs/specification.md, section 8, "Outgoing
 * addresses"). Pure: rules and an address in, a verdict out. An IPv4-mapped address is its IPv4
 * address. IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 and Teredo addresses are
 * judged as what they are and by the IPv4 address inside as well: each must pass by itself, the
 * lists included. */
#ifndef FETCH_EGRESS_H
#define FETCH_EGRESS_H

#include "io/ip.h"

enum egress_preset { EGRESS_LOCAL_NETWORK, EGRESS_PUBLIC_ONLY };

struct egress_rules {
    enum egress_preset preset;
    struct ip_ranges allow, deny; /* owned */
};

void egress_init(struct egress_rules *rules); /* local-network, no lists */
void egress_done(struct egress_rules *rules);
/* Errors of ip_ranges_add. */
struct err *egress_add(struct egress_rules *rules, bool allow, struct span cidr) MUST_USE;
bool egress_preset_parse(struct span name, enum egress_preset *out_preset);

#define EGRESS_WHY_BYTES 128u

/* NULL when allowed, otherwise words: "169.254.169.254 is a link-local address", "2002:7f00:1::
 * holds 127.0.0.1, which is a loopback address". Deny wins over Allow, Allow over the preset. The
 * text is static or in `out_why`. */
const char *egress_refuses(const struct egress_rules *rules, const struct sockaddr *address,
                           char out_why[EGRESS_WHY_BYTES]);

#endif
