/* A map by key and a list in the order of raising. What is found is decided by the clock and not by
 * what is stored: an entry that is too old is not found even if nobody has removed it yet. */
#include "store/once.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/change.h"
#include "store/store.h"
#include "store/store_kind.h"

#include <string.h>

#define SECOND_NS INT64_C(1000000000)

struct once {
    struct store *store;
    int64_t keep_ns;
    struct map by_key;
    struct list order;
};

static struct once_entry *entry_at(struct list_link *link)
{
    return link == NULL ? NULL : CONTAINER_OF(link, struct once_entry, order);
}

static struct span entry_key(const void *item)
{
    const struct once_entry *entry = item;

    return span_of((const char *)entry->record.key, sizeof(entry->record.key));
}

static struct once_entry *find(const struct once *o, const uint8_t *key)
{
    return map_find(&o->by_key, span_of((const char *)key, RECORD_ONCE_KEY_BYTES));
}

static struct once_entry *insert(struct once *o, const struct record_once *r)
{
    struct once_entry *entry = mem_zero(sizeof(*entry) + r->resource.n);

    entry->record = *r;
    memcpy(entry->name, r->resource.p, r->resource.n);
    entry->record.resource = span_of(entry->name, r->resource.n);
    map_add(&o->by_key, entry);
    list_push_back(&o->order, &entry->order);
    return entry;
}

static void drop(struct once *o, struct once_entry *entry)
{
    store_forget(o->store, &entry->stored);
    map_remove(&o->by_key, entry_key(entry));
    list_remove(&o->order, &entry->order);
    mem_free(entry);
}

/* The event's number tells a record that only moved from one that took the key over. */
static struct err *apply_once(void *context, struct span body, const struct store_origin *origin)
{
    struct once *o = context;
    struct record_once r;
    struct once_entry *entry;

    TRY(record_read_once(body, &r));
    entry = find(o, r.key);
    if (entry != NULL && entry->record.event_no != r.event_no) {
        drop(o, entry);
        entry = NULL;
    }
    if (entry == NULL)
        entry = insert(o, &r);
    store_track(o->store, &entry->stored, RECORD_ONCE, origin);
    return NULL;
}

static struct err *apply_once_gone(void *context, struct span body,
                                   const struct store_origin *origin)
{
    struct once *o = context;
    struct record_once_gone r;
    struct once_entry *entry;

    (void)origin;
    TRY(record_read_once_gone(body, &r));
    entry = find(o, r.key);
    if (entry != NULL)
        drop(o, entry);
    return NULL;
}

static struct err *move_once(void *context, struct stored *stored, struct change *change)
{
    const struct once_entry *entry = CONTAINER_OF(stored, struct once_entry, stored);

    (void)context;
    once_remember(change, &entry->record);
    return NULL;
}

static void digest_once(void *context, struct store_digest *digest)
{
    struct once *o = context;
    struct buf b = {.max = BUF_NO_CAP};

    LIST_EACH(&o->order, at) {
        buf_clear(&b);
        record_add_once(&b, &entry_at(at)->record);
        store_digest_add(digest, buf_span(&b));
    }
    buf_done(&b);
}

static bool comes_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct once_entry, order)->record.event_no <
           CONTAINER_OF_CONST(b, struct once_entry, order)->record.event_no;
}

/* A replay meets moved records late. */
static struct err *loaded(void *context)
{
    struct once *o = context;

    list_sort(&o->order, comes_before);
    return NULL;
}

static const struct store_kind once_kind = {
    .kind = RECORD_ONCE,
    .apply = apply_once,
    .move = move_once,
    .digest = digest_once,
    .loaded = loaded,
};

static const struct store_kind once_gone_kind = {
    .kind = RECORD_ONCE_GONE,
    .apply = apply_once_gone,
};

struct once *once_new(struct store *store, int64_t keep_seconds)
{
    struct once *o = NEW(struct once);

    o->store = store;
    o->keep_ns = MIN(keep_seconds, INT64_MAX / SECOND_NS / 2) * SECOND_NS;
    map_init(&o->by_key, entry_key);
    list_init(&o->order);
    store_register(store, &once_kind, o);
    store_register(store, &once_gone_kind, o);
    return o;
}

void once_free(struct once *o)
{
    if (o == NULL)
        return;
    LIST_EACH(&o->order, at)
        drop(o, entry_at(at));
    map_done(&o->by_key);
    mem_free(o);
}

const struct once_entry *once_find(const struct once *o, const uint8_t key[RECORD_ONCE_KEY_BYTES])
{
    const struct once_entry *entry = find(o, key);

    if (entry == NULL || entry->record.time_unix_ns + o->keep_ns <= clock_unix_ns())
        return NULL;
    return entry;
}

void once_remember(struct change *change, const struct record_once *record)
{
    record_add_once(change_begin(change), record);
    change_end(change, RECORD_ONCE, 1);
}

void once_forget(struct change *change, const struct once_entry *entry)
{
    struct record_once_gone gone;

    memcpy(gone.key, entry->record.key, sizeof(gone.key));
    record_add_once_gone(change_begin(change), &gone);
    change_end(change, RECORD_ONCE_GONE, 1);
}

size_t once_count(const struct once *o)
{
    return list_count(&o->order);
}

const struct once_entry *once_first(const struct once *o)
{
    return entry_at(list_first(&o->order));
}

const struct once_entry *once_next(const struct once *o, const struct once_entry *entry)
{
    return entry_at(list_next(&o->order, &entry->order));
}
