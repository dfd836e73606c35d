/* Open addressing with linear probing. `now` takes all new items; removing closes the gap by moving
 * later items of the run back, so that churn leaves nothing behind.
 *
 * When `now` gets too full or too empty it becomes `old`, and every change moves a few items of it
 * to the new table. That is done long before the new one is too full: by then a growth from n slots
 * has at most 3n/4 + n/8 items in 2n slots, a shrink n/8 + n/32 items in n/2. `old` only loses
 * items. Its slots before `moved` are stale and their items must not be looked at; they stay, as do
 * removed ones (which then hold their own address), so that runs through them are not cut. */
#include "base/map.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/must.h"

enum {
    LEAST_SIZE = 16,
    /* Per change. A full table is moved by items, a sparse one by slots. */
    ITEMS_MOVED = 8,
    SLOTS_WALKED = 64, /* a table that has no more moves at once */
    SLOTS_RELEASED = 16384,
    FETCHED_TOGETHER = 32,
    LEAST_FETCHED = 4096, /* slots: 64 KiB */
};

void map_init(struct map *m, map_key_fn *key_of)
{
    *m = (struct map){.key_of = key_of, .hash = hash_bytes};
}

void map_init_own(struct map *m, map_key_fn *key_of)
{
    *m = (struct map){.key_of = key_of, .hash = hash_own};
}

void map_done(struct map *m)
{
    if (m == NULL)
        return;
    mem_free(m->now.slots);
    mem_free(m->old.slots);
    *m = (struct map){.key_of = m->key_of, .hash = m->hash};
}

size_t map_count(const struct map *m)
{
    return m->now.used + m->old.used;
}

size_t map_bytes(const struct map *m)
{
    return (m->now.size + m->old.size) * sizeof(struct map_slot);
}

/* The size takes part, so that tables of two sizes have nothing in common: else adding the items of
 * one map to another in the order of map_each would fill the other's slots in their order, in one
 * ever longer run. */
static size_t home_of(const struct map_table *t, uint64_t hash)
{
    return hash_mix(hash, t->size) & (t->size - 1);
}

static size_t next_of(const struct map_table *t, size_t i)
{
    return (i + 1) & (t->size - 1);
}

static bool is_removed(const struct map_slot *slot)
{
    return slot->item == slot;
}

/* The slot of `now` with that key, or the free one where it belongs. */
static struct map_slot *seek_now(const struct map *m, uint64_t hash, struct span key)
{
    const struct map_table *t = &m->now;
    size_t i = home_of(t, hash);

    while (t->slots[i].item != NULL &&
           (t->slots[i].hash != hash || !span_eq(m->key_of(t->slots[i].item), key)))
        i = next_of(t, i);
    return &t->slots[i];
}

static struct map_slot *find_now(const struct map *m, uint64_t hash, struct span key)
{
    struct map_slot *slot = m->now.used > 0 ? seek_now(m, hash, key) : NULL;

    return slot != NULL && slot->item != NULL ? slot : NULL;
}

/* Slots that were moved, and removed ones, are passed over. */
static struct map_slot *find_old(const struct map *m, uint64_t hash, struct span key)
{
    const struct map_table *t = &m->old;

    if (t->used == 0)
        return NULL;
    for (size_t i = home_of(t, hash); t->slots[i].item != NULL; i = next_of(t, i)) {
        struct map_slot *slot = &t->slots[i];

        if (i >= m->moved && slot->hash == hash && !is_removed(slot) &&
            span_eq(m->key_of(slot->item), key))
            return slot;
    }
    return NULL;
}

void *map_find_hashed(const struct map *m, struct span key, uint64_t hash)
{
    struct map_slot *slot = find_now(m, hash, key);

    if (slot == NULL)
        slot = find_old(m, hash, key);
    return slot != NULL ? slot->item : NULL;
}

