/* The shape of an object: a table of properties. The shape of a resource's entities drives
 * decoding, validation, encoding, conditions, select, add, listing and the reference documentation;
 * keys and the configuration are read by such tables too. */
#ifndef QUERY_SHAPE_H
#define QUERY_SHAPE_H

#include "base/buf.h"

enum value_type {
    TYPE_ANY, /* also: undeclared */
    TYPE_STRING,
    TYPE_INTEGER,
    TYPE_NUMBER,
    TYPE_BOOLEAN,
    TYPE_DATETIME,
    TYPE_OBJECT,
    TYPE_ARRAY,
    TYPE_COUNT
};

/* `string`, `integer`, ... as declarations write them. */
struct span value_type_name(enum value_type type);
/* ASCII case folded. */
bool value_type_parse(struct span name, enum value_type *out_type);

/* The allowed values of a string property, as in Kind, Method, ErrorCode, State. */
struct enumeration {
    const char *name;
    const struct span *values;
    size_t count;
};
/* The place of `text` (ASCII case folded) among the values; their count when it is none of them. */
size_t enumeration_place(const struct enumeration *e, struct span text);
/* Its declared spelling, or the absent span. */
struct span enumeration_find(const struct enumeration *e, struct span text);
/* Appends all of them, for messages; those that follow one like them are left out. */
void enumeration_add_list(const struct enumeration *e, struct buf *b);

enum property_flags {
    PROPERTY_REQUIRED = 1 << 0,
    PROPERTY_READ_ONLY = 1 << 1,  /* ignored on input */
    PROPERTY_SECRET = 1 << 2,     /* shown only to keys that may write the resource */
    PROPERTY_HIDDEN = 1 << 3,     /* computed, shown only when `add` or `select` asks for it; top
                                   * level only */
    PROPERTY_INDEXED = 1 << 4,    /* equality on it is answered from an index */
    PROPERTY_WHOLE = 1 << 5,      /* an object that PATCH replaces instead of merging */
    PROPERTY_ENTITY = 1 << 6,     /* Id and ObjectNo: the store's, not the declaration's */
    PROPERTY_UNSHOWN = 1 << 7,    /* stored, and shown only when `add` or `select` asks for it; top
                                   * level only, in a shape that `hides` */
    PROPERTY_ANY_CASE = 1 << 8,   /* conditions on this string ignore case */
    PROPERTY_CONFIGURED = 1 << 9, /* given in the configuration only */
    PROPERTY_PAYLOAD = 1 << 10,   /* of TYPE_ANY: an object, or an array of objects */
    PROPERTY_SENT = 1 << 11       /* in what is sent only: not kept, and not shown */
};

struct shape;

struct property {
    struct span name; /* in declared spelling */
    enum value_type type;
    unsigned flags;
    const struct enumeration *values;  /* of a string, or of an array's elements; NULL: any */
    const struct enumeration *written; /* those of them that a client writes; NULL: all */
    const struct shape *members;       /* of an object, or of an array's elements; NULL: any */
    struct span default_json;          /* value when left out; the absent span: null */
    struct span meaning;               /* one sentence for listings and documentation */
    enum value_type elements;          /* of an array; TYPE_ANY: any */
    double least, most;                /* of a number; both 0: any */
};

/* A dynamic shape allows members beyond its properties, of which it often has none. */
struct shape {
    const struct property *properties;
    size_t count;
    bool dynamic;
    struct span name;        /* of the resource or member, for messages; may be absent */
    const uint16_t *by_name; /* from shape_sort; NULL: there are few */
    bool hides;              /* some properties are PROPERTY_UNSHOWN */
};

/* Rows of the tables of built-in resources. What follows is what else the property has. */
#define PROPERTY(property_name, property_type, text, ...)                                          \
    {                                                                                              \
        .name = SPAN_INIT(property_name), .type = property_type, .meaning = SPAN_INIT(text),       \
        __VA_ARGS__                                                                                \
    }
#define READ_ONLY_PROPERTY(property_name, property_type, more_flags, text, ...)                    \
    PROPERTY(property_name, property_type, text, .flags = PROPERTY_READ_ONLY | (more_flags),       \
             __VA_ARGS__)
#define ID_PROPERTY(text) READ_ONLY_PROPERTY("Id", TYPE_STRING, PROPERTY_ENTITY, text)
#define OBJECT_NO_PROPERTY                                                                         \
    READ_ONLY_PROPERTY("ObjectNo", TYPE_INTEGER, PROPERTY_ENTITY, "Serial number in the store")

/* ASCII case folded; NULL when there is none. */
const struct property *shape_find(const struct shape *shape, struct span name);
/* The places of at most UINT16_MAX properties in an order in which shape_find finds one of many. */
void shape_sort(const struct shape *shape, uint16_t *out_by_name);
/* The property name most like `name`, for messages; the absent span when none is near. */
struct span shape_nearest(const struct shape *shape, struct span name);

#endif
