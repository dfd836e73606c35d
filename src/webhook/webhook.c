/* What is derived from stored webhooks: whose they are, their entries in the matchers, their lanes'
 * settings. The collection's observer keeps it, live and after a replay alike. */
#include "webhook/webhook.h"

#include "access/mask.h"
#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "match/scopes.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "webhook/webhook_account.h"
#include "webhook/webhook_entries.h"
#include "webhook/webhook_lanes.h"
#include "webhook/webhook_owner.h"
#include "webhook/webhook_targets.h"
#include "json/json.h"

/* What it costs to attach one. */
enum { ATTACH_UNITS = 16384 };

struct webhooks {
    struct rest *rest;
    const struct webhook_lanes *lanes;
    struct collection *collection;
    struct list detached; /* struct webhook: their selector or a target leads nowhere now */
    struct webhook_owners *owners;
    struct scopes *scopes;
    struct arena scratch; /* of attaching one webhook */
};

static void set_paused(struct webhooks *ws, struct webhook *w, bool is_paused)
{
    ws->rest->metrics->webhooks_paused += (uint64_t)is_paused - (uint64_t)w->is_paused;
    w->is_paused = is_paused;
}

/* Out of every list and matcher. */
static void take_out(struct webhooks *ws, struct webhook *w)
{
    webhook_entries_drop(w, ws->scopes);
    if (list_linked(&w->link))
        list_remove(&ws->detached, &w->link);
    webhook_targets_drop(w);
    w->is_attached = false;
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

struct scopes *webhooks_scopes(const struct webhooks *ws)
{
    return ws->scopes;
}

/* Attaching. ------------------------------------------------------------------------------- */

static struct err *try_attach(struct webhooks *ws, struct webhook *w)
{
    struct arena *a = &ws->scratch;
    struct json_value json = entity_parse(entity_json(w->entity), a);
    struct webhook_plan plan = {.webhook = w, .rest = ws->rest, .scopes = ws->scopes, .arena = a};

    own(ws, w, json);
    webhook_account_take(ws->rest, w, json, a);
    ws->lanes->accounted(ws->lanes->context, w);
    set_paused(ws, w, json_is_true(json_member(json, SPAN("IsPaused"))));
    TRY(webhook_entries_plan(&plan, json));
    TRY(webhook_targets_add(w, ws->rest, json, a));
    webhook_entries_make(&plan);
    w->is_attached = true;
    return NULL;
}

/* Enters the webhook into the matchers of its selectors, unless it is paused. One that refers to
 * what is not there, because resources were declared otherwise, is put aside. */
static struct err *attach(struct webhooks *ws, struct webhook *w)
{
    struct err *e = try_attach(ws, w);

    if (e != NULL) {
        webhook_targets_drop(w);
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
    struct webhook *w;

    while ((w = webhook_entries_first(resource)) != NULL)
        detach(ws, w);
    while ((w = webhook_targets_first(resource)) != NULL)
        detach(ws, w);
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
    const struct access *access = d->ws->rest->access;

    if (d->name.p != NULL && !span_eq(d->name, owner->name))
        return;
    owner->asked = NULL;
    LIST_EACH(&owner->webhooks, at) {
        struct webhook *w = CONTAINER_OF(at, struct webhook, owned);

        if (w->is_paused || !w->is_attached || webhook_entries_are_read(w, access))
            continue;
        detach(d->ws, w);
        d->found = true;
    }
}

bool webhooks_detach_unowned(struct webhooks *ws, struct span name)
{
    struct disowning d = {ws, name, false};

    webhook_owners_each(ws->owners, detach_unread, &d);
    return d.found;
}

static void forget_asked(void *item, void *arg)
{
    struct webhook_owner *owner = item;

    (void)arg;
    owner->asked = NULL;
}

uint64_t webhook_version(const struct webhook *w)
{
    return w->entity->version;
}

uint64_t webhook_object_no(const struct webhook *w)
{
    return w->entity->object_no;
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

/* A webhook that the change pauses. */
struct pausing {
    struct pausing *next;
    struct webhook *webhook;
    struct span why;
};

/* When all that fit are attached, since they may be told. */
static void tell_of_pauses(struct webhooks *ws, const struct pausing *first, struct change *pauses)
{
    for (const struct pausing *p = first; p != NULL; p = p->next)
        ws->lanes->paused(ws->lanes->context, p->webhook, p->why, pauses);
}

/* Webhooks that fit, and the pauses of those that do not. Returns how many these are. */
static size_t attach_detached(struct webhooks *ws, struct change *pauses)
{
    struct pausing *first = NULL;
    struct list waiting;
    size_t count;

    list_init(&waiting);
    list_take_all(&waiting, &ws->detached);
    LIST_EACH(&waiting, at) {
        struct webhook *w = CONTAINER_OF(at, struct webhook, link);
        struct err *e;

        list_remove(&waiting, at);
        e = attach(ws, w);
        if (e != NULL && !has_message(w, pauses->arena)) {
            struct pausing *p = ARENA_NEW(pauses->arena, struct pausing);

            *p = (struct pausing){first, w, arena_copy(pauses->arena, err_message(e))};
            first = p;
            webhook_pause(w, p->why, pauses);
        }
        err_free(e);
    }
    count = pauses->count;
    tell_of_pauses(ws, first, pauses);
    return count;
}

struct err *webhooks_settle(struct webhooks *ws, struct arena *a, uint64_t *out_serial)
{
    struct change pauses;
    struct err *e;
    size_t count;

    webhook_owners_each(ws->owners, forget_asked, NULL);
    change_init(&pauses, ws->rest->turn, a);
    count = attach_detached(ws, &pauses);
    pauses.frees_space = true;
    if (count > 0)
        log_warn("webhook",
                 "%zu webhooks are paused: what they refer to, or a right to it, is gone", count);
    e = turn_apply(ws->rest->turn, &pauses, out_serial);
    change_done(&pauses);
    return e;
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct webhooks *ws = context;
    struct webhook *w = entity->attached;

    (void)old_json;
    if (w == NULL) {
        w = webhook_entries_new();
        w->entity = entity;
        entity->attached = w;
    }
    take_out(ws, w);
    w->holds_secrets = mask_may_find(ws->rest->mask, entity_json(entity));
    err_free(attach(ws, w)); /* webhooks_settle says what is wrong */
    ws->lanes->changed(ws->lanes->context, w);
    budget_spend(ATTACH_UNITS);
}

static void on_gone(void *context, struct entity *entity)
{
    struct webhooks *ws = context;
    struct webhook *w = TAKE(entity->attached);

    take_out(ws, w);
    set_paused(ws, w, false);
    ws->lanes->gone(ws->lanes->context, w);
    disown(ws, w);
    ws->lanes->freeing(ws->lanes->context, w);
    webhook_account_drop(ws->rest, w);
    webhook_entries_free(w);
}

static const struct collection_observer observer = {on_put, on_gone};

struct webhooks *webhooks_new(struct rest *rest, const struct webhook_lanes *lanes)
{
    struct webhooks *ws = NEW(struct webhooks);

    ws->rest = rest;
    ws->lanes = lanes;
    ws->collection = store_collection(rest->store, SPAN("Svc.Admin.Webhook"));
    collection_observe(ws->collection, &observer, ws);
    list_init(&ws->detached);
    ws->owners = webhook_owners_new();
    ws->scopes = scopes_new();
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
        ws->lanes->freeing(ws->lanes->context, w);
        webhook_account_drop(ws->rest, w);
        webhook_entries_free(w);
    }
    collection_observe(ws->collection, NULL, NULL);
    webhook_owners_free(ws->owners);
    scopes_free(ws->scopes);
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
