/* A scan: who the conditions of a request find where no index says it, looked for in slices, one a
 * turn of the loop, so that others are served meanwhile.
 *
 * request_run makes one instead of an answer, before anything has changed, for a request that
 * `gives_way`. Who asked starts it, and has the request evaluated again, with the scan, when it has
 * ended: all of that evaluation is in one turn, as always, and what it finds is what a walk over
 * the whole collection would find then. For that the scan keeps, besides the entities that it
 * found, those that have changed behind it; what it has not come to is walked.
 *
 * SCANS_MOST take turns, others wait: what they keep is bounded by that. */
#ifndef REST_SCAN_H
#define REST_SCAN_H

#include "io/loop.h"

struct arena;
struct call;
struct collection;
struct entity;

#define SCANS_MOST 16u

struct scan;

/* Those of a service. */
struct scans {
    struct loop *loop;
    struct list going;   /* struct scan: a slice of the first is next */
    struct list waiting; /* for one to be freed */
    size_t open_count;   /* of those that have begun, and are not freed yet */
    struct loop_task task;
};

void scans_init(struct scans *s, struct loop *loop);
size_t scans_count(const struct scans *s);

/* For what the call selects from its resource's collection, in place of the scan that the request
 * has, if any; the call may end. */
struct scan *scan_new(const struct call *call, bool objects_only);
/* Ends it, wherever it is. NULL is allowed. */
void scan_free(struct scan *scan);
/* Calls on_done once, from the loop; the scan may be freed there, or started again. */
void scan_start(struct scan *scan, void (*on_done)(void *context), void *context);

/* Is what it found what this call looks for? Else the resource is another by now, or what may be
 * seen of it. */
bool scan_fits(const struct scan *scan, const struct call *call, bool objects_only);
/* How many scans of the same request came to nothing before. */
unsigned scan_repeats(const struct scan *scan);
/* What it stopped at was too little: started again, it goes on to more. */
void scan_want_more(struct scan *scan);
/* Why it could not go on, which the caller frees; NULL: it could. */
struct err *scan_take_failure(struct scan *scan);

/* A walk over what was found, what has changed behind, and what the scan has not come to, all in
 * order of insertion. The collection must not change during a walk. */
struct scan_walk {
    const struct scan *scan;
    size_t place;                  /* among those found */
    const struct scan_late **late; /* those that changed, in order */
    size_t late_count, late_place;
    struct collection *collection;
    struct entity *next; /* of those that it has not come to */
    uint64_t left;       /* so many of these are given */
    bool is_cut;         /* it ended there */
};
/* `scan` NULL: it has come to nothing yet. Memory comes from the arena. */
void scan_walk(const struct scan *scan, struct collection *c, uint64_t most, struct arena *a,
               struct scan_walk *out_walk);
/* NULL at the end. *out_holds: the query's filter has passed it, as it is now. */
struct entity *scan_walk_next(struct scan_walk *walk, bool *out_holds);

#endif
