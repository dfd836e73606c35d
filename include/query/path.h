/* Property paths: `Account.Number`, `Lines.0.Sku`, `Name.Length`, `Born.Year`
 * (docs/specification.md, section 2, "Keys"). A path is parsed against a shape once and read from
 * many documents. */
#ifndef QUERY_PATH_H
#define QUERY_PATH_H

#include "base/macros.h"
#include "query/shape.h"

struct json_value;

/* The last step, when no real property of that name is there. */
enum path_part {
    PATH_VALUE,
    PATH_LENGTH,
    PATH_YEAR,
    PATH_MONTH,
    PATH_DAY,
    PATH_HOUR,
    PATH_MINUTE,
    PATH_SECOND,
    PATH_DAY_OF_WEEK
};

#define PATH_NO_INDEX UINT32_MAX
#define PATH_ANY_INDEX (UINT32_MAX - 1)

struct path_step {
    struct span name; /* in declared spelling where declared; folded on comparison */
    uint32_t index;   /* the name as an index into an array, PATH_ANY_INDEX or PATH_NO_INDEX */
};

struct path {
    struct span text;        /* declared spelling where declared, otherwise as given */
    struct path_step *steps; /* without the part */
    size_t step_count;
    enum path_part part;             /* PATH_VALUE: none */
    struct span part_name;           /* as given */
    bool part_if_missing;            /* on undeclared values: a member called like the part wins */
    bool has_any;                    /* some step is `*`: see path_each */
    enum value_type type;            /* of what the path yields; TYPE_ANY when undeclared */
    const struct property *property; /* the declared property that it ends at, or at an element of,
                                      * or NULL */
    const struct property *hidden;   /* the PROPERTY_HIDDEN that it begins with, or NULL */
};

#define PATH_STEPS_MOST 16

/* The path lives in the arena and the shape (NULL: dynamic), which must outlive it.
 * ERR_UNKNOWN_PROPERTY names the property, the resource's shape and the nearest name. More than
 * PATH_STEPS_MOST steps, or an empty one: ERR_INVALID_CONDITION_SYNTAX. */
struct err *path_parse(struct span text, const struct shape *shape, struct arena *a,
                       struct path *out_path) MUST_USE;
/* The same for the key of a condition, where a step into an array may be `*`, any element. */
struct err *path_parse_key(struct span text, const struct shape *shape, struct arena *a,
                           struct path *out_path) MUST_USE;
/* The next path of a list, whose commas do not count within a step in quotes; *rest is absent
 * behind the last one. */
struct span path_split_list(struct span *rest);
/* What it is called in an answer: its text, a single member in quotes without them. */
struct span path_shown_name(const struct path *path);
/* Does it begin with a PROPERTY_HIDDEN? Such a value is computed before the path is read. */
bool path_is_hidden(const struct path *path);
/* Does it name a member of the entity itself: one step, no part, not hidden? */
bool path_is_member(const struct path *path);
/* A deep copy into another arena. */
void path_copy(const struct path *path, struct arena *a, struct path *out_copy);

/* What a path yields, ready to compare. */
enum value_kind {
    VALUE_NULL, /* null, or a step was missing or null */
    VALUE_BOOLEAN,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_OBJECT,
    VALUE_ARRAY
};

struct value {
    enum value_kind kind;
    bool boolean;
    struct span text; /* string: characters; everything else: JSON text */
};

/* A lookup allocates only to unescape or to write a computed number, from the arena. Not for a path
 * that has_any. */
struct value path_read(const struct path *path, struct json_value root, struct arena *a);
/* The same of a path that is a member (path_is_member), which has been found, or is absent. */
struct value path_read_member(const struct path *path, struct json_value member, struct arena *a);
/* Visits each value that the path yields, until a visit returns true, which it returns then. `*` in
 * what is no array is a missing step, and in an empty array it yields nothing. */
typedef bool path_visit_fn(void *context, const struct value *value);
bool path_each(const struct path *path, struct json_value root, struct arena *a,
               path_visit_fn *visit, void *context);
/* Appends what the path yields as JSON: the source text where there is one. */
void path_add_json(const struct path *path, struct json_value root, struct arena *a, struct buf *b);

/* The same for any path: of one that has_any, the first `most` values in an array. */
void path_add_found(const struct path *path, struct json_value root, size_t most, struct arena *a,
                    struct buf *b);

#endif
