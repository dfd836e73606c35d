/* A condition: a path, an operator and a literal (docs/specification.md, section 2). */
#ifndef QUERY_CONDITION_H
#define QUERY_CONDITION_H

#include "query/literal.h"
#include "query/path.h"

struct condition {
    struct path path;
    enum uri_op op;
    struct literal literal;
};

/* With `*` in its path: for any element; `!=` is the negation of `=` there too. */
bool condition_holds(const struct condition *c, struct json_value entity, struct arena *a);

#endif
