/* An OPTIONS request, sent as an attempt would be, but recorded nowhere unless the answer is yes.
 * Its status says nothing: servers answer OPTIONS for other reasons. A refusal, or no answer, is
 * kept in memory for Status, and the next request comes after an hour.
 *
 * It takes a place of its host and a slot of its account, as an attempt does, and gives both back
 * when the answer is on its way to the disk. The webhook's own headers are not sent: they may hold
 * secrets, which are for a receiver that has agreed. */
#include "hooks/lane_consent.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "fetch/fetch.h"
#include "hooks/hooks.h"
#include "hooks/lane_host.h"
#include "hooks/lane_inner.h"
#include "hooks/lane_record.h"
#include "hooks/lane_settings.h"
#include "hooks/share.h"
#include "store/change.h"
#include "store/record.h"
#include "store/turn.h"
#include "webhook/webhook_settings.h"

#include <string.h>

enum {
    AGAIN_MS = 3600 * 1000,
    TIMEOUT_MOST_MS = 30 * 1000,
    HELD_AGAIN_MS = 5,
    FULL_AGAIN_MS = 1000 /* when the answer finds no room on the disk */
};

enum { ALLOWED_ORIGIN, ALLOWED_RATE };

static const struct span wanted_fields[FETCH_WANTED_MOST] = {
    [ALLOWED_ORIGIN] = SPAN_INIT("WebHook-Allowed-Origin"),
    [ALLOWED_RATE] = SPAN_INIT("WebHook-Allowed-Rate"),
};

struct lane_consent {
    bool is_wanted;                       /* the webhook has Verify */
    uint8_t wanted[RECORD_CONSENT_BYTES]; /* for this, then */
    bool is_given;
    uint8_t given[RECORD_CONSENT_BYTES]; /* for this */
    uint32_t rate_per_minute;            /* with it; 0: any */
    double own_rate;                     /* the webhook's RatePerSecond */
    uint64_t ask_at_ms;                  /* loop clock; 0: at once */
    struct consent_ask *ask;             /* under way, or NULL */
    char *refusal;                       /* what the last one came to; NULL: there was none */
    int64_t asked_unix_ns;
};

struct consent_ask {
    struct fetch fetch;
    struct lane *lane;
    struct lane_settings *settings;
    struct lane_origin *origin;
    struct share *share; /* whose slot it has, as a lane of this pace */
    enum pace pace;
    struct header_field headers[2];
    char rate[SPAN_U64_BYTES];
    struct record_lane given; /* what was asked, then what was agreed to */
    struct timer again;       /* the answer could not be recorded yet */
};

/* Out of everything; it is not under way any more. */
static void ask_free(struct consent_ask *ask)
{
    struct deliveries *d = ask->lane->deliveries;

    ask->lane->consent->ask = NULL;
    timer_stop(d->hooks->loop, &ask->again);
    fetch_cancel(d->hooks->fetcher, &ask->fetch);
    share_take_slots(ask->share, ask->pace, -1);
    lane_origin_leave(ask->origin);
    share_unref(ask->share);
    lane_settings_put(ask->settings);
    mem_free(ask);
    lanes_wake(d);
}

static bool is_same(const uint8_t a[RECORD_CONSENT_BYTES], const uint8_t b[RECORD_CONSENT_BYTES])
{
    return memcmp(a, b, RECORD_CONSENT_BYTES) == 0;
}

/* What follows from what is wanted and what is given. */
static void judge(struct lane *lane)
{
    const struct lane_consent *c = lane->consent;
    double most = (double)c->rate_per_minute / 60;

    lane->needs_consent = c->is_wanted && !(c->is_given && is_same(c->given, c->wanted));
    lane->pacing.rate_per_second = c->own_rate;
    if (c->is_wanted && !lane->needs_consent && most > 0 &&
        (c->own_rate <= 0 || most < c->own_rate))
        lane->pacing.rate_per_second = most;
}

static struct lane_consent *consent_get(struct lane *lane)
{
    if (lane->consent == NULL)
        lane->consent = NEW(struct lane_consent);
    return lane->consent;
}

