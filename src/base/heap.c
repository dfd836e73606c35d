/* The children of place i are at 2i and 2i + 1, hence places from 1. The array shrinks when three
 * quarters of it are unused: what a burst of timers needed is given back. */
#include "base/heap.h"

#include "base/mem.h"
#include "base/must.h"

enum { LEAST_SIZE = 16 };

void heap_init(struct heap *h, heap_less_fn *less)
{
    *h = (struct heap){.less = less};
}

void heap_done(struct heap *h)
{
    if (h == NULL)
        return;
    mem_free(h->nodes);
    heap_init(h, h->less);
}

static void set_size(struct heap *h, size_t size)
{
    h->nodes = mem_resize(h->nodes, size * sizeof(struct heap_node *));
    h->size = size;
}

static struct heap_node *node_at(const struct heap *h, size_t place)
{
    return h->nodes[place - 1];
}

static void put(struct heap *h, size_t place, struct heap_node *node)
{
    h->nodes[place - 1] = node;
    node->place = place;
}

/* `place` is free; those above that are greater than node move down until node fits. */
static void sift_up(struct heap *h, size_t place, struct heap_node *node)
{
    while (place > 1 && h->less(node, node_at(h, place / 2))) {
        put(h, place, node_at(h, place / 2));
        place /= 2;
    }
    put(h, place, node);
}

static size_t lesser_child(const struct heap *h, size_t place)
{
    size_t child = 2 * place;

    return child < h->count && h->less(node_at(h, child + 1), node_at(h, child)) ? child + 1
                                                                                 : child;
}

/* `place` is free; the lesser children below move up until node fits. */
static void sift_down(struct heap *h, size_t place, struct heap_node *node)
{
    while (2 * place <= h->count) {
        size_t child = lesser_child(h, place);

        if (!h->less(node_at(h, child), node))
            break;
        put(h, place, node_at(h, child));
        place = child;
    }
    put(h, place, node);
}

/* `place` is free; so is a place without children afterwards, to which it has sunk. What is looked
 * at two steps later is fetched ahead: in a large heap its memory is waited for. */
static size_t sink(struct heap *h, size_t place)
{
    while (2 * place <= h->count) {
        size_t child, end = MIN(4 * place + 4, h->count + 1);

        for (size_t below = 4 * place; below < end; below++)
            __builtin_prefetch(node_at(h, below));
        child = lesser_child(h, place);
        put(h, place, node_at(h, child));
        place = child;
    }
    return place;
}

/* The node moves up or down; the other way does nothing. */
static void sift(struct heap *h, size_t place, struct heap_node *node)
{
    sift_up(h, place, node);
    sift_down(h, node->place, node);
}

static bool is_member(const struct heap *h, const struct heap_node *node)
{
    return node->place > 0 && node->place <= h->count && node_at(h, node->place) == node;
}

void heap_add(struct heap *h, struct heap_node *node)
{
    MUST(!heap_contains(node));
    if (h->count == h->size)
        set_size(h, MAX(LEAST_SIZE, 2 * h->size));
    h->count++;
    sift_up(h, h->count, node);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
    size_t place = node->place;
    struct heap_node *last;

    MUST(is_member(h, node));
    last = node_at(h, h->count);
    h->count--;
    node->place = 0;
    if (last != node) /* it comes from the bottom, and mostly belongs there */
        sift_up(h, sink(h, place), last);
    if (h->size > LEAST_SIZE && h->count < h->size / 4)
        set_size(h, h->size / 2);
}

void heap_update(struct heap *h, struct heap_node *node)
{
    MUST(is_member(h, node));
    sift(h, node->place, node);
}

struct heap_node *heap_first(const struct heap *h)
{
    return h->count > 0 ? h->nodes[0] : NULL;
}

bool heap_contains(const struct heap_node *node)
{
    return node->place > 0;
}
