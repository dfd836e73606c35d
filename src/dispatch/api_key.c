/* What is derived from the stored keys: the key by which somebody signs in, when it expires, and
 * when it was last used. A use is noted once an hour, and written a minute later with those of all
 * other keys, some a turn: a request never waits for it. */
#include "dispatch/api_key.h"

#include "access/access.h"
#include "access/access_keys.h"
#include "base/clock.h"
#include "base/datetime.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "dispatch/handover.h"
#include "io/timer.h"
#include "query/shape.h"
#include "rest/cluster_view.h"
#include "rest/rest.h"
#include "rest/stream.h"
#include "store/change.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/store.h"
#include "store/turn.h"
#include "json/json.h"
#include "json/member.h"

enum {
    HOUR_S = 3600,
    WRITE_MS = 60000, /* after the first use that is noted */
    AGAIN_MS = 20,
    SLICE = 256,
    LOOK_AGAIN_MS = 3600000 /* for the wall clock may have been set */
};

/* Tables. ---------------------------------------------------------------------------------- */

#define TEXT(s) SPAN_INIT(s)

static const struct property properties[] = {
    ID_PROPERTY("Unique ID of the key"),
    {.name = TEXT("Name"),
     .type = TYPE_STRING,
     .flags = PROPERTY_REQUIRED | PROPERTY_INDEXED,
     .meaning = TEXT("1 to 64 visible characters; no other key of the tenant has it")},
    {.name = TEXT("AllowAccess"),
     .type = TYPE_ARRAY,
     .elements = TYPE_OBJECT,
     .members = &access_entry_shape,
     .flags = PROPERTY_REQUIRED,
     .meaning = TEXT("Rights: resources, and methods on them")},
    {.name = TEXT("Tenant"),
     .type = TYPE_STRING,
     .flags = PROPERTY_INDEXED,
     .meaning = TEXT("The tenant whose entities it is for; null: those of all")},
    {.name = TEXT("ExpiresAt"),
     .type = TYPE_DATETIME,
     .meaning = TEXT("When it is refused; left out: when its maker's key is")},
    READ_ONLY_PROPERTY("LastUsedTime", TYPE_DATETIME, 0, "The hour in which it was last used"),
    READ_ONLY_PROPERTY("CreatedBy", TYPE_STRING, PROPERTY_INDEXED,
                       "Name of the key that made it; null: the configuration, or nobody's key"),
    READ_ONLY_PROPERTY("Time", TYPE_DATETIME, 0, "When it was made"),
    OBJECT_NO_PROPERTY,
    READ_ONLY_PROPERTY("KeySha256", TYPE_STRING, 0,
                       "SHA-256 of the key; null: the configuration's"),
    READ_ONLY_PROPERTY("Account", TYPE_STRING, 0, "The key on whose account it is"),
    {.name = TEXT("IsReadOnly"),
     .type = TYPE_BOOLEAN,
     .flags = PROPERTY_READ_ONLY,
     .default_json = TEXT("false"),
     .meaning = TEXT("Whether it is the configuration's")},
};
enum { NEVER_SHOWN = 3 };

const struct span api_key_resource = TEXT("Svc.Admin.ApiKey");
const struct shape api_key_shape = {.properties = properties,
                                    .count = ARRAY_LEN(properties) - NEVER_SHOWN,
                                    .name = SPAN_INIT("Svc.Admin.ApiKey")};
const struct shape api_key_stored_shape = {properties, ARRAY_LEN(properties), false};

/* Keys. ------------------------------------------------------------------------------------ */

struct api_key {
    struct entity *entity;
    struct access_key *key; /* NULL: of the configuration, and not there at the moment */
    bool is_configured;
    int64_t used_unix_s;         /* the hour of its last use; 0: none */
    struct list_link used;       /* among those whose use is not written yet */
    struct list_link configured; /* among those of the configuration */
    struct heap_node expiry;
};

struct api_keys {
    struct rest *rest;
    struct collection *collection;
    struct list used, configured;
    struct heap expiries;
    struct timer expiry_timer, use_timer;
    struct arena scratch;
    struct span clash; /* name of one that cannot stand beside the configuration's; or absent */
    bool is_noting;    /* what changes are times of use */
};

