/* Header values that hold secrets, and what is shown instead (docs/specification.md, sections 5 and
 * 6). One list of names, used for stored errors, for webhooks shown to keys that may only read, and
 * for the log. */
#ifndef REST_MASK_H
#define REST_MASK_H

#include "base/json.h"

#define MASK "*******"

/* Authorization, Proxy-Authorization, Cookie, X-Api-Key; any case. */
bool mask_is_secret_header(struct span name);
/* Is one of these, or Secrets, anywhere in the text, in any case? */
bool mask_names_secret(struct span text);
/* What a stored error shows: `apikey *******` for Authorization, `*******` for the other secret
 * ones, the value itself for the rest. */
struct span mask_header_value(struct span name, struct span value);
/* Appends a JSON object of headers with the values of secret ones replaced by "*******". */
void mask_add_headers(struct buf *b, struct json_value headers, struct arena *a);
/* Appends any JSON value with what is secret in it replaced, however deep: members named like
 * secret headers, and the elements of members named Secrets. For what a client sent, in whatever
 * shape. */
void mask_add_value(struct buf *b, struct json_value value, struct arena *a);
/* Is this value exactly "*******"? Writing that keeps what is stored. */
bool mask_is(struct json_value value, struct arena *a);
/* `value`, or when it is the mask the one that `old` (an object, or absent) has under that name. */
struct json_value mask_restore(struct span name, struct json_value value, struct json_value old,
                               struct arena *a);

#endif
