/* Runs conditions and meta-conditions over a source of entities, in the order of
 * docs/specification.md section 3: conditions, search, add, rename, select, distinct, order,
 * offset, limit. Pure: nothing here knows where the entities come from. A plain query with a limit
 * stops at it; one that wants the last n goes back from the end, where the source can; an ordered
 * one with a limit keeps only that many. */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

#include "query/conditions.h"
#include "query/meta.h"

struct query_item;
struct query_source;
struct uri;

struct query {
    const struct shape *shape;
    struct conditions conditions;
    struct meta meta;
    bool is_plain;   /* meta_is_plain of what was parsed */
    bool is_form;    /* it was asked in the query form: an empty list is a list then */
    bool counts_all; /* query_run finds out the total, whatever the limit */
};

struct query_result {
    struct query_item *items; /* in the arena */
    size_t count;
    bool more;    /* a positive limit cut something off: there is a next page */
    size_t total; /* without limit and offset, of a query that counts_all */
    size_t left;  /* of a negative offset: how many the limit cut off, which are the last ones */
};

/* conditions_parse and meta_parse in one; without either the query has the shape, and is plain.
 * What was understood ends with query_done; after an error nothing was, and the query may be used
 * for nothing else. */
struct err *query_parse(const struct uri *uri, const struct shape *shape, struct arena *a,
                        struct query *out_query) MUST_USE;
void query_done(struct query *q);
/* With `objects_only` the shaping steps (add, rename, select) and distinct are left out: for PATCH,
 * PUT and DELETE, which need to know which entities, not how they look. The texts of the result are
 * the source's, or in the arena. Errors: of a search, ERR_FAILED_JSON for a source's text, and
 * ERR_INVALID_META_SYNTAX for a rename to a name that an entity has. */
struct err *query_run(const struct query *q, struct query_source *source, bool objects_only,
                      struct arena *a, struct query_result *out_result) MUST_USE;
/* The number of items that query_run finds, which are not kept for it. The same errors. */
struct err *query_count(const struct query *q, struct query_source *source,
                        size_t *out_count) MUST_USE;

/* Looks for the items of a result one at a time, before query_run gets to see them: what can be
 * told of an item from itself alone, which are conditions and searches. */
struct query_filter;
/* Whether there is anything to look for. */
bool query_can_filter(const struct query *q);
/* So many that pass, if they are the first that the source gives, are all that query_run needs, but
 * for those that distinct leaves out; UINT64_MAX: it needs all. Of a source that can be turned
 * back.
 */
uint64_t query_enough(const struct query *q);
/* Query and source are borrowed. */
struct query_filter *query_filter_new(const struct query *q, struct query_source *source,
                                      bool objects_only);
void query_filter_free(struct query_filter *f); /* NULL is allowed */
/* Errors as in query_run. */
struct err *query_filter_passes(struct query_filter *f, const struct query_item *item,
                                bool *out_passes) MUST_USE;

#endif
