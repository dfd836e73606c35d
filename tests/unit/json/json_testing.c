#include "json_testing.h"

#include "testing.h"

struct arena arena;

void json_set_up(void)
{
    arena_init(&arena);
}

void json_tear_down(void)
{
    arena_done(&arena);
}

struct json_value parsed(struct span text)
{
    struct json_doc *doc = ARENA_NEW(&arena, struct json_doc);

    ck_ok(json_parse(text, NULL, &arena, doc));
    return json_root(doc);
}

struct json_value value_of(const char *text)
{
    return parsed(span_str(text));
}
