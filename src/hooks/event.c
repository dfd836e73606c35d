/* An event's life: raised (one record with payload and matched webhooks, which also makes the
 * deliveries), kept for Svc.Event until retention forgets it, freed when no delivery needs it
 * either.
 *
 * After cleaning, records may be replayed in another order than they were written first: a delivery
 * may come before its event. event_ref then makes a stub that the event's own record fills. */
#include "hooks/event.h"

#include "base/blob.h"
#include "base/ladder.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "hooks/delivery.h"
#include "hooks/event_chain.h"
#include "hooks/event_raise.h"
#include "hooks/hooks.h"
#include "hooks/payload.h"
#include "hooks/payload_inner.h"
#include "resource/resource.h"
#include "rest/metrics.h"
#include "store/change.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "webhook/selector.h"
#include "json/member.h"

#include <string.h>

enum { LONGEST_CHAIN = 16 };

/* The events of one name; there while any event refers to it. */
struct event_group {
    struct list kept; /* as those of all */
    size_t events;    /* that refer to it, kept or not */
    size_t name_bytes;
    char name[];
};

struct event_chain {
    uint32_t refs;
    uint32_t descendants;
};

struct events {
    struct hooks *hooks;
    struct map by_id;                /* kept ones */
    struct map by_no;                /* all */
    struct list kept;                /* by object_no once loaded */
    struct ladder ladder;            /* of these, then */
    struct map groups[EVENT_GROUPS]; /* struct event_group, by name */
    uint64_t kept_bytes;
    uint64_t version;
    struct payloads *payloads;
    struct event_chain *raising; /* of what was raised last, which is applied next */
    uint64_t matched;            /* so many events were put to the webhooks */
};

static struct event *event_at(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct event, order);
}

static uint64_t number_of(const struct list_link *link)
{
    return CONTAINER_OF_CONST(link, struct event, order)->object_no;
}

static struct span id_key(const void *item)
{
    const struct event *event = item;

    return uuid_key(&event->id);
}

static struct span no_key(const void *item)
{
    const struct event *event = item;

    return span_of((const char *)&event->object_no, sizeof(event->object_no));
}

/* Groups. ---------------------------------------------------------------------------------- */

static struct span group_key(const void *item)
{
    const struct event_group *group = item;

    return span_of(group->name, group->name_bytes);
}

static struct span group_name(const struct event_group *group)
{
    return group == NULL ? span_of(NULL, 0) : group_key(group);
}

/* NULL for no name. */
static struct event_group *group_get(struct map *groups, struct span name)
{
    struct event_group *group;

    if (name.n == 0)
        return NULL;
    group = map_find(groups, name);
    if (group == NULL) {
        group = mem_alloc(sizeof(*group) + name.n);
        *group = (struct event_group){.name_bytes = name.n};
        memcpy(group->name, name.p, name.n);
        list_init(&group->kept);
        map_add(groups, group);
    }
    group->events++;
    return group;
}

static void group_put(struct map *groups, struct event_group *group)
{
    if (group == NULL || --group->events > 0)
        return;
    map_remove(groups, group_key(group));
    mem_free(group);
}

struct span event_tenant_name(const struct event *event)
{
    return group_name(event->groups[EVENT_TENANT]);
}

static struct span client_id(const struct event *event)
{
    return group_name(event->groups[EVENT_CLIENT]);
}

static struct event *event_of(struct list_link *link, enum event_group_kind kind)
{
    return LIST_OBJECT(link, struct event, of_group[kind]);
}

struct event *events_first_of(const struct events *e, enum event_group_kind kind, struct span name)
{
    const struct event_group *group = map_find(&e->groups[kind], name);

    return group == NULL ? NULL : event_of(list_first(&group->kept), kind);
}

struct event *events_next_of(const struct event *event, enum event_group_kind kind)
{
    return event_of(list_next(&event->groups[kind]->kept, &event->of_group[kind]), kind);
}

struct event *events_last_of(const struct events *e, enum event_group_kind kind, struct span name)
{
    const struct event_group *group = map_find(&e->groups[kind], name);

    return group == NULL ? NULL : event_of(list_last(&group->kept), kind);
}

struct event *events_previous_of(const struct event *event, enum event_group_kind kind)
{
    return event_of(list_prev(&event->groups[kind]->kept, &event->of_group[kind]), kind);
}

static void join_groups(struct event *event)
{
    for (unsigned i = 0; i < EVENT_GROUPS; i++)
        if (event->groups[i] != NULL)
            list_push_back(&event->groups[i]->kept, &event->of_group[i]);
}

static void leave_groups(struct event *event)
{
    for (unsigned i = 0; i < EVENT_GROUPS; i++)
        if (list_linked(&event->of_group[i]))
            list_remove(&event->groups[i]->kept, &event->of_group[i]);
}

