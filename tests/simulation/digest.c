/* Most of the time of a run would go into digests: each reads the payloads of all events, which the
 * small Limits.PayloadBytes of the simulation leaves in the journal, and writes all entities. So
 * both are remembered here, which the linker leads the store's calls through (--wrap). Before each
 * end of the service all is read once more. */
#include "digest.h"

#include "../../src/store/collection_inner.h"
#include "base/blob.h"
#include "base/must.h"
#include "hooks/event.h"
#include "hooks/payload.h"
#include "store/collection.h"
#include "store/record.h"

#include <string.h>

enum { PAYLOADS = 1024, COLLECTIONS = 64 };

/* An event's payload never changes. */
struct known_payload {
    uint64_t object_no;
    struct blob *blob; /* NULL: none */
};

struct known_collection {
    const struct collection *collection;
    struct store_digest digest;
    bool is_good;
};

static struct known_payload payloads[PAYLOADS]; /* by the last bits of the number */
static struct known_collection collections[COLLECTIONS];
static size_t collections_known;
static bool remembers; /* while a digest is made */

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
void __real_collection_digest(struct collection *c, struct store_digest *digest);
void __wrap_collection_digest(struct collection *c, struct store_digest *digest);

struct blob *__wrap_payload_or_null(struct payloads *p, struct event *event)
{
    struct known_payload *known = &payloads[event->object_no % PAYLOADS];

    if (!remembers)
        return __real_payload_or_null(p, event);
    if (known->blob == NULL || known->object_no != event->object_no) {
        if (known->blob != NULL)
            blob_unref(known->blob);
        *known = (struct known_payload){event->object_no, __real_payload_or_null(p, event)};
        MUST(known->blob != NULL);
    }
    return blob_ref(known->blob);
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

void __wrap_collection_put(struct collection *c, const struct record_entity *record,
                           const struct store_origin *origin)
{
    known(c)->is_good = false;
    __real_collection_put(c, record, origin);
}

void __wrap_collection_remove(struct collection *c, const struct uuid *id,
                              const struct store_origin *origin)
{
    known(c)->is_good = false;
    __real_collection_remove(c, id, origin);
}

void __wrap_collection_digest(struct collection *c, struct store_digest *digest)
{
    struct known_collection *k = known(c);

    if (!remembers || !k->is_good) {
        k->digest = (struct store_digest){0, 0};
        __real_collection_digest(c, &k->digest);
        k->is_good = true;
    }
    digest->sum += k->digest.sum;
    digest->objects += k->digest.objects;
}

struct store_digest sim_digest(struct store *s)
{
    struct store_digest digest;

    remembers = true;
    digest = store_digest(s);
    remembers = false;
    return digest;
}

void sim_digest_check(struct store *s)
{
    struct store_digest remembered = sim_digest(s), read = store_digest(s);

    MUST(remembered.sum == read.sum && remembered.objects == read.objects);
}

void sim_digest_forget(void)
{
    for (size_t i = 0; i < PAYLOADS; i++)
        if (payloads[i].blob != NULL)
            blob_unref(payloads[i].blob);
    memset(payloads, 0, sizeof(payloads));
    collections_known = 0;
}
