/* Raising an event. It is put to the matchers of its resource, then to those of the patterns that
 * cover it. A webhook may be found by several of its selectors: it notes the last event that found
 * it.
 *
 * A delivery that its webhook, or its account, has no room for is dead as soon as it is there. Of a
 * flood of these only the first are told of (notice.h). */
#include "hooks/event_chain.h"

#include "base/budget.h"
#include "base/clock.h"
#include "hooks/delivery.h"
#include "hooks/event_raise.h"
#include "hooks/hooks.h"
#include "hooks/lane.h"
#include "hooks/notice.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "store/record.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "webhook/webhook_entry.h"
#include "webhook/webhook_owner.h"

#include <string.h>

/* What it costs to note a webhook. */
enum { MATCH_UNITS = 64 };

/* What was found, a webhook once, however many of its selectors match. */
struct matched {
    struct hooks *hooks;
    const struct event_draft *draft;
    const struct change *change;
    uint64_t no; /* of the event, among those that were put to the webhooks: no two have the same */
    struct buf ids;
    struct buf refused; /* struct refused: of those that are dead at once */
    uint32_t count, refused_count;
};

struct refused {
    uint32_t place; /* in ids */
    enum delivery_refusal why;
};

static void on_found(void *context, struct matcher_entry *entry)
{
    struct matched *matched = context;
    const struct webhook_entry *at = CONTAINER_OF(entry, struct webhook_entry, entry);
    struct webhook *w = at->webhook;
    struct refused refused = {.place = matched->count};

    if (w->event_seen == matched->no) /* another of its selectors was found before */
        return;
    if (matched->draft->only != NULL && w != matched->draft->only)
        return;
    if (at->is_filtered &&
        !webhook_owner_reads(w->owner, matched->hooks->rest->access, matched->draft->resource))
        return;
    if (matched->draft->most != 0 && matched->count >= matched->draft->most)
        return;
    w->event_seen = matched->no;
    refused.why = delivery_admit(w, matched->change);
    if (refused.why != DELIVERY_ADMITTED) {
        buf_add(&matched->refused, span_of((const char *)&refused, sizeof(refused)));
        matched->refused_count++;
    }
    buf_add(&matched->ids, uuid_key(&w->entity->id));
    matched->count++;
    budget_spend(MATCH_UNITS);
}

/* Of a binary event their conditions are false, whatever it came with. */
static void match_patterns(struct matched *matched)
{
    const struct hooks *hooks = matched->hooks;
    const struct event_draft *draft = matched->draft;
    struct scopes *scopes = webhooks_scopes(hooks->webhooks);
    const struct json_value none = {NULL, NULL};
    struct json_value entities = draft->resource->is_binary_event ? none : draft->entities;
    uint64_t evaluated, looked_at, evaluated_then, looked_at_then;

    if (scopes_count(scopes) == 0)
        return;
    scopes_stats(scopes, &evaluated_then, &looked_at_then);
    scopes_match(scopes, draft->resource->folded, !selector_is_notice(draft->resource->folded),
                 draft->tenant, entities, matched->change->arena, on_found, matched);
    scopes_stats(scopes, &evaluated, &looked_at);
    hooks->metrics->predicates += evaluated - evaluated_then;
    hooks->metrics->selectors += looked_at - looked_at_then;
}

/* Fills ids and refused, which are empty. */
static void match(struct matched *matched)
{
    const struct event_draft *draft = matched->draft;
    struct matchers *matchers = draft->resource->matchers;
    struct metrics *m = matched->hooks->metrics;
    struct matcher_stats before, after;

    matchers_stats(matchers, draft->tenant, &before);
    matchers_match(matchers, draft->tenant, draft->entities, matched->change->arena, on_found,
                   matched);
    matchers_stats(matchers, draft->tenant, &after);
    m->predicates += after.evaluated - before.evaluated;
    m->selectors += after.looked_at - before.looked_at;
    match_patterns(matched);
}

