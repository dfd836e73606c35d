/* The only source of time, so that tests can set it. Durations and deadlines use the monotonic
 * clock, dates the wall clock; a jump of the wall clock moves no deadline. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since 1970-01-01T00:00:00Z. */
int64_t clock_unix_ns(void);
/* Seconds, each of which may begin some milliseconds late: a quarter of the cost. */
int64_t clock_unix_s(void);
/* Nanoseconds and milliseconds since some fixed moment; never goes back. */
uint64_t clock_mono_ns(void);
uint64_t clock_mono_ms(void);

/* Nanoseconds of processor time that this thread has taken: a system call. Tests do not set it. */
uint64_t clock_cpu_ns(void);

/* Tests: from now on the clocks stand still at these values until advanced. */
void clock_fake(int64_t unix_ns, uint64_t mono_ns);
void clock_advance(uint64_t ns);
void clock_real(void);

#endif
