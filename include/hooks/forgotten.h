/* How far the past has been forgotten: the greatest ObjectNo of an event, and of an entry of the
 * log of attempts, that was kept and is not any more, whether retention or a client took it out. A
 * stream that begins before it tells of the gap. It is stored with each change that takes some out,
 * for the records of these deletions do not stay in the journal. */
#ifndef HOOKS_FORGOTTEN_H
#define HOOKS_FORGOTTEN_H

#include <stdint.h>

struct change;
struct hooks;

struct forgotten;

struct forgotten *forgotten_new(struct hooks *hooks);
/* NULL is allowed. */
void forgotten_free(struct forgotten *f);

uint64_t forgotten_event(const struct forgotten *f); /* 0: none yet */
uint64_t forgotten_entry(const struct forgotten *f);
/* The change is complete: adds what has to be remembered of those that it takes out. */
void forgotten_add(struct forgotten *f, struct change *change);

#endif
