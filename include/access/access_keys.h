/* All keys that there are, and whether one is required: for who keeps them, see access.h. */
#ifndef ACCESS_ACCESS_KEYS_H
#define ACCESS_ACCESS_KEYS_H

#include "base/list.h"
#include "base/map.h"

struct accounts;

struct access {
    struct accounts *accounts; /* its keys refer to; NULL: it belongs to no service yet */
    bool required;
    struct map by_digest; /* struct access_key, by the first half of its digest */
    struct map by_title;
    struct list configured; /* those of the configuration, in its order */
};

#endif
