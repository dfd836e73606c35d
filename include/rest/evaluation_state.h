/* What an evaluation consists of: for evaluation.c, and for tests that play one. */
#ifndef REST_EVALUATION_STATE_H
#define REST_EVALUATION_STATE_H

#include "base/budget.h"
#include "io/loop.h"
#include "io/timer.h"
#include "rest/evaluation.h"
#include "rest/response.h"
#include "store/snapshot.h"
#include "store/turn.h"

struct account;
struct fiber;
struct rest;

struct evaluation {
    struct list_link link; /* in `queue` */
    struct list *queue;    /* of its account, or of those that wait; NULL: it runs, or has ended */
    struct rest *rest;
    struct account *account;
    const struct request *request;
    struct response response;
    struct fiber *fiber; /* NULL: it has not begun, or has ended */
    struct budget budget;
    struct snapshot snapshot; /* of one that changes: keeps what it has found until it is changed */
    bool has_snapshot;        /* it reads only: by its method, or evaluation_only_asks */
    bool holds_turn;          /* from evaluation_begin_change on */
    bool waits;               /* until nobody holds the turn */
    bool rests;               /* and until its account may hold it, if it is long */
    bool is_long;             /* it takes more than a slice */
    bool has_changed;         /* it is not to begin anew any more */
    bool is_wanted;           /* others have waited for the turn that it holds */
    unsigned held_slices;
    uint64_t held_since_ns;   /* monotonic */
    unsigned tries;           /* how often others who cannot wait have come before it */
    uint64_t held_serial;     /* the journal's next one then: others change it who cannot wait */
    uint64_t resources_since; /* resources.changes when it began */
    void (*on_done)(void *context);
    void *context;
};

/* Those of a service. */
struct evaluations {
    struct rest *rest;
    evaluation_run_fn *run;
    struct list accounts; /* struct account that has any: the first has its turn next */
    struct list waiting;  /* struct evaluation, until nobody holds the turn */
    size_t count, begun;
    struct account *next;      /* evaluations_are_of */
    struct evaluation *holder; /* has the turn, or is the last one that had; NULL: its account has
                                * been told to rest */
    uint64_t rests_until_ns;   /* monotonic: the latest of those of accounts */
    uint64_t tried_ns;         /* evaluations_note_try, since the last slice */
    struct timer rested;       /* somebody waits for the end of his rest */
    struct loop_task task;
    struct turn_line line;
};

#endif