/* Chains. ---------------------------------------------------------------------------------- */

static struct event_chain *chain_ref(struct event_chain *chain)
{
    if (chain != NULL)
        chain->refs++;
    return chain;
}

void event_chain_unref(struct event_chain *chain)
{
    if (chain != NULL && --chain->refs == 0)
        mem_free(chain);
}

struct event_chain *event_chain(struct event *event)
{
    if (event->chain == NULL) {
        event->chain = NEW(struct event_chain);
        event->chain->refs = 1;
    }
    return chain_ref(event->chain);
}

/* Records know nothing of chains: what is applied is what the change before it in time has raised,
 * and one change is of one request. */
void events_set_raising(struct events *e, struct event_chain *chain)
{
    if (chain == e->raising)
        return;
    event_chain_unref(e->raising);
    e->raising = chain_ref(chain);
}

static void join_chain(struct events *e, struct event *event)
{
    event->chain = chain_ref(e->raising);
    if (event->chain != NULL)
        event->chain->descendants++;
}

struct err *event_check_chain(struct hooks *hooks, const struct event_draft *draft,
                              struct change *change)
{
    int64_t most = hooks->limits->event_descendants;

    if (draft->depth >= LONGEST_CHAIN)
        return ERR(ERR_INFINITE_LOOP,
                   "'%.*s' would be the %uth event in a chain of events that cause one another",
                   SPAN_FMT(draft->resource->name), draft->depth + 1u);
    if (draft->chain == NULL)
        return NULL;
    if (draft->chain->descendants + change->descendants >= (size_t)most) {
        hooks->metrics->limit_hits[METRIC_EVENT_DESCENDANTS]++;
        return ERR(ERR_INFINITE_LOOP,
                   "'%.*s' would be one event more than may descend from another (the limit "
                   "EventDescendants, %lld)",
                   SPAN_FMT(draft->resource->name), (long long)most);
    }
    change->descendants++;
    return NULL;
}

/* Life. ------------------------------------------------------------------------------------ */

static void event_free(struct events *e, struct event *event)
{
    for (unsigned i = 0; i < EVENT_GROUPS; i++)
        group_put(&e->groups[i], event->groups[i]);
    store_forget(e->hooks->store, &event->stored);
    map_remove(&e->by_no, no_key(event));
    payload_remove(e->payloads, event);
    event_chain_unref(event->chain);
    mem_free(event->owned);
    mem_free(CONTAINER_OF(event, struct event_whole, event));
}

static void stop_keeping(struct events *e, struct event *event)
{
    if (!event->is_kept)
        return;
    event->is_kept = false;
    e->kept_bytes -= event_bytes(event);
    ladder_removing(&e->ladder, &e->kept, &event->order);
    list_remove(&e->kept, &event->order);
    leave_groups(event);
    map_remove(&e->by_id, id_key(event));
}

/* Frees what nothing needs. During a replay that is not known before its end: a record of a
 * delivery may come after the one by which its event was hidden. */
static void release(struct events *e, struct event *event)
{
    if (!event->is_kept && event->deliveries == 0 && store_is_loaded(e->hooks->store))
        event_free(e, event);
}

static struct event *stub_new(struct events *e, uint64_t object_no)
{
    struct event *event = &NEW(struct event_whole)->event;

    event->object_no = object_no;
    map_add(&e->by_no, event);
    return event;
}

/* Behind what there is. */
static void take_attributes(struct event *event, struct span attributes)
{
    char *at = event->owned + event->resource.n + event->content_type.n;

    memcpy(at, attributes.p, attributes.n);
    event->ce = span_of(at, attributes.n);
}

static void fill(struct events *e, struct event *event, const struct record_event *r,
                 const struct store_origin *origin)
{
    event->is_known = true;
    event->id = r->id;
    event->time_unix_ns = r->time_unix_ns;
    event->depth = r->depth;
    event->is_binary = r->is_binary;
    event->webhooks = r->matched;
    event->payload_bytes = r->payload.n;
    payload_add(e->payloads, event, r->payload, origin);
    event->owned = mem_alloc(r->resource.n + r->content_type.n + r->ce.n);
    memcpy(event->owned, r->resource.p, r->resource.n);
    memcpy(event->owned + r->resource.n, r->content_type.p, r->content_type.n);
    event->resource = span_of(event->owned, r->resource.n);
    event->content_type = span_of(event->owned + r->resource.n, r->content_type.n);
    if (r->ce.n > 0)
        take_attributes(event, r->ce);
    event->groups[EVENT_TENANT] = group_get(&e->groups[EVENT_TENANT], r->tenant);
    event->groups[EVENT_CLIENT] = group_get(&e->groups[EVENT_CLIENT], r->client_id);
    if (r->is_hidden)
        return;
    event->is_kept = true;
    e->kept_bytes += event_bytes(event);
    list_push_back(&e->kept, &event->order);
    map_add(&e->by_id, event);
    if (!store_is_loaded(e->hooks->store))
        return; /* see loaded */
    ladder_added(&e->ladder, &event->order);
    join_groups(event);
}

