/* Shares are found by their account's name and live as long as a webhook or a lane is on them. Who
 * wants slots is counted as it changes: nobody looks through accounts, or through lanes. */
#include "hooks/share.h"

#include "access/account.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/must.h"
#include "hooks/delivery_inner.h"
#include "hooks/hooks.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "webhook/webhook.h"

static enum pace ring_of(enum share_line line)
{
    return line == LINE_SATED ? PACE_PROMPT : (enum pace)line;
}

static struct span share_key(const void *item)
{
    return ((const struct share *)item)->account->name;
}

struct shares *shares_new(struct hooks *hooks)
{
    struct shares *s = NEW(struct shares);

    s->hooks = hooks;
    map_init(&s->by_account, share_key);
    for (unsigned i = 0; i < SHARE_RINGS; i++)
        list_init(&s->ring[i]);
    return s;
}

void shares_free(struct shares *s)
{
    if (s == NULL)
        return;
    MUST(map_count(&s->by_account) == 0);
    map_done(&s->by_account);
    mem_free(s);
}

struct share *share_get(struct shares *s, struct account *account)
{
    struct share *share = map_find(&s->by_account, account->name);

    if (share != NULL)
        return share_ref(share);
    share = NEW(struct share);
    share->shares = s;
    share->account = account_keep(account);
    for (unsigned i = 0; i < SHARE_LINES; i++)
        list_init(&share->line[i]);
    map_add(&s->by_account, share);
    return share_ref(share);
}

struct share *share_ref(struct share *share)
{
    share->refs++;
    return share;
}

/* Whoever is left alone has no half any more. */
static void wake(const struct shares *s)
{
    if (s->hooks->deliveries != NULL)
        lanes_wake(s->hooks->deliveries);
}

void share_unref(struct share *share)
{
    struct shares *s;

    if (share == NULL || --share->refs > 0)
        return;
    s = share->shares;
    MUST(!share->is_wanting);
    map_remove(&s->by_account, share_key(share));
    account_unref(s->hooks->rest->accounts, share->account);
    mem_free(share);
    wake(s);
}

/* Slots. ----------------------------------------------------------------------------------- */

static void note_wants(struct share *share)
{
    bool is_wanting = share->lanes_in_line > 0 || share->account->in_flight > 0;

    if (is_wanting == share->is_wanting)
        return;
    share->is_wanting = is_wanting;
    if (is_wanting) {
        share->shares->wanting++;
        return;
    }
    share->shares->wanting--;
    wake(share->shares);
}

/* Is there, and will there be, no other account at all? Everybody's is always there. */
static bool is_the_only_one(const struct share *share)
{
    return accounts_count(share->shares->hooks->rest->accounts) == 1;
}

static bool has_half(const struct share *share, enum pace pace, size_t most)
{
    return share->account->in_flight >= pacing_half(PACE_PROMPT, most) ||
           (pace != PACE_PROMPT && share->not_prompt_in_flight >= pacing_half(pace, most));
}

/* A part of the slots stays free for who comes next, whatever that is like. */
static bool may_have_more(const struct share *share, enum pace pace, size_t most)
{
    const struct deliveries *d = share->shares->hooks->deliveries;
    size_t spare = pacing_spare(most);

    if (deliveries_in_flight(d) + spare >= most)
        return false;
    if (pace == PACE_PROMPT)
        return share->shares->wanting <= share->is_wanting;
    return map_count(&share->shares->by_account) == 1 &&
           share->shares->not_prompt_in_flight + spare < pacing_slots(PACE_SLOW, most);
}

bool share_admits(const struct share *share, enum pace pace)
{
    size_t most = share->shares->hooks->in_flight_most;

    return !has_half(share, pace, most) || may_have_more(share, pace, most) ||
           is_the_only_one(share);
}

void share_take_slots(struct share *share, enum pace pace, int more)
{
    share->account->in_flight += (uint32_t)more;
    if (pace != PACE_PROMPT) {
        share->not_prompt_in_flight += (size_t)more;
        share->shares->not_prompt_in_flight += (size_t)more;
    }
    note_wants(share);
}

/* Turns. ----------------------------------------------------------------------------------- */

static struct list_link *first_of(const struct share *share, enum pace pace)
{
    if (pace == PACE_PROMPT && list_empty(&share->line[LINE_SATED]))
        return list_first(&share->line[LINE_READY]); /* as nearly always */
    if (share_admits(share, pace))
        return list_first(&share->line[pace == PACE_PROMPT ? LINE_SATED : (enum share_line)pace]);
    return pace == PACE_PROMPT ? list_first(&share->line[LINE_READY]) : NULL;
}

