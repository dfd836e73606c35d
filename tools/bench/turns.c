/* How long the turns of an event loop are, preloaded into it: the processor time from one return of
 * epoll to its next call, which does not count what other processes take. The file that BENCH_TURNS
 * names counts them: a 32-bit number for each microsecond, the last for all longer ones. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_US = 100000 };

static uint32_t *turns; /* NULL: not counting */
static uint64_t began_ns;

__attribute__((constructor)) static void start(void)
{
    size_t bytes = (LONGEST_US + 1) * sizeof(*turns);
    const char *path = getenv("BENCH_TURNS");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *p;

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    turns = p == MAP_FAILED ? NULL : p;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void end_turn(void)
{
    uint64_t us = (cpu_ns() - began_ns) / 1000;

    if (turns != NULL && began_ns > 0)
        turns[us < LONGEST_US ? us : LONGEST_US]++;
}

int epoll_pwait(int epoll, struct epoll_event *events, int count, int timeout_ms,
                const sigset_t *mask)
{
    static int (*next)(int, struct epoll_event *, int, int, const sigset_t *);
    int result, error;

    if (next == NULL)
        next = (int (*)(int, struct epoll_event *, int, int, const sigset_t *))(uintptr_t)dlsym(
            RTLD_NEXT, "epoll_pwait");
    end_turn();
    result = next(epoll, events, count, timeout_ms, mask);
    error = errno;
    began_ns = cpu_ns();
    errno = error;
    return result;
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    return epoll_pwait(epoll, events, count, timeout_ms, NULL);
}
