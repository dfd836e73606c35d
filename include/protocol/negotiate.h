/* Content negotiation (RFC 9110, section 12; docs/specification.md, section 4): which format comes
 * in, which goes out. Pure. One table of formats. */
#ifndef PROTOCOL_NEGOTIATE_H
#define PROTOCOL_NEGOTIATE_H

#include "base/macros.h"
#include "base/span.h"

enum format { FORMAT_JSON, FORMAT_NDJSON, FORMAT_CSV, FORMAT_COUNT };

/* `application/json` and so on. */
extern const struct span format_media_types[FORMAT_COUNT];

struct negotiated {
    enum format format;
    unsigned indent; /* of `application/json;indent=2`; 0: compact */
};

/* In which formats a request and its answer are written. */
struct negotiation {
    struct negotiated out;
    enum format in;
};

/* `accept`: the field's value, several fields joined by commas; the absent span: anything.
 * q-values, wildcards and specificity as in RFC 9110 section 12.5.1; among equals the table's
 * order. Who prefers HTML, as browsers do, gets JSON with an indentation. ERR_NOT_ACCEPTABLE lists
 * what there is; a malformed field is treated as such too. */
struct err *negotiate_accept(struct span accept, struct negotiated *out_negotiated) MUST_USE;
/* Does `accept` name text/event-stream, and prefer it to all that an entity can be written in? Of
 * what is as good, it is what is named that counts: not wildcards. False for a malformed field. */
bool negotiate_prefers_stream(struct span accept);
/* Is text/html named among what is acceptable? False for a malformed field. */
bool negotiate_names_html(struct span accept);
/* May the answer be compressed with gzip? `accept_encoding` as `accept` above (RFC 9110, section
 * 12.5.3), but the absent span, and a malformed field, say no. */
bool negotiate_takes_gzip(struct span accept_encoding);
/* ERR_UNSUPPORTED_CONTENT unless the field is absent or says `identity`. */
struct err *negotiate_content_encoding(struct span content_encoding) MUST_USE;
/* The format of a request body. The absent span is JSON. ERR_UNSUPPORTED_CONTENT names the type and
 * lists what can be read; a charset parameter other than utf-8 is unsupported. */
struct err *negotiate_content_type(struct span content_type, bool ndjson_allowed,
                                   enum format *out_format) MUST_USE;
/* The format of a body that is to be sent with this Content-Type, in UTF-8. The absent span is
 * JSON. ERR_UNSUPPORTED_CONTENT names the type and lists what can be written. */
struct err *negotiate_written_type(struct span content_type, enum format *out_format) MUST_USE;
/* A well-formed media type (RFC 9110 section 8.3.1), in ASCII as all header fields that leave? */
bool negotiate_is_media_type(struct span text);
/* Is a well-formed media type of a declared one: equal, or where that has a `*`, any; with all of
 * its parameters, and others besides? Names and values in any case. */
bool negotiate_is_of_type(struct span text, struct span declared);
/* Does `Prefer` (RFC 7240) hold return=minimal? */
bool negotiate_prefers_minimal(struct span prefer);
/* count=exact? */
bool negotiate_prefers_count(struct span prefer);
/* If-Match and If-None-Match (RFC 9110, section 13.1): does the list hold this entity tag (given
 * with quotes), or `*`? `weak` compares weakly, as If-None-Match does. */
bool negotiate_etag_listed(struct span list, struct span etag, bool weak);

#endif
