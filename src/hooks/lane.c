/* The machine of lane.h and the scheduler that drives it. A lane at rest is looked at when
 * something happens to it; one in line is left alone until its turn comes, so that a flood of
 * events costs it nothing. What is ready stands in its account's line, and accounts in one ring
 * (share.h): the starter gives each account one start and sends it to the end of the ring, and the
 * lane to the end of the line, a bounded number of starts a turn, which take a bounded time. Lanes
 * that wait for a slot, because they are not known to be prompt, come before the ring when there is
 * one.
 *
 * An outcome wakes the starter before the end of its turn, and what it made room for is sent then.
 */
#include "hooks/lane.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sm.h"
#include "hooks/attempt.h"
#include "hooks/body.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_consent.h"
#include "hooks/lane_host.h"
#include "hooks/lane_inner.h"
#include "hooks/payload.h"
#include "hooks/share.h"
#include "io/loop.h"
#include "store/turn.h"
#include "store/turn_wait.h"
#include "webhook/webhook.h"

enum {
    STARTS_PER_TURN = 32,
    STARTS_NS = 2000000,
    READ_AGAIN_MS = 1,
    HELD_AGAIN_MS = 5,
    CROWD_AGAIN_MS = 1000
};

/* What is posted, and waited for. */
struct scheduler {
    struct deliveries *deliveries;
    struct turn_wait commit; /* for those that are UNCOMMITTED */
    struct loop_task starter, reaper;
    bool is_starting;      /* the starter runs: it sees for itself what becomes ready */
    struct turn_line line; /* while the turn is held nothing starts, or is recorded */
};

#define TIMED                                                                                      \
    (SM_TO(LANE_WAITING) | SM_TO(LANE_HELD) | SM_TO(LANE_UNVERIFIED) | SM_TO(LANE_THROTTLED) |     \
     SM_TO(LANE_READING) | SM_TO(LANE_CROWDED))

static const struct sm_state states[] = {
#define LANE_AS_STATE(symbol, name, moves) [symbol] = {name, moves},
    LANE_STATES(LANE_AS_STATE)
#undef LANE_AS_STATE
};

const struct sm_table lane_machine = {"lane", states, LANE_STATE_COUNT};

static const uint8_t state_of[] = {
#define LANE_AS_PLACE(reason, state) [reason] = state,
    LANE_REASONS(LANE_AS_PLACE)
#undef LANE_AS_PLACE
};

/* Why it does not start. ------------------------------------------------------------------- */

static struct lane_block never(enum lane_reason reason)
{
    return (struct lane_block){reason, LANE_NEVER};
}

static void not_before(struct lane_block *block, enum lane_reason reason, uint64_t at_ms)
{
    if (at_ms > block->at_ms)
        *block = (struct lane_block){reason, at_ms};
}

static enum lane_reason why_full(const struct lane *lane)
{
    if (lane->ordered)
        return LANE_IN_ORDER;
    return lane->in_flight >= lane->pacing.max_in_flight ? LANE_AT_MAX_IN_FLIGHT : LANE_AT_WINDOW;
}

/* Of the slots, may a lane of this pace have another? */
static bool has_slot(const struct deliveries *d, enum pace pace)
{
    return d->hooks->shares->not_prompt_in_flight < pacing_slots(pace, d->hooks->in_flight_most);
}

static struct lane_block blocked_by_account(const struct lane *lane)
{
    static const uint8_t reasons[] = {[PACE_UNPROVED] = LANE_UNPROVED_AT_HALF,
                                      [PACE_SLOW] = LANE_SLOW_AT_HALF,
                                      [PACE_PROMPT] = LANE_AT_HALF};

    return never(reasons[lane->pacing.pace]);
}

/* The admission: its host, what is left for receivers like it, its account's share (a request to
 * ourselves counts for none of these), all attempts. */
