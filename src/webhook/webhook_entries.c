/* What finds a webhook: its selectors become entries, each in the matcher of its resource or of its
 * pattern. A plan of them is made first, in which every selector is looked at; only when all fit
 * are the entries made. */
#include "webhook/webhook_entries.h"

#include "access/access.h"
#include "base/mem.h"
#include "match/matchers.h"
#include "match/scopes.h"
#include "resource/referrers.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "webhook/selector.h"
#include "webhook/webhook.h"
#include "webhook/webhook_entry.h"
#include "webhook/webhook_owner.h"
#include "json/json.h"

const struct access_key webhook_nobody = {.entries = NULL};

/* Most have a single entry: it lies beside them. */
struct beside {
    struct webhook webhook;
    struct webhook_entry one;
};

static struct webhook_entry *one_of(struct webhook *w)
{
    return &CONTAINER_OF(w, struct beside, webhook)->one;
}

struct webhook *webhook_entries_new(void)
{
    return &NEW(struct beside)->webhook;
}

void webhook_entries_free(struct webhook *w)
{
    if (w != NULL)
        mem_free(CONTAINER_OF(w, struct beside, webhook));
}

/* Plans. ----------------------------------------------------------------------------------- */

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
struct webhook_wanted {
    struct webhook_wanted *next;
    const struct selector *selector;
    struct span scope; /* absent: the selector's resource */
    bool is_filtered;
};

static void want(struct webhook_plan *plan, const struct selector *selector, struct span scope,
                 bool is_filtered)
{
    struct webhook_wanted *wanted = ARENA_NEW(plan->arena, struct webhook_wanted);

    *wanted = (struct webhook_wanted){plan->first, selector, scope, is_filtered};
    plan->first = wanted;
    plan->count++;
}

/* With a right on few parts of its pattern, a webhook waits for these alone, and costs the events
 * of others nothing. With a right on many, the right is asked for with each event. */
enum { PARTS_MOST = 16 };

static struct err *plan_pattern(struct webhook_plan *plan, const struct selector *selector)
{
    const struct webhook_owner *owner = plan->webhook->owner;
    const struct access_key *key;
    struct span *parts;
    size_t count;

    plan->has_patterns = true;
    if (plan->webhook->is_paused)
        return NULL;
    TRY(webhook_owner_key(owner, plan->rest->access, &key));
    selector_narrow(selector, plan->rest->resources, key, plan->arena, &parts, &count);
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

static struct err *plan_selector(struct webhook_plan *plan, const struct selector *selector)
{
    const struct webhook *w = plan->webhook;

    if (selector->resource == NULL)
        return plan_pattern(plan, selector);
    if (!w->is_paused)
        TRY(webhook_owner_check(w->owner, plan->rest->access, selector->resource));
    want(plan, selector, span_of(NULL, 0), false);
    return NULL;
}

struct err *webhook_entries_plan(struct webhook_plan *plan, struct json_value json)
{
    struct arena *a = plan->arena;
    struct span *texts, member;
    size_t count = webhook_selectors(json, a, &texts, &member);

    for (size_t i = 0; i < count; i++) {
        struct selector *selector = ARENA_NEW(a, struct selector);
        struct err *e =
            selector_parse(plan->rest->resources, texts[i], &webhook_nobody, SIZE_MAX, a, selector);

        if (e != NULL)
            return err_prefix(e, "%.*s: ", SPAN_FMT(member));
        TRY(plan_selector(plan, selector));
    }
    return NULL;
}

static void make_entry(const struct webhook_plan *plan, const struct webhook_wanted *wanted,
                       struct webhook_entry *at)
{
    struct webhook *w = plan->webhook;
    struct span tenant = w->owner->tenant;
    const struct conditions *conditions = wanted->selector->conditions;

    *at = (struct webhook_entry){
        .webhook = w, .resource = wanted->selector->resource, .is_filtered = wanted->is_filtered};
    if (wanted->scope.p != NULL) {
        at->scope = scopes_add(plan->scopes, wanted->scope, tenant, &at->entry, conditions);
        return;
    }
    list_push_back(&at->resource->referrers->selectors, &at->link);
    if (!w->is_paused)
        matchers_add(at->resource->matchers, tenant, &at->entry, conditions);
}

void webhook_entries_make(const struct webhook_plan *plan)
{
    struct webhook *w = plan->webhook;

    w->entries = plan->count <= 1 ? one_of(w) : mem_zero(plan->count * sizeof(*w->entries));
    w->has_patterns = plan->has_patterns;
    for (const struct webhook_wanted *wanted = plan->first; wanted != NULL; wanted = wanted->next)
        make_entry(plan, wanted, &w->entries[w->entry_count++]);
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

/* Afterwards. ------------------------------------------------------------------------------ */

bool webhook_entries_are_read(const struct webhook *w, const struct access *access)
{
    bool are_read = !w->has_patterns;

    for (uint32_t i = 0; i < w->entry_count && are_read; i++) {
        struct err *e = webhook_owner_check(w->owner, access, w->entries[i].resource);

        are_read = e == NULL;
        err_free(e);
    }
    return are_read;
}

struct webhook *webhook_entries_first(const struct resource *resource)
{
    struct list_link *at = list_first(&resource->referrers->selectors);

    return at == NULL ? NULL : CONTAINER_OF(at, struct webhook_entry, link)->webhook;
}

static void take_entry_out(struct scopes *scopes, const struct webhook *w, struct webhook_entry *at)
{
    if (at->scope != NULL)
        scopes_remove(scopes, at->scope, w->owner->tenant, &at->entry);
    else if (at->entry.node != NULL)
        matchers_remove(at->resource->matchers, w->owner->tenant, &at->entry);
    if (at->resource != NULL)
        list_remove(&at->resource->referrers->selectors, &at->link);
}

void webhook_entries_drop(struct webhook *w, struct scopes *scopes)
{
    for (uint32_t i = 0; i < w->entry_count; i++)
        take_entry_out(scopes, w, &w->entries[i]);
    if (w->entries != one_of(w))
        mem_free(w->entries);
    w->entries = NULL;
    w->entry_count = 0;
    *one_of(w) = (struct webhook_entry){.webhook = NULL};
    w->has_patterns = false;
}
