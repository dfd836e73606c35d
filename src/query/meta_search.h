/* `search` and `search_regex`: private to meta.c and meta_search.c. */
#ifndef QUERY_META_SEARCH_H
#define QUERY_META_SEARCH_H

#include "base/macros.h"
#include "base/span.h"

struct meta_search;

/* What a search's value says: text[,property][,CS or CI]. */
struct meta_search_form {
    struct span text;
    struct span property; /* empty: none */
    bool ignore_case;
};

/* ERR_INVALID_META_SYNTAX. `name` is search or search_regex. */
struct err *meta_search_read(struct span name, struct span value,
                             struct meta_search_form *out_form) MUST_USE;
/* Sets s->regex when one is needed: for expressions, and to ignore the case of all of Unicode.
 * ERR_INVALID_META_SYNTAX with PCRE2's message. */
struct err *meta_search_compile(struct meta_search *s, bool is_expression) MUST_USE;
void meta_search_done(struct meta_search *s);

#endif
