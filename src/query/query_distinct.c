/* Items by the hash of what they look like. The hash is keyed, so items of one hash are equal but
 * for accidents: reading such an item again, to compare, is work that only duplicates cause. */
#include "query_parts.h"

#include "base/budget.h"
#include "base/err.h"
#include "json/json.h"

/* So many different items of one hash are no accident, and more are not compared. */
enum { CHAIN_MOST = 64 };

/* An item that was taken. */
struct seen {
    uint64_t hash;
    struct seen *next; /* of the same hash */
    unsigned length;   /* of the chain that begins here */
    struct query_item item;
};

static struct span key_of(const uint64_t *hash)
{
    return span_of((const char *)hash, sizeof(*hash));
}

static struct span seen_key(const void *seen)
{
    return key_of(&((const struct seen *)seen)->hash);
}

void query_distinct_init(struct query_distinct *d, query_reread_fn *reread, void *arg)
{
    *d = (struct query_distinct){.reread = reread, .arg = arg};
    map_init_own(&d->seen, seen_key);
    arena_init(&d->memory);
    arena_init(&d->scratch);
}

void query_distinct_done(struct query_distinct *d)
{
    map_done(&d->seen);
    arena_done(&d->memory);
    arena_done(&d->scratch);
}

static struct err *is_equal(struct query_distinct *d, const struct query_item *item,
                            struct json_value root, bool *out_is_equal)
{
    struct json_doc doc;

    arena_reset(&d->scratch);
    TRY(d->reread(d->arg, item, &d->scratch, &doc));
    *out_is_equal = json_equal(json_root(&doc), root);
    return NULL;
}

struct err *query_distinct_add(struct query_distinct *d, const struct query_item *item,
                               struct json_value root, bool *out_is_new)
{
    uint64_t hash = json_hash(root);
    struct seen *first = map_find(&d->seen, key_of(&hash)), *added;
    bool equal = false;

    for (const struct seen *s = first; s != NULL && !equal && budget_ask(64); s = s->next)
        TRY(is_equal(d, &s->item, root, &equal));
    *out_is_new = !equal;
    if (equal)
        return NULL;
    if (first != NULL && first->length == CHAIN_MOST)
        return ERR(ERR_REQUEST_TOO_COSTLY,
                   "distinct: more than %d different entities have one hash", CHAIN_MOST);
    added = ARENA_NEW(&d->memory, struct seen);
    *added = (struct seen){hash, first, first == NULL ? 1 : first->length + 1, *item};
    map_put(&d->seen, added);
    return NULL;
}
