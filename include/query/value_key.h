/* The order of values that paths yield (docs/specification.md, section 3, "order_asc"). */
#ifndef QUERY_VALUE_KEY_H
#define QUERY_VALUE_KEY_H

#include "base/datetime.h"
#include "query/shape.h"

struct value;

/* Total order for sorting: null, false, true, numbers by value, strings, then arrays and objects by
 * text. Strings of a declared datetime: bytewise those that are none, then the others by instant;
 * all other strings bytewise. Instants and numbers of different spelling may be equal. A key is
 * what decides, worked out once for a value; its text is the value's. */
struct value_key {
    int rank;
    struct span text;
    struct instant instant;
};

struct value_key value_key(const struct value *value, enum value_type type);
int value_key_cmp(const struct value_key *a, const struct value_key *b);

#endif
