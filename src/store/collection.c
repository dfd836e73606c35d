#include "store/collection.h"

#include "base/blob.h"
#include "base/ladder.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/must.h"
#include "query/condition.h"
#include "query/conditions.h"
#include "query/literal.h"
#include "store/change.h"
#include "store/collection_inner.h"
#include "store/index.h"
#include "store/record.h"
#include "store/snapshot.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "json/json.h"

struct collection {
    struct list_link link; /* in the store */
    struct store *store;
    char *name, *folded;
    size_t name_bytes;
    struct map by_id;
    struct list entities; /* by object_no once loaded */
    struct ladder ladder; /* into these, once loaded */
    /* New ones of a replay that are not in by_id yet: they go in together, which is faster. */
    struct map_slot *unmapped;
    size_t unmapped_count, unmapped_size;
    uint64_t version, bytes;
    bool is_loaded;    /* no replay puts entities in any more */
    bool is_unordered; /* a replay met a moved record: to be sorted when it ends */
    const struct collection_observer *observer;
    void *observer_context;
    struct index **indexes;
    size_t index_count;
    struct list kept_walks; /* struct collection_walk */
    struct arena scratch;   /* for parsing entities, reset after each */
};

#define ENTITY_AT(link_ptr) LIST_OBJECT(link_ptr, struct entity, order)

static struct span entity_key(const void *item)
{
    const struct entity *e = item;

    return uuid_key(&e->id);
}

static uint64_t number_of(const struct list_link *link)
{
    return CONTAINER_OF_CONST(link, struct entity, order)->object_no;
}

struct collection *collection_new(struct store *s, struct span name, struct span folded)
{
    struct collection *c = NEW(struct collection);

    c->store = s;
    c->is_loaded = store_is_loaded(s);
    c->name = mem_string(name);
    c->folded = mem_string(folded);
    c->name_bytes = name.n;
    map_init_own(&c->by_id, entity_key);
    list_init(&c->entities);
    ladder_init(&c->ladder, number_of);
    list_init(&c->kept_walks);
    arena_init(&c->scratch);
    return c;
}

static const struct json_value unread;

/* `json` is what has been read of it, or absent: of a long entity, such as one of
 * Svc.Admin.WebhookLog, mostly the first members are indexed, and no more is read. */
static void index_entity(struct collection *c, struct entity *e, struct json_value json)
{
    size_t count = c->index_count;
    struct span *names;
    struct json_value *members;

    if (count == 0)
        return;
    names = ARENA_ARRAY(&c->scratch, struct span, count);
    members = ARENA_ARRAY(&c->scratch, struct json_value, count);
    for (size_t i = 0; i < count; i++)
        names[i] = index_member(c->indexes[i]);
    if (!json_exists(json))
        json = entity_parse_front(entity_json(e), names, count, &c->scratch);
    json_members_fold(json, names, count, members);
    for (size_t i = 0; i < count; i++)
        index_expect(c->indexes[i], members[i]);
    e->indexed = mem_alloc(count * sizeof(*e->indexed));
    for (size_t i = 0; i < count; i++) {
        e->indexed[i] = (struct index_node){.entity = e};
        index_add(c->indexes[i], &e->indexed[i]);
    }
    arena_reset(&c->scratch);
}

/* `in_bucket`: it leaves that, else it goes. */
static void step_off(struct collection *c, const struct entity *gone, bool in_bucket)
{
    LIST_EACH(&c->kept_walks, at) {
        struct collection_walk *walk = CONTAINER_OF(at, struct collection_walk, kept);

        if (walk->next == gone && (walk->bucket != NULL) == in_bucket)
            collection_walk_next(walk);
    }
}

static void unindex_entity(struct collection *c, struct entity *e)
{
    if (e->indexed == NULL)
        return;
    step_off(c, e, true);
    for (size_t i = 0; i < c->index_count; i++)
        index_remove(c->indexes[i], &e->indexed[i]);
    mem_free(e->indexed);
    e->indexed = NULL;
}

