/* An answer as bytes: status line, headers, body (RFC 9112, section 4). Pure. */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "rest/request.h"

struct response;

struct reply_options {
    bool is_head;        /* the body's length is sent, the body is not */
    bool close;          /* Connection: close */
    bool is_http10;      /* keep-alive has to be said */
    struct span common;  /* reply_add_common's lines */
    struct span applied; /* the value of Svc-applied; absent: there is none */
};

/* Appends the whole answer. Date and Svc-version always; Content-Length too, except with 204 and
 * 304, which have no body, and with a stream, whose body comes later: in chunks (RFC 9112, section
 * 7.1), or for HTTP/1.0 until the connection ends. A download's body comes later too. An answer
 * with a body gets `Content-Type`; `X-Content-Type-Options: nosniff` likewise. */
void reply_add(struct buf *b, const struct response *response, const struct reply_options *options);
/* The same in two parts: all before the body, and the body, which is empty when none is sent. */
void reply_add_head(struct buf *b, const struct response *response,
                    const struct reply_options *options);
struct span reply_body(const struct response *response, const struct reply_options *options);
/* The line in front of a chunk of so many bytes, and what ends a chunked body. */
void reply_add_chunk_head(struct buf *b, size_t bytes);
extern const struct span reply_last_chunk;
/* `HTTP/1.1 100 Continue` */
void reply_add_continue(struct buf *b);
/* The lines that all answers of a second have: Date, `Sat, 31 Jan 2026 12:00:00 GMT` (RFC 9110,
 * section 5.6.7), and Svc-version. */
void reply_add_common(struct buf *b, int64_t unix_s);

#endif
