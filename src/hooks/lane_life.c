/* Lanes from the first delivery to the last. One is made when its webhook gets a delivery, and
 * freed when it has none and remembers nothing. That of a deleted webhook is not found any more,
 * and drops what it has a slice a turn: there may be a million. */
#include "access/account.h"
#include "base/mem.h"
#include "base/must.h"
#include "hooks/hooks.h"
#include "hooks/lane_consent.h"
#include "hooks/lane_host.h"
#include "hooks/lane_inner.h"
#include "hooks/lane_settings.h"
#include "hooks/share.h"
#include "io/loop.h"
#include "store/change.h"
#include "store/store.h"
#include "webhook/sign.h"
#include "webhook/webhook.h"
#include "webhook/webhook_lanes.h"

enum { DROPS_PER_TURN = 1000 };

static struct lane *lane_at(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct lane, link);
}

static struct span lane_key(const void *item)
{
    const struct lane *lane = item;

    return uuid_key(&lane->webhook_id);
}

/* What its webhook says. -------------------------------------------------------------------- */

static void set_origin(struct lane *lane, const struct webhook_settings *settings)
{
    struct lane_origin *origin =
        settings->is_local ? NULL : lane_origin_get(lane->deliveries, settings->destination);

    if (origin != lane->origin && (lane->state == LANE_PARKED || lane->state == LANE_CALLED))
        lane_move(lane, LANE_IDLE, LANE_NEVER);
    lane_origin_put(lane->origin);
    lane->origin = origin;
}

/* All that it has counts for another account, or for one at all, after a replay. */
static void set_share(struct lane *lane, struct share *share)
{
    struct share *was = lane->share;

    if (was == share)
        return;
    if (lane_is_in_line(lane))
        lane_move(lane, LANE_IDLE, LANE_NEVER);
    if (was != NULL) {
        was->account->pending -= lane_pending(lane);
        share_take_slots(was, lane->pacing.pace, -(int)lane->in_flight);
    }
    lane->share = share_ref(share);
    share->account->pending += lane_pending(lane);
    share_take_slots(share, lane->pacing.pace, (int)lane->in_flight);
    share_unref(was);
}

/* It was checked when it was written. */
static void read_webhook(const struct lane *lane, struct arena *a,
                         struct webhook_settings *out_settings)
{
    struct err *e = webhook_read(lane->webhook, a, out_settings);

    MUST(e == NULL);
}

static void configure(struct lane *lane)
{
    struct webhook_settings settings;
    struct arena a;

    arena_init(&a);
    read_webhook(lane, &a, &settings);
    lane->pacing.max_in_flight = settings.ordered ? 1 : settings.max_in_flight;
    lane->pacing.rate_per_second = settings.rate_per_second;
    lane->pacing.prompt_ms = lane->deliveries->hooks->prompt_ms;
    lane_consent_configure(lane, &settings);
    lane->makes_bodies = webhook_makes_bodies(&settings);
    set_origin(lane, &settings);
    set_share(lane, lane->webhook->share);
    lane_set_ordered(lane, settings.ordered);
    arena_done(&a);
}

static void find_webhook(struct lane *lane)
{
    lane->webhook = webhook_find(lane->deliveries->hooks->webhooks, &lane->webhook_id);
    if (lane->webhook == NULL)
        return;
    lane->webhook->lane = lane;
    configure(lane);
}

/* What the process before has used up of the rate is not known: of attempts that were under way
 * when it ended the journal has nothing. So the bucket was empty when this one started; that of a
 * newer webhook was full. */
static void begin_rate(struct lane *lane)
{
    const struct deliveries *d = lane->deliveries;

    pacing_fill(&lane->pacing, webhook_object_no(lane->webhook) >= d->first_no, d->started_ms);
}

/* Settings. ----------------------------------------------------------------------------------

 * What attempts need of their webhook, read and with its keys ready to sign, kept for the attempts
 * to come: of the webhooks that were used last, because there may be a million. An attempt holds on
 * to what it began with while the webhook is changed. */

enum { KEPT_MOST = 512 };

static struct lane_settings *settings_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct lane_settings, link);
}

void lane_settings_put(struct lane_settings *settings)
{
    if (settings == NULL || --settings->refs > 0)
        return;
    signer_unref(settings->signer.keys);
    arena_done(&settings->arena);
    mem_free(settings);
}

/* The lane is about to go, or its webhook has changed, or others are used more. */
static void forget_settings(struct lane *lane)
{
    struct lane_settings *settings = TAKE(lane->settings);

    if (settings == NULL)
        return;
    list_remove(&lane->deliveries->settings, &settings->link);
    settings->lane = NULL;
    lane_settings_put(settings);
}

