#include "accounts.h"

#include "access/account.h"
#include "base/must.h"
#include "base/rng.h"
#include "hooks/lane.h"
#include "rest/rest.h"
#include "store/change.h"
#include "json/json.h"

static const char *const owners[] = {"", "ada", "ben"}; /* none: everybody's */

void accounts_own(struct world *w, const char *hook_id)
{
    const char *owner = owners[rng_below(ARRAY_LEN(owners))];
    struct arena a;
    struct json_doc patch;
    struct change change;
    struct entity *entity;
    struct uuid id;
    struct buf json;
    uint64_t serial;

    arena_init(&a);
    buf_init_arena(&json, &a);
    MUST(uuid_parse(span_str(hook_id), &id));
    entity = webhook_find(w->service->hooks.webhooks, &id)->entity;
    MUST(json_parse(arena_printf(&a, "{\"Owner\":\"%s\"}", owner), NULL, &a, &patch) == NULL);
    json_add_merged(&json, entity_parse(entity_json(entity), &a), json_root(&patch), false, &a);
    change_init(&change, w->service->turn, &a);
    change_put_entity(&change, SPAN("Svc.Admin.Webhook"), &id, entity->object_no, buf_span(&json));
    err_free(turn_apply(w->service->turn, &change, &serial)); /* there may be no room */
    change_done(&change);
    arena_done(&a);
}

void accounts_note_dead(struct world *w, size_t place, uint64_t serial)
{
    const struct deliveries *d = w->service->hooks.deliveries;
    struct ledger *l = w->ledger;
    const struct event *event;
    struct uuid id;

    MUST(uuid_parse(span_str(l->events[place].id), &id));
    event = events_find(w->service->hooks.events, &id);
    MUST(event != NULL);
    for (uint64_t i = 1; i <= event->webhooks; i++) {
        const struct delivery *delivery = delivery_find_no(d, event->object_no + i);
        char hook[LEDGER_ID_BYTES];
        struct pair *pair;
        struct pair_state state;

        if (delivery == NULL || delivery->state != DELIVERY_DEAD)
            continue;
        uuid_text(lane_webhook_id(delivery->lane), hook);
        pair = &l->pairs[ledger_find_pair(l, place, ledger_find_hook(l, span_str(hook)))];
        state = pair->now;
        state.is_ended = true;
        ledger_set_pair(l, (size_t)(pair - l->pairs), &state, serial);
        pair->object_no = delivery->object_no;
        w->dead_at_once++;
    }
}

/* Of one webhook. */
static size_t count_pending(const struct deliveries *d, const struct uuid *hook)
{
    const struct lane *lane = lane_find(d, hook);
    size_t count = 0;

    if (lane == NULL)
        return 0;
    for (const struct delivery *x = lane_first_delivery(lane); x != NULL;
         x = lane_next_delivery(lane, x))
        count += !delivery_has_ended(x);
    return count;
}

static struct span owner_of(const struct webhook *w, struct arena *a)
{
    return json_string(json_member(entity_parse(entity_json(w->entity), a), SPAN("Owner")), a);
}

static void check_account(const struct world *w, const char *owner, struct arena *a)
{
    struct rest *rest = &w->service->rest;
    struct account *account = rest_account_of(rest, span_of(NULL, 0), span_str(owner));
    size_t pending = 0, webhooks = 0;

    for (size_t i = 0; i < w->ledger->hook_count; i++) {
        const struct webhook *webhook;
        struct uuid id;
        size_t more;

        MUST(uuid_parse(span_str(w->ledger->hooks[i].id), &id));
        webhook = webhook_find(w->service->hooks.webhooks, &id);
        if (webhook == NULL || !span_eq(owner_of(webhook, a), span_str(owner)))
            continue;
        more = count_pending(w->service->hooks.deliveries, &id);
        MUST(more <= (size_t)w->service->limits.webhook_pending_deliveries);
        pending += more;
        webhooks++;
    }
    MUST(account->pending == pending && account->webhooks == webhooks);
    MUST(account->in_flight <= pending);
    account_unref(rest->accounts, account);
}

void accounts_check(struct world *w)
{
    struct arena a;

    if (deliveries_are_dropped(w->service->hooks.deliveries))
        return; /* they still count */
    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(owners); i++)
        check_account(w, owners[i], &a);
    arena_done(&a);
}
