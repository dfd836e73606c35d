/* Request targets (docs/specification.md, section 1). In the path form,
 * /resource/conditions/meta-conditions, the target is split before it is decoded, so encoded
 * delimiters are data. In the query form, /resource/conditions?where=condition&limit=5, each
 * parameter is decoded as a whole. Pure functions over spans. */
#ifndef QUERY_URI_H
#define QUERY_URI_H

#include "base/err.h"

enum uri_op { URI_EQ, URI_NE, URI_LT, URI_GT, URI_LE, URI_GE };

/* `=`, `!=`, ... */
const char *uri_op_text(enum uri_op op);

struct uri_condition {
    struct span key; /* decoded */
    enum uri_op op;
    struct span value; /* decoded once; quotes still there */
};

struct uri {
    struct span resource; /* decoded; the absent span for "", "_": Svc.AvailableResource */
    struct span condition_part, meta_part; /* as received; the absent span for "", "_" */
    struct uri_condition *parameters;      /* of the query form, decoded: `where` and others */
    size_t parameter_count;
    bool is_query_form;
    bool is_plain;  /* all of it stands for itself: there is nothing to decode */
    bool is_unread; /* uri_read_conditions has yet to fill in what follows */
    struct uri_condition *conditions;
    size_t condition_count;
    struct uri_condition *metas; /* op is checked by meta_parse */
    size_t meta_count;
};

/* The parts of `target` as received (origin-form, a leading '/?' allowed before a path), below
 * `base_path`, which is "/" or "/x". Everything it yields is in the target or in the arena.
 * ERR_INVALID_URI_SYNTAX: parts, escapes, NUL, UTF-8, meta-conditions beside a query, more than
 * max_conditions in a part. */
struct err *uri_split(struct span target, struct span base_path, size_t max_conditions,
                      struct arena *a, struct uri *out_uri) MUST_USE;
/* The conditions and meta-conditions of a target that was split. Where one has no plain operator,
 * the first percent-encoded one counts (`%3E`, `%3E=`, `%3E%3D`, ...).
 * ERR_INVALID_CONDITION_SYNTAX (no operator, empty key), ERR_INVALID_META_SYNTAX likewise; then
 * they stay unread. */
struct err *uri_read_conditions(struct uri *uri, struct arena *a) MUST_USE;
/* Both. Each message quotes the part that is wrong. */
struct err *uri_parse(struct span target, struct span base_path, size_t max_conditions,
                      struct arena *a, struct uri *out_uri) MUST_USE;
/* A deep copy of a target that was read. */
void uri_copy(const struct uri *uri, struct arena *a, struct uri *out_copy);
/* Appends `text` percent-encoded, but for the characters of a path segment (RFC 3986 section 3.3:
 * unreserved, sub-delimiters, `:`, `@`) that have no meaning in a target: `=`, `!`, `<`, `>`, `/`,
 * `&`, `%`, `#`, `?` always are encoded. */
void uri_add_encoded(struct buf *b, struct span text);
/* The same for the key of a condition. */
void uri_add_key(struct buf *b, struct span key);
/* Appends the normal form with `resource` as the name: values encoded, `_` for an empty part; three
 * parts always when `all_parts`, otherwise trailing empty parts dropped. A target that is not
 * read yet keeps its three parts as received; parameters join them, encoded. */
void uri_add_normal(struct buf *b, const struct uri *uri, struct span resource, bool all_parts);

#endif
