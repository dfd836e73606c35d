/* A hash set with linear probing, at most half full. The hash is keyed, so what has the same one is
 * equal but for accidents, and reading it again is work that only duplicates cause. */
#include "query_parts.h"

#include "base/json.h"
#include "base/mem.h"

enum { FIRST_SIZE = 64 };

void query_distinct_init(struct query_distinct *d, query_reread_fn *reread, void *arg)
{
    *d = (struct query_distinct){.reread = reread, .arg = arg};
    arena_init(&d->scratch);
}

void query_distinct_done(struct query_distinct *d)
{
    mem_free(d->slots);
    mem_free(d->items);
    arena_done(&d->scratch);
}

/* The slot of that hash where `from` or a later one is free, or taken by the same hash. */
static size_t probe(const struct query_distinct *d, uint64_t hash, size_t from)
{
    size_t at = from & (d->size - 1);

    while (d->slots[at].place != 0 && d->slots[at].hash != hash)
        at = (at + 1) & (d->size - 1);
    return at;
}

static void grow(struct query_distinct *d)
{
    struct query_distinct_slot *old = d->slots;
    size_t old_size = d->size;

    d->size = old_size > 0 ? 2 * old_size : FIRST_SIZE;
    d->slots = mem_zero(d->size * sizeof(*d->slots));
    d->items = mem_resize(d->items, d->size / 2 * sizeof(*d->items));
    for (size_t i = 0; i < old_size; i++) {
        size_t at = (size_t)old[i].hash;

        if (old[i].place == 0)
            continue;
        while (d->slots[at & (d->size - 1)].place != 0)
            at++;
        d->slots[at & (d->size - 1)] = old[i];
    }
    mem_free(old);
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
    bool equal = false;
    size_t at;

    if (d->count >= d->size / 2)
        grow(d);
    for (at = probe(d, hash, (size_t)hash); d->slots[at].place != 0; at = probe(d, hash, at + 1)) {
        TRY(is_equal(d, &d->items[d->slots[at].place - 1], root, &equal));
        if (equal)
            break;
    }
    *out_is_new = !equal;
    if (equal)
        return NULL;
    d->items[d->count++] = *item;
    d->slots[at] = (struct query_distinct_slot){hash, d->count};
    return NULL;
}