static struct api_key *of_used(struct list_link *link)
{
    return CONTAINER_OF(link, struct api_key, used);
}

static struct api_key *of_configured(struct list_link *link)
{
    return CONTAINER_OF(link, struct api_key, configured);
}

static struct api_key *of_expiry(const struct heap_node *node)
{
    return (struct api_key *)((uintptr_t)node - offsetof(struct api_key, expiry));
}

static bool expires_before(const struct heap_node *a, const struct heap_node *b)
{
    return of_expiry(a)->key->expires_unix_ns < of_expiry(b)->key->expires_unix_ns;
}

static void arm_expiry(struct api_keys *k)
{
    struct heap_node *first = heap_first(&k->expiries);
    int64_t left_ns;

    if (first == NULL) {
        timer_stop(k->rest->loop, &k->expiry_timer);
        return;
    }
    left_ns = MAX(of_expiry(first)->key->expires_unix_ns - clock_unix_ns(), 0);
    timer_start(k->rest->loop, &k->expiry_timer,
                MIN((uint64_t)left_ns / 1000000 + 1, LOOK_AGAIN_MS));
}

/* It is not used by anybody who signs in from now on. */
static void detach(struct api_keys *k, struct api_key *stored)
{
    struct access_key *key = TAKE(stored->key);

    if (key == NULL)
        return;
    key->stored = NULL;
    if (heap_contains(&stored->expiry))
        heap_remove(&k->expiries, &stored->expiry);
    if (!stored->is_configured)
        access_remove(k->rest->access, key);
}

static void attach(struct api_key *stored, struct access_key *key)
{
    stored->key = key;
    key->stored = stored;
}

static struct span text_of(struct json_value json, struct span name, struct arena *a)
{
    return json_string(json_member(json, name), a);
}

static int64_t time_of(struct json_value json, struct span name, struct arena *a, int64_t otherwise)
{
    int64_t unix_ns;

    return api_key_time(text_of(json, name, a), &unix_ns) ? unix_ns : otherwise;
}

static struct err *read_key(struct json_value json, struct arena *a, struct access_key *out_key)
{
    struct access_key key = {
        .name = text_of(json, SPAN("Name"), a),
        .tenant = text_of(json, SPAN("Tenant"), a),
        .root = text_of(json, SPAN("Account"), a),
        .expires_unix_ns = time_of(json, SPAN("ExpiresAt"), a, ACCESS_FOREVER),
    };
    struct span hex = text_of(json, SPAN("KeySha256"), a);

    if (!uuid_parse_own(text_of(json, SPAN("Id"), a), &key.id))
        return ERR(ERR_INVALID_ENTITY, "Id is none");
    if (hex.n != 2 * sizeof(key.sha256) || !text_from_hex(hex, key.sha256))
        return ERR(ERR_INVALID_ENTITY, "KeySha256 is no digest");
    TRY(access_read_rights(json_member(json, SPAN("AllowAccess")), a, &key));
    *out_key = key;
    return NULL;
}

/* One that was made before the configuration had a key of its name, or the same one: nothing works
 * until either goes. */
static void note_clash(struct api_keys *k, struct span name)
{
    if (k->clash.p == NULL)
        k->clash = span_of(mem_string(name), name.n);
}

static void make_key(struct api_keys *k, struct api_key *stored, struct json_value json)
{
    struct access_key read, *key;

    if (log_failed(LOG_ERROR, "access", "a stored key is not understood",
                   read_key(json, &k->scratch, &read)))
        return;
    key = access_put(k->rest->access, &read);
    if (key == NULL) {
        note_clash(k, read.name);
        return;
    }
    attach(stored, key);
    if (key->expires_unix_ns == ACCESS_FOREVER || access_has_expired(key))
        return;
    heap_add(&k->expiries, &stored->expiry);
    arm_expiry(k);
}

static struct api_key *new_stored(struct api_keys *k, struct entity *entity, bool is_configured)
{
    struct api_key *stored = NEW(struct api_key);

    stored->entity = entity;
    stored->is_configured = is_configured;
    entity->attached = stored;
    if (is_configured)
        list_push_back(&k->configured, &stored->configured);
    return stored;
}

