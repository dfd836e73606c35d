/* A page of a long list begins behind the last entity of the page before it. The list itself can
 * only be walked; the rungs are an array that can be searched by halves, and leave a walk of less
 * than RUNG_ENTITIES. Each points to another entity, so that there are never more rungs than a walk
 * over the entities would need, however many have gone. */
#include "ladder.h"

#include "base/mem.h"
#include "store/entity.h"

#include <string.h>

enum { RUNG_ENTITIES = 128 };

void ladder_add(struct ladder *l, struct entity *e)
{
    if (l->until_next > 0) {
        l->until_next--;
        return;
    }
    if (l->count == l->size) {
        l->size = MAX(16, 2 * l->size);
        l->rungs = mem_resize(l->rungs, l->size * sizeof(*l->rungs));
    }
    l->rungs[l->count++] = (struct rung){e->object_no, e};
    l->until_next = RUNG_ENTITIES - 1;
}

/* How many rungs have at most this number. */
static size_t count_up_to(const struct ladder *l, uint64_t object_no)
{
    size_t from = 0, to = l->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (l->rungs[middle].object_no <= object_no)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void drop(struct ladder *l, size_t at)
{
    l->count--;
    memmove(&l->rungs[at], &l->rungs[at + 1], (l->count - at) * sizeof(*l->rungs));
}

void ladder_remove(struct ladder *l, const struct entity *e, struct entity *next)
{
    size_t at = count_up_to(l, e->object_no);

    if (at == 0 || l->rungs[at - 1].entity != e)
        return;
    if (next == NULL || (at < l->count && l->rungs[at].entity == next))
        drop(l, at - 1);
    else
        l->rungs[at - 1].entity = next;
}

struct entity *ladder_begin(const struct ladder *l, uint64_t object_no)
{
    size_t at = count_up_to(l, object_no);

    return at == 0 ? NULL : l->rungs[at - 1].entity;
}

void ladder_done(struct ladder *l)
{
    mem_free(l->rungs);
    *l = (struct ladder){.rungs = NULL};
}
