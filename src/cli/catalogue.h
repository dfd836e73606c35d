/* What events there are, and what they carry. */
#ifndef CLI_CATALOGUE_H
#define CLI_CATALOGUE_H

#include "cli/client.h"

/* The full name of the event resource that was typed: its own, or an end of it behind a dot. What
 * there is not, or what could be several, has been told. */
int catalogue_find(struct cli *cli, struct span typed, struct span *out_name);
/* The first event resource that a pattern (`*`, `Shop.*`) means. */
int catalogue_first(struct cli *cli, struct span pattern, struct span *out_name);

struct payload {
    struct json_value properties; /* absent: none are declared, or the key may not know */
    struct span content_type;     /* absent: JSON */
};

/* What its declaration says of the payload. */
int catalogue_payload(struct cli *cli, struct span event, struct payload *out);
/* An example of the payload that meets the conditions; misuse when it is bytes. */
int catalogue_example(struct cli *cli, struct span event, struct span conditions,
                      struct span *out_json);

#endif