void *map_find(const struct map *m, struct span key)
{
    return map_count(m) == 0 ? NULL : map_find_hashed(m, key, m->hash(key));
}

uint64_t map_hash(const struct map *m, struct span key)
{
    return m->hash(key);
}

/* A run is as long as two cache lines, often enough. To gcc a function that only fetches ahead does
 * nothing, and it leaves out calls to it: not so with the empty statement. */
static void prefetch_home(const struct map_table *t, uint64_t hash)
{
    size_t home = home_of(t, hash);

    __asm__ volatile("");
    if (t->size == 0)
        return;
    __builtin_prefetch(&t->slots[home], 1);
    __builtin_prefetch(&t->slots[(home + 64 / sizeof(struct map_slot)) & (t->size - 1)], 1);
}

/* A small table is near anyway. */
static bool is_far(const struct map *m)
{
    return m->now.size >= LEAST_FETCHED;
}

void map_expect_hashed(const struct map *m, uint64_t hash)
{
    if (!is_far(m))
        return;
    prefetch_home(&m->now, hash);
    if (m->old.used > 0)
        prefetch_home(&m->old, hash);
}

void map_expect(const struct map *m, struct span key)
{
    if (is_far(m))
        map_expect_hashed(m, m->hash(key));
}

static void place(struct map_table *t, struct map_slot filled)
{
    size_t i = home_of(t, filled.hash);

    MUST(t->used + 1 < t->size);
    while (t->slots[i].item != NULL)
        i = next_of(t, i);
    t->slots[i] = filled;
    t->used++;
}

/* The places of items in a large table are anywhere in it: those that the next change moves are
 * fetched ahead, all at once. */
static void prefetch_next_moves(const struct map *m)
{
    size_t end = MIN(m->moved + (size_t)2 * ITEMS_MOVED, m->old.size);

    for (size_t i = m->moved; i < end; i++)
        prefetch_home(&m->now, m->old.slots[i].hash);
}

static void move_some(struct map *m)
{
    size_t end = MIN(m->moved + SLOTS_WALKED, m->old.size);
    size_t most = m->old.size <= SLOTS_WALKED ? SLOTS_WALKED : ITEMS_MOVED;
    size_t least_used = m->old.used - MIN(m->old.used, most);

    for (; m->moved < end && m->old.used > least_used; m->moved++) {
        struct map_slot *slot = &m->old.slots[m->moved];

        if (slot->item == NULL || is_removed(slot))
            continue;
        place(&m->now, *slot);
        m->old.used--;
    }
    prefetch_next_moves(m);
}

/* The kernel takes its time to take back a large block, so that goes by slices as well. */
static void release_some(struct map *m)
{
    if (m->old.size <= SLOTS_RELEASED) {
        mem_free(m->old.slots);
        m->old = (struct map_table){0};
        m->moved = 0;
        return;
    }
    m->old.size -= SLOTS_RELEASED;
    m->old.slots = mem_resize(m->old.slots, m->old.size * sizeof(struct map_slot));
}

/* A small table is moved at once: many maps stay small, and what is looked for in them would have
 * to be looked for in two tables for as long as nothing changes. */
static void set_size(struct map *m, size_t size)
{
    m->old = m->now;
    m->moved = 0;
    m->now = (struct map_table){.slots = mem_zero(size * sizeof(struct map_slot)), .size = size};
    if (m->old.size > SLOTS_WALKED)
        return;
    move_some(m);
    release_some(m);
}

static bool has_room(size_t size, size_t items)
{
    return items <= size / 4 * 3;
}

/* Keeps the table between 1/8 and 3/4 full, with `coming` items more; when none are, it may be too
 * large. */
static void fit(struct map *m, size_t coming)
{
    size_t size = m->now.size;

    if (m->old.used > 0)
        move_some(m);
    else if (m->old.size > 0)
        release_some(m);
    else if (!has_room(size, m->now.used + coming))
        set_size(m, MAX(2 * size, LEAST_SIZE));
    else if (coming == 0 && size > LEAST_SIZE && m->now.used < size / 8)
        set_size(m, size / 2);
}

