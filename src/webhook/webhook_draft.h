/* Members of a webhook that is written: as they are, and against what is stored. */
#ifndef WEBHOOK_WEBHOOK_DRAFT_H
#define WEBHOOK_WEBHOOK_DRAFT_H

#include "base/span.h"

#include <stdbool.h>

struct arena;
struct call;
struct draft;
struct entity;
struct json_value;

/* The text as JSON. */
struct span webhook_json_of(struct arena *a, struct span text);
/* Absent: the member is no string. */
struct span webhook_draft_string(const struct draft *draft, struct span name, struct arena *a);
/* Of the stored one; absent: there is none. */
struct json_value webhook_old_member(const struct entity *old, struct span name, struct arena *a);
/* The member as clients see it. */
struct span webhook_shown_member(const struct call *call, const struct entity *old,
                                 struct span name);
/* Was the member left as it is stored? One with a secret that was written was not, equal or not. */
bool webhook_is_unwritten(const struct call *call, const struct draft *draft,
                          const struct entity *old, struct span name);
/* Does a PATCH leave it so? */
bool webhook_keeps(const struct call *call, const struct draft *draft, const struct entity *old,
                   struct span name);
/* What a webhook refers to may have become wrong since it was stored: resources, keys and the rules
 * for addresses change. Nobody is to be kept by that from pausing it, or from changing other
 * members. Resuming asks again, since one that refers to nothing would match nothing. */
bool webhook_keeps_reference(const struct call *call, const struct draft *draft,
                             const struct entity *old, struct span name);
/* Whether the write leaves the member as it is stored. */
bool webhook_is_same(const struct draft *draft, const struct entity *old, struct span name,
                     struct arena *a);
/* Whether clients will see another value. */
bool webhook_is_changed(const struct call *call, const struct draft *draft,
                        const struct entity *old, struct span name);

#endif