static struct lane_block blocked_by_others(const struct lane *lane, const struct delivery *next,
                                           uint64_t now_ms)
{
    const struct deliveries *d = lane->deliveries;

    if (lane->origin != NULL && !lane_origin_admits(lane->origin, lane->state == LANE_CALLED))
        return never(LANE_AT_HOST);
    if (lane->origin != NULL && !has_slot(d, lane->pacing.pace))
        return never(lane->pacing.pace == PACE_SLOW ? LANE_AS_SLOW : LANE_AS_UNPROVED);
    if (lane->origin != NULL && !share_admits(lane->share, lane->pacing.pace))
        return blocked_by_account(lane);
    if (!body_has_room(lane, next))
        return (struct lane_block){LANE_AT_BODY_BYTES, now_ms + CROWD_AGAIN_MS};
    if (d->count[DELIVERY_IN_FLIGHT] >= d->hooks->in_flight_most)
        return never(LANE_AT_ALL_SLOTS);
    return (struct lane_block){LANE_FREE, now_ms};
}

static struct lane_block blocked_by_time(const struct lane *lane, const struct delivery *next)
{
    uint64_t now = lane_now_ms(lane);
    struct lane_block block = {LANE_FREE, now};

    if (next->state == DELIVERY_WAITING)
        not_before(&block, LANE_BEFORE_RETRY, next->rank);
    if (block.reason == LANE_FREE && lane->in_flight >= pacing_most(&lane->pacing))
        return never(why_full(lane));
    not_before(&block, LANE_ON_HOLD, lane->hold_until_ms);
    not_before(&block, LANE_AT_RATE, now + pacing_wait_ms(&lane->pacing, now));
    return block;
}

static bool may_deliver(const struct hooks *hooks)
{
    return hooks->may_deliver == NULL || hooks->may_deliver(hooks->may_deliver_context);
}

struct lane_block lane_blocked_by(const struct lane *lane)
{
    const struct deliveries *d = lane->deliveries;
    const struct delivery *next = lane_head(lane);
    struct lane_block block;

    if (!d->is_started || !may_deliver(d->hooks))
        return never(LANE_STOPPED);
    if (lane->webhook->is_paused)
        return never(LANE_PAUSED);
    if (next == NULL)
        return never(LANE_EMPTY);
    block = blocked_by_time(lane, next);
    if (block.reason != LANE_FREE)
        return block;
    if (!turn_is_committed(d->hooks->turn, next->version))
        return never(LANE_NOT_ON_DISK);
    if (lane->needs_consent) {
        not_before(&block, LANE_NO_CONSENT, lane_consent_ask_ms(lane));
        return block.reason != LANE_FREE ? block : blocked_by_others(lane, next, block.at_ms);
    }
    if (!payload_is_loaded(next->event))
        return (struct lane_block){LANE_NOT_READ, block.at_ms + READ_AGAIN_MS};
    return blocked_by_others(lane, next, block.at_ms);
}

/* The same, and what can be done about it is: what is due is queued, a payload is asked for. One
 * that cannot be read is no reason to wait: the attempt will tell. */
static struct lane_block look(struct lane *lane)
{
    struct payloads *payloads = events_payloads(lane->deliveries->hooks->events);
    struct lane_block block;

    lane_promote(lane);
    block = lane_blocked_by(lane);
    if (block.reason == LANE_NOT_READ && payload_ready(payloads, lane_head(lane)->event))
        return blocked_by_others(lane, lane_head(lane), lane_now_ms(lane));
    return block;
}

/* Moves. ----------------------------------------------------------------------------------- */

/* Its account's line, or SHARE_LINES when it stands in none. */
static enum share_line line_of(const struct lane *lane)
{
    switch (lane->state) {
    case LANE_UNPROVED:
        return LINE_UNPROVED;
    case LANE_SLOW:
        return LINE_SLOW;
    case LANE_SATED:
        return LINE_SATED;
    case LANE_READY:
    case LANE_CALLED:
        return LINE_READY;
    default:
        return SHARE_LINES;
    }
}

bool lane_is_in_line(const struct lane *lane)
{
    return line_of(lane) != SHARE_LINES;
}

static struct list *list_of(struct lane *lane)
{
    if (lane_is_in_line(lane))
        return &lane->share->line[line_of(lane)];
    return lane->state == LANE_PARKED ? &lane->origin->parked
                                      : &lane->deliveries->lanes_in[lane->state];
}

/* It has left its list, or has come to it. */
static void count_in_line(struct lane *lane, int more)
{
    if (lane_is_in_line(lane))
        share_line_up(lane->share, line_of(lane), more);
}

