/* What must be true, kept outside the program: what clients were answered and receivers were sent.
 * Every entry knows the serial that it came with; when a loss of power takes records away, what
 * came with them is taken back. */
#ifndef SIMULATION_LEDGER_H
#define SIMULATION_LEDGER_H

#include "base/uuid.h"
#include "fetch/fetch.h"

enum {
    LEDGER_ITEMS = 24,
    LEDGER_HOOKS = 256,
    LEDGER_EVENTS = 4096,
    LEDGER_PAIRS = 16384,
    LEDGER_VERSIONS = 65536,
    LEDGER_DIGITS = 10,
    LEDGER_ID_BYTES = UUID_TEXT_BYTES + 1
};

struct item_state {
    char id[LEDGER_ID_BYTES];
    bool exists;
    int64_t n;
};

/* A webhook. */
struct hook_state {
    bool exists, is_paused, is_ordered;
    unsigned max_in_flight;
    unsigned rate_per_second; /* 0: none */
    unsigned schedule;        /* place among the schedules */
    unsigned disable_days;    /* 0: never */
    unsigned receiver;        /* by its number, unless it is local */
    int64_t failing_since_unix_ns;
    uint64_t hold_until_ms; /* monotonic */
};
struct hook {
    char id[LEDGER_ID_BYTES];
    bool is_local;        /* its destination is a resource, not the network */
    unsigned least_digit; /* the last one of the events' numbers, that it selects */
    struct hook_state now;
    unsigned in_flight;
    bool was_late; /* an outcome was recorded late, which may have paused it: see struct pair */
    double tokens; /* of the rate */
    uint64_t tokens_at_ms;
};

struct event_state {
    bool exists;
    uint64_t serial;
};
struct raised {
    char id[LEDGER_ID_BYTES];
    int64_t n;
    unsigned padding;
    int64_t unix_ns;
    struct event_state now;
};

/* An event and a webhook that it matched: a delivery. */
struct pair_state {
    bool exists, is_ended;
    unsigned attempts;      /* whose outcome is recorded */
    uint64_t not_before_ms; /* monotonic: the next attempt */
};
struct pair {
    size_t event, hook;
    struct pair_state now;
    const struct fetch *fetch; /* under way; NULL: none */
    int64_t started_unix_ns;   /* the last one, */
    struct hook_state started; /* and its webhook then */
    bool is_late;              /* answered, but the outcome found no room yet */
    bool was_late;
    struct fetch_result late;
    bool is_accepted;   /* a receiver said 2xx */
    uint64_t object_no; /* of the delivery; 0: not met yet */
};

struct version {
    uint64_t serial;
    enum { OF_ITEM, OF_HOOK, OF_EVENT, OF_PAIR } of;
    size_t place;
    union {
        struct item_state item;
        struct hook_state hook;
        struct event_state event;
        struct pair_state pair;
    } before;
};

struct ledger {
    struct item_state items[LEDGER_ITEMS];
    struct hook hooks[LEDGER_HOOKS];
    struct raised events[LEDGER_EVENTS];
    struct pair pairs[LEDGER_PAIRS];
    struct version versions[LEDGER_VERSIONS];
    size_t hook_count, event_count, pair_count, version_count;
};

struct ledger *ledger_new(void);
void ledger_free(struct ledger *l);
/* What it holds from now on; `serial` says when it may be taken back. */
void ledger_set_item(struct ledger *l, size_t place, const struct item_state *state,
                     uint64_t serial);
void ledger_set_hook(struct ledger *l, size_t place, const struct hook_state *state,
                     uint64_t serial);
void ledger_set_pair(struct ledger *l, size_t place, const struct pair_state *state,
                     uint64_t serial);
/* New ones; their places. */
size_t ledger_add_hook(struct ledger *l, const struct hook *hook, uint64_t serial);
/* With a pair for each webhook that the event matches. */
size_t ledger_add_event(struct ledger *l, const struct raised *event, uint64_t serial);
/* Takes back what came after this serial. */
void ledger_rewind(struct ledger *l, uint64_t serial);

/* Those that exist; SIZE_MAX when there is none. */
size_t ledger_find_hook(const struct ledger *l, struct span id);
size_t ledger_find_event(const struct ledger *l, struct span id);
size_t ledger_find_pair(const struct ledger *l, size_t event, size_t hook);
/* Is there room for another step's worth of everything? */
bool ledger_has_room(const struct ledger *l);

#endif
