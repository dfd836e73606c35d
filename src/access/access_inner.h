/* Shared by the files of access. */
#ifndef ACCESS_ACCESS_INNER_H
#define ACCESS_ACCESS_INNER_H

#include "access/access.h"

/* Reads a declaration of the configuration, see access_add. What *out_key points to is in the
 * arena, or in the declaration. */
struct err *access_read(struct json_value declaration, struct arena *a,
                        struct access_key *out_key) MUST_USE;

#endif