static void tell(const struct matched *matched, struct change *change,
                 const struct event_raised *raised, uint64_t delivery_no, struct webhook *w,
                 struct span why)
{
    struct notice_delivery dead = {
        .event = raised->id, .resource = matched->draft->resource->name, .last_error = why};
    const struct notice notice = {.of = &notice_delivery_dead,
                                  .webhook = w,
                                  .why = SPAN("there is no room for another delivery"),
                                  .depth = matched->draft->depth + 1u,
                                  .chain = matched->draft->chain,
                                  .dead = &dead};

    lane_add_trouble(change, w);
    if (w->change_deaths < WEBHOOK_DEATHS_MOST)
        w->change_deaths++;
    if (!lane_may_tell(w, w->change_deaths))
        return;
    delivery_id_of(raised->time_unix_ns, &raised->id, delivery_no, &dead.id);
    notice_raise(matched->hooks, &notice, change);
}

/* Adds to the change, behind the event's record, that the deliveries of `refused` are dead, and the
 * notices of it. */
static void add_refused(struct matched *matched, struct change *change,
                        const struct event_raised *raised)
{
    struct hooks *hooks = matched->hooks;
    struct span why[] = {[DELIVERY_PAST_WEBHOOK] = {NULL, 0}, [DELIVERY_PAST_ACCOUNT] = {NULL, 0}};
    bool is_told = !selector_is_notice(matched->draft->resource->name);
    struct refused refused;
    struct uuid id;

    for (uint32_t i = 0; i < matched->refused_count && budget_ask(MATCH_UNITS); i++) {
        uint64_t delivery_no;

        memcpy(&refused, buf_span(&matched->refused).p + i * sizeof(refused), sizeof(refused));
        memcpy(&id, buf_span(&matched->ids).p + refused.place * sizeof(id), sizeof(id));
        if (why[refused.why].p == NULL)
            why[refused.why] = delivery_refused(hooks->deliveries, refused.why, change->arena);
        delivery_no = raised->object_no + 1 + refused.place;
        delivery_add_dead(change, &id, raised->object_no, delivery_no, raised->time_unix_ns,
                          why[refused.why]);
        if (is_told)
            tell(matched, change, raised, delivery_no, webhook_find(hooks->webhooks, &id),
                 why[refused.why]);
    }
}

/* Raising. --------------------------------------------------------------------------------- */

static void add_record(struct change *change, const struct event_draft *draft,
                       const struct matched *matched, const struct event_raised *raised)
{
    const struct record_event record = {
        .id = raised->id,
        .object_no = raised->object_no,
        .time_unix_ns = raised->time_unix_ns,
        .is_binary = draft->resource->is_binary_event,
        .depth = draft->depth,
        .matched = matched->count,
        .resource = draft->resource->name,
        .content_type = draft->content_type,
        .webhooks = buf_span(&matched->ids),
        .payload = draft->payload,
        .tenant = draft->tenant,
        .client_id = draft->client_id,
        .ce = draft->ce,
    };

    record_add_event(change_begin(change), &record);
    change_end(change, RECORD_EVENT, 1 + matched->count);
}

struct err *event_raise(struct hooks *hooks, const struct event_draft *draft, struct change *change,
                        struct event_raised *out_raised)
{
    struct matched matched = {.hooks = hooks, .draft = draft, .change = change};
    struct event_raised raised = {
        .id = uuid_new(),
        .object_no = change_next_serial(change),
        .time_unix_ns = clock_unix_ns(),
    };
    struct err *e;

    TRY(event_check_chain(hooks, draft, change));
    buf_init(&matched.ids, BUF_NO_CAP);
    buf_init(&matched.refused, BUF_NO_CAP);
    matched.no = events_next_match(hooks->events);
    if (draft->except != NULL)
        draft->except->event_seen = matched.no; /* as if it were found already */
    match(&matched);
    raised.webhooks = matched.count;
    e = deliveries_check_room(hooks->deliveries, change, matched.count - matched.refused_count);
    if (e == NULL) {
        add_record(change, draft, &matched, &raised);
        add_refused(&matched, change, &raised);
        events_set_raising(hooks->events, draft->chain);
        change->is_outcome = change->is_outcome || change->frees_space;
        change->frees_space = false;
        *out_raised = raised;
    }
    buf_done(&matched.ids);
    buf_done(&matched.refused);
    return e;
}