static void drop_indexes(struct collection *c)
{
    if (c->index_count == 0)
        return;
    LIST_EACH(&c->entities, at)
        unindex_entity(c, ENTITY_AT(at));
    for (size_t i = 0; i < c->index_count; i++)
        index_free(c->indexes[i]);
    mem_free(c->indexes);
    c->indexes = NULL;
    c->index_count = 0;
}

/* It is in nothing any more. */
static void let_go(struct collection *c, struct entity *e)
{
    c->bytes -= collection_entity_bytes(e);
    unindex_entity(c, e);
    store_forget(c->store, &e->stored);
    ladder_removing(&c->ladder, &c->entities, &e->order);
    list_remove(&c->entities, &e->order);
    blob_unref(TAKE(e->json));
}

static void free_at_end(struct collection *c, struct entity *e)
{
    let_go(c, e);
    mem_free(e);
}

void collection_free(struct collection *c)
{
    if (c == NULL)
        return;
    MUST(list_empty(&c->kept_walks));
    ladder_done(&c->ladder);
    LIST_EACH(&c->entities, at)
        free_at_end(c, ENTITY_AT(at));
    drop_indexes(c);
    map_done(&c->by_id);
    mem_free(c->unmapped);
    arena_done(&c->scratch);
    mem_free(c->name);
    mem_free(c->folded);
    mem_free(c);
}

struct span collection_key(const void *collection)
{
    const struct collection *c = collection;

    return span_of(c->folded, c->name_bytes);
}

struct list_link *collection_link(struct collection *c)
{
    return &c->link;
}

struct collection *collection_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct collection, link);
}

struct span collection_name(const struct collection *c)
{
    return span_of(c->name, c->name_bytes);
}

void collection_observe(struct collection *c, const struct collection_observer *observer,
                        void *context)
{
    c->observer = observer;
    c->observer_context = context;
}

struct err *collection_set_indexes(struct collection *c, const struct shape *shape,
                                   const struct span *properties, size_t count)
{
    struct index **indexes = count == 0 ? NULL : mem_zero(count * sizeof(struct index *));
    struct err *e;

    for (size_t i = 0; i < count; i++)
        TRY_GOTO(e, index_new(shape, properties[i], &indexes[i]), failed);
    drop_indexes(c);
    c->indexes = indexes;
    c->index_count = count;
    /* During a replay the entities are indexed once, when it ends. */
    if (c->is_loaded)
        LIST_EACH(&c->entities, at)
            index_entity(c, ENTITY_AT(at), unread);
    return NULL;

failed:
    for (size_t i = 0; i < count; i++)
        index_free(indexes[i]);
    mem_free(indexes);
    return e;
}

static void map_later(struct collection *c, struct entity *e)
{
    if (c->unmapped_count == c->unmapped_size) {
        c->unmapped_size = MAX(16, 2 * c->unmapped_size);
        c->unmapped = mem_resize(c->unmapped, c->unmapped_size * sizeof(*c->unmapped));
    }
    c->unmapped[c->unmapped_count++] = map_slot_of(&c->by_id, e);
}

static void map_unmapped(struct collection *c)
{
    if (c->unmapped_count > 0)
        map_add_many(&c->by_id, c->unmapped, c->unmapped_count);
    c->unmapped_count = 0;
}

void collection_expect(const struct collection *c, const struct uuid *id)
{
    map_expect(&c->by_id, uuid_key(id));
}

/* Into all but by_id, whose memory is on its way. */
static struct entity *insert(struct collection *c, const struct record_entity *record)
{
    struct entity *e, *last = ENTITY_AT(list_last(&c->entities));

    map_expect(&c->by_id, uuid_key(&record->id));
    e = NEW(struct entity);
    e->collection = c;
    e->id = record->id;
    e->object_no = record->object_no;
    if (last != NULL && last->object_no > e->object_no)
        c->is_unordered = true;
    list_push_back(&c->entities, &e->order);
    if (c->is_loaded)
        ladder_added(&c->ladder, &e->order);
    return e;
}