static struct err *apply_event(void *context, struct span body, const struct store_origin *origin)
{
    struct events *e = context;
    struct record_event r;
    struct event *event;
    struct uuid webhook;

    TRY(record_read_event(body, &r));
    event = events_find_no(e, r.object_no);
    if (event == NULL)
        event = stub_new(e, r.object_no);
    store_track(e->hooks->store, &event->stored, RECORD_EVENT, origin);
    if (event->is_known) { /* it only moved */
        payload_moved(e->payloads, event, origin);
        return NULL;
    }
    fill(e, event, &r, origin);
    if (store_is_loaded(e->hooks->store)) {
        join_chain(e, event);
        e->hooks->metrics->events++;
        e->hooks->metrics->matches += r.matched;
        e->hooks->metrics->notices += selector_is_notice(event->resource);
    }
    e->version = MAX(e->version, r.object_no);
    for (size_t at = 0; at < r.webhooks.n; at += sizeof(webhook)) {
        memcpy(&webhook, r.webhooks.p + at, sizeof(webhook));
        delivery_create(e->hooks->deliveries, &webhook, event,
                        r.object_no + 1 + at / sizeof(webhook), origin);
    }
    return NULL;
}

static struct err *apply_event_gone(void *context, struct span body,
                                    const struct store_origin *origin)
{
    struct events *e = context;
    uint64_t object_no;
    struct event *event;

    TRY(record_read_number(body, &object_no));
    e->version = MAX(e->version, origin->serial);
    event = events_find_no(e, object_no);
    if (event == NULL)
        return NULL;
    stop_keeping(e, event);
    release(e, event);
    return NULL;
}

static struct record_event record_of(const struct event *event, struct span payload)
{
    return (struct record_event){
        .id = event->id,
        .object_no = event->object_no,
        .time_unix_ns = event->time_unix_ns,
        .is_binary = event->is_binary,
        .is_hidden = !event->is_kept,
        .depth = event->depth,
        .matched = event->webhooks,
        .resource = event->resource,
        .content_type = event->content_type,
        .payload = payload,
        .tenant = event_tenant_name(event),
        .client_id = client_id(event),
        .ce = event->ce,
    };
}

static struct err *move_event(void *context, struct stored *stored, struct change *change)
{
    struct events *e = context;
    struct event *event = CONTAINER_OF(stored, struct event, stored);
    struct record_event record;
    struct blob *payload;

    TRY(payload_get(e->payloads, event, &payload));
    record = record_of(event, blob_span(payload));
    record_add_event(change_begin(change), &record);
    change_end(change, RECORD_EVENT, 1);
    blob_unref(payload);
    return NULL;
}

/* Hidden events are not counted: when they go depends on when their deliveries are dropped. */
static void digest_events(void *context, struct store_digest *digest)
{
    struct events *e = context;
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    for (struct event *event = events_first(e); event != NULL; event = events_next(e, event)) {
        struct blob *payload = payload_or_null(e->payloads, event);
        const struct record_event record = record_of(event, blob_span(payload));

        buf_clear(&b);
        record_add_event(&b, &record);
        store_digest_add(digest, buf_span(&b));
        blob_unref(payload);
    }
    buf_done(&b);
}

static bool comes_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct event, order)->object_no <
           CONTAINER_OF_CONST(b, struct event, order)->object_no;
}

static void note_needless(void *item, void *list)
{
    struct event *event = item;

    if (!event->is_kept && event->deliveries == 0)
        list_push_back(list, &event->order);
}

static void free_needless(struct events *e)
{
    struct list_link *link;
    struct list needless;

    list_init(&needless);
    map_each(&e->by_no, note_needless, &needless);
    while ((link = list_pop_front(&needless)) != NULL)
        event_free(e, event_at(link));
}

static struct err *loaded(void *context)
{
    struct events *e = context;

    list_sort(&e->kept, comes_before);
    ladder_build(&e->ladder, &e->kept);
    LIST_EACH(&e->kept, at)
        join_groups(event_at(at));
    free_needless(e);
    return NULL;
}

static const struct store_kind event_kind = {
    .kind = RECORD_EVENT,
    .apply = apply_event,
    .move = move_event,
    .digest = digest_events,
    .loaded = loaded,
};

static const struct store_kind event_gone_kind = {
    .kind = RECORD_EVENT_GONE,
    .apply = apply_event_gone,
};