struct list_link *share_next(const struct shares *s, enum pace pace)
{
    const struct list *ring = &s->ring[pace];

    for (struct list_link *at = list_first(ring); at != NULL; at = list_next(ring, at)) {
        struct list_link *first = first_of(CONTAINER_OF(at - pace, struct share, turn[0]), pace);

        if (first != NULL)
            return first;
    }
    return NULL;
}

void share_had_turn(struct share *share, enum share_line line)
{
    enum pace ring = ring_of(line);
    struct list *turns = &share->shares->ring[ring];

    if (list_count(turns) < 2)
        return;
    list_remove(turns, &share->turn[ring]);
    list_push_back(turns, &share->turn[ring]);
}

static bool has_lanes(const struct share *share, enum pace pace)
{
    return !list_empty(&share->line[pace]) ||
           (pace == PACE_PROMPT && !list_empty(&share->line[LINE_SATED]));
}

void share_line_up(struct share *share, enum share_line line, int more)
{
    enum pace ring = ring_of(line);
    struct list_link *turn = &share->turn[ring];

    share->lanes_in_line += (uint32_t)more;
    if (has_lanes(share, ring) != list_linked(turn)) {
        if (list_linked(turn))
            list_remove(&share->shares->ring[ring], turn);
        else
            list_push_back(&share->shares->ring[ring], turn);
    }
    note_wants(share);
}

/* Room. ------------------------------------------------------------------------------------ */

/* For one more, beside what the change has counted? It is counted then. */
static bool has_room(struct share *share, const struct change *change)
{
    size_t most = (size_t)MAX(share->shares->hooks->limits->pending_deliveries / 2, 1);

    if (share->change_no != change->no) {
        share->change_no = change->no;
        share->change_deliveries = 0;
    }
    if (share->account->pending + share->change_deliveries >= most)
        return false;
    share->change_deliveries++;
    return true;
}

static struct err *overloaded(struct span why)
{
    struct err *e = ERR(ERR_OVERLOADED, "%.*s", SPAN_FMT(why));

    err_set_retry_after(e, 5);
    return e;
}

struct err *deliveries_check_room(const struct deliveries *d, struct change *change, size_t more)
{
    struct hooks *hooks = d->hooks;
    int64_t most = hooks->limits->pending_deliveries;

    if (deliveries_pending(d) + change->deliveries + more <= (size_t)most) {
        change->deliveries += more;
        return NULL;
    }
    hooks->metrics->limit_hits[METRIC_PENDING_DELIVERIES]++;
    return overloaded(arena_printf(change->arena, "the limit PendingDeliveries (%lld) is reached",
                                   (long long)most));
}

enum delivery_refusal delivery_admit(struct webhook *w, const struct change *change)
{
    size_t most = (size_t)w->share->shares->hooks->limits->webhook_pending_deliveries;
    size_t pending = w->lane == NULL ? 0 : lane_pending(w->lane);

    if (w->change_no != change->no) {
        w->change_no = change->no;
        w->change_deliveries = 0;
        w->change_deaths = 0;
    }
    if (pending + w->change_deliveries >= most)
        return DELIVERY_PAST_WEBHOOK;
    if (!has_room(w->share, change))
        return DELIVERY_PAST_ACCOUNT;
    w->change_deliveries++;
    return DELIVERY_ADMITTED;
}

struct span delivery_refused(const struct deliveries *d, enum delivery_refusal why, struct arena *a)
{
    const struct limits *limits = d->hooks->limits;
    uint64_t *hits = d->hooks->metrics->limit_hits;

    if (why == DELIVERY_PAST_WEBHOOK) {
        hits[METRIC_WEBHOOK_PENDING_DELIVERIES]++;
        return arena_printf(a,
                            "the webhook has as many deliveries that have not ended as it may "
                            "(the limit WebhookPendingDeliveries, %lld)",
                            (long long)limits->webhook_pending_deliveries);
    }
    hits[METRIC_PENDING_DELIVERIES]++;
    return arena_printf(a,
                        "the webhook's account has as many deliveries that have not ended as it "
                        "may (half of the limit PendingDeliveries, %lld)",
                        (long long)limits->pending_deliveries);
}

struct err *delivery_check_resend(const struct deliveries *d, const struct delivery *delivery,
                                  struct change *change)
{
    enum delivery_refusal why = delivery_admit(lane_webhook(delivery->lane), change);

    if (why == DELIVERY_ADMITTED)
        return deliveries_check_room(d, change, 1);
    return overloaded(delivery_refused(d, why, change->arena));
}
