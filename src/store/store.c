/* A table of handlers by kind of record, and the list of all live objects in the order of the
 * records that hold them, which is what cleaning goes by. Every change of the state is a record
 * applied here, so a replay of the journal makes the same state again, and store_digest shows that
 * it did. */
#include "store/store.h"

#include "base/budget.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"
#include "store/collection.h"
#include "store/collection_inner.h"
#include "store/entity.h"
#include "store/record.h"
#include "store/snapshot.h"
#include "store/store_kind.h"

#include <string.h>

/* What it costs to free an entity that is gone. */
enum { GONE_UNITS = 64 };

/* 256 GiB of them are told apart. */
#define SEGMENTS 16384u

#define STORED_AT(link_ptr) LIST_OBJECT(link_ptr, struct stored, link)

struct handler {
    struct store_kind kind;
    void *context;
};

struct store {
    struct list live; /* struct stored, by serial of their records */
    uint64_t live_bytes;
    uint64_t live_in[SEGMENTS];               /* by the low bits of the segment's number */
    struct handler handlers[RECORD_KIND_END]; /* by kind */
    unsigned order[RECORD_KIND_END];          /* kinds in the order of registration */
    unsigned order_count;
    struct map collections; /* by folded name */
    struct list in_order;   /* the same, in the order in which they were made */
    /* The one that was last asked for. A replay, or a client that inserts many, names one resource
     * again and again: without this a replay of a million entities takes half as much again. */
    struct collection *recent;
    struct buf folded;     /* scratch: a name to be found */
    struct list snapshots; /* struct snapshot, oldest first */
    struct list gone;      /* struct entity, by `order`, that snapshots may still point to */
    bool is_loaded;
};

static struct err *apply_entity(void *context, struct span body, const struct store_origin *origin)
{
    struct store *s = context;
    struct record_entity record;

    TRY(record_read_entity(body, &record));
    collection_put(store_collection(s, record.resource), &record, origin);
    return NULL;
}

static struct err *apply_entity_gone(void *context, struct span body,
                                     const struct store_origin *origin)
{
    struct store *s = context;
    struct record_entity_gone record;

    TRY(record_read_entity_gone(body, &record));
    collection_remove(store_collection(s, record.resource), &record.id, origin);
    return NULL;
}

static void digest_entities(void *context, struct store_digest *digest)
{
    store_each_collection(context, collection_digest, digest);
}

static struct err *load_entities(void *context)
{
    store_each_collection(context, collection_loaded, NULL);
    return NULL;
}

static const struct store_kind entity_kind = {
    .kind = RECORD_ENTITY,
    .apply = apply_entity,
    .move = collection_move,
    .digest = digest_entities,
    .loaded = load_entities,
};

static const struct store_kind entity_gone_kind = {
    .kind = RECORD_ENTITY_GONE,
    .apply = apply_entity_gone,
};

struct store *store_new(void)
{
    struct store *s = NEW(struct store);

    list_init(&s->live);
    list_init(&s->in_order);
    list_init(&s->snapshots);
    list_init(&s->gone);
    map_init_own(&s->collections, collection_key);
    buf_init(&s->folded, UINT16_MAX);
    store_register(s, &entity_kind, s);
    store_register(s, &entity_gone_kind, s);
    return s;
}

void store_free(struct store *s)
{
    if (s == NULL)
        return;
    LIST_EACH(&s->in_order, at) {
        list_remove(&s->in_order, at);
        collection_free(collection_at(at));
    }
    MUST(list_empty(&s->live));
    MUST(list_empty(&s->snapshots) && list_empty(&s->gone));
    map_done(&s->collections);
    buf_done(&s->folded);
    mem_free(s);
}

void store_register(struct store *s, const struct store_kind *kind, void *context)
{
    MUST(kind->kind > 0 && kind->kind < RECORD_KIND_END);
    MUST(s->handlers[kind->kind].kind.apply == NULL);
    s->handlers[kind->kind] = (struct handler){*kind, context};
    s->order[s->order_count++] = kind->kind;
}

struct err *store_apply(struct store *s, unsigned kind, struct span body,
                        const struct store_origin *origin)
{
    const struct handler *h;

    if (kind == 0 || kind >= RECORD_KIND_END || s->handlers[kind].kind.apply == NULL)
        return ERR(ERR_STORAGE_FAILURE,
                   "journal record %llu is of kind %u, which this version does not know",
                   (unsigned long long)origin->serial, kind);
    h = &s->handlers[kind];
    return h->kind.apply(h->context, body, origin);
}

struct err *store_loaded(struct store *s)
{
    MUST(!s->is_loaded);
    s->is_loaded = true;
    for (unsigned i = 0; i < s->order_count; i++) {
        const struct handler *h = &s->handlers[s->order[i]];

        if (h->kind.loaded != NULL)
            TRY(h->kind.loaded(h->context));
    }
    return NULL;
}

bool store_is_loaded(const struct store *s)
{
    return s->is_loaded;
}

