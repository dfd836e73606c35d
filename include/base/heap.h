/* Intrusive binary min-heap: timers and due times. All operations but heap_first are O(log n). */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t place; /* 1-based; 0 when in no heap */
};

typedef bool heap_less_fn(const struct heap_node *a, const struct heap_node *b);

struct heap {
    heap_less_fn *less;
    struct heap_node **nodes;
    size_t count;
    size_t size;
};

void heap_init(struct heap *h, heap_less_fn *less);
void heap_done(struct heap *h);
void heap_add(struct heap *h, struct heap_node *node);
/* `node` must be in h. */
void heap_remove(struct heap *h, struct heap_node *node);
/* Restores the order after node's key changed. */
void heap_update(struct heap *h, struct heap_node *node);
/* The least, or NULL. */
struct heap_node *heap_first(const struct heap *h);
bool heap_contains(const struct heap_node *node);

#endif
