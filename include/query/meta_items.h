/* What the lists of meta-conditions consist of (docs/specification.md, section 3). */
#ifndef QUERY_META_ITEMS_H
#define QUERY_META_ITEMS_H

#include "query/path.h"

struct meta_order {
    struct path path;
    bool descending;
};

struct meta_rename {
    struct path from;
    struct span to;
};

struct meta_search {
    struct span text;
    bool has_property;
    struct path property;
    bool ignore_case;         /* CI, the default; CS: not */
    struct meta_regex *regex; /* compiled by PCRE2; NULL: the text is looked for as it is */
};

/* True when the text matches. ERR_INVALID_META_SYNTAX: the expression takes too much work; a search
 * has one budget of work for all texts, which grows with what it has read. */
struct err *meta_search_holds(const struct meta_search *s, struct span text,
                              bool *out_holds) MUST_USE;

#endif
