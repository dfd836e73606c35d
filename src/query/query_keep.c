/* Which items are in the result so far. Without an order that is the first of them; with one, and
 * for the last n, a heap of as many as there can be in the end, so that memory follows the result
 * and not the source. The last n of a source that is turned back are the first of it. Sort keys
 * are read once, and copied only for what is kept. */

#include "base/budget.h"
#include "base/mem.h"
#include "query/meta_items.h"
#include "query/path.h"
#include "query/query_parts.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t positive(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

/* Nothing is sorted and nothing counted from the end: what comes first is the result. */
static bool is_stream(const struct query_keep *k)
{
    return k->counts_only || k->goes_back || (k->meta->order_count == 0 && !k->keeps_last);
}

void query_keep_init(struct query_keep *k, const struct meta *meta)
{
    *k = (struct query_keep){.meta = meta, .keeps_last = meta->offset < 0, .most = UINT64_MAX};
    if (meta->has_limit && meta->limit == 0)
        k->most = 0;
    else if (k->keeps_last)
        k->most = -(uint64_t)meta->offset;
    else if (meta->limit > 0)
        k->most = sum(positive(meta->offset), (uint64_t)meta->limit);
}

static void drop(struct query_kept *kept)
{
    mem_free(kept->keys);
}

void query_keep_done(struct query_keep *k)
{
    for (size_t i = 0; i < k->count; i++)
        drop(&k->kept[i]);
    mem_free(k->kept);
}

/* One more than fit is wanted, to know that there is one. Of the last ones nobody asks whether
 * there are some before. */
uint64_t query_keep_enough(const struct query_keep *k)
{
    if (!is_stream(k) || k->counts_all)
        return UINT64_MAX;
    return k->goes_back ? k->most : sum(k->most, 1);
}

bool query_keep_wants(const struct query_keep *k)
{
    return k->counts_all || (k->most > 0 && k->offered < query_keep_enough(k));
}

/* ---- sorting ---- */

static int cmp_kept(const struct query_kept *a, const struct query_kept *b, const struct meta *meta)
{
    if (!budget_ask(meta->order_count > 0 ? 16 + a->keys[0].text.n / 16 : 16))
        return 0;
    for (size_t i = 0; i < meta->order_count; i++) {
        int order = value_key_cmp(&a->keys[i], &b->keys[i]);

        if (order != 0)
            return meta->orders[i].descending ? -order : order;
    }
    return (a->serial > b->serial) - (a->serial < b->serial);
}

static int cmp_for_qsort(const void *a, const void *b, void *keep)
{
    return cmp_kept(a, b, ((struct query_keep *)keep)->meta);
}

static struct value_key *read_keys(const struct meta *meta, struct json_value root,
                                   struct arena *scratch)
{
    struct value_key *keys;

    if (meta->order_count == 0)
        return NULL;
    keys = ARENA_ARRAY(scratch, struct value_key, meta->order_count);
    for (size_t i = 0; i < meta->order_count; i++) {
        struct value value = path_read(&meta->orders[i].path, root, scratch);

        keys[i] = value_key(&value, meta->orders[i].path.type);
    }
    return keys;
}

/* Keys and texts in one block. */
static struct value_key *copy_keys(const struct value_key *keys, size_t count)
{
    size_t bytes = count * sizeof(*keys);
    struct value_key *copy;
    char *text;

    if (count == 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        bytes += keys[i].text.n;
    copy = mem_alloc(bytes);
    memcpy(copy, keys, count * sizeof(*keys));
    text = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].text.n > 0)
            memcpy(text, keys[i].text.p, keys[i].text.n);
        copy[i].text.p = text;
        text += keys[i].text.n;
    }
    return copy;
}

/* ---- the heap ---- */

/* Is `a` dropped before `b`? */
static bool goes_before(const struct query_keep *k, const struct query_kept *a,
                        const struct query_kept *b)
{
    int order = cmp_kept(a, b, k->meta);

    return k->keeps_last ? order < 0 : order > 0;
}

static void sift_down(struct query_keep *k, size_t at)
{
    struct query_kept moving = k->kept[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= k->count)
            break;
        if (child + 1 < k->count && goes_before(k, &k->kept[child + 1], &k->kept[child]))
            child++;
        if (!goes_before(k, &k->kept[child], &moving))
            break;
        k->kept[at] = k->kept[child];
        at = child;
    }
    k->kept[at] = moving;
}

static void make_heap(struct query_keep *k)
{
    if (k->is_heap)
        return;
    for (size_t at = k->count / 2; at-- > 0;)
        sift_down(k, at);
    k->is_heap = true;
}

static void push(struct query_keep *k, struct query_kept kept)
{
    if (k->count == k->size) {
        k->size = k->size > 0 ? 2 * k->size : 16;
        k->kept = mem_resize(k->kept, k->size * sizeof(*k->kept));
    }
    k->kept[k->count++] = kept;
}

void query_keep_offer(struct query_keep *k, const struct query_item *item, struct json_value root,
                      struct arena *scratch)
{
    struct query_kept kept = {.item = *item, .serial = k->offered++};
    bool is_full = k->count == k->most;

    if (k->counts_only || k->most == 0)
        return;
    if (is_stream(k)) {
        if (kept.serial >= positive(k->meta->offset) && kept.serial < k->most)
            push(k, kept);
        return;
    }
    kept.keys = read_keys(k->meta, root, scratch);
    if (is_full) {
        make_heap(k);
        if (!goes_before(k, &k->kept[0], &kept))
            return;
        drop(&k->kept[0]);
    }
    kept.keys = copy_keys(kept.keys, k->meta->order_count);
    if (is_full) {
        k->kept[0] = kept;
        sift_down(k, 0);
    } else {
        push(k, kept);
    }
}

/* ---- the result ---- */

/* How many items the limit is cut from. */
static uint64_t available(const struct query_keep *k)
{
    uint64_t offset = positive(k->meta->offset);

    if (k->keeps_last)
        return k->count;
    return k->offered > offset ? k->offered - offset : 0;
}

size_t query_keep_count(const struct query_keep *k)
{
    uint64_t kept = MIN(k->offered, k->most);
    uint64_t count = kept - MIN(kept, positive(k->meta->offset));

    return (size_t)(k->meta->limit > 0 ? MIN(count, (uint64_t)k->meta->limit) : count);
}

void query_keep_result(struct query_keep *k, struct arena *a, struct query_result *out_result)
{
    struct query_result result = {.count = query_keep_count(k), .total = (size_t)k->offered};
    size_t from = is_stream(k) ? 0 : (size_t)MIN(positive(k->meta->offset), k->count);

    if (!is_stream(k) && k->count > 0)
        qsort_r(k->kept, k->count, sizeof(*k->kept), cmp_for_qsort, k);
    if (k->meta->limit > 0) {
        result.more = available(k) > (uint64_t)k->meta->limit;
        result.left = k->keeps_last ? k->count - result.count : 0;
    }
    result.items = ARENA_ARRAY(a, struct query_item, result.count);
    for (size_t i = 0; i < result.count; i++)
        result.items[i] = k->kept[k->goes_back ? k->count - 1 - i : from + i].item;
    *out_result = result;
}
