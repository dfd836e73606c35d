/* The evaluation of a request, without sockets. HTTP, local destinations, custom payload requests,
 * Svc.Aggregator and the tests all come through request_run: there is no second path. */
#ifndef REST_REQUEST_H
#define REST_REQUEST_H

#include "base/arena.h"
#include "query/query.h"
#include "query/uri.h"
#include "rest/access.h"
#include "rest/negotiate.h"
#include "rest/resource.h"
#include "store/change.h"

struct service;
struct scan;

struct request_header {
    struct span name, value;
};

struct request {
    struct span method; /* as received */
    struct span target;
    const struct request_header *headers;
    size_t header_count;
    struct span body;
    const struct in6_addr *client; /* whom limits per address count it for; NULL: nobody */
    bool is_local;                 /* made by the service itself; its target has no BasePath */
    uint8_t depth;                 /* of a local one: see request_depth */
    unsigned nesting;              /* 1 for a request of Svc.Aggregator's template, else 0 */
    bool gives_way;                /* its answer may come later: see scan.h */
    struct scan *scan;             /* of an evaluation before that gave way; or NULL */
};

#define RESPONSE_MAX_HEADERS 24

struct response {
    int status;
    struct request_header headers[RESPONSE_MAX_HEADERS]; /* spans in the arena or static */
    size_t header_count;
    struct span content_type; /* absent: no body */
    struct buf body;          /* complete also for HEAD, which sends its length only */
    struct arena arena;       /* of this evaluation: everything temporary */
    uint64_t serial;          /* what must be committed before this answer may leave; 0: nothing */
    enum err_code error;      /* ERR_NO_ERROR on success */
    /* The evaluation has given way to others, which is no answer: to be done again when this has
     * ended. The request's own, which goes on, or a new one, which the caller frees. */
    struct scan *scan;
};

/* One response object is used again and again: a warm one does not allocate. */
void response_init(struct response *r, size_t max_body_bytes);
void response_done(struct response *r);
/* First header of that name, the absent span when there is none. Inline, for most requests have
 * none of those that are asked for, and where the name is known its length tells. */
static inline struct span request_header(const struct request *r, struct span name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (span_ieq(r->headers[i].name, name))
            return r->headers[i].value;
    return (struct span){NULL, 0};
}

/* Of headers that there are. */
struct span request_join_headers(const struct request *r, struct span name, struct arena *a);
/* Values of all headers of that name joined by ", ". */
static inline struct span request_header_all(const struct request *r, struct span name,
                                             struct arena *a)
{
    struct span first = request_header(r, name);

    return first.p == NULL ? first : request_join_headers(r, name, a);
}

/* How many events caused one another before this request: a local one knows it, from others the
 * header Svc-depth tells, which attempts carry. */
uint8_t request_depth(const struct request *r);
struct span response_header(const struct response *r, struct span name);
/* Controls, CR and LF are replaced by blanks; `value` is copied into the arena. */
void response_add_header(struct response *r, struct span name, struct span value);
/* The same for a value of our own making: it holds nothing of that, and is static or in the arena.
 */
void response_add_own_header(struct response *r, struct span name, struct span value);

/* Empties it for the next answer; keeps a reasonable amount of memory. */
void response_reset(struct response *r);
/* A problem body (RFC 9457) with Svc-info; `instance` may be absent. Other headers are kept. */
void response_set_problem(struct response *r, int status, enum err_code code, struct span message,
                          struct span instance);

/* Evaluates; `response` is emptied first and always filled, but for one with a `scan`, which says
 * that nothing has happened yet. Errors become problem answers, are stored as Svc.Admin.Error
 * (protocol.md, section 5), and nothing else has changed. Check order: protocol.md, section 4, last
 * line. */
void request_run(struct service *service, const struct request *request, struct response *response);
/* The answer to bytes that are no request, or that the server refuses to evaluate: a problem
 * answer, not stored. */
void request_refuse(struct response *response, int status, enum err_code code, struct span message,
                    unsigned retry_after_s);

/* One evaluation, as the resources see it. */
struct call {
    struct service *service;
    const struct request *request;
    struct response *response;
    struct arena *arena;
    const struct access_key *key; /* NULL: all rights */
    enum method method;
    struct resource *resource;
    struct uri uri;
    struct query query;
    struct negotiated out;
    enum format in;
    struct change change;
    struct query_source *source; /* set by open */
    void *own;                   /* the resource's, between its ops */
    bool uri_is_split;
    struct span error_resource; /* for Error.ResourceName; absent: <unknown> */
};

/* Carries call->change out and notes what the answer waits for. ERR_PAYLOAD_TOO_LARGE, and nothing
 * has changed, when the answer passes AnswerBytes. */
struct err *call_apply(struct call *call) MUST_USE;
/* The answer shows something of this version. */
void call_shows(struct call *call, uint64_t version);

#endif
