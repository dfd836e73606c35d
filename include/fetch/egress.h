/* Which addresses outgoing requests may go to (docs/specification.md, section 8, "Outgoing
 * addresses"). Pure: rules and an address in, a verdict out. An IPv4-mapped address is its IPv4
 * address. IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 and Teredo addresses are
 * judged as what they are and by the IPv4 address inside as well: each must pass by itself, the
 * lists included. */
#ifndef FETCH_EGRESS_H
#define FETCH_EGRESS_H

#include "io/ip.h"

#define EGRESS_PRESETS(X)                                                                          \
    X(EGRESS_LOCAL_NETWORK, "local-network")                                                       \
    X(EGRESS_PUBLIC_ONLY, "public-only")

enum egress_preset {
#define EGRESS_AS_ENUM(symbol, text) symbol,
    EGRESS_PRESETS(EGRESS_AS_ENUM)
#undef EGRESS_AS_ENUM
};

struct egress_rules {
    enum egress_preset preset;
    struct ip_ranges allow, deny; /* owned */
};

void egress_init(struct egress_rules *rules); /* local-network, no lists */
void egress_done(struct egress_rules *rules);

#define EGRESS_WHY_BYTES 128u

/* NULL when allowed, otherwise words: "169.254.169.254 is a link-local address", "2002:7f00:1::
 * holds 127.0.0.1, which is a loopback address". Deny wins over Allow, Allow over the preset. The
 * text is static or in `out_why`. */
const char *egress_refuses(const struct egress_rules *rules, const struct sockaddr *address,
                           char out_why[EGRESS_WHY_BYTES]);

#endif
