/* What the rights of a key are on: names that lead nowhere are most often misspelled. */
#ifndef RESOURCE_KEY_RIGHTS_H
#define RESOURCE_KEY_RIGHTS_H

#include "base/err.h"
#include "base/span.h"

struct access_key;
struct resources;

/* What the names of built-in resources begin with, folded. */
extern const struct span key_rights_reserved;
/* Does the pattern, `ns.name` or `ns.*`, cover the name? Folded the one, in any case the other. */
bool key_rights_cover(struct span pattern, struct span name);
/* ERR_INVALID_ENTITY for an entry of the key's AllowAccess that allows nothing: without resources
 * or methods, or with a name that begins with `Svc.` and is no built-in resource's, nor a namespace
 * of any, or is that of one with none of the methods. The message begins with the place:
 * `AllowAccess[0].` */
struct err *key_rights_check(const struct access_key *key,
                             const struct resources *resources) MUST_USE;

#endif