struct events *events_new(struct hooks *hooks)
{
    struct events *e = NEW(struct events);

    e->hooks = hooks;
    map_init_own(&e->by_id, id_key);
    map_init_own(&e->by_no, no_key);
    for (unsigned i = 0; i < EVENT_GROUPS; i++)
        map_init(&e->groups[i], group_key);
    list_init(&e->kept);
    ladder_init(&e->ladder, number_of);
    e->payloads = payloads_new(hooks);
    store_register(hooks->store, &event_kind, e);
    store_register(hooks->store, &event_gone_kind, e);
    return e;
}

void events_free(struct events *e)
{
    if (e == NULL)
        return;
    LIST_EACH(&e->kept, at)
        stop_keeping(e, event_at(at));
    free_needless(e);
    MUST(map_count(&e->by_no) == 0); /* deliveries are freed first */
    event_chain_unref(e->raising);
    payloads_free(e->payloads);
    ladder_done(&e->ladder);
    map_done(&e->by_id);
    map_done(&e->by_no);
    for (unsigned i = 0; i < EVENT_GROUPS; i++)
        map_done(&e->groups[i]);
    mem_free(e);
}

uint64_t events_next_match(struct events *e)
{
    return ++e->matched;
}

size_t events_count(const struct events *e)
{
    return list_count(&e->kept);
}

uint64_t events_bytes(const struct events *e)
{
    return e->kept_bytes;
}

size_t event_bytes(const struct event *event)
{
    return sizeof(struct event_whole) + event->resource.n + event->content_type.n +
           client_id(event).n + event->ce.n + event->payload_bytes;
}

struct event *events_find(const struct events *e, const struct uuid *id)
{
    return map_find(&e->by_id, uuid_key(id));
}

struct event *events_find_no(const struct events *e, uint64_t object_no)
{
    return map_find(&e->by_no, span_of((const char *)&object_no, sizeof(object_no)));
}

struct event *events_first(const struct events *e)
{
    return event_at(list_first(&e->kept));
}

struct event *events_next(const struct events *e, const struct event *event)
{
    return event_at(list_next(&e->kept, &event->order));
}

struct event *events_previous(const struct events *e, const struct event *event)
{
    return event_at(list_prev(&e->kept, &event->order));
}

struct event *events_last(const struct events *e)
{
    return event_at(list_last(&e->kept));
}

struct event *events_after(const struct events *e, uint64_t object_no)
{
    return event_at(ladder_after(&e->ladder, &e->kept, object_no));
}

bool event_is_notice(const struct event *event)
{
    return selector_is_notice(event->resource);
}

uint64_t events_version(const struct events *e)
{
    return e->version;
}

struct event *event_ref(struct events *e, uint64_t object_no)
{
    struct event *event = events_find_no(e, object_no);

    if (event == NULL)
        event = stub_new(e, object_no);
    event->deliveries++;
    return event;
}

void event_unref(struct events *e, struct event *event)
{
    MUST(event->deliveries > 0);
    event->deliveries--;
    release(e, event);
}

void event_forget(struct change *change, const struct event *event)
{
    record_add_number(change_begin(change), event->object_no);
    change_end(change, RECORD_EVENT_GONE, 1);
}

struct payloads *events_payloads(struct events *e)
{
    return e->payloads;
}

/* As Svc.Event shows it. -------------------------------------------------------------------- */

static void add_payload(struct payloads *p, struct event *event, struct buf *b)
{
    struct blob *payload = payload_or_null(p, event);

    if (payload == NULL) {
        buf_add_str(b, "null");
    } else if (event->is_binary) {
        buf_add_char(b, '"');
        text_add_base64(b, blob_span(payload));
        buf_add_char(b, '"');
    } else {
        buf_add(b, blob_span(payload));
    }
    blob_unref(payload);
}

void event_add_json(struct events *e, struct event *event, struct buf *b)
{
    buf_add_char(b, '{');
    member_add_uuid(b, SPAN("Id"), &event->id);
    member_add_text(b, SPAN("Resource"), event->resource);
    member_add_time(b, SPAN("Time"), event->time_unix_ns);
    member_add_text(b, SPAN("ContentType"),
                    event->is_binary ? event->content_type : SPAN("application/json"));
    json_add_name(b, SPAN("Payload"));
    add_payload(events_payloads(e), event, b);
    member_add_text_or_null(b, SPAN("ClientId"), client_id(event));
    member_add_text_or_null(b, SPAN("Tenant"), event_tenant_name(event));
    member_add_json(b, SPAN("ce"), event->ce.n > 0 ? event->ce : SPAN("null"));
    member_add_u64(b, SPAN("Webhooks"), event->webhooks);
    member_add_u64(b, SPAN("ObjectNo"), event->object_no);
    buf_add_char(b, '}');
}
