/* Failures only ever become more, so whoever is among the worst can be driven out by one that fails
 * just now, and by no other: there is nothing to sort, and nothing to look for but the least of a
 * few. */
#include "webhook/worst.h"

static void put(struct worst *w, size_t at, struct worst_entry *entry)
{
    w->entries[at] = entry;
    entry->place = at + 1;
}

static size_t find_least(const struct worst *w)
{
    size_t least = 0;

    for (size_t i = 1; i < w->count; i++)
        if (w->entries[i]->failures < w->entries[least]->failures)
            least = i;
    return least;
}

static void drive_out(struct worst *w, struct worst_entry *entry)
{
    size_t least = find_least(w);

    if (entry->failures <= w->entries[least]->failures)
        return;
    w->entries[least]->place = 0;
    put(w, least, entry);
}

void worst_note(struct worst *w, struct worst_entry *entry, bool is_failure)
{
    entry->attempts++;
    if (!is_failure)
        return;
    entry->failures++;
    if (entry->place != 0)
        return;
    if (w->count < WORST_MOST)
        put(w, w->count++, entry);
    else
        drive_out(w, entry);
}

void worst_forget(struct worst *w, const struct worst_entry *entry)
{
    size_t at = entry->place;

    if (at == 0)
        return;
    w->count--;
    if (at - 1 < w->count)
        put(w, at - 1, w->entries[w->count]);
}
