/* The links form a ring through the list's head, so that no end needs a case of its own. */
#include "base/list.h"

#include "base/must.h"

void list_init(struct list *l)
{
    l->head.prev = l->head.next = &l->head;
    l->count = 0;
}

bool list_empty(const struct list *l)
{
    return l->count == 0;
}

size_t list_count(const struct list *l)
{
    return l->count;
}

void list_insert_before(struct list *l, struct list_link *at, struct list_link *link)
{
    MUST(!list_linked(link));
    link->prev = at->prev;
    link->next = at;
    at->prev->next = link;
    at->prev = link;
    l->count++;
}

void list_push_back(struct list *l, struct list_link *link)
{
    list_insert_before(l, &l->head, link);
}

void list_push_front(struct list *l, struct list_link *link)
{
    list_insert_before(l, l->head.next, link);
}

void list_remove(struct list *l, struct list_link *link)
{
    MUST(list_linked(link) && l->count > 0);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
    l->count--;
}

bool list_linked(const struct list_link *link)
{
    return link->next != NULL;
}

static struct list_link *unless_head(const struct list *l, struct list_link *link)
{
    return link != &l->head ? link : NULL;
}

struct list_link *list_first(const struct list *l)
{
    return unless_head(l, l->head.next);
}

struct list_link *list_last(const struct list *l)
{
    return unless_head(l, l->head.prev);
}

struct list_link *list_next(const struct list *l, const struct list_link *link)
{
    return unless_head(l, link->next);
}

struct list_link *list_prev(const struct list *l, const struct list_link *link)
{
    return unless_head(l, link->prev);
}

struct list_link *list_pop_front(struct list *l)
{
    struct list_link *first = list_first(l);

    if (first != NULL)
        list_remove(l, first);
    return first;
}

void list_take_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    to->count += from->count;
    list_init(from);
}

/* Merges two chains that end in NULL and are linked by `next` only. */
static struct list_link *merge(struct list_link *a, struct list_link *b, list_less_fn *less)
{
    struct list_link head = {NULL, NULL};
    struct list_link *tail = &head;

    while (a != NULL && b != NULL) {
        struct list_link **from = less(b, a) ? &b : &a;

        tail->next = *from;
        tail = *from;
        *from = (*from)->next;
    }
    tail->next = a != NULL ? a : b;
    return head.next;
}

static bool is_sorted(const struct list *l, list_less_fn *less)
{
    for (const struct list_link *at = list_first(l); at != NULL; at = list_next(l, at)) {
        const struct list_link *next = list_next(l, at);

        if (next != NULL && less(next, at))
            return false;
    }
    return true;
}

void list_sort(struct list *l, list_less_fn *less)
{
    /* runs[i] is a sorted chain of 2^i links, or NULL: a counter in binary. */
    struct list_link *runs[64] = {NULL};
    struct list_link *link, *all = NULL;

    if (is_sorted(l, less))
        return;
    while ((link = list_pop_front(l)) != NULL) {
        size_t i = 0;

        link->next = NULL;
        for (; runs[i] != NULL; i++) {
            link = merge(runs[i], link, less);
            runs[i] = NULL;
        }
        runs[i] = link;
    }
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        if (runs[i] != NULL)
            all = merge(runs[i], all, less);
    while (all != NULL) {
        link = all;
        all = all->next;
        link->prev = link->next = NULL;
        list_push_back(l, link);
    }
}
