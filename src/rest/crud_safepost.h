/* POST with safepost: see crud_safepost.c. */
#ifndef REST_CRUD_SAFEPOST_H
#define REST_CRUD_SAFEPOST_H

#include "store/entity.h"
#include "json/json.h"

struct call;

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

#endif
