/* Preloaded into a program under test: TORTURE_FAIL=`call:number:error` makes that call fail the
 * so-manieth time that it is made, with this errno, or, for `short`, do half of its work. The
 * number 0 fails none and counts: how often the call was made is appended to the file
 * TORTURE_COUNT, by each process that makes it. TORTURE_HELPER=1 refuses kernel AIO. `read` and
 * `write` fail on sockets and files only. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HALF (-1) /* instead of an errno */

static struct {
    char call[24];
    unsigned long number;
    int error;
} wanted;
static unsigned long made;
static bool is_ready;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);

/* By raw calls: this runs inside any call. */
static void report(void)
{
    const char *path = getenv("TORTURE_COUNT");
    char text[24];
    int n = snprintf(text, sizeof(text), "%lu\n", made);
    int fd;

    if (path == NULL || wanted.call[0] == '\0')
        return;
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_write, fd, text, n) < 0)
        abort();
    syscall(SYS_close, fd);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("TORTURE_FAIL");
    char error[16];

    if (text == NULL || sscanf(text, "%23[^:]:%lu:%15s", wanted.call, &wanted.number, error) != 3)
        return;
    wanted.error = strcmp(error, "short") == 0 ? HALF : (int)strtol(error, NULL, 10);
    is_ready = true;
}

__attribute__((destructor)) static void finish(void)
{
    if (wanted.number == 0)
        report();
}

/* Too many to report each; their process ends in order. */
static bool is_allocation(const char *call)
{
    return strstr(call, "alloc") != NULL && strcmp(call, "fallocate") != 0;
}

/* 0, or what this call has to fail with. */
static int failure(const char *call)
{
    if (!is_ready || strcmp(call, wanted.call) != 0)
        return 0;
    made++;
    if (wanted.number == 0 && !is_allocation(call))
        report();
    return made == wanted.number ? wanted.error : 0;
}

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

#define FAIL(call, failed)                                                                         \
    do {                                                                                           \
        int fail_error = failure(call);                                                            \
        if (fail_error > 0) {                                                                      \
            errno = fail_error;                                                                    \
            return failed;                                                                         \
        }                                                                                          \
    } while (0)

/* Of calls that take a number of bytes: `n` is halved. */
#define FAIL_OR_HALVE(call, n)                                                                     \
    do {                                                                                           \
        int fail_error = failure(call);                                                            \
        if (fail_error > 0) {                                                                      \
            errno = fail_error;                                                                    \
            return -1;                                                                             \
        }                                                                                          \
        if (fail_error == HALF && (n) > 1)                                                         \
            (n) /= 2;                                                                              \
    } while (0)

#ifdef TORTURE_HEAP /* not beside a sanitizer, which has a heap of its own */
EXPORT void *malloc(size_t n)
{
    FAIL("malloc", NULL);
    return __libc_malloc(n);
}

EXPORT void *calloc(size_t count, size_t n)
{
    FAIL("calloc", NULL);
    return __libc_calloc(count, n);
}

EXPORT void *realloc(void *p, size_t n)
{
    FAIL("realloc", NULL);
    return __libc_realloc(p, n);
}
#endif

EXPORT void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    FAIL("mmap", MAP_FAILED);
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, n, protection, flags, fd, offset);
}

#define OPEN(name, parameters, directory)                                                          \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        if ((flags & O_CREAT) != 0) {                                                              \
            va_list rest;                                                                          \
            va_start(rest, flags);                                                                 \
            mode = va_arg(rest, mode_t);                                                           \
            va_end(rest);                                                                          \
        }                                                                                          \
        FAIL("openat", -1);                                                                        \
        return (int)syscall(SYS_openat, directory, path, flags, mode);                             \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int directory, const char *path, int flags, ...), directory)
OPEN(openat64, (int directory, const char *path, int flags, ...), directory)

EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t offset)
{
    FAIL_OR_HALVE("pwrite", n);
    return syscall(SYS_pwrite64, fd, p, n, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *p, size_t n, off_t offset)
{
    return pwrite(fd, p, n, offset);
}

EXPORT int fdatasync(int fd)
{
    FAIL("fdatasync", -1);
    return (int)syscall(SYS_fdatasync, fd);
}

EXPORT int fsync(int fd)
{
    FAIL("fsync", -1);
    return (int)syscall(SYS_fsync, fd);
}

/* Answers with the error and leaves errno alone. */
EXPORT int posix_fallocate(int fd, off_t offset, off_t n)
{
    int error = failure("fallocate");

    if (error > 0)
        return error;
    return syscall(SYS_fallocate, fd, 0, offset, n) == 0 ? 0 : errno;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t n)
{
    return posix_fallocate(fd, offset, n);
}

EXPORT int ftruncate(int fd, off_t n)
{
    FAIL("ftruncate", -1);
    return (int)syscall(SYS_ftruncate, fd, n);
}

EXPORT int ftruncate64(int fd, off_t n)
{
    return ftruncate(fd, n);
}

EXPORT int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    FAIL("renameat", -1);
    return (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

EXPORT int unlinkat(int directory, const char *path, int flags)
{
    FAIL("unlinkat", -1);
    return (int)syscall(SYS_unlinkat, directory, path, flags);
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

/* The event loop's own pipes and eventfds have nothing that could fail so. */
static bool may_fail(int fd)
{
    struct stat status;

    return fd > STDERR_FILENO && fstat(fd, &status) == 0 &&
           (S_ISSOCK(status.st_mode) || S_ISREG(status.st_mode));
}

EXPORT ssize_t write(int fd, const void *p, size_t n)
{
    if (may_fail(fd))
        FAIL_OR_HALVE("write", n);
    return syscall(SYS_write, fd, p, n);
}

EXPORT ssize_t read(int fd, void *p, size_t n)
{
    if (may_fail(fd))
        FAIL_OR_HALVE("read", n);
    return syscall(SYS_read, fd, p, n);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    FAIL("writev", -1);
    return syscall(SYS_writev, fd, parts, count);
}

EXPORT ssize_t send(int fd, const void *p, size_t n, int flags)
{
    FAIL_OR_HALVE("send", n);
    return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

EXPORT ssize_t recv(int fd, void *p, size_t n, int flags)
{
    FAIL_OR_HALVE("recv", n);
    return syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    FAIL("sendmsg", -1);
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* Calls that fail as a whole, and otherwise are the kernel's. */
#define CALL(name, parameters, ...)                                                                \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        FAIL(#name, -1);                                                                           \
        return (int)syscall(__VA_ARGS__);                                                          \
    }

CALL(socket, (int family, int type, int protocol), SYS_socket, family, type, protocol)
CALL(socketpair, (int family, int type, int protocol, int fds[2]), SYS_socketpair, family, type,
     protocol, fds)
CALL(bind, (int fd, const struct sockaddr *address, socklen_t n), SYS_bind, fd, address, n)
CALL(listen, (int fd, int backlog), SYS_listen, fd, backlog)
CALL(connect, (int fd, const struct sockaddr *address, socklen_t n), SYS_connect, fd, address, n)
CALL(accept4, (int fd, struct sockaddr *address, socklen_t *n, int flags), SYS_accept4, fd, address,
     n, flags)
CALL(getpeername, (int fd, struct sockaddr *address, socklen_t *n), SYS_getpeername, fd, address, n)
CALL(setsockopt, (int fd, int level, int option, const void *value, socklen_t n), SYS_setsockopt,
     fd, level, option, value, n)
CALL(getsockopt, (int fd, int level, int option, void *value, socklen_t *n), SYS_getsockopt, fd,
     level, option, value, n)
CALL(epoll_create1, (int flags), SYS_epoll_create1, flags)
CALL(epoll_ctl, (int fd, int what, int other, struct epoll_event *event), SYS_epoll_ctl, fd, what,
     other, event)
CALL(eventfd, (unsigned value, int flags), SYS_eventfd2, value, flags)
CALL(pipe2, (int fds[2], int flags), SYS_pipe2, fds, flags)
CALL(memfd_create, (const char *name, unsigned flags), SYS_memfd_create, name, flags)
CALL(flock, (int fd, int operation), SYS_flock, fd, operation)
CALL(mkdir, (const char *path, mode_t mode), SYS_mkdirat, AT_FDCWD, path, mode)

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
                       const sigset_t *mask)
{
    FAIL("epoll_wait", -1);
    return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout, mask, 8);
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    return epoll_pwait(fd, events, most, timeout, NULL);
}

static const char *name_of(long number)
{
    return number == SYS_io_submit ? "io_submit" : number == SYS_io_setup ? "io_setup" : NULL;
}

/* A result that comes later fails there: `io_result`. */
static void fail_results(struct io_event *events, long n)
{
    for (long i = 0; i < n; i++) {
        int error = failure("io_result");

        if (error > 0)
            events[i].res = -error;
        else if (error == HALF)
            events[i].res /= 2;
    }
}

EXPORT long syscall(long number, ...)
{
    static __typeof__(&syscall) next;
    long a[6], result;
    va_list rest;

    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (next == NULL)
        next = NEXT(syscall);
    if (number == SYS_io_setup && getenv("TORTURE_HELPER") != NULL) {
        errno = ENOSYS;
        return -1;
    }
    if (name_of(number) != NULL)
        FAIL(name_of(number), -1);
    result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_getevents)
        fail_results((struct io_event *)a[3], result);
    return result;
}
