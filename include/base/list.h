/* Intrusive doubly linked list. An object is in at most as many lists as it has links. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *prev, *next; /* both NULL when in no list */
};

struct list {
    struct list_link head; /* head.next is the first, head.prev the last */
    size_t count;
};

void list_init(struct list *l);
bool list_empty(const struct list *l);
size_t list_count(const struct list *l);
void list_push_back(struct list *l, struct list_link *link);
void list_push_front(struct list *l, struct list_link *link);
void list_insert_before(struct list *l, struct list_link *at, struct list_link *link);
/* `link` must be in l. */
void list_remove(struct list *l, struct list_link *link);
bool list_linked(const struct list_link *link);
/* NULL when empty / at the end. */
struct list_link *list_first(const struct list *l);
struct list_link *list_last(const struct list *l);
struct list_link *list_next(const struct list *l, const struct list_link *link);
struct list_link *list_prev(const struct list *l, const struct list_link *link);
struct list_link *list_pop_front(struct list *l);
/* Appends all of `from`, which is empty afterwards. */
void list_take_all(struct list *to, struct list *from);

/* Sorts, keeping the order of equals: O(n log n), without memory. Already sorted: O(n). */
typedef bool list_less_fn(const struct list_link *a, const struct list_link *b);
void list_sort(struct list *l, list_less_fn *less);

/* The object whose link it is; NULL for NULL. */
#define LIST_OBJECT(link_ptr, type, member)                                                        \
    __extension__({                                                                                \
        struct list_link *link_ = (link_ptr);                                                      \
        link_ != NULL ? CONTAINER_OF(link_, type, member) : NULL;                                  \
    })

/* Walks a list; the current element may be removed inside. */
#define LIST_EACH(list_ptr, cursor)                                                                \
    for (struct list_link *cursor = list_first(list_ptr),                                          \
                          *cursor##_next = cursor ? list_next(list_ptr, cursor) : NULL;            \
         cursor != NULL;                                                                           \
         cursor = cursor##_next, cursor##_next = cursor ? list_next(list_ptr, cursor) : NULL)

#endif
