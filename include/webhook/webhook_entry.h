/* What events find webhooks by. */
#ifndef WEBHOOK_WEBHOOK_ENTRY_H
#define WEBHOOK_WEBHOOK_ENTRY_H

#include "base/list.h"
#include "match/matcher.h"

struct resource;
struct scope;
struct webhook;

/* A selector of one resource, or a part of a pattern that the webhook's
 * owner may read. */
struct webhook_entry {
    struct matcher_entry entry; /* in a matcher, unless the webhook is paused */
    struct list_link link;      /* in the resource's referrers */
    struct webhook *webhook;
    struct resource *resource; /* NULL: it has a scope */
    struct scope *scope;
    bool is_filtered; /* the owner's right is asked for with each event */
};

#endif
