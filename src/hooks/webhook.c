/* What is derived from stored webhooks: their entries in the matchers, their lanes' settings. The
 * collection's observer keeps it, live and after a replay alike. */
#include "hooks/webhook.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "hooks/delivery.h"
#include "hooks/hooks.h"
#include "hooks/selector.h"
#include "hooks/share.h"
#include "hooks/webhook_account.h"
#include "hooks/webhook_owner.h"
#include "match/matchers.h"
#include "rest/access.h"
#include "rest/account.h"
#include "rest/mask.h"
#include "rest/metrics.h"
#include "rest/referrers.h"
#include "rest/resource.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"

struct webhooks {
    struct hooks *hooks;
    struct collection *collection;
    struct list detached; /* struct webhook: their selector or a target leads nowhere now */
    struct webhook_owners *owners;
    struct arena scratch; /* of attaching one webhook */
};

/* Messages that are stored are read by whoever may read webhooks: they list no other resources. */
static const struct access_key nobody = {.entries = NULL};

static void set_paused(struct webhooks *ws, struct webhook *w, bool is_paused)
{
    ws->hooks->metrics->webhooks_paused += (uint64_t)is_paused - (uint64_t)w->is_paused;
    w->is_paused = is_paused;
}

static void drop_targets(struct webhook *w)
{
    for (size_t i = 0; w->targets != NULL && i < WEBHOOK_TARGETS_MOST; i++)
        if (w->targets[i].resource != NULL)
            list_remove(&w->targets[i].resource->referrers->targets, &w->targets[i].link);
    mem_free(w->targets);
    w->targets = NULL;
}

/* Out of every list and matcher. */
static void take_out(struct webhooks *ws, struct webhook *w)
{
    if (w->entry.node != NULL)
        matchers_remove(w->event_resource->matchers, w->owner->tenant, &w->entry);
    if (list_linked(&w->link))
        list_remove(w->event_resource != NULL ? &w->event_resource->referrers->selectors
                                              : &ws->detached,
                    &w->link);
    drop_targets(w);
    w->event_resource = NULL;
}

static void disown(struct webhooks *ws, struct webhook *w)
{
    if (w->owner == NULL)
        return;
    list_remove(&w->owner->webhooks, &w->owned);
    webhook_owner_put(ws->owners, TAKE(w->owner));
}

static void own(struct webhooks *ws, struct webhook *w, struct json_value json)
{
    struct arena *a = &ws->scratch;
    struct span tenant = json_string(json_member(json, SPAN("Tenant")), a);
    struct span name = json_string(json_member(json, SPAN("Owner")), a);
    struct span identity = json_string(json_member(json, SPAN("OwnerKey")), a);
    struct webhook_owner *owner = webhook_owner_get(ws->owners, tenant, name, identity);

    if (owner == w->owner)
        return;
    disown(ws, w);
    w->owner = owner;
    list_push_back(&owner->webhooks, &w->owned);
}

static struct err *add_target(struct webhooks *ws, struct webhook *w, size_t place,
                              struct span target, enum method method)
{
    struct hooks *hooks = ws->hooks;
    struct resource *resource;
    struct uri uri;

    if (!span_starts(target, SPAN("/")))
        return NULL;
    TRY(webhook_find_target(hooks->rest->resources, target, method, &nobody, SIZE_MAX, &ws->scratch,
                            &uri, &resource));
    if (w->targets == NULL)
        w->targets = mem_zero(WEBHOOK_TARGETS_MOST * sizeof(*w->targets));
    w->targets[place].webhook = w;
    w->targets[place].resource = resource;
    list_push_back(&resource->referrers->targets, &w->targets[place].link);
    return NULL;
}

static struct err *add_targets(struct webhooks *ws, struct webhook *w, struct json_value json)
{
    struct arena *a = &ws->scratch;
    struct json_value custom = json_member(json, SPAN("CustomPayloadRequest"));
    enum method method = method_parse(json_string(json_member(json, SPAN("Method")), a));
    struct err *e =
        add_target(ws, w, 0, json_string(json_member(json, SPAN("Destination")), a), method);

