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
