/* An entity is kept as the JSON text that clients see, and parsed when it is looked into: parsed
 * trees would take several times the memory, and most requests return the text as it is. The text
 * was checked when it came in, so it always parses. */
#include "store/entity.h"

#include "base/blob.h"
#include "base/must.h"
#include "json/json.h"

struct span entity_json(const struct entity *e)
{
    return blob_span(e->json);
}

/* As deep and wide as any limit that a request may be read with. */
static const struct json_limits no_limits = {JSON_DEPTH_MOST, 1u << 28};

struct json_value entity_parse(struct span json, struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct err *e = json_parse(json, &no_limits, a, doc);

    MUST(e == NULL);
    return json_root(doc);
}

struct json_value entity_parse_front(struct span json, const struct span *names, size_t count,
                                     struct arena *a)
{
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct err *e = json_parse_front(json, names, count, &no_limits, a, doc);

    MUST(e == NULL);
    return json_root(doc);
}
