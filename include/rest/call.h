/* One evaluation of a request, as the resources see it: what was asked, by whom, of what; the
 * answer; and the change that it makes. Lives as long as dispatch_run. */
#ifndef REST_CALL_H
#define REST_CALL_H

#include "base/macros.h"
#include "base/span.h"
#include "protocol/method.h"

struct access_key;
struct account;
struct change;
struct evaluation;
struct negotiation;
struct passage;
struct query;
struct query_source;
struct request;
struct resource;
struct response;
struct rest;
struct uri;

struct call {
    struct rest *rest;
    const struct request *request;
    struct response *response;
    struct arena *arena;     /* the response's */
    struct access_key *key;  /* NULL: all rights */
    struct account *account; /* the key's, else everybody's; there while the call is */
    enum method method;
    struct resource *resource; /* NULL until it is found */
    struct uri *uri;
    struct query *query;
    struct change *change;         /* begun by evaluation_begin_change */
    struct evaluation *evaluation; /* that it is a part of; NULL: it runs on the loop's stack */
    struct negotiation *formats;   /* JSON, unless the request says otherwise */
    struct query_source *source;   /* set by resource_ops.open */
    void *own;                     /* the resource's, between its ops */
    struct passage *passage; /* what it goes through first, in a cluster; then it has no answer */
    bool uri_is_split;
    bool is_node;               /* another node of the cluster asks for itself: see node.h */
    bool asks_for_openapi;      /* by the path /openapi.json: see probe.h */
    bool is_stream;             /* text/event-stream was asked for, where there is that */
    struct span error_resource; /* for Error.ResourceName; absent: <unknown> */
};

/* The key of an Authorization value that came with the request: its own, or one that it writes into
 * a webhook. A wrong one counts as a failed sign-in of the client's address and, when there is one,
 * of the key that asks. ERR_TOO_MANY_REQUESTS past the limit, right or wrong; errors of
 * access_sign_in. */
struct err *call_sign_in(struct call *call, struct span authorization,
                         struct access_key **out_key) MUST_USE;
/* There is no room for what it brings or makes: ERR_OVERLOADED. */
struct err *call_refuse_for_memory(const struct call *call) MUST_USE;
/* Its answer has passed what it may be: ERR_PAYLOAD_TOO_LARGE past AnswerBytes; ERR_OVERLOADED when
 * there was no room for so much. */
struct err *call_refuse_answer(const struct call *call) MUST_USE;
/* Its change has passed ChangeBytes: what a request writes grows with what it matches, and not with
 * what was sent. ERR_PAYLOAD_TOO_LARGE. */
struct err *call_refuse_change(const struct call *call) MUST_USE;

#endif
