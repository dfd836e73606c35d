/* What is derived from stored webhooks: their entries in the matchers, their lanes' settings. The
 * collection's observer keeps it, live and after a replay alike. */
#include "webhook/webhook.h"

#include "access/access.h"
#include "access/mask.h"
#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "query/uri.h"
#include "resource/referrers.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "rest/rest.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "webhook/selector.h"
#include "webhook/webhook_account.h"
#include "webhook/webhook_lanes.h"
#include "webhook/webhook_owner.h"
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

/* Messages that are stored are read by whoever may read webhooks: they list no other resources. */
static const struct access_key nobody = {.entries = NULL};

static void set_paused(struct webhooks *ws, struct webhook *w, bool is_paused)
{
    ws->rest->metrics->webhooks_paused += (uint64_t)is_paused - (uint64_t)w->is_paused;
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

static void take_entry_out(struct webhooks *ws, const struct webhook *w, struct webhook_entry *at)
{
    if (at->scope != NULL)
        scopes_remove(ws->scopes, at->scope, w->owner->tenant, &at->entry);
    else if (at->entry.node != NULL)
        matchers_remove(at->resource->matchers, w->owner->tenant, &at->entry);
    if (at->resource != NULL)
        list_remove(&at->resource->referrers->selectors, &at->link);
}

/* Out of every list and matcher. */
static void take_out(struct webhooks *ws, struct webhook *w)
{
    for (uint32_t i = 0; i < w->entry_count; i++)
        take_entry_out(ws, w, &w->entries[i]);
    if (w->entries != &w->one)
        mem_free(w->entries);
    w->entries = NULL;
    w->entry_count = 0;
    w->one = (struct webhook_entry){.webhook = NULL};
    if (list_linked(&w->link))
        list_remove(&ws->detached, &w->link);
    drop_targets(w);
    w->is_attached = w->has_patterns = false;
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
    struct resource *resource;
    struct uri uri;

    if (!span_starts(target, SPAN("/")))
        return NULL;
    TRY(webhook_find_target(ws->rest->resources, target, method, &nobody, SIZE_MAX, &ws->scratch,
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

/* Selectors. ------------------------------------------------------------------------------- */

size_t webhook_selectors(struct json_value webhook, struct arena *a, struct span **out_texts,
                         struct span *out_member)
{
    struct json_value list = json_member(webhook, SPAN("EventSelectors"));
    bool is_list = json_type(list) == JSON_ARRAY;
    struct span *texts = ARENA_ARRAY(a, struct span, is_list ? json_count(list) : 1);
    size_t count = 0;

    *out_member = is_list ? SPAN("EventSelectors") : SPAN("EventSelector");
    *out_texts = texts;
    if (is_list)
        for (struct json_value v = json_first(list); json_exists(v); v = json_next(list, v))
            texts[count++] = json_string(v, a);
    else
        texts[count++] = json_string(json_member(webhook, SPAN("EventSelector")), a);
    return count;
}

/* An entry to be made. */
struct wanted {
    struct wanted *next;
    const struct selector *selector;
    struct span scope; /* absent: the selector's resource */
    bool is_filtered;
};

/* Of one webhook, in which nothing is changed until all of it fits. */
struct plan {
    struct webhooks *ws;
    struct webhook *w;
    struct wanted *first;
    uint32_t count;
    bool has_patterns;
};

static void want(struct plan *plan, const struct selector *selector, struct span scope,
                 bool is_filtered)
{
    struct wanted *wanted = ARENA_NEW(&plan->ws->scratch, struct wanted);

    *wanted = (struct wanted){plan->first, selector, scope, is_filtered};
    plan->first = wanted;
    plan->count++;
}

/* With a right on few parts of its pattern, a webhook waits for these alone, and costs the events
 * of others nothing. With a right on many, the right is asked for with each event. */
enum { PARTS_MOST = 16 };

static struct err *plan_pattern(struct plan *plan, const struct selector *selector)
{
    const struct webhook_owner *owner = plan->w->owner;
    const struct access_key *key;
    struct span *parts;
    size_t count;

    plan->has_patterns = true;
    if (plan->w->is_paused)
        return NULL;
    TRY(webhook_owner_key(owner, plan->ws->rest->access, &key));
    selector_narrow(selector, key, &plan->ws->scratch, &parts, &count);
    if (count == 0)
        return ERR(ERR_NOT_AUTHORIZED, "Owner: the API key '%.*s' may GET nothing of '%.*s'",
                   SPAN_FMT(owner->name), SPAN_FMT(selector->normal));
    if (count > PARTS_MOST) {
        want(plan, selector, selector->pattern, true);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        want(plan, selector, parts[i], false);
    return NULL;
}

static struct err *plan_selector(struct plan *plan, const struct selector *selector)
{
    const struct webhook *w = plan->w;

    if (selector->resource == NULL)
        return plan_pattern(plan, selector);
    if (!w->is_paused)
        TRY(webhook_owner_check(w->owner, plan->ws->rest->access, selector->resource));
    want(plan, selector, span_of(NULL, 0), false);
    return NULL;
}

static struct err *plan_entries(struct plan *plan, struct json_value json)
{
    struct arena *a = &plan->ws->scratch;
    struct span *texts, member;
    size_t count = webhook_selectors(json, a, &texts, &member);

    for (size_t i = 0; i < count; i++) {
        struct selector *selector = ARENA_NEW(a, struct selector);
        struct err *e =
            selector_parse(plan->ws->rest->resources, texts[i], &nobody, SIZE_MAX, a, selector);

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(member));
        TRY(plan_selector(plan, selector));
    }
    return NULL;
}

static void make_entry(const struct plan *plan, const struct wanted *wanted,
                       struct webhook_entry *at)
{
    struct webhook *w = plan->w;
    struct span tenant = w->owner->tenant;
    const struct conditions *conditions = &wanted->selector->conditions;

    *at = (struct webhook_entry){
        .webhook = w, .resource = wanted->selector->resource, .is_filtered = wanted->is_filtered};
    if (wanted->scope.p != NULL) {
        at->scope = scopes_add(plan->ws->scopes, wanted->scope, tenant, &at->entry, conditions);
        return;
    }
    list_push_back(&at->resource->referrers->selectors, &at->link);
    if (!w->is_paused)
        matchers_add(at->resource->matchers, tenant, &at->entry, conditions);
}

static void make_entries(const struct plan *plan)
{
    struct webhook *w = plan->w;

    w->entries = plan->count <= 1 ? &w->one : mem_zero(plan->count * sizeof(*w->entries));
    w->has_patterns = plan->has_patterns;
    w->is_attached = true;
    for (const struct wanted *wanted = plan->first; wanted != NULL; wanted = wanted->next)
        make_entry(plan, wanted, &w->entries[w->entry_count++]);
}

struct scopes *webhooks_scopes(const struct webhooks *ws)
{
    return ws->scopes;
}

bool webhook_selects(const struct webhook *w, const struct resource *event)
{
    for (uint32_t i = 0; i < w->entry_count; i++) {
        const struct webhook_entry *at = &w->entries[i];
        struct span pattern;

        if (at->resource == event)
            return true;
        if (at->scope == NULL)
            continue;
        pattern = scope_pattern(at->scope);
        if (scope_covers(pattern, event->folded) &&
            !(selector_is_every(pattern) && selector_is_notice(event->folded)))
            return true;
    }
    return false;
}

/* Attaching. ------------------------------------------------------------------------------- */

static struct err *try_attach(struct webhooks *ws, struct webhook *w)
{
    struct arena *a = &ws->scratch;
    struct json_value json = entity_parse(entity_json(w->entity), a);
    struct plan plan = {.ws = ws, .w = w};

    own(ws, w, json);
    webhook_account_take(ws->rest, w, json, a);
    ws->lanes->accounted(ws->lanes->context, w);
    set_paused(ws, w, json_is_true(json_member(json, SPAN("IsPaused"))));
    TRY(plan_entries(&plan, json));
    TRY(add_targets(ws, w, json));
    make_entries(&plan);
    return NULL;
}

/* Enters the webhook into the matchers of its selectors, unless it is paused. One that refers to
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
        detach(ws, CONTAINER_OF(at, struct webhook_entry, link)->webhook);
    while ((at = list_first(&resource->referrers->targets)) != NULL)
        detach(ws, CONTAINER_OF(at, struct webhook_target, link)->webhook);
}

/* Of one owner. */
struct disowning {
    struct webhooks *ws;
    struct span name; /* absent: of each */
    bool found;
};

/* What a pattern stands for follows the rights. */
static bool is_unread(const struct webhook *w, const struct access *access)
{
    bool is_unread = w->has_patterns;

    for (uint32_t i = 0; i < w->entry_count && !is_unread; i++) {
        struct err *e = webhook_owner_check(w->owner, access, w->entries[i].resource);

        is_unread = e != NULL;
        err_free(e);
    }
    return is_unread;
}

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

        if (w->is_paused || !w->is_attached || !is_unread(w, access))
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
        w = NEW(struct webhook);
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
    mem_free(w);
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
        mem_free(w);
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
