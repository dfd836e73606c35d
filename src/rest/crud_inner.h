/* Shared by the files of crud. */
#ifndef REST_CRUD_INNER_H
#define REST_CRUD_INNER_H

#include "base/macros.h"

#include <stdbool.h>

struct access_key;
struct arena;
struct call;
struct entity;
struct err;
struct property;
struct query_item;
struct query_result;
struct resource;
struct rest;
struct span;

/* Can the text that is shown be another than the one that is stored? */
bool crud_renders(const struct call *call);
/* The entity's text, in the form that its resource has now: members that are no longer declared are
 * left out, new ones are null. */
struct span crud_text(const struct resource *resource, const struct entity *e, struct arena *a);
/* A stored text, without what is never shown of it. */
struct span crud_shown(const struct resource *resource, struct span json, struct arena *a);
/* The text as it is shown: secrets are masked, whoever asks. */
struct span crud_visible(const struct rest *rest, const struct resource *resource, struct span json,
                         struct arena *a);
/* crud_text as it is shown. */
struct span crud_entity(const struct rest *rest, const struct resource *resource,
                        const struct entity *e, struct arena *a);
/* The value of a PROPERTY_HIDDEN, in the arena. */
struct span crud_hidden(const struct call *call, const struct entity *e,
                        const struct property *property, struct arena *a);
/* Does what the key may see depend on its rights on other resources? */
bool crud_limits(const struct resource *resource, const struct access_key *key);
/* The text as far as those rights go. */
struct span crud_limited(const struct resource *resource, const struct access_key *key,
                         struct span json, struct arena *a);
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
