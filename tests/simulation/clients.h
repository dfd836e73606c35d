/* What clients do: requests through dispatch_run, and what the ledger says of their answers. */
#ifndef SIMULATION_CLIENTS_H
#define SIMULATION_CLIENTS_H

#include "world.h"

void client_writes_item(struct world *w);
void client_deletes_item(struct world *w);
void client_raises_event(struct world *w);
void client_raises_again(struct world *w);
void client_makes_webhook(struct world *w);
void client_changes_webhook(struct world *w);
void client_deletes_webhook(struct world *w);
void client_sends_again(struct world *w);
void client_forgets_delivery(struct world *w);
void client_makes_mistake(struct world *w);
/* All entities of a resource at once, over several turns. */
void client_changes_many(struct world *w);
/* They are all as they were made last, or, while that is being applied, as they were before. */
void clients_check_many(struct world *w);
void client_reads(struct world *w);

/* Until the end: nothing is paused any more. */
void clients_resume_all(struct world *w);
/* All items are there, with their values, and no others. */
void clients_check_items(struct world *w);
/* How often an event arrived at the local destination. */
size_t clients_count_in_sink(struct world *w, int64_t n);

/* Seconds before the next attempts. */
#define SCHEDULE_MOST 4
extern const struct schedule {
    const char *json;
    unsigned count;
    uint32_t seconds[SCHEDULE_MOST];
} schedules[];

/* The body of an event. */
void event_add_body(struct buf *b, int64_t n, unsigned padding);

#endif
