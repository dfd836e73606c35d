/* Literals of conditions, typed by the property they are compared with (docs/specification.md,
 * section 2, "Literals"), and the comparison ("Evaluation"). */
#ifndef QUERY_LITERAL_H
#define QUERY_LITERAL_H

#include "base/datetime.h"
#include "query/uri.h"

struct path;
struct value;

enum literal_kind {
    LITERAL_NULL,
    LITERAL_BOOLEAN,
    LITERAL_NUMBER,
    LITERAL_STRING,
    LITERAL_DATETIME
};

struct literal {
    enum literal_kind kind;
    bool boolean;
    bool quoted;
    /* An unquoted number, boolean or datetime against an undeclared property: `=` and `!=` also
     * compare its text with a string value. */
    bool also_text;
    bool any_case;    /* of a PROPERTY_ANY_CASE: strings are compared with case folded */
    struct span text; /* the characters, without quotes */
    struct instant instant;
};

/* `text` decoded, with its quotes; the literal points into it. `path` says the type and, for
 * enumerations, the values. Errors: ERR_INVALID_CONDITION_VALUE, ERR_INVALID_ENUM_VALUE; the
 * message names property, type and literal. Enumeration values come out in declared spelling. */
struct err *literal_parse(struct span text, const struct path *path,
                          struct literal *out_literal) MUST_USE;
/* The literal that this value equals: false for objects and arrays, which equal none. The text is
 * the value's, or for enumerations the declared one. */
bool literal_of_value(const struct path *path, const struct value *value,
                      struct literal *out_literal);
/* Appends a key, the same for all literals that equal the same values of a property. Keys one
 * behind the other cannot be taken for others. */
void literal_add_key(struct buf *b, const struct literal *literal);
/* The spelling that parses to this literal again. */
void literal_add(struct buf *b, const struct literal *literal);
/* Does `value op literal` hold? `!=` is the negation of `=` for every pair. */
bool literal_holds(const struct value *value, enum uri_op op, const struct literal *literal);

#endif