static void settings_read(struct lane *lane)
{
    struct lane_settings *settings = NEW(struct lane_settings);

    settings->lane = lane;
    settings->refs = 1; /* the lane's */
    settings->version = webhook_version(lane->webhook);
    arena_init(&settings->arena);
    read_webhook(lane, &settings->arena, &settings->webhook);
    lane->settings = settings;
    list_push_back(&lane->deliveries->settings, &settings->link);
}

struct lane_settings *lane_settings_get(struct lane *lane)
{
    struct list *kept = &lane->deliveries->settings;

    if (lane->settings != NULL && lane->settings->version != webhook_version(lane->webhook))
        forget_settings(lane);
    if (lane->settings == NULL) {
        settings_read(lane);
    } else {
        list_remove(kept, &lane->settings->link);
        list_push_back(kept, &lane->settings->link);
    }
    if (list_count(kept) > KEPT_MOST)
        forget_settings(settings_at(list_first(kept))->lane);
    lane->settings->refs++;
    return lane->settings;
}

/* Beginning and end. ------------------------------------------------------------------------ */

struct lane *lane_get(struct deliveries *d, const struct uuid *webhook_id)
{
    struct lane *lane = map_find(&d->lanes_by_id, uuid_key(webhook_id));

    if (lane != NULL)
        return lane;
    lane = NEW(struct lane);
    lane->deliveries = d;
    lane->webhook_id = *webhook_id;
    list_init(&lane->all);
    heap_init(&lane->pending, lane_rank_less);
    heap_init(&lane->waiting, lane_rank_less);
    timer_init(&lane->timer, lane_on_time);
    pacing_init(&lane->pacing);
    list_push_back(&d->lanes, &lane->link);
    list_push_back(&d->lanes_in[LANE_IDLE], &lane->state_link);
    map_add(&d->lanes_by_id, lane);
    if (store_is_loaded(d->hooks->store)) {
        find_webhook(lane);
        MUST(lane->webhook != NULL);
        begin_rate(lane);
    }
    return lane;
}

/* From all lists, whatever its state. */
static void kill_lane(struct lane *lane)
{
    if (lane->state == LANE_DYING)
        return;
    if (lane->webhook != NULL)
        lane->webhook->lane = NULL;
    lane->webhook = NULL;
    lane_consent_free(lane);
    worst_forget(lane->deliveries->hooks->worst, &lane->worst);
    lane->worst.place = 0;
    list_remove(&lane->deliveries->lanes, &lane->link);
    lane_move(lane, LANE_DYING, LANE_NEVER);
}

static void lane_free(struct lane *lane)
{
    struct deliveries *d = lane->deliveries;

    kill_lane(lane);
    list_remove(&d->lanes_in[LANE_DYING], &lane->state_link);
    lane_origin_put(lane->origin);
    forget_settings(lane);
    store_forget(d->hooks->store, &lane->stored);
    map_remove(&d->lanes_by_id, lane_key(lane));
    heap_done(&lane->pending);
    heap_done(&lane->waiting);
    mem_free(lane->history.error);
    share_unref(lane->share);
    mem_free(lane);
}

/* One with a rate stays: it knows how much of it is used up. */
void lane_release(struct lane *lane)
{
    if (lane->state != LANE_DYING && lane->state != LANE_STARTING && list_empty(&lane->all) &&
        !list_linked(&lane->stored.link) && lane->pacing.rate_per_second <= 0 &&
        !lane_consent_is_asked(lane))
        lane_free(lane);
}

/* Drops up to `most` deliveries, then the lane, when it has no more. */
static void drop_some(struct lane *lane, size_t most)
{
    while (!list_empty(&lane->all) && most-- > 0)
        delivery_drop(lane->deliveries, lane_first_delivery(lane));
    if (list_empty(&lane->all))
        lane_free(lane);
}

void lanes_reap(struct deliveries *d)
{
    drop_some(CONTAINER_OF(list_first(&d->lanes_in[LANE_DYING]), struct lane, state_link),
              DROPS_PER_TURN);
}

/* Webhooks. --------------------------------------------------------------------------------- */

static void webhook_accounted(void *context, struct webhook *w)
{
    struct deliveries *d = context;
    struct share *was = w->share;

    w->share = share_get(d->hooks->shares, w->account);
    share_unref(was);
}

static void webhook_changed(void *context, struct webhook *w)
{
    struct deliveries *d = context;

    if (w->lane == NULL)
        return;
    configure(w->lane);
    if (d->is_started && w->lane->state != LANE_STARTING)
        lane_settle(w->lane);
    lane_release(w->lane);
}

static void webhook_gone(void *context, struct webhook *w)
{
    struct deliveries *d = context;

    if (w->lane == NULL)
        return;
    kill_lane(w->lane);
    lanes_reap_soon(d);
}

static void webhook_freeing(void *context, struct webhook *w)
{
    (void)context;
    share_unref(TAKE(w->share));
}

