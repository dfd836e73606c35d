/* An event is put to the matchers of its resource, then to those of the patterns that cover it. A
 * webhook may be found by several of its selectors: it notes the last event that found it.
 *
 * A delivery that its webhook, or its account, has no room for is dead as soon as it is there. Of a
 * flood of these only the first are told of (notice.h). */
#include "hooks/event_match.h"

#include "base/budget.h"
#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/lane_record.h"
#include "hooks/notice.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "webhook/webhook_entry.h"
#include "webhook/webhook_owner.h"

#include <string.h>

static void on_found(void *context, struct matcher_entry *entry)
{
    struct event_matched *matched = context;
    const struct webhook_entry *at = CONTAINER_OF(entry, struct webhook_entry, entry);
    struct webhook *w = at->webhook;
    struct event_refused refused = {.place = matched->count};

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
    budget_spend(EVENT_MATCH_UNITS);
}

/* Of a binary event their conditions are false, whatever it came with. */
static void match_patterns(struct event_matched *matched)
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

void event_match(struct event_matched *matched)
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

static void tell(const struct event_matched *matched, struct change *change,
                 const struct event_raised *raised, uint64_t delivery_no, struct webhook *w,
                 struct span why)
{
    struct hooks *hooks = matched->hooks;
    const struct notice notice = {.webhook = w,
                                  .why = SPAN("there is no room for another delivery"),
                                  .depth = matched->draft->depth + 1u,
                                  .chain = matched->draft->chain};
    struct notice_delivery dead = {
        .event = raised->id, .resource = matched->draft->resource->name, .last_error = why};

    lane_add_trouble(change, w);
    if (w->change_deaths < WEBHOOK_DEATHS_MOST)
        w->change_deaths++;
    if (!lane_may_tell(w, w->change_deaths))
        return;
    delivery_id_of(raised->time_unix_ns, &raised->id, delivery_no, &dead.id);
    notice_dead(hooks, &notice, &dead, change);
}

void event_add_refused(struct event_matched *matched, struct change *change,
                       const struct event_raised *raised)
{
    struct hooks *hooks = matched->hooks;
    struct span why[] = {[DELIVERY_PAST_WEBHOOK] = {NULL, 0}, [DELIVERY_PAST_ACCOUNT] = {NULL, 0}};
    bool is_told = !selector_is_notice(matched->draft->resource->name);
    struct event_refused refused;
    struct uuid id;

    for (uint32_t i = 0; i < matched->refused_count && budget_ask(EVENT_MATCH_UNITS); i++) {
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