    if (e != NULL)
        return err_prefix(e, "Destination: ");
    if (json_type(custom) != JSON_OBJECT)
        return NULL;
    e = add_target(ws, w, 1, json_string(json_member(custom, SPAN("URI")), a), METHOD_GET);
    return e == NULL ? NULL : err_prefix(e, "CustomPayloadRequest.URI: ");
}

static void set_share(struct webhook *w, struct share *share)
{
    struct share *was = w->share;

    w->share = share;
    share_unref(was);
}

static struct err *try_attach(struct webhooks *ws, struct webhook *w)
{
    struct arena *a = &ws->scratch;
    struct json_value json = entity_parse(entity_json(w->entity), a);
    struct span text = json_string(json_member(json, SPAN("EventSelector")), a);
    struct selector selector;
    struct err *e =
        selector_parse(ws->hooks->rest->resources, text, &nobody, SIZE_MAX, a, &selector);

    own(ws, w, json);
    webhook_account_take(ws->hooks->rest, w, json, a);
    set_share(w, share_get(ws->hooks->shares, account_keep(w->account)));
    set_paused(ws, w, json_is_true(json_member(json, SPAN("IsPaused"))));
    if (e != NULL)
        return err_prefix(e, "EventSelector: ");
    if (!w->is_paused)
        TRY(webhook_owner_check(w->owner, ws->hooks->rest->access, selector.resource));
    TRY(add_targets(ws, w, json));
    w->event_resource = selector.resource;
    list_push_back(&selector.resource->referrers->selectors, &w->link);
    if (!w->is_paused)
        matchers_add(selector.resource->matchers, w->owner->tenant, &w->entry,
                     &selector.conditions);
    return NULL;
}

/* Enters the webhook into its event resource's matcher, unless it is paused. One that refers to
 * what is not there, because resources were declared otherwise, is put aside. */
static struct err *attach(struct webhooks *ws, struct webhook *w)
{
    struct err *e = try_attach(ws, w);

    if (e != NULL) {
        drop_targets(w);
        list_push_back(&ws->detached, &w->link);
    }
    arena_reset(&ws->scratch);
    return e;
}

static void detach(struct webhooks *ws, struct webhook *w)
{
    take_out(ws, w);
    list_push_back(&ws->detached, &w->link);
}

void webhooks_detach(struct webhooks *ws, struct resource *resource)
{
    struct list_link *at;

    while ((at = list_first(&resource->referrers->selectors)) != NULL)
        detach(ws, CONTAINER_OF(at, struct webhook, link));
    while ((at = list_first(&resource->referrers->targets)) != NULL)
        detach(ws, CONTAINER_OF(at, struct webhook_target, link)->webhook);
}

/* Of one owner. */
struct disowning {
    struct webhooks *ws;
    struct span name; /* absent: of each */
    bool found;
};

static void detach_unread(void *item, void *arg)
{
    struct webhook_owner *owner = item;
    struct disowning *d = arg;
    const struct access *access = d->ws->hooks->rest->access;

    if (d->name.p != NULL && !span_eq(d->name, owner->name))
        return;
    LIST_EACH(&owner->webhooks, at) {
        struct webhook *w = CONTAINER_OF(at, struct webhook, owned);
        struct err *e;

        if (w->is_paused || w->event_resource == NULL)
            continue;
        e = webhook_owner_check(owner, access, w->event_resource);
        if (e != NULL)
            detach(d->ws, w);
        d->found |= e != NULL;
        err_free(e);
    }
}

bool webhooks_detach_unowned(struct webhooks *ws, struct span name)
{
    struct disowning d = {ws, name, false};

    webhook_owners_each(ws->owners, detach_unread, &d);
    return d.found;
}

struct span webhook_tenant(const struct webhook *w)
{
    return w->owner->tenant;
}

static bool has_message(const struct webhook *w, struct arena *a)
{
    struct json_value json = entity_parse(entity_json(w->entity), a);

    return json_is_true(json_member(json, SPAN("IsPaused"))) &&
           json_type(json_member(json, SPAN("ErrorMessage"))) == JSON_STRING;
}