/* One past what a change tells of is remembered for nothing. */
static void webhook_paused(void *context, struct webhook *w, struct span why, struct change *change)
{
    const struct deliveries *d = context;
    const struct notice notice = {.of = &notice_webhook_paused, .webhook = w, .why = why};

    if (change->notices < NOTICES_PER_CHANGE)
        lane_add_trouble(change, w);
    notice_raise(d->hooks, &notice, change);
}

static bool has_any(const struct webhook *w)
{
    return w->lane != NULL && lane_first_delivery(w->lane) != NULL;
}

static size_t pending_of(const struct webhook *w)
{
    return w->lane == NULL ? 0 : lane_pending(w->lane);
}

static void start_over(struct change *change, const struct webhook *w, bool is_other_receiver)
{
    if (w->lane != NULL)
        lane_start_over(change, w->lane, is_other_receiver);
}

struct webhook_lanes deliveries_as_lanes(struct deliveries *d)
{
    return (struct webhook_lanes){
        .context = d,
        .accounted = webhook_accounted,
        .changed = webhook_changed,
        .gone = webhook_gone,
        .freeing = webhook_freeing,
        .paused = webhook_paused,
        .has_any = has_any,
        .pending = pending_of,
        .start_over = start_over,
    };
}

/* After a replay. --------------------------------------------------------------------------- */

static bool came_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct delivery, lane_link)->object_no <
           CONTAINER_OF_CONST(b, struct delivery, lane_link)->object_no;
}

/* Lanes find their webhooks. Those of deleted ones go now: of their events the journal may have
 * none any more. */
struct err *lanes_loaded(void *context)
{
    struct deliveries *d = context;
    int64_t latest_unix_ns = 0;

    LIST_EACH(&d->lanes, at) {
        struct lane *lane = lane_at(at);

        find_webhook(lane);
        if (lane->webhook == NULL) {
            drop_some(lane, SIZE_MAX);
            continue;
        }
        TRY(lane_check_events(lane, &latest_unix_ns));
        list_sort(&lane->all, came_before);
        lane_release(lane);
    }
    lanes_count_waits(d, latest_unix_ns);
    return NULL;
}

/* All of them. ------------------------------------------------------------------------------ */

void lanes_init(struct deliveries *d)
{
    map_init_own(&d->lanes_by_id, lane_key);
    list_init(&d->lanes);
    for (unsigned i = 0; i < LANE_STATE_COUNT; i++)
        list_init(&d->lanes_in[i]);
    list_init(&d->settings);
    map_init(&d->hosts, lane_host_key);
    scheduler_init(d);
    store_register(d->hooks->store, &lane_kind, d);
}

void lanes_done(struct deliveries *d)
{
    deliveries_stop(d);
    LIST_EACH(&d->lanes, at)
        kill_lane(lane_at(at));
    LIST_EACH(&d->lanes_in[LANE_DYING], at)
        drop_some(CONTAINER_OF(at, struct lane, state_link), SIZE_MAX);
    scheduler_done(d);
    map_done(&d->lanes_by_id);
    map_done(&d->hosts);
}

void deliveries_start(struct deliveries *d)
{
    d->is_started = true;
    d->started_ms = loop_now_ms(d->hooks->loop);
    d->first_no = lanes_next_serial(d);
    LIST_EACH(&d->lanes, at) {
        begin_rate(lane_at(at));
        lane_settle(lane_at(at));
    }
}

/* The starter still records what has ended. */
void deliveries_stop(struct deliveries *d)
{
    d->is_started = false;
    scheduler_stop(d);
    LIST_EACH(&d->lanes, at)
        if (lane_at(at)->state != LANE_IDLE)
            lane_move(lane_at(at), LANE_IDLE, LANE_NEVER);
}

struct lane *lane_find(const struct deliveries *d, const struct uuid *webhook_id)
{
    struct lane *lane = map_find(&d->lanes_by_id, uuid_key(webhook_id));

    return lane == NULL || lane->state == LANE_DYING ? NULL : lane;
}

struct lane *lane_first(const struct deliveries *d)
{
    return lane_at(list_first(&d->lanes));
}

struct lane *lane_next(const struct deliveries *d, const struct lane *lane)
{
    return lane_at(list_next(&d->lanes, &lane->link));
}

bool lane_is_dying(const struct lane *lane)
{
    return lane->state == LANE_DYING;
}

struct webhook *lane_webhook(const struct lane *lane)
{
    return lane->webhook;
}

struct span lane_tenant(const struct lane *lane)
{
    return lane->webhook == NULL ? span_of(NULL, 0) : webhook_tenant(lane->webhook);
}

struct account *lane_account(const struct lane *lane)
{
    return lane->share->account;
}

const struct uuid *lane_webhook_id(const struct lane *lane)
{
    return &lane->webhook_id;
}
