/* Shared by the files of crud. */
#ifndef REST_CRUD_INNER_H
#define REST_CRUD_INNER_H

#include "base/macros.h"

#include <stdbool.h>

struct arena;
struct call;
struct entity;
struct err;
struct query_item;
struct query_result;
struct resource;
struct rest;
struct shape;
struct span;

/* The entity's text, in the form that its resource has now: members that are no longer declared are
 * left out, new ones are null. */
struct span crud_text(const struct resource *resource, const struct entity *e, struct arena *a);
/* What is stored: at least the resource's own shape. */
const struct shape *crud_stored_shape(const struct resource *resource);
/* The whole text, in that form as it is now. */
struct span crud_stored(const struct resource *resource, const struct entity *e, struct arena *a);
/* A stored text, without what is never shown of it. */
struct span crud_shown(const struct resource *resource, struct span json, struct arena *a);
/* The text as it is shown: secrets are masked, whoever asks. */
struct span crud_visible(const struct rest *rest, const struct resource *resource, struct span json,
                         struct arena *a);
/* Does what the key may see depend on its rights on other resources? Of a resource that says so by
 * ops->limit. */
bool crud_limits(const struct call *call);
/* The id of a stored text: its first member. */
struct span crud_id_of(struct span json);
/* The entity as the request sees it, whatever has become of it. */
const struct entity *crud_seen(const struct call *call, const struct entity *e);
/* The ETag of an answer that shows this one item as it is. *out_is_known: If-None-Match has it.
 * ERR_PRECONDITION_FAILED for an If-Match that has it not. */
struct err *crud_answer_tag(const struct call *call, const struct query_item *item,
                            bool *out_is_known) MUST_USE;

/* Answers with `[{"Count":n}]` in the negotiated format. */
void crud_answer_count(struct call *call, size_t count);

/* The same request for the page behind this one, which is not the last. */
void crud_add_pager(struct call *call, const struct query_result *result);

#endif
