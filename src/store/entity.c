#include "store/entity.h"

struct span entity_json(const struct entity *e)
{
    return blob_span(e->json);
}
