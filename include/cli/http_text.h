/* An HTTP/1.1 request as text: what `svc verify` reads from its standard input, and `svc sink` from
 * a connection. For people at their desk: the server has a stricter parser. */
#ifndef CLI_HTTP_TEXT_H
#define CLI_HTTP_TEXT_H

#include "base/err.h"
#include "base/span.h"

enum { HTTP_TEXT_FIELDS = 128 };

struct http_text {
    struct span method, path; /* absent without a request line */
    struct {
        struct span name, value;
    } fields[HTTP_TEXT_FIELDS];
    size_t field_count;
    struct span body; /* all that comes behind the empty line */
};

/* Spans lie in `text`. Lines end with LF or CR LF; the request line may be missing. Error
 * ERR_UNKNOWN: what is wrong with which line; ERR_NO_DATA_SOURCE: there is no empty line yet. */
struct err *http_text_parse(struct span text, struct http_text *out) MUST_USE;
/* The first of that name, in any case; the absent span without one. */
struct span http_text_field(const struct http_text *request, struct span name);
/* Of Content-Length; 0 without one. False: it is no number. */
bool http_text_length(const struct http_text *request, uint64_t *out_bytes);

#endif
