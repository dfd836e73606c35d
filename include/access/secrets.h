/* Secrets that are written over one another: what is shown as "*******" and comes back keeps its
 * value (docs/specification.md, section 6). */
#ifndef ACCESS_SECRETS_H
#define ACCESS_SECRETS_H

#include "access/mask.h"
#include "protocol/schema.h"

/* schema_decode over `old`, the entity's stored text or absent, whose secrets the client was never
 * shown. So the decoding goes over the text that is shown, which is what draft->written then
 * tells: a secret is the mask there unless the client wrote one, equal to the stored one or not.
 * In draft->values each mask is replaced by what is stored in its place, and draft->kept names
 * those places.
 * Errors of schema_decode; ERR_INVALID_ENTITY for a mask in a place for secrets that has none. */
struct err *secrets_decode(const struct mask *m, const struct shape *shape, struct json_value input,
                           struct span old, enum schema_mode mode, struct arena *a,
                           struct draft *out_draft) MUST_USE;
/* Does the client write a secret, equal to the stored one or not? False for a draft of
 * schema_decode's. */
bool secrets_are_written(const struct mask *m, const struct draft *draft, struct arena *a);

#endif
