/* Timers: any number, 40 bytes each, on one uv_timer. A timer fires once, from the loop, never
 * from timer_start. */
#ifndef IO_TIMER_H
#define IO_TIMER_H

#include "io/loop.h"

struct timer {
    struct heap_node node;
    uint64_t deadline_ms; /* loop clock */
    void (*on_time)(struct timer *timer);
};

/* `timer` is zeroed or was initialised before. */
void timer_init(struct timer *timer, void (*on_time)(struct timer *timer));
/* Fires delay_ms from now; a running timer is moved. */
void timer_start(struct loop *loop, struct timer *timer, uint64_t delay_ms);
/* Running or not. */
void timer_stop(struct loop *loop, struct timer *timer);
bool timer_running(const struct timer *timer);

#endif
