/* A slow disk for one process, preloaded into it: BENCH_SYNC_US microseconds are added to each
 * fsync, fdatasync, and kernel-AIO operation.
 *
 * A blocking call sleeps, as it would on such a disk. A submitted operation is handed to a thread
 * that submits it that much later: the caller goes on at once and its completion comes late, which
 * is what a slow disk does to asynchronous input and output. Operations overlap as they would on a
 * disk with a queue: each waits from its own submission. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 256 };

struct operation {
    aio_context_t context;
    struct iocb iocb;
    struct timespec due;
};

static struct operation queue[QUEUE_MAX];
static unsigned head, tail; /* a ring; the same delay for all keeps it in order */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;

static long delay_us(void)
{
    const char *text = getenv("BENCH_SYNC_US");

    return text == NULL ? 0 : strtol(text, NULL, 10);
}

static struct timespec after(struct timespec t, long us)
{
    t.tv_nsec += us * 1000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static long call(long number, ...)
{
    static long (*next)(long, ...);
    va_list args;
    long a[6];

    if (next == NULL)
        next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static struct operation take(void)
{
    struct operation operation;

    pthread_mutex_lock(&lock);
    while (head == tail)
        pthread_cond_wait(&filled, &lock);
    operation = queue[head % QUEUE_MAX];
    pthread_mutex_unlock(&lock);
    return operation;
}

static void *submit_late(void *unused)
{
    for (;;) {
        struct operation o = take();
        struct iocb *list[] = {&o.iocb};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &o.due, NULL);
        if (call(SYS_io_submit, o.context, 1L, list, 0L, 0L, 0L) != 1)
            abort(); /* the caller was told that it is under way */
        pthread_mutex_lock(&lock);
        head++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, submit_late, NULL) != 0)
        abort();
}

static long submit(aio_context_t context, const struct iocb *iocb)
{
    struct timespec now;
    long result = 1;

    pthread_once(&started, start);
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    if (tail - head == QUEUE_MAX) {
        errno = EAGAIN;
        result = -1;
    } else {
        queue[tail++ % QUEUE_MAX] = (struct operation){context, *iocb, after(now, delay_us())};
        pthread_cond_signal(&filled);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

long syscall(long number, ...)
{
    va_list args;
    long a[6];

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_io_submit && a[1] == 1 && delay_us() > 0)
        return submit((aio_context_t)a[0], *(struct iocb **)a[2]);
    return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int sync_late(const char *name, int fd)
{
    int (*next)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, name);
    struct timespec pause = after((struct timespec){0, 0}, delay_us());

    nanosleep(&pause, NULL);
    return next(fd);
}

int fsync(int fd)
{
    return sync_late("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_late("fdatasync", fd);
}
