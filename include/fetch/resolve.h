/* Names to addresses on the loop: c-ares with its sockets on uv_poll, the hosts file first, and a
 * cache that keeps answers for their TTL (bounded: 1 s to 1 h; what the hosts file says, 1 s) and
 * failures for a few seconds, at most 10 000 names, least recently used out first. Questions about
 * one name at one time are one question. Names are compared without case and without a last dot;
 * localhost, and what ends in .localhost, is 127.0.0.1 and ::1 (RFC 6761). The system's settings
 * are read again when they change, which is looked for at most once a second. A process has one
 * hosts file. */
#ifndef FETCH_RESOLVE_H
#define FETCH_RESOLVE_H

#include "io/loop.h"

#define RESOLVE_MAX_ADDRESSES 16

struct resolve_result {
    struct in6_addr addresses[RESOLVE_MAX_ADDRESSES]; /* IPv4 as IPv4-mapped; in order */
    unsigned count;
    const char *error; /* when count is 0: in words, static */
};

struct resolver;

struct resolve_query {
    struct list_link link;
    void (*on_done)(struct resolve_query *query, const struct resolve_result *result);
    struct resolve_entry *entry;
};

struct resolve_options {
    const char *hosts_file;  /* NULL: /etc/hosts */
    const char *resolv_file; /* NULL: /etc/resolv.conf */
    const char *servers;     /* "127.0.0.1:5353,..." NULL: those of resolv_file */
    unsigned timeout_ms;     /* 0: 5000, all tries together */
};

/* Error ERR_UNKNOWN: `servers` is malformed, `hosts_file` cannot be read, or c-ares cannot begin.
 */
struct err *resolver_new(struct loop *loop, const struct resolve_options *options,
                         struct resolver **out_resolver) MUST_USE;
/* Pending queries are dropped, their callbacks do not fire. Not from inside a callback. NULL is
 * allowed. */
void resolver_free(struct resolver *r);
/* localhost and names in it are never asked for, whatever the hosts file says (RFC 6761, 6.3). */
bool resolve_is_localhost(struct span name);
/* `name`: a host name, or an IPv4 or IPv6 address without brackets. Answered from the cache, a
 * literal address, or no name at all: true, *out_result is filled and on_done will not fire. False:
 * on_done fires later from the loop, exactly once, unless cancelled; `query` stays in place until
 * then, `name` need not. */
bool resolve_start(struct resolver *r, struct resolve_query *query, struct span name,
                   struct resolve_result *out_result);
/* Waiting or not, as long as resolve_start has seen `query` once. */
void resolve_cancel(struct resolver *r, struct resolve_query *query);
/* Names that the cache holds, failures and questions under way among them. */
size_t resolve_cached(const struct resolver *r);

#endif
