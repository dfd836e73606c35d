#include "store/entity.h"

#include "base/must.h"

struct span entity_json(const struct entity *e)
{
    return blob_span(e->json);
}

struct json_value entity_parse(struct span json, struct arena *a)
{
    /* Deeper and wider than any limit that a request is read with. */
    static const struct json_limits no_limits = {2000, 1u << 28};
    struct json_doc *doc = ARENA_NEW(a, struct json_doc);
    struct err *e = json_parse(json, &no_limits, a, doc);

    MUST(e == NULL);
    return json_root(doc);
}
