#include "ledger.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/must.h"

#include <string.h>

struct ledger *ledger_new(void)
{
    return NEW(struct ledger);
}

void ledger_free(struct ledger *l)
{
    mem_free(l);
}

/* A request that changed nothing is answered with the serial of what is there, an older one: they
 * are in the order of serials all the same, as they are taken back from the last one on. */
static struct version *add_version(struct ledger *l, uint64_t serial, int of, size_t place)
{
    struct version *v = &l->versions[l->version_count++];

    if (v > l->versions)
        serial = MAX(serial, v[-1].serial);
    MUST(l->version_count <= LEDGER_VERSIONS);
    v->serial = serial;
    v->of = of;
    v->place = place;
    return v;
}

void ledger_set_item(struct ledger *l, size_t place, const struct item_state *state,
                     uint64_t serial)
{
    add_version(l, serial, OF_ITEM, place)->before.item = l->items[place];
    l->items[place] = *state;
}

void ledger_set_hook(struct ledger *l, size_t place, const struct hook_state *state,
                     uint64_t serial)
{
    add_version(l, serial, OF_HOOK, place)->before.hook = l->hooks[place].now;
    l->hooks[place].now = *state;
}

void ledger_set_pair(struct ledger *l, size_t place, const struct pair_state *state,
                     uint64_t serial)
{
    add_version(l, serial, OF_PAIR, place)->before.pair = l->pairs[place].now;
    l->pairs[place].now = *state;
}

size_t ledger_add_hook(struct ledger *l, const struct hook *hook, uint64_t serial)
{
    size_t place = l->hook_count++;

    MUST(l->hook_count <= LEDGER_HOOKS);
    l->hooks[place] = *hook;
    l->hooks[place].now = (struct hook_state){.exists = false};
    ledger_set_hook(l, place, &hook->now, serial);
    return place;
}

static void add_pair(struct ledger *l, size_t event, size_t hook, uint64_t serial)
{
    size_t place = l->pair_count++;

    MUST(l->pair_count <= LEDGER_PAIRS);
    l->pairs[place] = (struct pair){.event = event, .hook = hook};
    ledger_set_pair(l, place, &(struct pair_state){.exists = true}, serial);
}

static bool selects(const struct hook *hook, int64_t n)
{
    return hook->now.exists && !hook->now.is_paused && n % LEDGER_DIGITS >= hook->least_digit;
}

size_t ledger_add_event(struct ledger *l, const struct raised *event, uint64_t serial)
{
    size_t place = l->event_count++;

    MUST(l->event_count <= LEDGER_EVENTS);
    l->events[place] = *event;
    l->events[place].now = (struct event_state){.exists = false};
    add_version(l, serial, OF_EVENT, place)->before.event = l->events[place].now;
    l->events[place].now = (struct event_state){true, serial};
    for (size_t i = 0; i < l->hook_count; i++)
        if (selects(&l->hooks[i], event->n))
            add_pair(l, place, i, serial);
    return place;
}

void ledger_rewind(struct ledger *l, uint64_t serial)
{
    while (l->version_count > 0 && l->versions[l->version_count - 1].serial > serial) {
        const struct version *v = &l->versions[--l->version_count];

        switch (v->of) {
        case OF_ITEM:
            l->items[v->place] = v->before.item;
            break;
        case OF_HOOK:
            l->hooks[v->place].now = v->before.hook;
            break;
        case OF_EVENT:
            l->events[v->place].now = v->before.event;
            break;
        case OF_PAIR:
            l->pairs[v->place].now = v->before.pair;
            break;
        }
    }
}

size_t ledger_find_hook(const struct ledger *l, struct span id)
{
    for (size_t i = l->hook_count; i-- > 0;)
        if (l->hooks[i].now.exists && span_eq(span_str(l->hooks[i].id), id))
            return i;
    return SIZE_MAX;
}

size_t ledger_find_event(const struct ledger *l, struct span id)
{
    for (size_t i = l->event_count; i-- > 0;)
        if (l->events[i].now.exists && span_eq(span_str(l->events[i].id), id))
            return i;
    return SIZE_MAX;
}

size_t ledger_find_pair(const struct ledger *l, size_t event, size_t hook)
{
    for (size_t i = l->pair_count; i-- > 0;)
        if (l->pairs[i].event == event && l->pairs[i].hook == hook && l->pairs[i].now.exists)
            return i;
    return SIZE_MAX;
}

bool ledger_has_room(const struct ledger *l)
{
    return l->hook_count < LEDGER_HOOKS - 8 && l->event_count < LEDGER_EVENTS - 8 &&
           l->pair_count < LEDGER_PAIRS - 128 && l->version_count < LEDGER_VERSIONS - 1024;
}
