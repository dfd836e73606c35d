/* Whose request it is that a proxy passes on, by X-Forwarded-For. Pure. */
#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include "rest/request.h"

struct ip_ranges;

/* Each proxy appends the address that it was called from: from the right, the first address that is
 * no trusted proxy's is the client's. What stands left of that may be invented. False when there is
 * none, or something that is no address comes first. For requests of trusted proxies only. */
bool forwarded_client(const struct header_field *headers, size_t count,
                      const struct ip_ranges *trusted, struct in6_addr *out_ip);

#endif
