/* One entity of a collection that no resource shows: so it is journaled, moved and read back as any
 * other. What a change takes out is read from its records. */
#include "hooks/forgotten.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/must.h"
#include "hooks/hooks.h"
#include "store/change.h"
#include "store/change_record.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/record.h"
#include "store/store.h"
#include "webhook/webhook_log.h"
#include "json/member.h"

/* What it costs to look at a record. */
enum { RECORD_UNITS = 64 };

struct forgotten {
    struct collection *own, *log;
    struct entity *entity; /* NULL: nothing has been forgotten yet */
    uint64_t event, entry;
};

static const struct span own_name = SPAN_INIT("Svc.Forgotten");
static const struct uuid own_id = {{0x66, 0x6f, 0x72, 0x67, 0x6f, 0x74, 0x74, 0x65, 0x6e}};

static uint64_t number_of(struct json_value json, struct span name)
{
    uint64_t number;

    return span_to_u64(json_text(json_member(json, name)), &number) ? number : 0;
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct forgotten *f = context;
    struct json_value json;
    struct arena a;

    (void)old_json;
    arena_init(&a);
    json = entity_parse(entity_json(entity), &a);
    f->entity = entity;
    f->event = number_of(json, SPAN("Event"));
    f->entry = number_of(json, SPAN("WebhookLog"));
    arena_done(&a);
}

/* Nobody deletes it. */
static void on_gone(void *context, struct entity *entity)
{
    (void)context;
    (void)entity;
    MUST_NOT_REACH();
}

struct forgotten *forgotten_new(struct hooks *hooks)
{
    static const struct collection_observer observer = {on_put, on_gone};
    struct forgotten *f = NEW(struct forgotten);

    f->own = store_collection(hooks->store, own_name);
    f->log = store_collection(hooks->store, webhook_log_resource);
    collection_observe(f->own, &observer, f);
    return f;
}

void forgotten_free(struct forgotten *f)
{
    if (f == NULL)
        return;
    collection_observe(f->own, NULL, NULL);
    mem_free(f);
}

uint64_t forgotten_event(const struct forgotten *f)
{
    return f->event;
}

uint64_t forgotten_entry(const struct forgotten *f)
{
    return f->entry;
}

static uint64_t event_of(struct span body)
{
    uint64_t number;
    struct err *e = record_read_number(body, &number);

    MUST(e == NULL); /* we have just written it */
    return number;
}

/* 0: it is no entry of the log. */
static uint64_t entry_of(const struct forgotten *f, struct span body)
{
    struct record_entity_gone gone;
    struct err *e = record_read_entity_gone(body, &gone);
    const struct entity *entry;

    MUST(e == NULL);
    if (!span_eq(gone.resource, webhook_log_resource))
        return 0;
    entry = collection_find(f->log, &gone.id);
    return entry == NULL ? 0 : entry->object_no;
}

static void put(const struct forgotten *f, struct change *change, uint64_t event, uint64_t entry)
{
    uint64_t object_no = f->entity != NULL ? f->entity->object_no : change_next_serial(change);
    struct buf json;

    buf_init_arena(&json, change->arena);
    buf_add_char(&json, '{');
    member_add_uuid(&json, SPAN("Id"), &own_id);
    member_add_u64(&json, SPAN("Event"), event);
    member_add_u64(&json, SPAN("WebhookLog"), entry);
    member_add_u64(&json, SPAN("ObjectNo"), object_no);
    buf_add_char(&json, '}');
    change_put_entity(change, own_name, &own_id, object_no, buf_span(&json));
}

void forgotten_add(struct forgotten *f, struct change *change)
{
    uint64_t event = f->event, entry = f->entry;

    for (size_t i = 0; i < change->count; i++) {
        const struct change_record *r = &change->records[i];
        struct span body = span_sub(buf_span(&change->bodies), r->offset, r->offset + r->n);

        if (r->kind == RECORD_EVENT_GONE)
            event = MAX(event, event_of(body));
        else if (r->kind == RECORD_ENTITY_GONE)
            entry = MAX(entry, entry_of(f, body));
        budget_spend(RECORD_UNITS);
    }
    if (event > f->event || entry > f->entry)
        put(f, change, event, entry);
}
