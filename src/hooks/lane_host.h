/* Where the attempts of lanes lead: the origin of their destination, and the address of its host.
 */
#ifndef HOOKS_LANE_HOST_H
#define HOOKS_LANE_HOST_H

#include "base/list.h"
#include "base/map.h"

#include <netinet/in.h>

struct deliveries;
struct fetch_origin;

/* What counts attempts to one address, or, until that is known, to one origin. */
struct lane_host {
    struct deliveries *deliveries;
    struct in6_addr address;
    size_t origins;
    size_t taken;       /* places of attempts, and those kept for lanes that are CALLED */
    struct list parked; /* origins that have PARKED lanes, the one whose turn it is first */
};

/* Where the requests of a webhook go: hangs on the fetcher's (fetch_origin_user). */
struct lane_origin {
    struct fetch_origin *fetch;
    size_t refs;           /* lanes that lead to it, and places */
    size_t taken;          /* of its host's places */
    struct list parked;    /* lanes, the one that has been there for longest first */
    struct list_link link; /* in its host's `parked`, while it has such */
    struct lane_host *host;
    struct lane_host own; /* while its address is not known */
};

/* A connection to it was made: it may lead elsewhere than before. */
void lane_origin_connected(struct lane_origin *origin);
/* An attempt has ended: its place is free. NULL is allowed. */
void lane_origin_leave(struct lane_origin *origin);

/* Of a URL; to be put back. */
struct lane_origin *lane_origin_get(struct deliveries *d, struct span url);
/* NULL is allowed. */
void lane_origin_put(struct lane_origin *origin);
/* May an attempt to it start, now or in the place that is kept for it? */
bool lane_origin_admits(const struct lane_origin *origin, bool is_called);
/* A place is taken, until lane_origin_leave. */
void lane_origin_enter(struct lane_origin *origin);
/* A lane has come to `parked`, or has left it. */
void lane_origin_line_up(struct lane_origin *origin);
map_key_fn lane_host_key;

#endif