/* The answers. ----------------------------------------------------------------------------- */

static void refuse(struct lane *lane, const char *why)
{
    struct lane_consent *c = lane->consent;

    mem_free(c->refusal);
    c->refusal = mem_string(span_str(why));
    c->ask_at_ms = lane_now_ms(lane) + AGAIN_MS;
    ask_free(c->ask);
    lane_update(lane);
    lane_release(lane);
}

static void record(struct consent_ask *ask)
{
    struct lane *lane = ask->lane;
    const struct hooks *hooks = lane->deliveries->hooks;
    struct change change;
    uint64_t serial;
    struct arena a;
    struct err *e;

    if (turn_is_held(hooks->turn)) {
        timer_start(hooks->loop, &ask->again, HELD_AGAIN_MS);
        return;
    }
    arena_init(&a);
    change_init(&change, hooks->turn, &a);
    change.is_outcome = true;
    lane_add_consent(&change, lane, &ask->given);
    e = turn_apply(hooks->turn, &change, &serial);
    change_done(&change);
    arena_done(&a);
    if (e == NULL) {
        ask_free(ask);
        lane_update(lane);
        return;
    }
    log_warn("delivery", "a receiver's consent is not recorded yet: %.*s",
             SPAN_FMT(err_message(e)));
    err_free(e);
    timer_start(hooks->loop, &ask->again, FULL_AGAIN_MS);
}

static void on_again(struct timer *timer)
{
    record(CONTAINER_OF(timer, struct consent_ask, again));
}

/* Why it is none, or NULL. */
static const char *read_rate(struct span text, uint32_t *out_rate)
{
    uint64_t rate = 0;

    if (text.p == NULL || span_eq(text, SPAN("*"))) {
        *out_rate = 0;
        return NULL;
    }
    if (!span_to_u64(text, &rate) || rate == 0)
        return "its WebHook-Allowed-Rate is neither a number of requests a minute nor *";
    *out_rate = (uint32_t)MIN(rate, UINT32_MAX);
    return NULL;
}

static void on_asked(struct fetch *fetch, const struct fetch_result *result)
{
    struct consent_ask *ask = CONTAINER_OF(fetch, struct consent_ask, fetch);
    struct lane *lane = ask->lane;
    struct span origin = result->found[ALLOWED_ORIGIN];
    const char *why;

    lane->consent->asked_unix_ns = clock_unix_ns();
    if (result->status == 0)
        why = result->why;
    else if (origin.p == NULL)
        why = "its answer has no WebHook-Allowed-Origin";
    else if (!span_eq(origin, SPAN("*")) &&
             !span_ieq(origin, lane->deliveries->hooks->cloudevents_origin))
        why = "its WebHook-Allowed-Origin is another";
    else
        why = read_rate(result->found[ALLOWED_RATE], &ask->given.rate_per_minute);
    if (why != NULL)
        refuse(lane, why);
    else
        record(ask);
}

/* Asking. ---------------------------------------------------------------------------------- */

static void on_connected(struct fetch *fetch)
{
    lane_origin_connected(CONTAINER_OF(fetch, struct consent_ask, fetch)->origin);
}

/* A minute's, at least one. */
static uint64_t rate_of(const struct webhook_settings *settings)
{
    double rate = settings->rate_per_second * 60;

    return rate < 1 ? 1 : (uint64_t)rate;
}

static void start(struct consent_ask *ask)
{
    const struct hooks *hooks = ask->lane->deliveries->hooks;
    const struct webhook_settings *settings = &ask->settings->webhook;
    struct fetch *fetch = &ask->fetch;
    size_t count = 0;

    ask->headers[count++] =
        (struct header_field){SPAN("WebHook-Request-Origin"), hooks->cloudevents_origin};
    if (settings->rate_per_second > 0)
        ask->headers[count++] = (struct header_field){SPAN("WebHook-Request-Rate"),
                                                      span_u64(rate_of(settings), ask->rate)};
    fetch->origin = ask->origin->fetch;
    fetch->method = SPAN("OPTIONS");
    fetch->url = settings->destination;
    fetch->headers = ask->headers;
    fetch->header_count = count;
    fetch->timeout_ms = MIN(settings->timeout_ms, TIMEOUT_MOST_MS);
    fetch->wanted = wanted_fields;
    fetch->wanted_count = FETCH_WANTED_MOST;
    fetch->on_connected = on_connected;
    fetch->on_done = on_asked;
    fetch_start(hooks->fetcher, fetch);
}

