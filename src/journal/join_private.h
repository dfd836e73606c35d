/* What the files of the module join share: join.c takes a copy, join_place.c puts it in place. */
#ifndef JOURNAL_JOIN_PRIVATE_H
#define JOURNAL_JOIN_PRIVATE_H

#include "journal/join.h"

#define JOIN_COMING "joining"
#define JOIN_WHOLE "joined"

/* Deletes a file of `<directory>/joining`, or itself when it has none; *out_gone: there is none. */
struct err *join_clear_step(const char *directory, bool *out_gone) MUST_USE;
/* `joining` holds a whole copy of this cluster's, on stable storage: it gets its name. Blocks for
 * the moment that this takes the disk. */
struct err *join_seal(const char *directory, const struct uuid *cluster) MUST_USE;

#endif
