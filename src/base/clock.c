/* The kernel's clocks, read through the vDSO without a system call. A test replaces both at once:
 * from then on time moves only when the test moves it, so that a retry schedule of days runs in
 * milliseconds, and the same way each time. */
#include "base/clock.h"

#include "base/must.h"

#include <stdbool.h>
#include <time.h>

#define NS_PER_S 1000000000

static struct {
    bool on;
    int64_t unix_ns;
    uint64_t mono_ns;
} fake;

static struct timespec look(clockid_t id)
{
    struct timespec now;

    MUST(clock_gettime(id, &now) == 0);
    return now;
}

static int64_t read_clock(clockid_t id)
{
    struct timespec now = look(id);

    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_unix_ns(void)
{
    return fake.on ? fake.unix_ns : read_clock(CLOCK_REALTIME);
}

int64_t clock_unix_s(void)
{
    return fake.on ? fake.unix_ns / NS_PER_S : (int64_t)look(CLOCK_REALTIME_COARSE).tv_sec;
}

uint64_t clock_mono_ns(void)
{
    return fake.on ? fake.mono_ns : (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

uint64_t clock_cpu_ns(void)
{
    return (uint64_t)read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void clock_fake(int64_t unix_ns, uint64_t mono_ns)
{
    fake.on = true;
    fake.unix_ns = unix_ns;
    fake.mono_ns = mono_ns;
}

void clock_advance(uint64_t ns)
{
    MUST(fake.on);
    fake.unix_ns += (int64_t)ns;
    fake.mono_ns += ns;
}

void clock_real(void)
{
    fake.on = false;
}
