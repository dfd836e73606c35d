/* Follows the stream of events (docs/specification.md, section 7, Streams): one after the other, in
 * order, without a gap when the connection breaks or the server restarts. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "cli/client.h"
#include "cli/stream.h"

struct follow {
    struct span target; /* of the stream */
    struct span after;  /* ObjectNo of the event to begin behind; absent: with the next one */
    /* Called for each event, which is then behind us: it does not come again. Anything but CLI_DONE
     * ends it all. */
    int (*on_event)(void *arg, struct json_value event);
    void *arg;
    uint64_t *start; /* NULL, or where the ObjectNo that it begins behind goes */
};

/* CLI_DONE once it is stopped. Until the first connection, what is wrong is told and ends it; later
 * ones are tried again for ever, unless they are refused. stop_watch has been called. */
int follow_run(struct cli *cli, const struct follow *follow);

#endif
