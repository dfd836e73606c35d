/* HTTP/1.1 requests out of bytes (RFC 9112), stricter than the RFC asks where leniency has been
 * used to smuggle requests. No sockets: bytes in, requests out, in any pieces. One parser a
 * connection; one request at a time, reported when it is complete.
 *
 * llhttp takes request heads apart; the checks around it, and the framing of bodies, are ours.
 * llhttp 8.1.0 is older than some published fixes; h1.c lists each with the check that covers it.
 */
#ifndef HTTP_H1_H
#define HTTP_H1_H

#include "protocol/method.h"
#include "rest/request.h"

#define H1_MAX_FIELDS 100 /* header and trailer fields of one request */

struct h1_request {
    struct span method; /* as received: `GET` */
    struct span target; /* origin-form, or `*`; of an absolute-form the path and on */
    struct span host;   /* an absolute-form target's authority, else Host; absent in HTTP/1.0 */
    const struct header_field *headers; /* bytes as received, values trimmed */
    size_t header_count;
    struct span body;
    bool has_body;   /* framed with Content-Length or chunked, though it may be empty */
    bool keep_alive; /* the connection may carry another request after this one */
    bool is_http10;
    enum method known_method; /* METHOD_OTHER: another one, which makes a request as well */
};

/* What is wrong with bytes that do not make a request: a code of status 400, 413, 414, 417, 431,
 * 501 or 505, and words for the client. The connection ends after that answer. */
struct h1_failure {
    enum err_code code;
    const char *why; /* static */
};

enum h1_result {
    H1_NEED_MORE, /* everything was taken, no request is complete */
    H1_REQUEST,   /* h1_request() is valid until h1_next() */
    H1_FAILED     /* h1_failure(); no more bytes are taken */
};

/* Which time limit applies. A complete request leaves its parser idle. */
enum h1_phase { H1_IDLE, H1_HEAD, H1_BODY };

struct limits;
struct h1;

/* `limits` is borrowed and does not change. */
struct h1 *h1_new(const struct limits *limits);
void h1_free(struct h1 *p); /* NULL is allowed */
/* Takes bytes up to the end of one request: *out_taken says how many. The rest is given again after
 * h1_next(). A request that lies wholly in `bytes` is not copied: after H1_REQUEST they stay where
 * they are until h1_next(). However the bytes are cut into pieces, the outcome is the same. */
enum h1_result h1_feed(struct h1 *p, struct span bytes, size_t *out_taken);
const struct h1_request *h1_request(const struct h1 *p);
/* All of a request but its body, which is awaited: in H1_BODY, until the next h1_feed. */
const struct h1_request *h1_awaiting(const struct h1 *p);
const struct h1_failure *h1_failure(const struct h1 *p);
/* Drops the request and begins with the next one; memory beyond a small reserve is given back. */
void h1_next(struct h1 *p);
enum h1_phase h1_phase(const struct h1 *p);
/* Nothing of a next request has come: any other parser that is fresh can go on in its place. */
bool h1_is_fresh(const struct h1 *p);
/* Bytes of the current phase received so far: for a minimum rate. */
size_t h1_phase_bytes(const struct h1 *p);
/* Memory that is held for the bytes of a request. */
size_t h1_held_bytes(const struct h1 *p);
/* True once after the head of a request with `Expect: 100-continue` whose body is awaited: the
 * caller sends the interim answer. Another expectation fails with 417. */
bool h1_take_continue(struct h1 *p);

#endif
