/* A request at a node, as a connection of its HTTP server would have it evaluated and answered
 * (src/http/conn.c, conn_hold.c, conn_output.c): believed if a node passed it on, evaluated, held
 * while that takes several turns or goes to the leader, and answered once what the answer says is
 * committed, or 503 when that is not known. */
#ifndef SIMULATION_CLUSTER_VISIT_H
#define SIMULATION_CLUSTER_VISIT_H

#include "base/list.h"
#include "fetch/fetch.h"
#include "rest/request.h"

struct machine;
struct visit;

struct visit_answer {
    int status;
    uint64_t serial; /* what it has waited for, or what Svc-serial says */
    struct span body;
    const struct header_field *headers;
    size_t header_count;
    struct download
        *download; /* a body that comes in pieces; to be taken over, else it is closed */
    bool leads;    /* the node led, by its clock, when the answer was made */
};

/* Once. NULL: the connection has ended without an answer. The visit is gone then. */
typedef void visit_done_fn(void *context, const struct visit_answer *answer);

/* The request is copied. */
struct visit *visit_new(struct machine *m, const struct request *request, visit_done_fn *on_done,
                        void *context);
/* May end it. */
void visit_run(struct visit *v);
/* Nobody waits for its answer any more: on_done is not called. */
void visit_drop(struct visit *v);
/* None has waited longer than the server promises. */
void visits_check(const struct machine *m);
/* All of a node that ends. */
void visits_end(struct machine *m);

#endif
