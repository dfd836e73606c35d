/* Who keeps the deliveries of webhooks, each one's in a lane. This floor knows that there are some,
 * and no more. */
#ifndef WEBHOOK_WEBHOOK_LANES_H
#define WEBHOOK_WEBHOOK_LANES_H

#include <stdbool.h>
#include <stddef.h>

struct change;
struct span;
struct webhook;

struct webhook_lanes {
    void *context;
    /* Its account is known, maybe another one than before. */
    void (*accounted)(void *context, struct webhook *w);
    /* Its settings are others, or it was paused or resumed. */
    void (*changed)(void *context, struct webhook *w);
    /* It is deleted. */
    void (*gone)(void *context, struct webhook *w);
    /* It is freed, deleted before or not: drops what `accounted` took. */
    void (*freeing)(void *context, struct webhook *w);
    /* A change pauses it, because something that it needs is gone: adds what is told of that. */
    void (*paused)(void *context, struct webhook *w, struct span why, struct change *change);
    /* Has it any deliveries, ended ones included? How many have not ended? */
    bool (*has_any)(const struct webhook *w);
    size_t (*pending)(const struct webhook *w);
    /* Adds to a change: it begins anew, maybe with another receiver. */
    void (*start_over)(struct change *change, const struct webhook *w, bool is_other_receiver);
};

#endif
