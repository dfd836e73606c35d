/* Header values that hold secrets, and what is shown instead (protocol.md, sections 5 and 6). One
 * list of names, used for stored errors, for webhooks shown to keys that may only read, and for the
 * log. */
#ifndef SERVICE_MASK_H
#define SERVICE_MASK_H

#include "base/arena.h"
#include "base/json.h"

#define MASK "*******"

/* Authorization, Proxy-Authorization, Cookie, X-Api-Key; any case. */
bool mask_is_secret_header(struct span name);
/* What a stored error shows: `apikey *******` for Authorization, `*******` for the other secret
 * ones, the value itself for the rest. */
struct span mask_header_value(struct span name, struct span value);
/* Appends a JSON object of headers with the values of secret ones replaced by "*******". */
void mask_add_headers(struct buf *b, struct json_value headers, struct arena *a);
/* Appends `headers` with each value that is exactly "*******" replaced by the one that `old` has
 * under the same name (any case): writing the mask keeps the stored value. */
void mask_add_restored(struct buf *b, struct json_value headers, struct json_value old,
                       struct arena *a);

#endif
