/* A request without a socket: what was sent, by whom, and what is read of it. */
#ifndef REST_REQUEST_H
#define REST_REQUEST_H

#include "base/err.h"

struct arena;
struct event_chain; /* hooks/event.h */
struct header_field;
struct in6_addr;
struct passed_on; /* protocol/node_headers.h */

struct request {
    struct span method; /* as received */
    struct span target;
    struct span host; /* `example.com:8080`; absent: the client did not say */
    const struct header_field *headers;
    size_t header_count;
    struct span body;
    const struct in6_addr *client; /* whom limits per address count it for; NULL: nobody */
    bool is_local;                 /* made by the service itself; its target has no BasePath */
    uint8_t depth;                 /* of a local one: see request_depth */
    struct event_chain *chain;     /* of a local one: of the event that it is made for */
    unsigned nesting;              /* 1 for a request of Svc.Aggregator's template, else 0 */
    bool gives_way;                /* its answer may come later: see evaluation.h, passage.h */
    const struct passed_on *from;  /* a node passed it on, for whom this says; NULL: see node.h */
};

/* First header of that name, the absent span when there is none. */
struct span request_header(const struct request *r, struct span name);

/* Values of all headers of that name joined by ", ", or the absent span. */
struct span request_header_all(const struct request *r, struct span name, struct arena *a);
/* How many events caused one another before this request: a local one knows it, from others the
 * header Svc-depth tells, which attempts carry. */
uint8_t request_depth(const struct request *r);

#endif
