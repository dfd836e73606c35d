/* A scan: who the conditions of a request find where no index says it, looked for in slices, one a
 * turn of the loop, so that others are served meanwhile.
 *
 * request_run makes one instead of an answer, before anything has changed, for a request that
 * `gives_way`. Who asked starts it, and has the request evaluated again, with the scan, when it has
 * ended: all of that evaluation is in one turn, as always, and what it finds is what a walk over
 * the whole collection would find then. A scan that does not fit any more, as the resource was
 * declared anew, gives way to another one, as often as that happens.
 *
 * SCANS_MOST take turns, others wait: what they keep is bounded by that. */
#ifndef REST_SCAN_H
#define REST_SCAN_H

#include "io/loop.h"

struct arena;
struct call;
struct entity;

#define SCANS_MOST 16u

struct scan;

/* Those of a service. */
struct scans {
    struct loop *loop;
    struct list queue; /* struct scan: a slice of the first is next */
    struct loop_task task;
};

void scans_init(struct scans *s, struct loop *loop);
size_t scans_count(const struct scans *s);

/* For what the call selects from its resource's collection; the call may end. */
struct scan *scan_new(const struct call *call, bool objects_only);
/* Ends it, wherever it is. NULL is allowed. */
void scan_free(struct scan *scan);
/* Calls on_done once, from the loop. The result is to be taken there, and the scan to be freed, or
 * started again: then it goes on to more, if it stopped at what is enough for the query. */
void scan_start(struct scan *scan, void (*on_done)(void *context), void *context);

/* Is what it found what this call looks for? Else the resource is another by now, or what may be
 * seen of it. */
bool scan_fits(const struct scan *scan, const struct call *call);

struct scan_result {
    struct entity **entities; /* in order of insertion; all pass the query's filter */
    size_t count;
    bool is_whole; /* there are no more; else it has to be started again for those behind */
};
/* In the arena; good until the collection changes. It is empty, and not whole, if the collection
 * has changed since the scan ended. The errors of query_run. */
struct err *scan_take_result(struct scan *scan, struct arena *a,
                             struct scan_result *out_result) MUST_USE;

#endif