void collection_put(struct collection *c, const struct record_entity *record,
                    const struct store_origin *origin)
{
    /* A record with the entity's own number inserts it. */
    bool is_new = !origin->is_move && record->object_no == origin->serial;
    struct entity *e = is_new ? NULL : collection_find(c, &record->id);
    bool is_inserted = false;
    struct blob *old_json = NULL;

    if (e != NULL && e->version == record->version) {
        store_track(c->store, &e->stored, RECORD_ENTITY, origin); /* it only moved */
        return;
    }
    if (e == NULL) {
        e = insert(c, record);
        is_inserted = true;
    } else {
        c->bytes -= collection_entity_bytes(e);
        snapshots_save(store_snapshots(c->store), e);
        old_json = TAKE(e->json);
    }
    c->version = MAX(c->version, record->version);
    e->version = record->version;
    e->json = blob_new(record->json);
    c->bytes += collection_entity_bytes(e);
    store_track(c->store, &e->stored, RECORD_ENTITY, origin);
    if (c->is_loaded && c->index_count > 0) {
        unindex_entity(c, e);
        index_entity(c, e, origin->read);
    }
    if (is_inserted && c->is_loaded)
        map_add(&c->by_id, e);
    else if (is_inserted)
        map_later(c, e);
    if (c->is_loaded && c->observer != NULL)
        c->observer->put(c->observer_context, e, blob_span(old_json));
    blob_unref(old_json);
}

void collection_remove(struct collection *c, const struct uuid *id,
                       const struct store_origin *origin)
{
    struct entity *e;

    map_unmapped(c);
    e = map_remove(&c->by_id, uuid_key(id));
    c->version = MAX(c->version, origin->serial);
    if (e == NULL)
        return;
    if (c->is_loaded && c->observer != NULL)
        c->observer->gone(c->observer_context, e);
    snapshots_save(store_snapshots(c->store), e);
    step_off(c, e, false);
    let_go(c, e);
    store_entity_gone(c->store, e, origin->serial);
}

static struct record_entity record_of(const struct entity *e)
{
    return (struct record_entity){
        .resource = collection_name(e->collection),
        .id = e->id,
        .object_no = e->object_no,
        .version = e->version,
        .json = entity_json(e),
    };
}

struct err *collection_move(void *store, struct stored *stored, struct change *change)
{
    const struct record_entity record = record_of(CONTAINER_OF(stored, struct entity, stored));

    (void)store;
    record_add_entity(change_begin(change), &record);
    change_end(change, RECORD_ENTITY, 1);
    return NULL;
}

static bool comes_before(const struct list_link *a, const struct list_link *b)
{
    return CONTAINER_OF_CONST(a, struct entity, order)->object_no <
           CONTAINER_OF_CONST(b, struct entity, order)->object_no;
}

void collection_loaded(struct collection *c, void *unused)
{
    (void)unused;
    c->is_loaded = true;
    map_unmapped(c);
    mem_free(TAKE(c->unmapped));
    if (c->is_unordered)
        list_sort(&c->entities, comes_before);
    c->is_unordered = false;
    ladder_build(&c->ladder, &c->entities);
    if (c->index_count == 0 && c->observer == NULL)
        return;
    LIST_EACH(&c->entities, at) {
        struct entity *e = ENTITY_AT(at);

        index_entity(c, e, unread);
        if (c->observer != NULL)
            c->observer->put(c->observer_context, e, (struct span){NULL, 0});
    }
}

void collection_digest_entity(const struct entity *e, struct buf *b, struct store_digest *digest)
{
    const struct record_entity record = record_of(e);

    buf_clear(b);
    record_add_entity(b, &record);
    store_digest_add(digest, buf_span(b));
}

void collection_digest(struct collection *c, void *digest)
{
    struct buf b = {.max = BUF_NO_CAP};

    LIST_EACH(&c->entities, at)
        collection_digest_entity(ENTITY_AT(at), &b, digest);
    buf_done(&b);
}

size_t collection_count(const struct collection *c)
{
    return list_count(&c->entities);
}

uint64_t collection_bytes(const struct collection *c)
{
    return c->bytes;
}

size_t collection_entity_bytes(const struct entity *e)
{
    return sizeof(*e) + sizeof(*e->json) + e->json->n;
}

uint64_t collection_version(const struct collection *c)
{
    return c->version;
}

struct entity *collection_find(struct collection *c, const struct uuid *id)
{
    if (c->unmapped_count > 0)
        map_unmapped(c);
    return map_find(&c->by_id, uuid_key(id));
}