static void *put_hashed(struct map *m, void *item, uint64_t hash)
{
    struct span key = m->key_of(item);
    struct map_slot *free_slot, *slot;
    void *before;

    fit(m, 1);
    free_slot = slot = seek_now(m, hash, key);
    if (slot->item == NULL)
        slot = find_old(m, hash, key);
    if (slot == NULL) {
        *free_slot = (struct map_slot){hash, item};
        m->now.used++;
        return NULL;
    }
    before = slot->item;
    slot->item = item;
    return before;
}

void map_add_hashed(struct map *m, void *item, uint64_t hash)
{
    MUST(put_hashed(m, item, hash) == NULL);
}

void *map_put(struct map *m, void *item)
{
    return put_hashed(m, item, m->hash(m->key_of(item)));
}

void map_add(struct map *m, void *item)
{
    MUST(map_put(m, item) == NULL);
}

struct map_slot map_slot_of(const struct map *m, void *item)
{
    return (struct map_slot){m->hash(m->key_of(item)), item};
}

/* An empty map takes that many without growing on the way. */
static void size_for(struct map *m, size_t count)
{
    size_t size = LEAST_SIZE;

    if (map_count(m) > 0 || has_room(m->now.size, count))
        return;
    while (!has_room(size, count))
        size *= 2;
    map_done(m);
    set_size(m, size);
}

static void add_together(struct map *m, const struct map_slot *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        prefetch_home(&m->now, items[i].hash);
    for (size_t i = 0; i < count; i++)
        map_add_hashed(m, items[i].item, items[i].hash);
}

void map_add_many(struct map *m, const struct map_slot *items, size_t count)
{
    size_t n;

    size_for(m, count);
    for (size_t at = 0; at < count; at += n) {
        n = MIN(count - at, FETCHED_TOGETHER);
        add_together(m, items + at, n);
    }
}

/* True when an item whose home is `home` may stand at `to`, though it stands at `at` now: when the
 * way from home to `at` passes `to`. */
static bool may_stand(const struct map_table *t, size_t home, size_t to, size_t at)
{
    size_t mask = t->size - 1;

    return ((to - home) & mask) <= ((at - home) & mask);
}

static void close_gap(struct map_table *t, size_t gap)
{
    for (size_t i = next_of(t, gap); t->slots[i].item != NULL; i = next_of(t, i)) {
        if (may_stand(t, home_of(t, t->slots[i].hash), gap, i)) {
            t->slots[gap] = t->slots[i];
            gap = i;
        }
    }
    t->slots[gap] = (struct map_slot){0};
    t->used--;
}

void *map_remove(struct map *m, struct span key)
{
    uint64_t hash = m->hash(key);
    struct map_slot *slot;
    void *item = NULL;

    if (map_count(m) == 0)
        return NULL;
    fit(m, 0);
    slot = find_now(m, hash, key);
    if (slot != NULL) {
        item = slot->item;
        close_gap(&m->now, (size_t)(slot - m->now.slots));
    } else if ((slot = find_old(m, hash, key)) != NULL) {
        item = slot->item;
        slot->item = slot;
        m->old.used--;
    }
    return item;
}

static void each_of(const struct map_table *t, size_t from, void (*visit)(void *item, void *arg),
                    void *arg)
{
    size_t left = t->used;

    for (size_t i = from; left > 0; i++) {
        const struct map_slot *slot = &t->slots[i];

        if (slot->item == NULL || is_removed(slot))
            continue;
        visit(slot->item, arg);
        left--;
    }
}

void map_each(const struct map *m, void (*visit)(void *item, void *arg), void *arg)
{
    each_of(&m->now, 0, visit, arg);
    each_of(&m->old, m->moved, visit, arg);
}
