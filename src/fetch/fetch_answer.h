/* An answer as it is read: bytes in, a verdict out, and nothing else. llhttp frames it; what it
 * amounts to, and when it is too much, is measured here (RFC 9112). */
#ifndef FETCH_FETCH_ANSWER_H
#define FETCH_FETCH_ANSWER_H

#include "fetch/fetch.h"

#include <llhttp.h>

#define FETCH_HEAD_BYTES ((size_t)64 * 1024) /* of all heads of an answer; of its trailers */

enum fetch_progress {
    FETCH_MORE,  /* to come */
    FETCH_WHOLE, /* or as much of it as is read */
    FETCH_BAD    /* see fetch_answer_fault */
};

/* Why an answer was given up. */
enum fetch_stop {
    FETCH_GOES_ON,
    FETCH_BODY_READ,
    FETCH_HEAD_TOO_LONG,
    FETCH_TOO_MANY_INTERIM,
    FETCH_PACKED,
    FETCH_NUL,
    FETCH_NOISE
};

struct fetch_answer {
    llhttp_t parser;
    llhttp_errno_t code; /* of a bad answer */
    enum fetch_stop stop;
    int status;       /* of the final head, 0 before it */
    unsigned interim; /* heads of status 1xx */
    bool in_head;
    bool complete_head; /* of the final answer */
    bool has_bytes;     /* any, of anything */
    bool has_body;      /* the last chunk has come */
    bool is_done;
    bool is_unclear; /* where it ends: the connection is not for another request */
    int64_t retry_after_s;
    struct fetch *fetch;                 /* that it answers */
    struct buf found[FETCH_WANTED_MOST]; /* of the final head */
    struct buf line;                     /* the field being read, name and value */
    size_t name_bytes;                   /* of these */
    struct buf body;                     /* the first bytes, up to its cap */
    uint64_t body_bytes;
    size_t read_bytes;              /* how many of the body to read */
    uint64_t received, trailers_at; /* bytes */
};

/* Begins the answer to this fetch, which stays in place while it is fed. `a` is zeroed, or held an
 * answer before: its buffers are used again. */
void fetch_answer_begin(struct fetch_answer *a, struct fetch *fetch);
void fetch_answer_done(struct fetch_answer *a);
/* The same answer however its bytes are cut. What is left of `bytes` behind a whole answer makes
 * it unclear. */
enum fetch_progress fetch_answer_feed(struct fetch_answer *a, struct span bytes);
/* Its body goes to the fetch's on_body: known with the head. */
bool fetch_answer_is_stream(const struct fetch_answer *a);
/* The connection has ended: no more will come. */
enum fetch_progress fetch_answer_end(struct fetch_answer *a);
/* After a whole answer: may the connection carry another request? */
bool fetch_answer_keeps_connection(const struct fetch_answer *a);
/* After a bad answer: what is wrong, in words. */
enum fetch_error fetch_answer_fault(const struct fetch_answer *a, char *why, size_t size);

#endif
