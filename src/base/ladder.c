/* A sorted array of rungs. Where a rung's member goes, the next one takes its place, unless that is
 * a rung itself: so the way from one rung to the next never grows, whoever removes what. Most go at
 * the front, and most that are looked for are at the end: both are looked at first. */
#include "base/ladder.h"

#include "base/mem.h"

#include <string.h>

enum { END_STEPS = 32 };

void ladder_init(struct ladder *l, uint64_t (*number)(const struct list_link *link))
{
    *l = (struct ladder){.number = number};
}

void ladder_done(struct ladder *l)
{
    mem_free(l->rungs);
    *l = (struct ladder){.number = l->number};
}

static void make_room(struct ladder *l)
{
    if (l->first + l->count < l->size)
        return;
    if (l->first > l->size / 2) {
        memmove(l->rungs, l->rungs + l->first, l->count * sizeof(*l->rungs));
        l->first = 0;
        return;
    }
    l->size = MAX(8, 2 * l->size);
    l->rungs = mem_resize(l->rungs, l->size * sizeof(*l->rungs));
}

void ladder_added(struct ladder *l, struct list_link *link)
{
    if (l->count > 0 && ++l->since < LADDER_STEP)
        return;
    make_room(l);
    l->rungs[l->first + l->count++] = (struct ladder_rung){l->number(link), link};
    l->since = 0;
}

void ladder_build(struct ladder *l, const struct list *list)
{
    ladder_done(l);
    LIST_EACH(list, link)
        ladder_added(l, link);
}

/* The place of the last rung whose number is not greater; `count`: there is none. */
static size_t find(const struct ladder *l, uint64_t number)
{
    const struct ladder_rung *rungs = l->rungs + l->first;
    size_t low = 0, high = l->count;

    if (l->count == 0 || rungs[0].number > number)
        return l->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (rungs[middle].number > number)
            high = middle;
        else
            low = middle;
    }
    return low;
}

static void remove_rung(struct ladder *l, size_t place)
{
    struct ladder_rung *at = l->rungs + l->first + place;

    l->count--;
    if (place == 0)
        l->first++;
    else
        memmove(at, at + 1, (l->count - place) * sizeof(*at));
}

void ladder_removing(struct ladder *l, const struct list *list, struct list_link *link)
{
    struct list_link *next = list_next(list, link);
    size_t place;

    if (l->count == 0)
        return;
    place = l->rungs[l->first].link == link ? 0 : find(l, l->number(link));
    if (place == l->count || l->rungs[l->first + place].link != link)
        return;
    if (next == NULL || (place + 1 < l->count && l->rungs[l->first + place + 1].link == next))
        remove_rung(l, place);
    else
        l->rungs[l->first + place] = (struct ladder_rung){l->number(next), next};
}

/* Of the last few. *out_known false: it is before them. */
static struct list_link *after_from_end(const struct ladder *l, const struct list *list,
                                        uint64_t number, bool *out_known)
{
    struct list_link *at = list_last(list), *found = NULL;

    for (unsigned i = 0; i < END_STEPS && at != NULL && l->number(at) > number; i++) {
        found = at;
        at = list_prev(list, at);
    }
    *out_known = at == NULL || l->number(at) <= number;
    return found;
}

struct list_link *ladder_after(const struct ladder *l, const struct list *list, uint64_t number)
{
    struct list_link *at;
    bool is_known;
    size_t place;

    at = after_from_end(l, list, number, &is_known);
    if (is_known)
        return at;
    place = find(l, number);
    at = place == l->count ? list_first(list) : l->rungs[l->first + place].link;
    while (at != NULL && l->number(at) <= number)
        at = list_next(list, at);
    return at;
}
