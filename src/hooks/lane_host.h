/* Where the attempts of lanes lead: the origin of their destination, and the address of its host.
 */
#ifndef HOOKS_LANE_HOST_H
#define HOOKS_LANE_HOST_H

struct fetch_origin;
struct lane_origin;

/* NULL: its destination is local. */
struct fetch_origin *lane_origin_fetch(const struct lane_origin *origin);
/* A connection to it was made: it may lead elsewhere than before. */
void lane_origin_connected(struct lane_origin *origin);
/* An attempt has ended: its place is free. NULL is allowed. */
void lane_origin_leave(struct lane_origin *origin);

#endif
