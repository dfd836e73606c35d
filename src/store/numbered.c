/* Most come in ascending order, which fills the last run and begins another. One that comes between
 * others finds its run by two binary searches; a run that is full is split into halves. */
#include "store/numbered.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/entity.h"

#include <string.h>

enum { FIRST_RUNS = 4 };

/* How many of its entities have this number or a lower one? They are the first ones. */
static size_t count_in(const struct numbered_run *run, uint64_t object_no)
{
    size_t from = 0, to = run->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (run->items[middle]->object_no <= object_no)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* How many runs begin with this number or a lower one? */
static size_t count_runs(const struct numbered *n, uint64_t object_no)
{
    size_t from = 0, to = n->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (n->runs[middle]->items[0]->object_no <= object_no)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct numbered_run *add_run(struct numbered *n, size_t place)
{
    if (n->count == n->size) {
        n->size = MAX(FIRST_RUNS, 2 * n->size);
        n->runs = mem_resize(n->runs, n->size * sizeof(struct numbered_run *));
    }
    memmove(&n->runs[place + 1], &n->runs[place],
            (n->count - place) * sizeof(struct numbered_run *));
    n->runs[place] = NEW(struct numbered_run);
    n->count++;
    return n->runs[place];
}

static void split(struct numbered *n, size_t place)
{
    struct numbered_run *upper = add_run(n, place + 1), *lower = n->runs[place];

    upper->count = lower->count - NUMBERED_RUN / 2;
    lower->count = NUMBERED_RUN / 2;
    memcpy(upper->items, &lower->items[lower->count], upper->count * sizeof(struct entity *));
}

static void add_to(struct numbered_run *run, struct entity *e)
{
    size_t place = count_in(run, e->object_no);

    memmove(&run->items[place + 1], &run->items[place],
            (run->count - place) * sizeof(struct entity *));
    run->items[place] = e;
    run->count++;
}

static struct numbered_run *last_run(const struct numbered *n)
{
    return n->count == 0 ? NULL : n->runs[n->count - 1];
}

static bool is_last(const struct numbered_run *last, const struct entity *e)
{
    return last == NULL || last->items[last->count - 1]->object_no < e->object_no;
}

void numbered_add(struct numbered *n, struct entity *e)
{
    struct numbered_run *run = last_run(n);
    size_t place;

    if (is_last(run, e)) {
        if (run == NULL || run->count == NUMBERED_RUN)
            run = add_run(n, n->count);
        run->items[run->count++] = e;
        return;
    }
    place = count_runs(n, e->object_no);
    place -= place > 0; /* before all others, it is of the first run */
    if (n->runs[place]->count == NUMBERED_RUN) {
        split(n, place);
        place += n->runs[place + 1]->items[0]->object_no < e->object_no;
    }
    add_to(n->runs[place], e);
}

struct entity *numbered_above(const struct numbered *n, uint64_t object_no)
{
    size_t runs = count_runs(n, object_no);
    size_t place = runs == 0 ? 0 : count_in(n->runs[runs - 1], object_no);

    if (runs > 0 && place < n->runs[runs - 1]->count)
        return n->runs[runs - 1]->items[place];
    return runs < n->count ? n->runs[runs]->items[0] : NULL;
}

struct entity *numbered_up_to(const struct numbered *n, uint64_t object_no)
{
    size_t runs = count_runs(n, object_no);

    if (runs == 0)
        return NULL;
    return n->runs[runs - 1]->items[count_in(n->runs[runs - 1], object_no) - 1];
}

struct entity *numbered_pop(struct numbered *n)
{
    struct numbered_run *last = last_run(n);
    struct entity *e;

    if (last == NULL)
        return NULL;
    e = last->items[--last->count];
    if (last->count > 0)
        return e;
    mem_free(last);
    if (--n->count == 0) {
        mem_free(n->runs);
        *n = (struct numbered){.runs = NULL};
    }
    return e;
}
