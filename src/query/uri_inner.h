/* Between uri.c and uri_form.c. */
#ifndef QUERY_URI_INNER_H
#define QUERY_URI_INNER_H

#include "query/uri.h"

/* Undoes percent-encoding once, into the arena where there is any. ERR_INVALID_URI_SYNTAX: a bad
 * escape, a NUL, not UTF-8. */
struct err *uri_decode(struct span text, struct arena *a, struct span *out_text) MUST_USE;
/* Reads a query, which stands behind its '?', into out_uri's parameters, decoded.
 * ERR_INVALID_URI_SYNTAX: more than max_conditions of a kind, or as uri_decode. */
struct err *uri_read_form(struct span query, size_t max_conditions, struct arena *a,
                          struct uri *out_uri) MUST_USE;
/* Is it one of the conditions, `where`? Otherwise it is a meta-condition. */
bool uri_is_where(const struct uri_condition *parameter);

#endif
