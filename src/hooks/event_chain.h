/* What raising an event (event_match.c) asks of the events that there are (event.c). */
#ifndef HOOKS_EVENT_CHAIN_H
#define HOOKS_EVENT_CHAIN_H

#include "base/macros.h"

#include <stdint.h>

struct change;
struct err;
struct event_chain;
struct event_draft;
struct events;
struct hooks;

/* May one more be raised of those that cause one another? It is counted in the change then.
 * ERR_INFINITE_LOOP: see event_raise. */
struct err *event_check_chain(struct hooks *hooks, const struct event_draft *draft,
                              struct change *change) MUST_USE;
/* The chain of what is raised, which is applied next; or NULL. */
void events_set_raising(struct events *e, struct event_chain *chain);
/* Counts an event that is put to the webhooks: no two have the same number. */
uint64_t events_next_match(struct events *e);

#endif
