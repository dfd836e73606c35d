/* What a lane remembers of an outcome, and its record in the journal. */
#ifndef HOOKS_LANE_RECORD_H
#define HOOKS_LANE_RECORD_H

#include "hooks/pacing.h"
#include "hooks/retry.h"

struct change;
struct lane;

struct lane_outcome {
    struct pacing_outcome paced;
    struct retry_decision decision;
    double disable_after_days;
    int64_t started_unix_ns, ended_unix_ns;
    struct span error;
};
extern const struct store_kind lane_kind; /* context: the deliveries */
/* Adds to the change that records an outcome what the lane remembers of it, and when it is the end
 * of the receiver, that the webhook is paused. */
void lane_add_outcome(struct change *change, const struct lane *lane, const struct lane_outcome *o);
/* When that is applied. */
void lane_note_outcome(struct lane *lane, const struct lane_outcome *o);

#endif
