/* Sends an event to a program as a webhook would: the same header fields, the same body, signed. */
#ifndef CLI_FORWARD_H
#define CLI_FORWARD_H

#include "cli/client.h"

struct forward {
    struct span url;
    struct span secret;
};

struct forwarded {
    int status; /* 0: no answer */
    unsigned ms;
    struct span why; /* there was no answer */
};

/* `event` is an entity of Svc.Event. What the receiver makes of it is in *out; CLI_DONE but for
 * what is wrong on our side, which has been told. */
int forward_event(const struct forward *forward, struct json_value event, struct arena *a,
                  struct forwarded *out);

#endif
