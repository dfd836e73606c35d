/* What the files of the json module share. */
#ifndef JSON_JSON_PRIVATE_H
#define JSON_JSON_PRIVATE_H

#include "json/json.h"

/* The letters that may follow a backslash, besides 'u', and what each stands for. */
#define JSON_ESCAPE_LETTERS "\"\\/bfnrt"
#define JSON_ESCAPE_MEANINGS "\"\\/\b\f\n\r\t"

/* The first byte from p on that does not stand for itself in a string: a quote, a backslash, a
 * control character, or part of a character beyond ASCII. */
const char *json_skip_plain(const char *p, const char *end);

/* Line and column, both from 1. */
struct json_place {
    size_t line, column;
};
struct json_place json_place(const char *text, const char *p);

/* An object's member names, unescaped and sorted, so that they are found, compared and searched
 * for doubles without looking at all pairs. */
struct json_name {
    uint64_t hash;
    struct span name; /* in lower case when the table is folded */
    uint32_t index;   /* of the name's node */
    uint32_t place;   /* the how manieth member */
};

struct json_names {
    struct json_name *sorted; /* by hash, name, place */
    uint32_t count;
    bool fold;
};

/* Lives in the arena. */
struct json_names json_names_sort(struct json_value object, bool fold, struct arena *a);
/* NULL when there is none. Of several, any. */
const struct json_name *json_names_find(const struct json_names *names, struct span name,
                                        struct arena *a);
/* The value of that entry. */
struct json_value json_names_value(struct json_value object, const struct json_name *entry);

#endif
