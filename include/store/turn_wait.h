/* What waits for a commit: see turn_wait. */
#ifndef STORE_TURN_WAIT_H
#define STORE_TURN_WAIT_H

#include "base/heap.h"
#include "base/list.h"

#include <stdint.h>

/* Embedded in what waits. */
struct turn_wait {
    struct heap_node node;
    uint64_t serial; /* of a wait for all: the journal_sequence */
    uint64_t order;  /* of arrival, among those of one serial */
    bool is_for_all;
    void (*on_committed)(struct turn_wait *wait);
    /* In a cluster: the log has not confirmed it in time, or never will: called instead of
     * on_committed; it is in no heap any more. NULL: it goes on waiting. */
    void (*on_late)(struct turn_wait *wait);
    struct list_link told; /* among those that are about to be */
};

#endif
