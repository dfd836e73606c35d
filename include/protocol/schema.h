/* Objects in, and entities in and out, driven by a shape: what a client sends becomes a draft, a
 * draft becomes the stored text (docs/specification.md, sections 4 and 7). Pure. */
#ifndef PROTOCOL_SCHEMA_H
#define PROTOCOL_SCHEMA_H

#include "base/macros.h"
#include "base/span.h"

struct arena;
struct buf;
struct json_value;
struct shape;
struct uuid;

/* An entity that is being made: one JSON text per property of the shape, in its order; for a
 * dynamic shape one text, the object without Id and ObjectNo. Texts are compact, numbers and
 * escapes as written. Lives in an arena. */
struct draft {
    const struct shape *shape;
    struct span *values; /* one per property, never absent; `null` where nothing was given */
    struct span dynamic; /* `{"a":1}`; only with a dynamic shape */
    /* Of a resource with secrets (access/secrets.h): the values with "*******" for each secret that
     * the client did not write, and the paths of those that are stored, `a.b, c`. What the client
     * has changed is to be told by `written`, so that nobody learns a secret by writing it. */
    struct span *written;
    struct span kept;
};

enum schema_mode {
    SCHEMA_INSERT,  /* members left out take their defaults, required ones must be there */
    SCHEMA_REPLACE, /* the same; read-only members keep the old entity's value */
    SCHEMA_PATCH    /* members left out keep the old entity's value; objects merge, unless WHOLE */
};

/* `input` must be a JSON object. `old` is the stored entity (absent for SCHEMA_INSERT). Names match
 * with ASCII case folded and come out in declared spelling, in nested declared objects too; members
 * `Id` and `ObjectNo` and read-only ones are ignored; enumerated strings come out in declared
 * spelling; null for a property with a default is that default. The draft's texts are in the arena
 * or those of `input` and `old`.
 * Errors: ERR_FAILED_JSON (duplicate members), ERR_UNKNOWN_MEMBER (names the nearest),
 * ERR_INVALID_ENTITY (not an object, required member missing or null, wrong type, out of range),
 * ERR_INVALID_ENUM_VALUE. Messages name the member by its path: `Delivery.RetrySchedule`. */
struct err *schema_decode(const struct shape *shape, struct json_value input, struct json_value old,
                          enum schema_mode mode, struct arena *a, struct draft *out_draft) MUST_USE;

/* The draft's value of a property as JSON text; the absent span when the shape has none of it. */
struct span draft_get(const struct draft *d, struct span property);
/* The same of draft->written. */
struct span draft_written(const struct draft *d, struct span property);
/* Replaces it; `json` must live as long as the arena. */
void draft_set(struct draft *d, struct span property, struct span json);
/* The same with a text, written in the arena. */
void draft_set_text(struct draft *d, struct span property, struct span text, struct arena *a);
/* The same parsed: an absent value for null. */
struct json_value draft_value(const struct draft *d, struct span property, struct arena *a);

/* Appends the stored text: Id, the properties in declared order or the members as they came,
 * ObjectNo last. Properties whose flags say ENTITY or HIDDEN are not repeated. */
void schema_encode(struct buf *b, const struct draft *d, const struct uuid *id, uint64_t object_no);

/* Checks an object against a shape without changing it: for event payloads, which are kept exactly
 * as raised. Same errors as schema_decode, but names must only match folded, and required members
 * are not required (`null` and missing are the same). Of what is not declared, names may differ in
 * case only. That no member is there twice has been checked of the text that the object is a part
 * of (json_check_unique). */
struct err *schema_check(const struct shape *shape, struct json_value object,
                         struct arena *a) MUST_USE;

/* The same of what a client sends of the shape's own resource: read-only members are not looked at.
 */
struct err *schema_check_input(const struct shape *shape, struct json_value object,
                               struct arena *a) MUST_USE;

/* Reads an object that is no entity: *out_values are its members by the places of their properties,
 * with the default where one is missing or null; absent or null where there is none. Same errors as
 * schema_decode. Objects inside are not looked into: whoever reads them puts their path before the
 * message. */
struct err *schema_read(const struct shape *shape, struct json_value object, struct arena *a,
                        struct json_value **out_values) MUST_USE;
/* The same of an object that is stored, and so was checked; it may be absent or null. What another
 * version declared otherwise is left out. */
struct json_value *schema_stored(const struct shape *shape, struct json_value stored,
                                 struct arena *a);

/* A text that schema_encode has made of `whole`, without the properties that it has beyond those of
 * `shown`: texts and literals, which stand at its end. It is not parsed for that. Absent: an older
 * shape has made it. */
struct span schema_shown(const struct shape *shown, const struct shape *whole, struct span stored,
                         struct arena *a);
/* Appends a stored text that an older shape made, in the form of this one: its properties in
 * declared order, `null` for those that are missing, others left out. Values are kept as written.
 */
void schema_add_reshaped(struct buf *b, const struct shape *shape, struct json_value stored,
                         struct arena *a);

/* Makes a shape from a declaration's `Properties` array: Id first, ObjectNo last, everything copied
 * into the arena, which must live as long as the shape, as must the resource's name.
 * ERR_INVALID_ENTITY. */
struct err *schema_from_declaration(struct json_value properties, struct span name, struct arena *a,
                                    const struct shape **out_shape) MUST_USE;
/* The same for the payloads of an event resource, whose entities are not the server's: Id and
 * ObjectNo are there only where they are declared. */
struct err *schema_of_payload(struct json_value properties, struct span name, struct arena *a,
                              const struct shape **out_shape) MUST_USE;
/* The shape of an element of that array. */
extern const struct shape schema_property_shape;
/* The shape of a dynamic resource. */
extern const struct shape schema_dynamic;

#endif
