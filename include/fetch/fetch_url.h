/* URLs of outgoing requests: which are usable, in what form they are fetched, and what of them
 * hosts are told apart by. */
#ifndef FETCH_FETCH_URL_H
#define FETCH_FETCH_URL_H

#include "base/err.h"

struct arena;
struct egress_rules;

/* Is this text a usable destination? ERR_INVALID_ENTITY says what is wrong: scheme, userinfo,
 * host, port, control characters, length (8192 bytes); a literal address, or localhost, that the
 * rules refuse. The normal form goes into the arena: scheme and host in lower case, the host
 * without a last dot, an IPv4 address with four numbers; default port, fragment and
 * `.` and `..` in the path dropped; a path, if only `/`; what is not ASCII percent-encoded. */
struct err *fetch_check_url(const struct egress_rules *rules, struct span url, struct arena *a,
                            struct span *out_normal) MUST_USE;
/* The part of a URL in front of its path: hosts are told apart by it. */
struct span fetch_url_origin(struct span url);

#endif
