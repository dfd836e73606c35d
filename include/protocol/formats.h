/* Event payloads: from a request's body to the bytes that are sent. Pure. */
#ifndef PROTOCOL_FORMATS_H
#define PROTOCOL_FORMATS_H

#include "protocol/negotiate.h"

struct arena;
struct buf;
struct json_value;

/* Entities as a JSON array: an object gets brackets around its text, an array stays byte for byte.
 * ERR_INVALID_ENTITY when it is neither, or an element is no object; the index is named. */
struct err *formats_from_json(struct json_value value, struct arena *a,
                              struct span *out_array) MUST_USE;
/* The array's items in another format (payload_array as made above). JSON comes out untouched. */
void formats_add_array(struct buf *b, struct span payload_array, enum format format,
                       struct arena *a);
/* Writes entity texts as JSON array, NDJSON or CSV: the one writer of lists, for answers too. CSV
 * (RFC 4180): the header row holds every member name in order of first appearance, nested values as
 * JSON text, null as an empty field. */
void formats_add_list(struct buf *b, const struct span *items, size_t count, enum format format,
                      unsigned indent, struct arena *a);
/* The same as CSV for a spreadsheet: a `'` stands before what it would take for a formula, strings
 * and names that begin with `=`, `+`, `-`, `@`, tab or CR. */
void formats_add_sheet(struct buf *b, const struct span *items, size_t count, struct arena *a);

#endif
