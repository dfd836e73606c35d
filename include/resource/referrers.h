/* Those that a resource is needed by. */
#ifndef RESOURCE_REFERRERS_H
#define RESOURCE_REFERRERS_H

#include "base/list.h"

/* Who has to be looked at again when the resource changes or goes: see rest_observer. */
struct referrers {
    struct list selectors; /* of its events */
    struct list targets;   /* requests that will be made to it */
};

#endif
