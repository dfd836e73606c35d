/* An example of a payload: what `svc trigger` raises when it is given none, and `svc webhooks test`
 * sends, made from the declared properties and from the conditions that it should meet. */
#ifndef CLI_SAMPLE_H
#define CLI_SAMPLE_H

#include "json/json.h"

/* Appends a JSON object. `properties` is the array of a declaration (absent: none are declared),
 * `conditions` those of a stored selector (absent: none). The first condition on a property decides
 * its value, but = before all others; what no example can be made for (an element by number) is
 * passed over. */
void sample_add(struct buf *b, struct json_value properties, struct span conditions, int64_t now_ns,
                struct arena *a);

#endif