static void on_put(void *context, struct entity *entity, struct span old_json)
{
    struct api_keys *k = context;
    struct api_key *stored = entity->attached;
    struct json_value json;

    (void)old_json;
    if (k->is_noting)
        return;
    json = entity_parse(entity_json(entity), &k->scratch);
    if (stored == NULL)
        stored = new_stored(k, entity, json_is_true(json_member(json, SPAN("IsReadOnly"))));
    if (!list_linked(&stored->used))
        stored->used_unix_s = time_of(json, SPAN("LastUsedTime"), &k->scratch, 0) / 1000000000;
    if (!stored->is_configured) {
        detach(k, stored);
        make_key(k, stored, json);
    }
    arena_reset(&k->scratch);
}

static void on_gone(void *context, struct entity *entity)
{
    struct api_keys *k = context;
    struct api_key *stored = TAKE(entity->attached);

    detach(k, stored);
    if (list_linked(&stored->used))
        list_remove(&k->used, &stored->used);
    if (stored->is_configured)
        list_remove(&k->configured, &stored->configured);
    mem_free(stored);
}

bool api_key_is_configured(const struct entity *e)
{
    return ((const struct api_key *)e->attached)->is_configured;
}

struct entity *api_key_find(const struct api_keys *k, struct span id)
{
    struct uuid uuid;

    return uuid_parse(id, &uuid) ? collection_find(k->collection, &uuid) : NULL;
}

bool api_key_time(struct span text, int64_t *out_unix_ns)
{
    const int64_t last_s = INT64_MAX / 1000000000 - 1;
    struct instant at;

    if (!datetime_parse(text, &at))
        return false;
    if (at.seconds > last_s)
        at = (struct instant){last_s, 0};
    else if (at.seconds < 0)
        at = (struct instant){0, 0};
    *out_unix_ns = at.seconds * 1000000000 + at.nanos;
    return true;
}

/* What changes. ---------------------------------------------------------------------------- */

struct err *api_keys_tell(struct api_keys *k, struct span name, struct arena *a,
                          uint64_t *out_serial)
{
    const struct rest_observer *o = &k->rest->observer;

    *out_serial = 0;
    streams_check_keys(k->rest->streams);
    return o->keys_changed == NULL ? NULL : o->keys_changed(o->context, name, a, out_serial);
}

static void tell(struct api_keys *k, struct span name)
{
    struct arena a;
    uint64_t serial;

    arena_init(&a);
    log_failed(LOG_WARN, "access", "what follows from other keys cannot be stored",
               api_keys_tell(k, name, &a, &serial));
    arena_done(&a);
}

static void on_expiry(struct timer *timer)
{
    struct api_keys *k = CONTAINER_OF(timer, struct api_keys, expiry_timer);
    struct access_key *expired = NULL;
    struct heap_node *first;
    size_t count = 0;

    while ((first = heap_first(&k->expiries)) != NULL &&
           access_has_expired(of_expiry(first)->key)) {
        heap_remove(&k->expiries, first);
        expired = of_expiry(first)->key;
        count++;
    }
    arm_expiry(k);
    if (count > 0)
        tell(k, count == 1 ? expired->name : span_of(NULL, 0));
}

/* Uses. ------------------------------------------------------------------------------------ */

static void note_hour(struct api_keys *k, struct api_key *stored, int64_t hour_s)
{
    stored->used_unix_s = hour_s;
    if (!list_linked(&stored->used))
        list_push_back(&k->used, &stored->used);
    if (!timer_running(&k->use_timer))
        timer_start(k->rest->loop, &k->use_timer, WRITE_MS);
}

void api_key_note_use(struct api_keys *k, struct access_key *key)
{
    struct api_key *stored = key->stored;
    int64_t now_s = clock_unix_s(), hour_s = now_s - now_s % HOUR_S;

    key->used_until_unix_s = hour_s + HOUR_S;
    if (stored != NULL && stored->used_unix_s != hour_s)
        note_hour(k, stored, hour_s);
}

void api_key_note_hour(struct api_keys *k, const struct uuid *id, int64_t hour_unix_s)
{
    const struct entity *e = collection_find(k->collection, id);
    struct api_key *stored = e != NULL ? e->attached : NULL;

    if (stored != NULL && stored->used_unix_s < hour_unix_s)
        note_hour(k, stored, hour_unix_s);
}

