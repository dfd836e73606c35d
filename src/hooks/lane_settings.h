/* The settings of a webhook, read once and kept for its next attempts. */
#ifndef HOOKS_LANE_SETTINGS_H
#define HOOKS_LANE_SETTINGS_H

#include "base/arena.h"
#include "base/list.h"
#include "webhook/webhook_settings.h"

struct lane;

struct lane_settings {
    struct list_link link; /* while they are the lane's */
    struct lane *lane;
    unsigned refs;
    uint64_t version; /* of the webhook */
    struct webhook_settings webhook;
    struct webhook_signer signer;
    struct span sent, sent_lines; /* webhook_sent of most attempts, and as text; absent: not made */
    struct arena arena;
};
/* As the webhook is now; to be put back. */
struct lane_settings *lane_settings_get(struct lane *lane);
/* NULL is allowed. */
void lane_settings_put(struct lane_settings *settings);

#endif
