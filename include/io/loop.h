/* The one event loop. A turn is one pass of it: what the sockets brought is handled, then the turn
 * ends, then the loop sleeps until something happens. Turn-end hooks run once per turn in the
 * order they were added (the store's commit is one); then tasks run; then dead objects are freed.
 *
 * libuv's thread pool is never used: no file, DNS or random request of libuv's is made. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"

#include <uv.h>

struct loop {
    uv_loop_t uv;
    uv_prepare_t turn_end;
    uv_idle_t busy;   /* active while tasks wait: the loop must not sleep */
    uv_timer_t alarm; /* armed for the earliest of `timers` */
    struct heap timers;
    struct list hooks; /* struct loop_hook */
    struct list tasks; /* struct loop_task */
};

/* Runs at every turn end while it is added. Embedded in its owner. */
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

/* Error ERR_UNKNOWN: the kernel refused (descriptors, memory). */
struct err *loop_init(struct loop *loop) MUST_USE;
/* Every handle, hook, timer and task must be gone; MUST fails otherwise and the log names the
 * handle's type. */
void loop_done(struct loop *loop);
/* Runs until loop_stop, or until nothing is left that could happen. */
void loop_run(struct loop *loop);
/* Runs what is ready, and at most one wait; for tests. */
void loop_run_once(struct loop *loop);
void loop_stop(struct loop *loop);

void loop_add_hook(struct loop *loop, struct loop_hook *hook);
void loop_remove_hook(struct loop *loop, struct loop_hook *hook);
void loop_post(struct loop *loop, struct loop_task *task);
/* Posted or not. */
void loop_unpost(struct loop *loop, struct loop_task *task);
bool loop_posted(const struct loop_task *task);
/* Milliseconds of the monotonic clock, as of this turn's beginning. */
uint64_t loop_now_ms(const struct loop *loop);

#endif
