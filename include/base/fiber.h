/* A fiber: a function on a stack of its own, which can stop in the midst of what it does, however
 * deep, and go on later. It runs only while somebody resumes it: nothing runs beside anything.
 *
 * Only what turns out long gets one (base/budget.h): to begin on the loop's stack, and once more on
 * a fiber if need be, costs short work nothing. */
#ifndef BASE_FIBER_H
#define BASE_FIBER_H

#include "base/macros.h"

#include <stdbool.h>

/* Address space, of which a fiber takes what it touches. */
#define FIBER_STACK_BYTES (1u << 21)

struct fiber;

/* Does not run it yet. Its stack has a page below it that ends the process when it is touched. */
struct fiber *fiber_new(void (*run)(void *arg), void *arg) MUST_USE;
/* Runs it until it yields or ends; not from a fiber. False: it has ended, and is freed. */
bool fiber_resume(struct fiber *f) MUST_USE;
/* From the fiber that runs: back to who resumed it. From a signal's handler too. */
void fiber_yield(void);
/* Does the caller run on one? */
bool fiber_is_inside(void);
/* Has `free_it` called with what fibers under way may still point to, when they have ended; at once
 * when there are none. */
void fiber_retire(void (*free_it)(void *what), void *what);
/* Frees the stacks that wait to be used again. */
void fiber_forget_stacks(void);

#endif