static void put_merged(const struct api_key *stored, struct span patch, struct change *change)
{
    struct arena *a = change->arena;
    const struct entity *e = stored->entity;
    struct buf json;

    buf_init_arena(&json, a);
    json_add_merged(&json, entity_parse(entity_json(e), a), entity_parse(patch, a), false, a);
    change_put_entity(change, api_key_resource, &e->id, e->object_no, buf_span(&json));
}

static void put_use(const struct api_key *stored, struct change *change)
{
    struct buf patch;

    buf_init_arena(&patch, change->arena);
    buf_add_char(&patch, '{');
    member_add_time(&patch, SPAN("LastUsedTime"), stored->used_unix_s * 1000000000);
    buf_add_char(&patch, '}');
    put_merged(stored, buf_span(&patch), change);
}

/* A change that cannot be written is tried again; the keys stay where they are. */
static struct err *write_slice(struct api_keys *k, struct arena *a)
{
    struct change change;
    uint64_t serial;
    size_t taken = 0;
    struct err *e;

    change_init(&change, k->rest->turn, a);
    LIST_EACH(&k->used, link) {
        if (taken++ == SLICE)
            break;
        put_use(of_used(link), &change);
    }
    k->is_noting = true;
    e = turn_apply(k->rest->turn, &change, &serial);
    k->is_noting = false;
    change_done(&change);
    for (size_t i = 0; e == NULL && i < SLICE && !list_empty(&k->used); i++)
        list_pop_front(&k->used);
    return e;
}

/* At most so many slices; false: what is left cannot be written now. */
static bool write_some(struct api_keys *k, size_t slices)
{
    struct arena a;
    struct err *e = NULL;
    bool has_failed;

    arena_init(&a);
    for (size_t i = 0; i < slices && e == NULL && !list_empty(&k->used); i++) {
        e = write_slice(k, &a);
        arena_reset(&a);
    }
    has_failed = log_failed(LOG_WARN, "access", "times of last use are not written now", e);
    arena_done(&a);
    return !has_failed;
}

static bool follows(const struct api_keys *k)
{
    return k->rest->cluster != NULL && !k->rest->cluster->leads;
}

/* What finds no room is noted anew an hour later. */
static void hand_uses_over(struct api_keys *k)
{
    struct list_link *link;

    while ((link = list_pop_front(&k->used)) != NULL)
        (void)handover_add_use(k->rest->handover, &of_used(link)->entity->id,
                               of_used(link)->used_unix_s);
}

static void on_use_time(struct timer *timer)
{
    struct api_keys *k = CONTAINER_OF(timer, struct api_keys, use_timer);
    bool went_well;

    if (follows(k)) {
        hand_uses_over(k);
        return;
    }
    went_well = write_some(k, 1);

    if (!list_empty(&k->used))
        timer_start(k->rest->loop, timer, went_well ? AGAIN_MS : WRITE_MS);
}

void api_keys_write_uses(struct api_keys *k)
{
    if (follows(k))
        hand_uses_over(k);
    else
        write_some(k, SIZE_MAX);
}

/* The configuration's. --------------------------------------------------------------------- */

static void detach_configured(struct api_keys *k)
{
    LIST_EACH(&k->configured, link)
        detach(k, of_configured(link));
}

/* As the configuration has it now, or no more. */
static void list_again(struct api_keys *k, struct api_key *stored, struct change *change)
{
    struct arena *a = change->arena;
    struct json_value json = entity_parse(entity_json(stored->entity), a);
    struct access_key *key = access_find(k->rest->access, text_of(json, SPAN("Tenant"), a),
                                         text_of(json, SPAN("Name"), a));

    if (key == NULL || !list_linked(&key->configured)) {
        change_delete_entity(change, api_key_resource, &stored->entity->id);
        return;
    }
    attach(stored, key);
    if (!span_eq(json_text(json_member(json, SPAN("AllowAccess"))), key->rights))
        put_merged(stored, arena_printf(a, "{\"AllowAccess\":%.*s}", SPAN_FMT(key->rights)),
                   change);
}

