/* Figures of this process for the metrics, and its limit on descriptors, which connections and
 * deliveries share. libuv reads the figures; the limit is the kernel's own. */
#include "io/process.h"

#include "base/must.h"

#include <stddef.h>
#include <sys/resource.h>
#include <uv.h>

uint64_t process_resident_bytes(void)
{
    size_t bytes;

    return uv_resident_set_memory(&bytes) == 0 ? bytes : 0;
}

static uint64_t ns_of(uv_timeval_t t)
{
    return ((uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec) * 1000;
}

uint64_t process_cpu_ns(void)
{
    uv_rusage_t usage;

    return uv_getrusage(&usage) == 0 ? ns_of(usage.ru_utime) + ns_of(usage.ru_stime) : 0;
}

uint64_t process_descriptors_most(void)
{
    struct rlimit limit;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0); /* it fails for bad arguments only */
    return MIN(limit.rlim_cur, INT32_MAX);
}
