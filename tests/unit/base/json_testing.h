/* What the test programs of the json module share: an arena for each test, and values parsed from
 * literals. */
#ifndef JSON_TESTING_H
#define JSON_TESTING_H

#include "testing.h"

#include "base/json.h"

static struct arena arena;

static inline void json_set_up(void)
{
    arena_init(&arena);
}

static inline void json_tear_down(void)
{
    arena_done(&arena);
}

/* The text must stay in place; the document is in the arena. */
static inline struct json_value parsed(struct span text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(text, NULL, &arena, doc));
    return json_root(doc);
}

static inline struct json_value value_of(const char *text)
{
    return parsed(span_str(text));
}

#endif
