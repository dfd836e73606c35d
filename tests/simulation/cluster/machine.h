/* A node: a whole server but for its HTTP and its signals, with its loop, its disk and its clocks.
 * It is started, stopped as by SIGSTOP, told to leave as by SIGTERM, killed, or loses its power or
 * its disk; and starts anew by itself as src/app/server.c does. */
#ifndef SIMULATION_CLUSTER_MACHINE_H
#define SIMULATION_CLUSTER_MACHINE_H

#include "network.h"

#include "app/cluster.h"
#include "journal/replica_state.h"
#include "rest/response.h"
#include "store/store.h"

enum { MACHINE_PATH_BYTES = 160 };

enum machine_ending {
    MACHINE_STAYS,
    MACHINE_ANEW,   /* it starts anew in a moment */
    MACHINE_LEAVES, /* it ends in a moment */
    MACHINE_FAILS   /* likewise, not in order */
};

/* A state that is not confirmed yet. */
struct machine_state {
    uint64_t serial;
    struct store_digest digest;
};

struct machine {
    unsigned index;
    char name[8];
    struct loop loop;
    struct service *service;
    struct cluster *cluster;
    struct cluster_config config;
    struct response response;
    struct list visits;   /* struct visit */
    struct list servings; /* struct serving */
    char parent[MACHINE_PATH_BYTES], directory[MACHINE_PATH_BYTES];
    unsigned boots;
    bool is_up, is_stopped, wants_turn, is_entered;
    enum machine_ending ending;
    uint64_t ends_ns;   /* then, by the true time */
    uint64_t starts_ns; /* of one that is down; UINT64_MAX: not by itself */
    uint64_t goes_on_ns;
    uint64_t disk_ns; /* when a job of the disk ends; 0: none is under way */
    bool disk_is_slow;
    int64_t wall_offset_ns; /* of its wall clock from the true time */
    uint64_t mono_offset_ns;
    struct machine_state *states;
    size_t state_count, state_size;
    uint64_t long_serial; /* of a change that is being applied over several turns; 0: none */
};

extern struct machine machines[NETWORK_NODES];
extern unsigned machine_count;

/* With directories in one that is there. */
void machines_open(unsigned count, const char *parent, uint64_t tail_bytes);
/* Ends all, in whatever state, and removes their directories. */
void machines_close(void);

unsigned machine_of_loop(const struct loop *loop);
bool machine_is_up(unsigned i);
bool machine_is_stopped(unsigned i);
/* Its clocks are the ones that are read, from one to the other; then it has work. */
void machine_enter(unsigned i);
void machine_leave(unsigned i);
/* May it deliver, by its clock? */
bool machine_leads(struct machine *m);
enum replica_role machine_role(const struct machine *m);
/* Serial of its journal. */
uint64_t machine_serial(const struct machine *m);
bool machine_is_settled(const struct machine *m);

void machine_start(struct machine *m);
void machine_stop(struct machine *m, uint64_t for_ns);
void machine_go_on(struct machine *m);
void machine_tell_to_leave(struct machine *m);
void machine_kill(struct machine *m, uint64_t for_ns);
void machine_lose_power(struct machine *m, uint64_t for_ns);
void machine_lose_disk(struct machine *m, uint64_t for_ns);
/* A job of its disk fails; with that it ends. */
void machine_fail_job(struct machine *m);

/* When something is to be done for it; UINT64_MAX: never, by itself. */
uint64_t machine_next_ns(const struct machine *m);
/* It is done. */
void machine_step(struct machine *m);

struct machine_counts {
    uint64_t boots, leaderships, kills, losses_of_power, losses_of_disk, joins, changes;
};
extern struct machine_counts machine_counts;

#endif
