#include "naive_match.h"

bool naive_match(const struct conditions *c, struct json_value payload, struct arena *a)
{
    if (c->count == 0)
        return true;
    if (json_type(payload) != JSON_ARRAY)
        return json_exists(payload) && conditions_hold(c, payload, a);
    for (struct json_value e = json_first(payload); json_exists(e); e = json_next(payload, e))
        if (conditions_hold(c, e, a))
            return true;
    return false;
}
