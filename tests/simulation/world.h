/* The world of one run: the service over the simulated disk and network, under a clock that stands
 * still until the script moves it. It can be stopped, or lose power, and starts again: what it then
 * holds must be what it held after one of its changes, and never less than it acknowledged. */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "ledger.h"

#include "admin/service.h"
#include "admin/service_options.h"
#include "base/log.h"
#include "hooks/delivery.h"
#include "hooks/event.h"
#include "hooks/webhook.h"
#include "journal/journal.h"
#include "query/query.h"
#include "rest/declaration.h"
#include "rest/metrics.h"
#include "rest/resource.h"
#include "rest/response.h"
#include "rest/schema.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/once.h"
#include "store/store.h"
#include "store/turn.h"
#include "store/turn_wait.h"

enum {
    WORLD_WAITS = 256,
    WORLD_MOMENTS = 65536,
    WORLD_PATH_BYTES = 160,
    WORLD_SEGMENT_BYTES = 65536
};

/* What the state was after a change. */
struct moment {
    uint64_t serial; /* the last one of the change */
    struct store_digest digest;
};

/* An answer that waits for its commit. */
struct held_answer {
    struct turn_wait wait;
    struct world *world;
    bool is_waiting;
};

struct world {
    struct loop loop;
    struct service *service;
    struct ledger *ledger;
    struct response response;
    char parent[WORLD_PATH_BYTES], directory[WORLD_PATH_BYTES];
    unsigned boots;
    enum journal_fsync fsync;
    bool clock_jumps;
    bool has_been_full;     /* the disk */
    struct moment *moments; /* of this boot */
    size_t moment_count;
    uint64_t acknowledged; /* the last serial that an answer which left waited for */
    uint64_t synced;       /* everything up to it is on stable storage */
    struct held_answer held[WORLD_WAITS];
    uint64_t steps, losses_of_power, attempts, dead_at_once; /* counted for the report */
};

/* In a directory that exists and is empty. */
void world_begin(struct world *w, const char *parent);
/* Everything was checked before; its directories are removed. */
void world_end(struct world *w);
/* One turn of the loop. */
void world_turn(struct world *w);
/* The last serial that was given out. */
uint64_t world_serial(const struct world *w);
/* The answer just made leaves when it is committed. */
void world_hold_answer(struct world *w);
/* Ends all jobs of the disk, and turns, until everything is committed. */
void world_settle(struct world *w);
/* Stops in order, or not, and starts again. */
void world_restart(struct world *w);
void world_lose_power(struct world *w);

#endif