static void set_timer(struct lane *lane, uint64_t at_ms)
{
    struct loop *loop = lane->deliveries->hooks->loop;

    if ((SM_TO(lane->state) & TIMED) == 0 || at_ms == LANE_NEVER)
        timer_stop(loop, &lane->timer);
    else
        timer_start(loop, &lane->timer, at_ms - MIN(at_ms, lane_now_ms(lane)));
}

void lane_move(struct lane *lane, enum lane_state next, uint64_t at_ms)
{
    struct deliveries *d = lane->deliveries;
    enum lane_state was = lane->state;

    list_remove(list_of(lane), &lane->state_link);
    count_in_line(lane, -1);
    sm_move(&lane_machine, &lane->state, next);
    list_push_back(list_of(lane), &lane->state_link);
    count_in_line(lane, 1);
    set_timer(lane, at_ms);
    if (was == LANE_PARKED || next == LANE_PARKED)
        lane_origin_line_up(lane->origin);
    if (was == LANE_CALLED && next != LANE_STARTING)
        lane_origin_leave(lane->origin);
    if (next == LANE_UNCOMMITTED && !heap_contains(&d->scheduler->commit.node))
        turn_wait(d->hooks->turn, &d->scheduler->commit, lane_head(lane)->version);
    if (next == LANE_READY || next == LANE_CALLED)
        lanes_wake(d);
}

void lane_call(struct list_link *parked)
{
    lane_move(CONTAINER_OF(parked, struct lane, state_link), LANE_CALLED, LANE_NEVER);
}

static void settle_by(struct lane *lane, struct lane_block block)
{
    enum lane_state next = state_of[block.reason];

    if (next == lane->state || (next == LANE_READY && lane->state == LANE_CALLED))
        set_timer(lane, block.at_ms);
    else
        lane_move(lane, next, block.at_ms);
}

void lane_settle(struct lane *lane)
{
    settle_by(lane, look(lane));
}

void lane_update(struct lane *lane)
{
    if (lane->state <= LANE_THROTTLED && lane->deliveries->is_started) /* at rest */
        lane_settle(lane);
}

void lane_on_time(struct timer *timer)
{
    struct lane *lane = CONTAINER_OF(timer, struct lane, timer);
    const struct hooks *hooks = lane->deliveries->hooks;

    if (turn_is_held(hooks->turn)) /* somebody may just be reading what would become pending */
        timer_start(hooks->loop, &lane->timer, HELD_AGAIN_MS);
    else
        lane_settle(lane);
}

static void on_committed(struct turn_wait *commit)
{
    struct deliveries *d = CONTAINER_OF(commit, struct scheduler, commit)->deliveries;
    struct list_link *link;

    while ((link = list_first(&d->lanes_in[LANE_UNCOMMITTED])) != NULL)
        lane_move(CONTAINER_OF(link, struct lane, state_link), LANE_READY, LANE_NEVER);
}

/* Slots. ----------------------------------------------------------------------------------- */

void lane_take_slots(struct lane *lane, int more)
{
    lane->in_flight += (uint32_t)more;
    share_take_slots(lane->share, lane->pacing.pace, more);
    lanes_wake(lane->deliveries);
}

void lane_pace(struct lane *lane, const struct pacing_outcome *outcome)
{
    enum pace was = lane->pacing.pace;

    pacing_end(&lane->pacing, outcome);
    if (lane->pacing.pace == was)
        return;
    share_take_slots(lane->share, was, -(int)lane->in_flight);
    share_take_slots(lane->share, lane->pacing.pace, (int)lane->in_flight);
    if (lane->state == LANE_UNPROVED || lane->state == LANE_SLOW || lane->state == LANE_SATED)
        lane_settle(lane); /* it may belong elsewhere now */
    lanes_wake(lane->deliveries);
}

/* The scheduler. --------------------------------------------------------------------------- */

/* Whose turn it is; NULL: nobody may start. With every slot taken, the one that is free first wakes
 * the starter again. */
