/* What the matcher must agree with: each condition on each entity of the payload, one by one. A
 * payload that is absent has no entity. */
#ifndef NAIVE_MATCH_H
#define NAIVE_MATCH_H

#include "query/conditions.h"
#include "json/json.h"

bool naive_match(const struct conditions *c, struct json_value payload, struct arena *a);

#endif
