/* Request targets (docs/specification.md, section 1) and times, as people write them. */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include "base/buf.h"
#include "base/err.h"

/* A value of a condition: every byte that could mean anything is percent-encoded. */
void target_add_value(struct buf *b, struct span text);
/* A target as it was typed: a leading `/` when it has none; blanks, controls, quotes, `#` and what
 * is not ASCII percent-encoded, everything else as it is. */
void target_add_typed(struct buf *b, struct span text);
/* Is it an Id, 8-4-4-4-12 hexadecimal digits? */
bool target_is_id(struct span text);
/* `before` with a value of a condition behind it, in the arena. */
struct span target_with(struct arena *a, const char *before, struct span value);
/* `/Resource/Id=<value>`, or `/Resource/Name='<value>'` of what is no Id: how an entity is asked
 * for that a person calls by its Id or by another property. */
struct span target_named(struct arena *a, const char *resource, const char *property,
                         struct span text);

/* The parts of a stored selector: the event resource, and its conditions (absent: none), both as
 * they stand there. */
void target_split_selector(struct span selector, struct span *out_resource,
                           struct span *out_conditions);
/* Does what was typed mean this resource: its full name, or the end of it behind a dot; `X.*` all
 * directly in X, `*` all? */
bool target_means(struct span typed, struct span full_name);

/* A date or a datetime as it is, or a number with s, m, h or d: so long ago, or with `ahead` from
 * now. Appends a datetime. The error names `what`. */
struct err *target_add_time(struct buf *b, const char *what, struct span text, int64_t now_ns,
                            bool ahead) MUST_USE;

#endif
