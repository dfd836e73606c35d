/* What a lane remembers of an outcome, and its record in the journal. */
#ifndef HOOKS_LANE_RECORD_H
#define HOOKS_LANE_RECORD_H

#include "base/span.h"
#include "webhook/pacing.h"
#include "webhook/retry.h"

struct change;
struct delivery;
struct lane;
struct record_lane;

struct lane_outcome {
    struct pacing_outcome paced;
    struct retry_decision decision;
    double disable_after_days;
    int64_t started_unix_ns, ended_unix_ns;
    struct span error;
    const struct delivery *delivery; /* as it was before */
    bool is_refused;                 /* by the server itself, as it would be next time */
};
/* Adds to the change that records an outcome what the lane remembers of it, when it is the end of
 * the receiver, that the webhook is paused, and the notices of all that. */
void lane_add_outcome(struct change *change, struct lane *lane, const struct lane_outcome *o);
/* Adds to a change that its receiver has agreed, or no longer has: `given` says to what. */
void lane_add_consent(struct change *change, const struct lane *lane,
                      const struct record_lane *given);
/* When that is applied. */
void lane_note_outcome(struct lane *lane, const struct lane_outcome *o);

#endif
