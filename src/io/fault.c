/* A table of a few named faults, each with a countdown; code passes a fault's place by fault_hit,
 * which says whether it fails this time. Only builds with `-Dfaults=true` have it: elsewhere
 * fault_hit is a constant, and the compiler drops the branch. */
#include "io/fault.h"

#ifdef SVCD_FAULTS

#include "base/span.h"

#include <string.h>

enum { MOST_FAULTS = 16, NAME_BYTES = 64 };

struct fault {
    char name[NAME_BYTES];
    uint64_t passes_left; /* until the one that fails; 0: that one is over */
    bool for_good;        /* it and all later passes fail */
};

static struct fault faults[MOST_FAULTS];
static size_t fault_count;

/* `name:count`, `name:count+` */
static bool parse_fault(struct span text, struct fault *out_fault)
{
    struct span count = text;
    struct span name = span_split(&count, ':');
    struct fault fault = {.for_good = span_ends(count, SPAN("+"))};

    if (fault.for_good)
        count.n--;
    if (name.n == 0 || name.n >= NAME_BYTES || !span_to_u64(count, &fault.passes_left) ||
        fault.passes_left == 0)
        return false;
    memcpy(fault.name, name.p, name.n);
    *out_fault = fault;
    return true;
}

bool fault_set(const char *list)
{
    struct span rest = span_str(list);
    struct fault parsed[MOST_FAULTS];
    size_t n = 0;

    if (rest.n == 0)
        rest.p = NULL;
    while (rest.p != NULL) {
        if (n == MOST_FAULTS || !parse_fault(span_split(&rest, ','), &parsed[n]))
            return false;
        n++;
    }
    memcpy(faults, parsed, n * sizeof(parsed[0]));
    fault_count = n;
    return true;
}

static bool pass(struct fault *f)
{
    if (f->passes_left == 0)
        return f->for_good;
    f->passes_left--;
    return f->passes_left == 0;
}

bool fault_hit(const char *name)
{
    bool hit = false;

    for (size_t i = 0; i < fault_count; i++) {
        if (strcmp(faults[i].name, name) == 0)
            hit |= pass(&faults[i]);
    }
    return hit;
}

#endif
