/* What the files of the h1 module share.
 *
 *   h1.c          the parser's life, the order of its parts
 *   h1_head.c     the head: lines, fields, llhttp
 *   h1_target.c   the request line, authorities: pure
 *   h1_chunked.c  the chunked body */
#ifndef HTTP_H1_PRIVATE_H
#define HTTP_H1_PRIVATE_H

#include "base/macros.h"
#include "http/h1.h"

/* symbol, code, words for the client */
#define H1_FAILURES(X)                                                                             \
    X(H1_OK, ERR_NO_ERROR, "")                                                                     \
    X(H1_BAD_LF, ERR_INVALID_URI_SYNTAX, "A line ends with LF alone.")                             \
    X(H1_BAD_CR, ERR_INVALID_URI_SYNTAX, "CR stands without LF.")                                  \
    X(H1_BAD_CONTROL, ERR_INVALID_URI_SYNTAX, "A control character stands in a line.")             \
    X(H1_BAD_LINE, ERR_INVALID_URI_SYNTAX, "The request line is malformed.")                       \
    X(H1_BAD_VERSION, ERR_HTTP_VERSION, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")             \
    X(H1_BAD_CONNECT, ERR_UNKNOWN_METHOD, "CONNECT is not supported: this is not a proxy.")        \
    X(H1_BAD_TARGET, ERR_INVALID_URI_SYNTAX, "The request target is malformed.")                   \
    X(H1_LONG_TARGET, ERR_URI_TOO_LONG, "The request target is too long.")                         \
    X(H1_LONG_HEAD, ERR_HEADERS_TOO_LARGE, "The header fields are too long.")                      \
    X(H1_MANY_FIELDS, ERR_HEADERS_TOO_LARGE, "There are too many header fields.")                  \
    X(H1_BAD_HEAD, ERR_INVALID_URI_SYNTAX, "The request head is malformed.")                       \
    X(H1_BAD_FOLD, ERR_INVALID_URI_SYNTAX, "A header field is folded over several lines.")         \
    X(H1_BAD_FIELD, ERR_INVALID_URI_SYNTAX, "A header field is malformed.")                        \
    X(H1_NO_HOST, ERR_INVALID_URI_SYNTAX, "Host is missing.")                                      \
    X(H1_BAD_HOST, ERR_INVALID_URI_SYNTAX, "Host is malformed.")                                   \
    X(H1_TWO_HOSTS, ERR_INVALID_URI_SYNTAX, "Host is given more than once.")                       \
    X(H1_BAD_LENGTH, ERR_INVALID_URI_SYNTAX, "Content-Length is not a number of bytes.")           \
    X(H1_TWO_KEYS, ERR_INVALID_URI_SYNTAX, "Authorization is given more than once.")               \
    X(H1_TWO_LENGTHS, ERR_INVALID_URI_SYNTAX,                                                      \
      "Content-Length or Transfer-Encoding is given more than once, or both are.")                 \
    X(H1_BAD_CODING, ERR_INVALID_URI_SYNTAX,                                                       \
      "Transfer-Encoding is malformed or does not end in chunked.")                                \
    X(H1_OLD_CODING, ERR_INVALID_URI_SYNTAX, "HTTP/1.0 has no Transfer-Encoding.")                 \
    X(H1_OTHER_CODING, ERR_UNSUPPORTED_CODING, "Only the transfer coding chunked is supported.")   \
    X(H1_BAD_EXPECT, ERR_EXPECTATION_FAILED, "Only 100-continue can be expected.")                 \
    X(H1_LONG_BODY, ERR_PAYLOAD_TOO_LARGE, "The request body is too long.")                        \
    X(H1_BAD_CHUNK, ERR_INVALID_URI_SYNTAX, "A chunk is malformed.")                               \
    X(H1_LONG_EXTENSION, ERR_INVALID_URI_SYNTAX, "The chunk extensions are too long.")             \
    X(H1_BAD_TRAILER, ERR_INVALID_URI_SYNTAX,                                                      \
      "A trailer field is malformed, or belongs into the head.")

enum h1_fail { H1_FAILURES(AS_SYMBOL) };

/* The part that the next byte belongs to. */
enum h1_part {
    H1_PART_HEAD,
    H1_PART_SIZED,   /* a body of `left` bytes */
    H1_PART_CHUNKED, /* a body in chunks */
    H1_PART_DONE,    /* a request is complete */
    H1_PART_FAILED
};

/* Of a request line beyond its target: room for a method, the spaces and the version. */
#define H1_LINE_BYTES 64

/* Few requests have more fields; what fits is allocated once a connection. */
#define H1_USUAL_FIELDS 16

/* The longest name that matters: longer ones are none of the names we look for. */
#define H1_NAME_BYTES 24

struct h1_chunks {
    unsigned char state, digits;
    char last;                /* character of an extension */
    unsigned char name_bytes; /* of a trailer field */
    char name[H1_NAME_BYTES];
    size_t left;            /* of the chunk */
    size_t extension_bytes; /* of the whole body */
    size_t trailer_bytes;
};

struct h1 {
    const struct limits *limits;
    struct buf head; /* of a request whose head did not come in one piece with its body */
    struct buf body; /* likewise */
    struct header_field *fields;
    size_t field_room;

    /* Of one request, from here to the end: zero when it begins. */
    struct h1_request request;
    enum h1_part part;
    enum h1_fail fail;

    /* The head. Offsets are counted from its first byte. */
    size_t scanned, line_at, fields_at, head_bytes;
    unsigned field_lines;
    unsigned seen;         /* special fields, one bit each */
    unsigned char empty_n; /* bytes taken of an empty line before the request line: at most 2 */
    bool says_close, says_keep_alive, expects_continue, is_chunked;

    size_t left;       /* of a body with Content-Length */
    size_t body_taken; /* bytes, framing of chunks included */
    struct h1_chunks chunks;
};

/* Ends the parser with this failure. */
enum h1_result h1_fail(struct h1 *p, enum h1_fail fail);
/* What is wrong with a byte that may not stand in a line. */
enum h1_fail h1_byte_fail(char c);

/* Of the bytes that may stand within a line: HTAB, SP, visible, or beyond ASCII. */
extern const bool h1_plain[256];

/* Goes on looking for the end of the head that `bytes` begins with, all of it that has come so far;
 * H1_REQUEST: the first p->head_bytes are the head. */
enum h1_result h1_scan_head(struct h1 *p, struct span bytes);
/* Fills in the request, all but its body, from the head that `bytes` begins with, and says in
 * p->part what kind of body follows. */
enum h1_fail h1_parse_head(struct h1 *p, struct span bytes);

/* Sets method, target, is_http10, and host when the target names one. */
enum h1_fail h1_read_request_line(struct span line, const struct limits *limits,
                                  struct h1_request *r);
/* uri-host [":" port] of RFC 9112 section 3.2. Of registered names only those that a DNS name can
 * be: letters, digits and `-._~`. */
bool h1_is_authority(struct span s);

/* Takes bytes off the front of *rest. H1_REQUEST: the body is complete. */
enum h1_result h1_feed_chunks(struct h1 *p, struct span *rest);

#endif
