/* Meta-conditions (docs/specification.md, section 3): one table of names, value types and setters.
 * What their lists consist of, meta_items.h says. */
#ifndef QUERY_META_H
#define QUERY_META_H

#include "base/macros.h"
#include "base/span.h"

struct arena;
struct meta_order;
struct meta_rename;
struct meta_search;
struct path;
struct shape;
struct uri_condition;

/* Most items in one list of paths, and most of a kind in all. */
#define META_ITEMS_MOST 100

struct meta {
    bool is_unsafe;
    bool has_limit;
    int64_t limit;  /* 0: none at all; negative: no limit */
    int64_t offset; /* negative: only the last n */
    struct meta_order *orders;
    size_t order_count;
    struct path *selects;
    size_t select_count;
    struct path *adds;
    size_t add_count;
    struct meta_rename *renames;
    size_t rename_count;
    bool distinct;
    struct meta_search *searches;
    size_t search_count;
    struct path *safeposts;
    size_t safepost_count;
};

/* Errors as in docs/specification.md section 3: unknown name (lists the valid ones and the
 * nearest), operator other than '=', wrong value type, bad search form or expression, a path taken
 * away by rename. A name given twice is ERR_INVALID_META_SYNTAX, but for add, rename, order_asc,
 * order_desc, search and search_regex where not `each_once`.
 *
 * The text of a path is the member name that it has in the result. `select` and `order_*` know the
 * names that rename made; their paths lead to where the value is in the original entity. `search`
 * comes before that, and knows the entity's own. All but `safepost` may name hidden properties.
 * What was added can be selected and renamed. A renamed path that is neither a member nor added is
 * among the adds, under its new name. A new name that another declared or added member has is
 * ERR_INVALID_META_SYNTAX.
 *
 * A search text may be quoted, as it must be when it holds a comma. A compiled expression lives
 * outside the arena: call meta_done, also after an error of anything else. */
struct err *meta_parse(const struct uri_condition *metas, size_t count, bool each_once,
                       const struct shape *shape, struct arena *a, struct meta *out_meta) MUST_USE;
/* NULL and a zeroed struct are allowed. */
void meta_done(struct meta *m);
/* True when nothing but limit and offset decides which entities come, and nothing changes them. */
bool meta_is_plain(const struct meta *m);

/* For listings and the reference: name, value type, meaning. */
struct meta_info {
    struct span name;
    const char *value;
    const char *meaning;
};
extern const struct meta_info meta_table[];
extern const size_t meta_count;

#endif
