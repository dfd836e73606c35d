/* The answer to a request: status, headers, body, and the arena of the evaluation that made it. */
#ifndef REST_RESPONSE_H
#define REST_RESPONSE_H

#include "rest/request.h"

#define RESPONSE_MAX_HEADERS 24

struct response {
    int status;
    struct header_field *headers; /* in the arena; their spans there too, or static */
    size_t header_count;
    struct span content_type;  /* absent: no body */
    struct buf body;           /* complete also for HEAD, which sends its length only */
    size_t most_body_bytes;    /* body.max is less while there is no room for so much */
    struct arena arena;        /* of this evaluation: everything temporary */
    uint64_t serial;           /* what must be committed before this answer may leave; 0: nothing */
    enum err_code error;       /* ERR_NO_ERROR on success */
    struct span message;       /* of an error, without controls; absent on success */
    bool was_long;             /* it took a noticeable part of the turn */
    bool is_stream;            /* what comes behind the head has no end: chunks, of `stream` */
    bool has_flow;             /* there is one of these, to be taken over, else closed with it: */
    struct stream *stream;     /* HEAD has none */
    struct download *download; /* HEAD has none */
    uint64_t later_bytes;      /* of it, which the Content-Length counts too */
    bool gives_way;            /* this is no answer: nothing has happened yet, see evaluation.h */
    struct passage *passage;   /* then: through which it goes first, to be taken over; or NULL */
    void (*free_passage)(struct passage *p); /* of one that nobody takes over; set with it */
};

/* One response object is used again and again: a warm one does not allocate. */
void response_init(struct response *r, size_t max_body_bytes);
void response_done(struct response *r);
/* Empties it for the next answer; keeps a reasonable amount of memory. */
void response_reset(struct response *r);

/* What would come behind the head is not wanted any more. */
void response_drop_flow(struct response *r);
/* It may be as long as there is room, up to most_body_bytes. */
void response_bound(struct response *r, size_t room_bytes);

struct span response_header(const struct response *r, struct span name);
/* Controls, CR and LF are replaced by blanks, bytes beyond ASCII percent-encoded; `value` is copied
 * into the arena. */
void response_add_header(struct response *r, struct span name, struct span value);
/* The same for a value of our own making: it holds nothing of that, and is static or in the arena.
 */
void response_add_own_header(struct response *r, struct span name, struct span value);
/* As Allow: `GET, HEAD`. */
void response_add_methods(struct response *r, struct span name, unsigned methods);
/* A problem body (RFC 9457) with Svc-info; `instance` may be absent. Other headers are kept. */
void response_set_problem(struct response *r, int status, enum err_code code, struct span message,
                          struct span instance);

#endif