void lane_consent_ask(struct lane *lane)
{
    struct lane_consent *c = lane->consent;
    struct consent_ask *ask = NEW(struct consent_ask);

    ask->lane = lane;
    ask->settings = lane_settings_get(lane);
    ask->origin = lane->origin;
    ask->share = share_ref(lane->share);
    ask->pace = lane->pacing.pace;
    ask->given.has_consent = true;
    memcpy(ask->given.consent, c->wanted, sizeof(c->wanted));
    timer_init(&ask->again, on_again);
    c->ask = ask;
    share_take_slots(ask->share, ask->pace, 1);
    start(ask);
}

uint64_t lane_consent_ask_ms(const struct lane *lane)
{
    return lane->consent->ask != NULL ? LANE_NEVER : lane->consent->ask_at_ms;
}

bool lane_consent_is_asked(const struct lane *lane)
{
    return lane->consent != NULL && lane->consent->ask != NULL;
}

/* Settings. -------------------------------------------------------------------------------- */

/* Of the destination, and of whom it is asked for. */
static void digest_of(struct span destination, struct span origin,
                      uint8_t out_digest[RECORD_CONSENT_BYTES])
{
    uint8_t digest[RECORD_ONCE_BODY_BYTES];
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    buf_add(&b, origin);
    buf_add_char(&b, ' '); /* which neither of them has */
    buf_add(&b, destination);
    digest_sha256(buf_span(&b), digest);
    memcpy(out_digest, digest, RECORD_CONSENT_BYTES);
    buf_done(&b);
}

void lane_consent_configure(struct lane *lane, const struct webhook_settings *settings)
{
    struct lane_consent *c = lane->consent;

    if (!settings->verifies && c == NULL)
        return;
    c = consent_get(lane);
    c->is_wanted = settings->verifies;
    c->own_rate = settings->rate_per_second;
    c->ask_at_ms = 0;
    digest_of(settings->destination, lane->deliveries->hooks->cloudevents_origin, c->wanted);
    if (c->ask != NULL && (!c->is_wanted || !is_same(c->wanted, c->ask->given.consent)))
        ask_free(c->ask);
    judge(lane);
}

void lane_consent_note(const struct lane *lane, struct record_lane *record)
{
    const struct lane_consent *c = lane->consent;

    if (c == NULL || !c->is_given)
        return;
    record->has_consent = true;
    memcpy(record->consent, c->given, sizeof(c->given));
    record->rate_per_minute = c->rate_per_minute;
}

void lane_consent_apply(struct lane *lane, const struct record_lane *record)
{
    struct lane_consent *c = lane->consent;

    if (!record->has_consent && c == NULL)
        return;
    c = consent_get(lane);
    c->is_given = record->has_consent;
    c->rate_per_minute = record->rate_per_minute;
    memcpy(c->given, record->consent, sizeof(c->given));
    if (lane->webhook != NULL) /* else this is a replay, and its webhook is found later */
        judge(lane);
}

void lane_consent_free(struct lane *lane)
{
    struct lane_consent *c = lane->consent;

    if (c == NULL)
        return;
    if (c->ask != NULL)
        ask_free(c->ask);
    mem_free(c->refusal);
    mem_free(TAKE(lane->consent));
    lane->needs_consent = false;
}

const char *lane_consent_refusal(const struct lane *lane, int64_t *out_asked_unix_ns)
{
    *out_asked_unix_ns = lane->consent->asked_unix_ns;
    return lane->consent->refusal;
}
