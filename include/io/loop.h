/* The one event loop. A turn is one pass of it: what the sockets brought is handled, then the turn
 * ends, then the loop sleeps until something happens. At the turn's end the timers that are due
 * fire; then the hooks run, once per turn, in the order they were added (the store's commit is
 * one); then tasks run, among them those that free dead objects; then
 * some of what was freed goes back to the kernel (mem_give_back).
 *
 * libuv's thread pool is never used: no file, DNS or random request of libuv's is made. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/err.h"
#include "base/list.h"

#include <uv.h>

#define LOOP_SCRATCH_BYTES 65536u

struct heap;

struct loop {
    uv_loop_t uv;
    uv_prepare_t turn_end;
    uv_idle_t busy;              /* active while the turn's end has work: the loop must not sleep */
    uv_timer_t alarm;            /* wakes the loop for the earliest of `timers` */
    uint64_t alarm_ms;           /* the deadline that the alarm is armed for */
    struct heap *timers;         /* struct timer */
    uint64_t timers_started;     /* ever: the next one's serial */
    uint64_t turns;              /* that have ended, or are ending */
    uint64_t waits;              /* for events: while it stays the same, the loop has not slept */
    struct list hooks;           /* struct loop_hook */
    struct list_link *next_hook; /* while hooks run: the one to run after this */
    struct list tasks;           /* struct loop_task */
    char *scratch; /* LOOP_SCRATCH_BYTES for anybody; what is in it lasts until one returns */
};

/* Runs at every turn end while it is added; keeps no loop running by itself. Embedded in its
 * owner. */
struct loop_hook {
    struct list_link link;
    void (*run)(struct loop_hook *hook);
};

/* Runs once, at the end of the current turn or, when posted from a task or hook, of the next one:
 * never inside the call that posted it. Embedded in its owner; at most once in the queue. */
struct loop_task {
    struct list_link link;
    void (*run)(struct loop_task *task);
};

/* Ignores SIGPIPE in the whole process. Error ERR_UNKNOWN: the kernel refused (descriptors,
 * memory). */
struct err *loop_init(struct loop *loop) MUST_USE;
/* Every handle must be closed or closing, every hook, timer and task gone; MUST fails otherwise and
 * the log names the handle's type. Closes under way are completed. NULL or zeroed is allowed. */
void loop_done(struct loop *loop);
/* Runs one turn at least, then until no handle, timer or task is left. */
void loop_run(struct loop *loop);
/* Runs what is ready, and at most one wait; for tests. A test that moves base/clock before the call
 * sees the timers fire in it that have come due. */
void loop_run_once(struct loop *loop);

void loop_add_hook(struct loop *loop, struct loop_hook *hook);
/* Any hook, also from inside a hook. */
void loop_remove_hook(struct loop *loop, struct loop_hook *hook);
/* A task that is in the queue stays where it is. */
void loop_post(struct loop *loop, struct loop_task *task);
/* Posted or not. */
void loop_unpost(struct loop *loop, struct loop_task *task);
bool loop_posted(const struct loop_task *task);
/* The next turn's end comes without a sleep before it. */
void loop_wake(struct loop *loop);
/* The loop clock: milliseconds of base/clock's monotonic clock. */
uint64_t loop_now_ms(const struct loop *loop);

#endif
