/* A scan: who the conditions of a request that writes find where no index says it, looked for over
 * several turns, beside others who change what is looked at. What it finds is what a walk over the
 * whole collection would find in the turn in which it ends. Only on a fiber (evaluation.h). */
#ifndef REST_SCAN_H
#define REST_SCAN_H

#include "base/err.h"

#include <stddef.h>

struct call;
struct entity;

struct scan_result {
    struct entity **entities; /* in the arena, in order of insertion; all pass the query's filter */
    size_t count;
};

/* The call's source writes entities as the caller is shown them; it neither gives any, nor turns
 * back. Ends with evaluation_begin_change, so that what was found stays what it is. The errors of
 * query_run and of evaluation_begin_change. */
struct err *scan_run(struct call *call, bool objects_only, struct scan_result *out_result) MUST_USE;

#endif
