/* The PROXY protocol, versions 1 and 2: what a proxy says of a connection in front of its first
 * byte (haproxy, doc/proxy-protocol.txt, 2020). No sockets: bytes in, in any pieces.
 *
 * Version 1 is a line of at most 107 bytes. Version 2 is binary, of at most
 * PROXY_PROTOCOL_MOST bytes here; what follows its addresses (TLVs) is skipped. */
#ifndef HTTP_PROXY_PROTOCOL_H
#define HTTP_PROXY_PROTOCOL_H

#include "io/ip.h"

#define PROXY_PROTOCOL_LINE_MOST 107u
#define PROXY_PROTOCOL_MOST 4112u /* 16 bytes, and a length of 4096 */

/* All zero is a fresh one. */
struct proxy_protocol {
    char head[PROXY_PROTOCOL_LINE_MOST]; /* the first of `taken` bytes */
    size_t taken;
    size_t length;       /* version 2: of the whole, once it is known */
    size_t source_bytes; /* version 2: of the client's address there; 0: it has none */
    /* Of a header that is complete. Without a client the connection is the proxy's own (LOCAL), or
     * one whose client it cannot tell (UNKNOWN, UNSPEC, UNIX sockets). */
    bool has_client;
    struct in6_addr client;
    const char *why; /* static; of one that has failed */
};

enum proxy_result { PROXY_NEED_MORE, PROXY_DONE, PROXY_FAILED };

/* Takes bytes up to the end of the header, or up to the first that is wrong: *out_taken says how
 * many. Nothing more is given to it after another result than PROXY_NEED_MORE. */
enum proxy_result proxy_protocol_feed(struct proxy_protocol *p, struct span bytes,
                                      size_t *out_taken);

#endif
