/* What waits for a commit: see turn_wait. */
#ifndef STORE_TURN_WAIT_H
#define STORE_TURN_WAIT_H

#include "base/heap.h"

#include <stdint.h>

/* Embedded in what waits. */
struct turn_wait {
    struct heap_node node;
    uint64_t serial;
    uint64_t order; /* of arrival, among those of one serial */
    void (*on_committed)(struct turn_wait *wait);
};

#endif
