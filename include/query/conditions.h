/* Conditions joined by AND (docs/specification.md, section 2). What one of them is, condition.h
 * says.
 */
#ifndef QUERY_CONDITIONS_H
#define QUERY_CONDITIONS_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;
struct condition;
struct json_value;
struct literal;
struct shape;
struct span;
struct uri_condition;

struct conditions {
    struct condition *items;
    size_t count;
};

/* Types every condition against the shape, which must outlive them. Errors as in path_parse and
 * literal_parse, and ERR_INVALID_CONDITION_OPERATOR for an order of booleans, objects or arrays of
 * declared type. A path may begin with a hidden property: whoever has none computes to add finds it
 * missing. Spans may point into `conditions`. */
struct err *conditions_parse(const struct uri_condition *conditions, size_t count,
                             const struct shape *shape, struct arena *a,
                             struct conditions *out_conditions) MUST_USE;
/* True for no conditions. The arena is used for unescaping only. */
bool conditions_hold(const struct conditions *c, struct json_value entity, struct arena *a);
/* The literal of the first `path = literal` condition on that property, or NULL. */
const struct literal *conditions_equal_to(const struct conditions *c, struct span property);
/* Its text, where it is a string. False: there is none, or it is none. */
bool conditions_string(const struct conditions *c, struct span property, struct span *out_text);
/* Does a path of theirs begin with this property, in its declared spelling? */
bool conditions_begin_with(const struct conditions *c, struct span property);
/* Those on exactly this path, in the arena. */
struct conditions conditions_on(const struct conditions *c, struct span path, struct arena *a);
/* The highest n of all conditions `property>n`, for numbers that are never negative; 0: none. */
uint64_t conditions_above(const struct conditions *c, struct span property);
/* Normal form, decoded-safe: keys in declared spelling, values percent-encoded, joined by '&';
 * nothing for no conditions. */
void conditions_add_normal(struct buf *b, const struct conditions *c);

#endif