/* Webhooks that fit, and the pauses of those that do not. */
static void attach_detached(struct webhooks *ws, struct change *pauses)
{
    struct list waiting;

    list_init(&waiting);
    list_take_all(&waiting, &ws->detached);
    LIST_EACH(&waiting, at) {
        struct webhook *w = CONTAINER_OF(at, struct webhook, link);
        struct err *e;

        list_remove(&waiting, at);
        e = attach(ws, w);
        if (e != NULL && !has_message(w, pauses->arena))
            webhook_pause(w, err_message(e), pauses);
        err_free(e);
    }
}

struct err *webhooks_settle(struct webhooks *ws, struct arena *a, uint64_t *out_serial)
{
    struct change pauses;
    struct err *e;

    change_init(&pauses, ws->hooks->turn, a);
    attach_detached(ws, &pauses);
    pauses.frees_space = true;
    if (pauses.count > 0)
        log_warn("webhook",
                 "%zu webhooks are paused: what they refer to, or a right to it, is gone",
                 pauses.count);
    e = turn_apply(ws->hooks->turn, &pauses, out_serial);
    change_done(&pauses);
    return e;
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct webhooks *ws = context;
    struct webhook *w = entity->attached;

    (void)old_json;
    if (w == NULL) {
        w = NEW(struct webhook);
        w->entity = entity;
        entity->attached = w;
    }
    take_out(ws, w);
    w->holds_secrets = mask_may_find(&ws->hooks->rest->mask, entity_json(entity));
    err_free(attach(ws, w)); /* webhooks_settle says what is wrong */
    deliveries_webhook_changed(ws->hooks->deliveries, w);
}

static void on_gone(void *context, struct entity *entity)
{
    struct webhooks *ws = context;
    struct webhook *w = TAKE(entity->attached);

    take_out(ws, w);
    set_paused(ws, w, false);
    deliveries_webhook_gone(ws->hooks->deliveries, w);
    disown(ws, w);
    set_share(w, NULL);
    webhook_account_drop(ws->hooks->rest, w);
    mem_free(w);
}

static const struct collection_observer observer = {on_put, on_gone};

struct webhooks *webhooks_new(struct hooks *hooks)
{
    struct webhooks *ws = NEW(struct webhooks);

    ws->hooks = hooks;
    ws->collection = store_collection(hooks->store, SPAN("Svc.Admin.Webhook"));
    collection_observe(ws->collection, &observer, ws);
    list_init(&ws->detached);
    ws->owners = webhook_owners_new();
    arena_init(&ws->scratch);
    return ws;
}

void webhooks_free(struct webhooks *ws)
{
    if (ws == NULL)
        return;
    for (struct entity *e = collection_first(ws->collection); e != NULL;
         e = collection_next(ws->collection, e)) {
        struct webhook *w = TAKE(e->attached);

        if (w == NULL)
            continue;
        take_out(ws, w);
        disown(ws, w);
        set_share(w, NULL);
        webhook_account_drop(ws->hooks->rest, w);
        mem_free(w);
    }
    collection_observe(ws->collection, NULL, NULL);
    webhook_owners_free(ws->owners);
    arena_done(&ws->scratch);
    mem_free(ws);
}

struct webhook *webhook_find(const struct webhooks *ws, const struct uuid *id)
{
    struct entity *e = collection_find(ws->collection, id);

    return e == NULL ? NULL : e->attached;
}

void webhook_pause(const struct webhook *w, struct span why, struct change *change)
{
    struct arena *a = change->arena;
    struct buf patch, json;

    buf_init(&patch, BUF_NO_CAP);
    buf_init(&json, BUF_NO_CAP);
    buf_add_str(&patch, "{\"IsPaused\":true,\"ErrorMessage\":");
    json_add_string(&patch, why);
    buf_add_char(&patch, '}');
    json_add_merged(&json, entity_parse(entity_json(w->entity), a),
                    entity_parse(buf_span(&patch), a), false, a);
    change_put_entity(change, SPAN("Svc.Admin.Webhook"), &w->entity->id, w->entity->object_no,
                      buf_span(&json));
    buf_done(&patch);
    buf_done(&json);
}
