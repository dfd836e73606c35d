/* Most of the time of a run would go into digests: each reads the payloads of all events, which the
 * small Limits.PayloadBytes of the simulation leaves in the journal, and writes all entities. So
 * digests of both are remembered here, which the linker leads the store's calls through (--wrap): a
 * payload counts as its digest, and a change of an entity changes what its collection adds. Before
 * each end of the service all is read once more, and after each start. */
#include "digest.h"

#include "../../src/store/collection_inner.h"
#include "base/blob.h"
#include "base/must.h"
#include "hooks/event.h"
#include "hooks/payload.h"
#include "store/collection.h"
#include "store/record.h"

#include <string.h>

enum { PAYLOADS = 1024, COLLECTIONS = 512 };

/* An event's payload never changes. */
struct known_payload {
    const struct payloads *of;
    uint64_t object_no;
    struct blob *digest; /* of the payload; NULL: none */
};

struct known_collection {
    const struct collection *collection;
    struct store_digest digest;
    bool is_good;
};

static struct known_payload payloads[PAYLOADS]; /* by the last bits of the number */
static struct known_collection collections[COLLECTIONS];
static size_t collections_known;
/* What the digest is made from that is being made. */
enum source { NO_DIGEST, FROM_MEMORY, FROM_STORE };
static enum source making;

struct blob *__real_payload_or_null(struct payloads *p, struct event *event);
struct blob *__wrap_payload_or_null(struct payloads *p, struct event *event);
void __real_collection_put(struct collection *c, const struct record_entity *record,
                           const struct store_origin *origin);
void __wrap_collection_put(struct collection *c, const struct record_entity *record,
                           const struct store_origin *origin);
void __real_collection_remove(struct collection *c, const struct uuid *id,
                              const struct store_origin *origin);
void __wrap_collection_remove(struct collection *c, const struct uuid *id,
                              const struct store_origin *origin);
void __real_collection_digest(struct collection *c, void *digest);
void __wrap_collection_digest(struct collection *c, void *digest);

static struct blob *digest_of(struct blob *payload)
{
    struct store_digest digest = {0, 0};

    MUST(payload != NULL);
    store_digest_add(&digest, blob_span(payload));
    blob_unref(payload);
    return blob_new(span_of((const char *)&digest.sum, sizeof(digest.sum)));
}

struct blob *__wrap_payload_or_null(struct payloads *p, struct event *event)
{
    struct known_payload *known = &payloads[event->object_no % PAYLOADS];

    if (making == NO_DIGEST)
        return __real_payload_or_null(p, event);
    if (making == FROM_STORE || known->of != p || known->object_no != event->object_no) {
        blob_unref(known->digest);
        known->of = p;
        known->object_no = event->object_no;
        known->digest = digest_of(__real_payload_or_null(p, event));
    }
    return blob_ref(known->digest);
}

static struct known_collection *known(const struct collection *c)
{
    size_t at = 0;

    while (at < collections_known && collections[at].collection != c)
        at++;
    MUST(at < COLLECTIONS);
    if (at == collections_known)
        collections[collections_known++] = (struct known_collection){.collection = c};
    return &collections[at];
}

/* What the entity adds, if it is there. */
static struct store_digest part_of(struct collection *c, const struct uuid *id)
{
    const struct entity *e = collection_find(c, id);
    struct store_digest part = {0, 0};
    struct buf b;

    if (e == NULL)
        return part;
    buf_init(&b, BUF_NO_CAP);
    collection_digest_entity(e, &b, &part);
    buf_done(&b);
    return part;
}

static void add(struct store_digest *digest, const struct store_digest *part)
{
    digest->sum += part->sum;
    digest->objects += part->objects;
}

static void take_away(struct store_digest *digest, const struct store_digest *part)
{
    digest->sum -= part->sum;
    digest->objects -= part->objects;
}

void __wrap_collection_put(struct collection *c, const struct record_entity *record,
                           const struct store_origin *origin)
{
    const struct uuid id = record->id;
    struct known_collection *k = known(c);
    struct store_digest before, after;

    if (!k->is_good) { /* nothing is known of it, as during a replay */
        __real_collection_put(c, record, origin);
        return;
    }
    before = part_of(c, &id);
    __real_collection_put(c, record, origin);
    after = part_of(c, &id);
    take_away(&k->digest, &before);
    add(&k->digest, &after);
}

void __wrap_collection_remove(struct collection *c, const struct uuid *id,
                              const struct store_origin *origin)
{
    struct known_collection *k = known(c);

    if (k->is_good) {
        const struct store_digest part = part_of(c, id);

        take_away(&k->digest, &part);
    }
    __real_collection_remove(c, id, origin);
}

void __wrap_collection_digest(struct collection *c, void *digest)
{
    struct known_collection *k = known(c);

    if (making != FROM_MEMORY || !k->is_good) {
        k->digest = (struct store_digest){0, 0};
        __real_collection_digest(c, &k->digest);
        k->is_good = true;
    }
    add(digest, &k->digest);
}

static struct store_digest make(struct store *s, enum source from)
{
    struct store_digest digest;

    making = from;
    digest = store_digest(s);
    making = NO_DIGEST;
    return digest;
}

struct store_digest sim_digest(struct store *s)
{
    return make(s, FROM_MEMORY);
}

struct store_digest sim_digest_read(struct store *s)
{
    return make(s, FROM_STORE);
}

void sim_digest_check(struct store *s)
{
    struct store_digest remembered = sim_digest(s), read = sim_digest_read(s);

    MUST(remembered.sum == read.sum && remembered.objects == read.objects);
}

void sim_digest_forget(void)
{
    for (size_t i = 0; i < PAYLOADS; i++)
        blob_unref(payloads[i].digest);
    memset(payloads, 0, sizeof(payloads));
    collections_known = 0;
}
