/* One attempt of a delivery, from the settings of its webhook to its outcome. */
#ifndef HOOKS_ATTEMPT_H
#define HOOKS_ATTEMPT_H

struct attempt;
struct deliveries;
struct delivery;
struct lane_origin;

/* `origin`: of its lane, with a place that is the attempt's now; NULL when it is local. */
void attempt_start(struct deliveries *d, struct delivery *delivery, struct lane_origin *origin);
void attempt_cancel(struct attempt *attempt);
/* Records the outcomes of those that ended while they were started. */
void attempts_record(struct deliveries *d);
void attempts_init(struct deliveries *d);
void attempts_done(struct deliveries *d);

#endif
