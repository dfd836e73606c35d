/* Consent: a webhook with Verify sends nothing before its receiver has agreed
 * (docs/specification.md, section 13; the webhook specification of CloudEvents, section 4). The
 * receiver is asked when a delivery could start, in its place: by the same slots, in the same line.
 * What it agrees to is journaled with a digest of the destination and of whom it was asked for, so
 * that it holds until one of them changes, over restarts too. */
#ifndef HOOKS_LANE_CONSENT_H
#define HOOKS_LANE_CONSENT_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct record_lane;
struct webhook_settings;

/* What its webhook says now, also of RatePerSecond, which consent may lower. Asks at once what has
 * not been agreed to. */
void lane_consent_configure(struct lane *lane, const struct webhook_settings *settings);
/* When the receiver is asked, of a lane that needs consent; LANE_NEVER: it is just being asked. */
uint64_t lane_consent_ask_ms(const struct lane *lane);
bool lane_consent_is_asked(const struct lane *lane);
/* Asks: in a place of its origin's host that is taken. */
void lane_consent_ask(struct lane *lane);
/* Fills what a record of the lane has of it; takes it from one that is applied. */
void lane_consent_note(const struct lane *lane, struct record_lane *record);
void lane_consent_apply(struct lane *lane, const struct record_lane *record);
/* Of a lane that needs consent: why the receiver has not agreed, and when it was asked; NULL: it
 * was not yet. */
const char *lane_consent_refusal(const struct lane *lane, int64_t *out_asked_unix_ns);
/* The lane is about to go. */
void lane_consent_free(struct lane *lane);

#endif
