/* What is remembered of client addresses, for the limits per address: their connections, their
 * requests under way, their failed sign-ins. An IPv6 client is its /64, for a host has all of that.
 *
 * An address is forgotten when it has none of the three: no connection, no request, and failures so
 * long ago that they count no more. Connections and requests are bounded by the limits Connections
 * and Requests, addresses that only have failures by CLIENTS_FAILED_MOST: of more, those are
 * forgotten that failed the longest ago.
 *
 * Where an address may be NULL, that is a client that cannot be told from others (behind a proxy
 * that does not say, on a UNIX socket): it has no limits of its own. */
#ifndef ACCESS_CLIENTS_H
#define ACCESS_CLIENTS_H

#include "base/macros.h"
#include "base/span.h"

#include <netinet/in.h>

#define CLIENTS_FAILED_MOST 32768u

struct limits;
struct loop;
struct clients;
struct client; /* one address */

/* `limits` are borrowed. */
struct clients *clients_new(struct loop *loop, const struct limits *limits);
/* NULL is allowed. Every connection and request has ended. */
void clients_free(struct clients *c);
size_t clients_count(const struct clients *c);
const struct in6_addr *client_address(const struct client *client);

/* Counts a connection of this address; NULL when it has ConnectionsPerAddress already. */
struct client *clients_connect(struct clients *c, const struct in6_addr *ip) MUST_USE;
void clients_disconnect(struct clients *c, struct client *client);

enum clients_verdict { CLIENTS_WELCOME, CLIENTS_TOO_MANY, CLIENTS_TOO_MANY_OF_ONE };

/* May another request begin: are there less than Requests, and RequestsPerAddress of this one? */
enum clients_verdict clients_may_request(const struct clients *c, const struct in6_addr *ip);
/* Counts a request that is under way, until clients_end with what this returns, which is NULL for
 * an address that is. */
struct client *clients_begin(struct clients *c, const struct in6_addr *ip);
void clients_end(struct clients *c, struct client *client);

/* A key that writes wrong keys into webhooks is counted like an address: as one that no client has.
 */
struct in6_addr clients_of_key(struct span tenant, struct span name);
/* Failed sign-ins are taken from a bucket of FailedSignInsPerMinute, which fills again within a
 * minute, and for IPv6 from one of ten times as many that all addresses of a /48 share. Returns for
 * how many seconds there is none left; 0: it may try. The log names who has emptied it. */
unsigned clients_sign_in_wait_s(const struct clients *c, const struct in6_addr *ip);
void clients_sign_in_failed(struct clients *c, const struct in6_addr *ip);

#endif
