/* Property paths: `Account.Number`, `Lines.0.Sku`, `Name.Length`, `Born.Year` (protocol.md,
 * section 2, "Keys"). A path is parsed against a shape once and read from many documents. */
#ifndef QUERY_PATH_H
#define QUERY_PATH_H

#include "base/datetime.h"
#include "base/json.h"
#include "query/shape.h"

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

struct path {
    struct span text;   /* declared spelling where declared, otherwise as given */
    struct span *steps; /* without the part; folded on comparison */
    size_t step_count;
    enum path_part part;             /* PATH_VALUE: none */
    bool part_if_missing;            /* on undeclared values: a member called like the part wins */
    enum value_type type;            /* of what the path yields; TYPE_ANY when undeclared */
    const struct property *property; /* the declared property it ends at, or NULL */
};

/* ERR_UNKNOWN_PROPERTY names the property, the resource's shape and the nearest name. At most 16
 * steps: ERR_INVALID_CONDITION_SYNTAX. */
struct err *path_parse(struct span text, const struct shape *shape, struct arena *a,
                       struct path *out_path) MUST_USE;

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
    struct span text; /* number: JSON text; string: characters; object, array: JSON text */
};

/* A lookup allocates only to unescape or to write a computed number, from the arena. */
struct value path_read(const struct path *path, struct json_value root, struct arena *a);
/* Appends what the path yields as JSON: the source text where there is one. */
void path_add_json(const struct path *path, struct json_value root, struct arena *a, struct buf *b);

/* Total order for sorting: null, false, true, numbers by value, strings by instant when both are
 * datetimes of a declared datetime, bytewise otherwise, arrays and objects by text. */
int value_cmp(const struct value *a, const struct value *b, enum value_type type);

#endif