static struct lane *next_lane(const struct deliveries *d)
{
    if (!d->is_started || turn_is_held(d->hooks->turn) ||
        d->count[DELIVERY_IN_FLIGHT] >= d->hooks->in_flight_most)
        return NULL;
    for (enum pace pace = PACE_UNPROVED; pace <= PACE_PROMPT; pace++) {
        struct list_link *first;

        if (list_empty(&d->hooks->shares->ring[pace]) || !has_slot(d, pace))
            continue;
        first = share_next(d->hooks->shares, pace);
        if (first != NULL)
            return CONTAINER_OF(first, struct lane, state_link);
    }
    return NULL;
}

void lanes_wake(struct deliveries *d)
{
    if (turn_is_held(d->hooks->turn))
        turn_line_up(d->hooks->turn, &d->scheduler->line);
    else if (!d->scheduler->is_starting && !loop_posted(&d->scheduler->starter) &&
             next_lane(d) != NULL)
        loop_post(d->hooks->loop, &d->scheduler->starter);
}

/* True when it started one. */
static bool start_one(struct lane *lane)
{
    struct lane_block block = look(lane);
    struct delivery *next;

    share_had_turn(lane->share, line_of(lane));
    if (block.reason != LANE_FREE) {
        settle_by(lane, block);
        return false;
    }
    next = CONTAINER_OF(heap_first(&lane->pending), struct delivery, queued);
    if (lane->origin != NULL && lane->state != LANE_CALLED)
        lane_origin_enter(lane->origin);
    if (!lane->needs_consent)
        pacing_start(&lane->pacing, block.at_ms);
    lane_move(lane, LANE_STARTING, LANE_NEVER);
    if (lane->needs_consent)
        lane_consent_ask(lane);
    else
        attempt_start(lane->deliveries, next, lane->origin);
    if (lane->state == LANE_STARTING) /* not DYING */
        lane_settle(lane);
    lane_release(lane);
    return true;
}

static void on_start(struct loop_task *starter)
{
    struct deliveries *d = CONTAINER_OF(starter, struct scheduler, starter)->deliveries;
    unsigned started = 0;
    struct lane *lane;
    uint64_t until_ns;

    d->scheduler->is_starting = true;
    attempts_record(d);
    until_ns = clock_mono_ns() + STARTS_NS;
    while (started < STARTS_PER_TURN && clock_mono_ns() <= until_ns &&
           (lane = next_lane(d)) != NULL)
        started += start_one(lane);
    d->scheduler->is_starting = false;
    if (list_empty(&d->stopped_attempts) || turn_is_held(d->hooks->turn))
        lanes_wake(d);
    else
        loop_post(d->hooks->loop, starter);
}

static void on_free(struct turn_line *line)
{
    struct deliveries *d = CONTAINER_OF(line, struct scheduler, line)->deliveries;

    loop_post(d->hooks->loop, &d->scheduler->starter);
    loop_post(d->hooks->loop, &d->scheduler->reaper);
}

/* A slice of what is dying a turn. */
static void on_reap(struct loop_task *reaper)
{
    struct deliveries *d = CONTAINER_OF(reaper, struct scheduler, reaper)->deliveries;

    if (list_empty(&d->lanes_in[LANE_DYING]))
        return;
    if (turn_is_held(d->hooks->turn)) {
        turn_line_up(d->hooks->turn, &d->scheduler->line);
        return;
    }
    lanes_reap(d);
    loop_post(d->hooks->loop, reaper);
}

void lanes_reap_soon(struct deliveries *d)
{
    loop_post(d->hooks->loop, &d->scheduler->reaper);
}

void scheduler_init(struct deliveries *d)
{
    d->scheduler = NEW(struct scheduler);
    d->scheduler->deliveries = d;
    d->scheduler->starter.run = on_start;
    d->scheduler->reaper.run = on_reap;
    d->scheduler->commit.on_committed = on_committed;
    d->scheduler->line.on_free = on_free;
}

void scheduler_stop(struct deliveries *d)
{
    turn_unwait(d->hooks->turn, &d->scheduler->commit);
}

void scheduler_done(struct deliveries *d)
{
    loop_unpost(d->hooks->loop, &d->scheduler->starter);
    loop_unpost(d->hooks->loop, &d->scheduler->reaper);
    turn_line_leave(d->hooks->turn, &d->scheduler->line);
    mem_free(TAKE(d->scheduler));
}
