/* Shared by the files of crud. */
#ifndef REST_CRUD_INNER_H
#define REST_CRUD_INNER_H

#include "resource/resource.h"
#include "store/entity.h"
#include "json/json.h"

struct query_result;
struct query_item;

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

/* What the inputs of a POST with safepost stand for. */
struct safepost;

/* Inputs that are equal on the paths. */
struct safepost_match {
    struct span key;
    struct json_value input; /* the first of these */
    size_t first_input;
    bool by_index; /* an index led to what is stored */
    /* What the next input updates: stored, or written before by the same request; NULL: nothing. */
    const struct entity *old;
    struct entity written;
    size_t place; /* of what was written, in the answer */
};

/* Finds what is stored for the body, an object or an array. ERR_AMBIGUOUS_MATCH when several
 * entities are equal to an input, ERR_INVALID_ENTITY for values that cannot be compared. */
struct err *safepost_open(struct call *call, struct json_value root,
                          struct safepost **out_safepost) MUST_USE;
void safepost_close(struct safepost *s);
/* The match of the next input. */
struct safepost_match *safepost_next(struct safepost *s);
/* The input was written as this text: the next one of its match updates it. */
void safepost_wrote(struct safepost_match *match, struct span json, uint64_t object_no);

/* The same request for the page behind this one, which is not the last. */
void crud_add_pager(struct call *call, const struct query_result *result);

/* Writes entity texts as the answer's body, in the negotiated format. */
void crud_write_list(struct call *call, const struct span *items, size_t count);

#endif
