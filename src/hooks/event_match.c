/* An event is put to the matchers of its resource, then to those of the patterns that cover it. A
 * webhook may be found by several of its selectors: it notes the last event that found it. */
#include "hooks/event_match.h"

#include "hooks/event.h"
#include "hooks/hooks.h"
#include "hooks/selector.h"
#include "hooks/webhook.h"
#include "hooks/webhook_owner.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "rest/metrics.h"
#include "rest/resource.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/entity.h"

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
    w->event_seen = matched->no;
    refused.why = delivery_admit(w, matched->change);
    if (refused.why != DELIVERY_ADMITTED) {
        buf_add(&matched->refused, span_of((const char *)&refused, sizeof(refused)));
        matched->refused_count++;
    }
    buf_add(&matched->ids, uuid_key(&w->entity->id));
    matched->count++;
}

static void match_patterns(struct event_matched *matched)
{
    const struct hooks *hooks = matched->hooks;
    const struct event_draft *draft = matched->draft;
    struct scopes *scopes = webhooks_scopes(hooks->webhooks);
    uint64_t evaluated, looked_at, evaluated_then, looked_at_then;

    if (scopes_count(scopes) == 0)
        return;
    scopes_stats(scopes, &evaluated_then, &looked_at_then);
    scopes_match(scopes, draft->resource->folded, !selector_is_notice(draft->resource),
                 draft->tenant, draft->entities, matched->change->arena, on_found, matched);
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