static void list_first_time(const struct access_key *key, struct change *change)
{
    struct uuid id = uuid_new();
    uint64_t object_no = change_next_serial(change);
    struct buf json;

    buf_init_arena(&json, change->arena);
    buf_add_char(&json, '{');
    member_add_uuid(&json, SPAN("Id"), &id);
    member_add_text(&json, SPAN("Name"), key->name);
    json_add_plain_name(&json, SPAN("AllowAccess"));
    buf_add(&json, key->rights);
    member_add_text_or_null(&json, SPAN("Tenant"), key->tenant);
    buf_add_str(&json, ",\"ExpiresAt\":null,\"LastUsedTime\":null,\"CreatedBy\":null");
    member_add_time(&json, SPAN("Time"), clock_unix_ns());
    buf_add_str(&json, ",\"KeySha256\":null,\"Account\":null,\"IsReadOnly\":true");
    member_add_u64(&json, SPAN("ObjectNo"), object_no);
    buf_add_char(&json, '}');
    change_put_entity(change, api_key_resource, &id, object_no, buf_span(&json));
}

/* What is listed for the first time has its key only now. */
static void attach_listed(struct api_keys *k, struct arena *a)
{
    LIST_EACH(&k->configured, link) {
        struct api_key *stored = of_configured(link);
        struct json_value json;

        if (stored->key != NULL)
            continue;
        json = entity_parse(entity_json(stored->entity), a);
        attach(stored, access_find(k->rest->access, text_of(json, SPAN("Tenant"), a),
                                   text_of(json, SPAN("Name"), a)));
    }
}

static struct err *list_all(struct api_keys *k, struct arena *a)
{
    struct change change;
    uint64_t serial;
    struct err *e;

    change_init(&change, k->rest->turn, a);
    LIST_EACH(&k->configured, link)
        list_again(k, of_configured(link), &change);
    LIST_EACH(&k->rest->access->configured, link) {
        struct access_key *key = CONTAINER_OF(link, struct access_key, configured);

        if (key->stored == NULL)
            list_first_time(key, &change);
    }
    e = turn_apply(k->rest->turn, &change, &serial);
    change_done(&change);
    if (e == NULL)
        attach_listed(k, a);
    return e;
}

struct err *api_keys_list_configured(struct api_keys *k)
{
    struct arena a;
    struct err *e;

    if (k->clash.p != NULL)
        return ERR(ERR_INVALID_ENTITY,
                   "ApiKeys: there is a key of the name, or the same, as '%.*s', which was made at "
                   "run time",
                   SPAN_FMT(k->clash));
    arena_init(&a);
    e = list_all(k, &a);
    arena_done(&a);
    return e;
}

/* Nothing can be refused any more: what cannot be written is logged. */
static void list_anew(struct api_keys *k)
{
    log_failed(LOG_WARN, "access", "the configuration's keys are not listed anew",
               api_keys_list_configured(k));
    tell(k, span_of(NULL, 0));
}

void api_keys_replace(struct api_keys *k, struct access *access)
{
    detach_configured(k);
    access_replace(k->rest->access, access);
    if (store_is_loaded(k->rest->store))
        list_anew(k);
}

/* ------------------------------------------------------------------------------------------ */

static const struct collection_observer observer = {on_put, on_gone};

struct api_keys *api_keys_new(struct rest *rest)
{
    struct api_keys *k = NEW(struct api_keys);

    k->rest = rest;
    k->collection = store_collection(rest->store, api_key_resource);
    list_init(&k->used);
    list_init(&k->configured);
    heap_init(&k->expiries, expires_before);
    timer_init(&k->expiry_timer, on_expiry);
    timer_init(&k->use_timer, on_use_time);
    arena_init(&k->scratch);
    collection_observe(k->collection, &observer, k);
    return k;
}

void api_keys_free(struct api_keys *k)
{
    if (k == NULL)
        return;
    for (struct entity *e = collection_first(k->collection); e != NULL;
         e = collection_next(k->collection, e))
        if (e->attached != NULL)
            on_gone(k, e);
    collection_observe(k->collection, NULL, NULL);
    timer_stop(k->rest->loop, &k->expiry_timer);
    timer_stop(k->rest->loop, &k->use_timer);
    heap_done(&k->expiries);
    arena_done(&k->scratch);
    mem_free((char *)(uintptr_t)k->clash.p);
    mem_free(k);
}