void store_track(struct store *s, struct stored *stored, unsigned kind,
                 const struct store_origin *origin)
{
    const struct stored *newest;

    if (list_linked(&stored->link))
        store_forget(s, stored);
    newest = STORED_AT(list_last(&s->live));
    MUST(newest == NULL || newest->serial <= origin->serial);
    stored->serial = origin->serial;
    stored->bytes = origin->bytes;
    stored->kind = (uint16_t)kind;
    stored->segment = origin->place.segment % SEGMENTS;
    list_push_back(&s->live, &stored->link);
    s->live_bytes += stored->bytes;
    s->live_in[stored->segment] += stored->bytes;
}

void store_forget(struct store *s, struct stored *stored)
{
    if (!list_linked(&stored->link))
        return;
    s->live_bytes -= stored->bytes;
    s->live_in[stored->segment] -= stored->bytes;
    list_remove(&s->live, &stored->link);
}

struct stored *store_oldest(struct store *s)
{
    return STORED_AT(list_first(&s->live));
}

struct stored *store_newest(struct store *s)
{
    return STORED_AT(list_last(&s->live));
}

struct stored *store_older(struct store *s, const struct stored *stored)
{
    return STORED_AT(list_prev(&s->live, &stored->link));
}

bool store_is_in(const struct stored *stored, uint64_t number)
{
    return stored->segment == number % SEGMENTS;
}

struct err *store_move(struct store *s, struct stored *stored, struct change *change)
{
    const struct handler *h = &s->handlers[stored->kind];

    MUST(h->kind.move != NULL);
    return h->kind.move(h->context, stored, change);
}

uint64_t store_live_bytes(const struct store *s)
{
    return s->live_bytes;
}

uint64_t store_segment_bytes(const struct store *s, uint64_t number)
{
    return s->live_in[number % SEGMENTS];
}

size_t store_live_count(const struct store *s)
{
    return list_count(&s->live);
}

static struct span folded_name(struct store *s, struct span resource)
{
    char *room;

    buf_clear(&s->folded);
    room = buf_reserve(&s->folded, resource.n);
    MUST(room != NULL); /* declarations and records bound the length of names */
    text_fold_into(room, resource);
    buf_commit(&s->folded, resource.n);
    return buf_span(&s->folded);
}

static struct collection *collection_get(struct store *s, struct span resource)
{
    struct span folded = folded_name(s, resource);
    struct collection *c = map_find(&s->collections, folded);

    if (c == NULL) {
        c = collection_new(s, resource, folded);
        map_add(&s->collections, c);
        list_push_back(&s->in_order, collection_link(c));
    }
    return c;
}

struct collection *store_collection(struct store *s, struct span resource)
{
    if (s->recent == NULL || !span_eq(collection_name(s->recent), resource))
        s->recent = collection_get(s, resource);
    return s->recent;
}

void store_each_collection(struct store *s, void (*visit)(struct collection *c, void *arg),
                           void *arg)
{
    LIST_EACH(&s->in_order, at)
        visit(collection_at(at), arg);
}

struct list *store_snapshots(struct store *s)
{
    return &s->snapshots;
}

/* The version says that it is in no snapshot as it is, `stored` what took it away. */
void store_entity_gone(struct store *s, struct entity *e, uint64_t serial)
{
    if (list_empty(&s->snapshots)) {
        mem_free(e);
        return;
    }
    e->version = UINT64_MAX;
    e->stored.serial = serial;
    list_push_back(&s->gone, &e->order);
}

static uint64_t oldest_snapshot(const struct store *s)
{
    const struct snapshot *oldest = LIST_OBJECT(list_first(&s->snapshots), struct snapshot, link);

    return oldest == NULL ? UINT64_MAX : oldest->serial;
}

/* It may give way: others may open snapshots meanwhile. */
void store_free_gone(struct store *s)
{
    struct entity *e;

    while ((e = LIST_OBJECT(list_first(&s->gone), struct entity, order)) != NULL &&
           e->stored.serial <= oldest_snapshot(s)) {
        list_remove(&s->gone, &e->order);
        mem_free(e);
        budget_spend(GONE_UNITS);
    }
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

/* Eight bytes at a time; not keyed, so that two processes agree. */
void store_digest_add(struct store_digest *digest, struct span what)
{
    uint64_t h = mix(0, what.n), word; /* a length is no first word */
    size_t at = 0;

    for (; what.n - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, what.p + at, sizeof(word));
        h = mix(h, word);
    }
    word = 0;
    if (at < what.n)
        memcpy(&word, what.p + at, what.n - at);
    digest->sum += mix(mix(h, word), 0);
    digest->objects++;
}

struct store_digest store_digest(struct store *s)
{
    struct store_digest digest = {0, 0};

    for (unsigned i = 0; i < s->order_count; i++) {
        const struct handler *h = &s->handlers[s->order[i]];

        if (h->kind.digest != NULL)
            h->kind.digest(h->context, &digest);
    }
    return digest;
}