struct entity *collection_first(const struct collection *c)
{
    return ENTITY_AT(list_first(&c->entities));
}

struct entity *collection_above(const struct collection *c, uint64_t object_no)
{
    return ENTITY_AT(ladder_after(&c->ladder, &c->entities, object_no));
}

struct entity *collection_next(const struct collection *c, const struct entity *e)
{
    return ENTITY_AT(list_next(&c->entities, &e->order));
}

struct entity *collection_last(const struct collection *c)
{
    return ENTITY_AT(list_last(&c->entities));
}

/* A record that the cleaner moved has a later serial than the version that it holds. */
uint64_t collection_visit_newer(struct collection *c, uint64_t serial,
                                void (*visit)(struct entity *e, void *arg), void *arg)
{
    struct stored *newest = store_newest(c->store), *at = c->version > serial ? newest : NULL;

    for (; at != NULL && at->serial > serial; at = store_older(c->store, at)) {
        struct entity *e = CONTAINER_OF(at, struct entity, stored);

        if (at->kind == RECORD_ENTITY && e->collection == c && e->version > serial)
            visit(e, arg);
    }
    return newest == NULL ? c->version : MAX(c->version, newest->serial);
}

/* `Id=` names one entity, or none: ids compare as text, so another spelling than ours is none. */
static struct entity *find_by_literal(struct collection *c, const struct literal *id)
{
    struct uuid uuid;

    return id->kind == LITERAL_STRING && uuid_parse_own(id->text, &uuid) ? collection_find(c, &uuid)
                                                                         : NULL;
}

void collection_walk(struct collection *c, const struct conditions *conditions,
                     struct collection_walk *out_walk)
{
    const struct literal *id = conditions_equal_to(conditions, SPAN("Id"));
    struct collection_walk walk = {.collection = c};

    if (id != NULL) {
        walk.single = true;
        walk.holds = conditions->count == 1;
        walk.next = find_by_literal(c, id);
        *out_walk = walk;
        return;
    }
    for (size_t i = 0; i < c->index_count; i++) {
        struct index_bucket *bucket;

        if (!index_find(c->indexes[i], conditions, &bucket))
            continue;
        if (walk.next != NULL && bucket != NULL &&
            index_bucket_count(bucket) >= index_bucket_count(walk.bucket))
            continue;
        walk.bucket = bucket;
        walk.index_place = i;
        walk.single = bucket == NULL;
        walk.next = bucket == NULL ? NULL : index_first(bucket);
        if (walk.next == NULL)
            break;
    }
    walk.above = conditions_above(conditions, SPAN("ObjectNo"));
    if (walk.bucket == NULL && !walk.single)
        walk.next = walk.above == 0 ? collection_first(c) : collection_above(c, walk.above);
    *out_walk = walk;
}

static struct entity *previous(const struct collection_walk *walk, const struct entity *e)
{
    return walk->bucket != NULL ? index_previous(walk->bucket, e, walk->index_place)
                                : ENTITY_AT(list_prev(&walk->collection->entities, &e->order));
}

void collection_walk_turn(struct collection_walk *walk)
{
    walk->is_turned = true;
    if (walk->next == NULL || walk->single)
        return;
    walk->next =
        walk->bucket != NULL ? index_last(walk->bucket) : collection_last(walk->collection);
}

struct entity *collection_walk_next(struct collection_walk *walk)
{
    struct entity *e = walk->next;

    if (e == NULL)
        return NULL;
    if (walk->single)
        walk->next = NULL;
    else if (walk->is_turned)
        walk->next = previous(walk, e);
    else if (walk->bucket != NULL)
        walk->next = index_next(walk->bucket, e, walk->index_place);
    else
        walk->next = collection_next(walk->collection, e);
    return e;
}

void collection_keep_walk(struct collection *c, const struct conditions *conditions,
                          struct collection_walk *out_walk)
{
    collection_walk(c, conditions, out_walk);
    list_push_back(&c->kept_walks, &out_walk->kept);
}

void collection_drop_walk(struct collection_walk *walk)
{
    if (list_linked(&walk->kept))
        list_remove(&walk->collection->kept_walks, &walk->kept);
}
