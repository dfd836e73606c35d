/* What export and import are about: resources, keys and webhooks, each a row of one table, in the
 * order in which they have to be made. */
#ifndef CLI_KINDS_H
#define CLI_KINDS_H

#include "cli/client.h"

struct kind {
    const char *member; /* of the exported object */
    const char *one;    /* for people */
    const char *resource;
    const char *name;       /* the property that tells which is which */
    const char *scope;      /* one more, within which names are unique; NULL: none */
    const char *dropped[8]; /* the server's own properties */
    bool at_once;           /* new ones are made in one request, as they refer to each other */
};

enum { KIND_COUNT = 3 };
extern const struct kind kinds[KIND_COUNT];

bool kind_drops(const struct kind *kind, struct span member);
/* Appends the entity without what is the server's own. */
void kind_add_entity(struct cli *cli, const struct kind *kind, struct json_value entity,
                     struct buf *b);
/* All that the server has. */
int kind_get_all(struct cli *cli, const struct kind *kind, struct entities *out);

#endif
