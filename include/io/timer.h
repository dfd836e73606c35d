/* Timers: any number, 32 bytes each, on one uv_timer. A timer fires once, from the loop at the end
 * of a turn, never from timer_start: one started with delay 0 fires at this turn's end, or at the
 * next one's when another timer, a hook or a task started it. Timers due together fire in the order
 * of their deadlines, those of one deadline in the order they were started. */
#ifndef IO_TIMER_H
#define IO_TIMER_H

#include "base/heap.h"

#include <stdint.h>

struct loop;

struct timer {
    struct heap_node node;
    uint64_t deadline_ms; /* loop clock */
    uint64_t serial;      /* counts starts */
    void (*on_time)(struct timer *timer);
};

/* `timer` is zeroed or was initialised before. */
void timer_init(struct timer *timer, void (*on_time)(struct timer *timer));
/* Fires delay_ms from now; a running timer is moved. */
void timer_start(struct loop *loop, struct timer *timer, uint64_t delay_ms);
/* Running or not. */
void timer_stop(struct loop *loop, struct timer *timer);
bool timer_running(const struct timer *timer);

/* For the loop itself. */
void timer_attach(struct loop *loop);
bool timer_any_due(const struct loop *loop);
/* Those started meanwhile wait for the next call, whatever their delay. */
void timer_fire_due(struct loop *loop);

#endif
