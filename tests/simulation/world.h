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
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "protocol/schema.h"
#include "query/query.h"
#include "resource/declaration.h"
#include "resource/resource.h"
#include "rest/evaluation.h"
#include "rest/metrics.h"
#include "rest/response.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/once.h"
#include "store/store.h"
#include "store/turn.h"
#include "store/turn_wait.h"
#include "webhook/webhook.h"

enum {
    WORLD_WAITS = 256,
    WORLD_MOMENTS = 65536,
    WORLD_PATH_BYTES = 160,
    WORLD_SEGMENT_BYTES = 65536,
    WORLD_SEGMENT_MOST = 114688, /* of a change of very many */
    WORLD_MANY = 520,            /* more than are changed in one turn */
    WORLD_MANY_VERSIONS = 1024
};

/* Entities that are changed together, all of them: what they all are. */
struct many_state {
    uint64_t serial; /* since then */
    bool exist;
    int64_t n;
};

/* And the request that changes them, which takes several turns; one at a time. */
struct many {
    struct many_state versions[WORLD_MANY_VERSIONS];
    size_t count; /* the last one is what they are, or will be in a few turns */
    struct many_state next;
    struct evaluation *evaluation; /* NULL: none */
    struct request request;
    struct buf body;
    bool is_done;
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
    struct many many;
    uint64_t long_serial; /* of a change whose moment has not come; 0: none */
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
/* The answer just made, or one with this serial, leaves when it is committed. */
void world_hold_answer(struct world *w);
void world_hold_serial(struct world *w, uint64_t serial);
/* Ends all jobs of the disk, and turns, until everything is committed. */
void world_settle(struct world *w);
/* Stops in order, or not, and starts again. */
void world_restart(struct world *w);
void world_lose_power(struct world *w);

#endif
