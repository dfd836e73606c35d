/* Preloaded into a program under test: appends what it does to files below TORTURE_DIRECTORY, and
 * what it says (standard output, HTTP answers of success), to the file TORTURE_TRACE, in order.
 * An entry is a `struct entry`, the name, the data. Writes and syncs are two entries, submitted and
 * done; a write is recorded before it is made, an answer before it leaves. The trace is opened for
 * each entry: a forked helper closes all descriptors, so none can be kept. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PATH_BYTES 4096

/* The order is known to lost_writes.py. */
enum op { CREATE, WRITE, SYNC, DONE, SIZE, TRUNCATE, RENAME, UNLINK, MKDIR, SAY };

struct entry {
    uint32_t op, name_bytes;
    uint64_t file, offset, bytes; /* of data */
    int64_t result;
    uint64_t job;
    uint64_t durable; /* the write is its own sync */
};

static long (*next_syscall)(long, ...);

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next_syscall = dlsym(RTLD_NEXT, "syscall");
}

static void put(const struct entry *entry, const char *name, const void *data)
{
    const char *path = getenv("TORTURE_TRACE");
    struct iovec parts[] = {{(void *)(uintptr_t)entry, sizeof(*entry)},
                            {(void *)(uintptr_t)name, entry->name_bytes},
                            {(void *)(uintptr_t)data, entry->bytes}};
    int saved = errno;
    long fd;

    if (path == NULL)
        return;
    fd = next_syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || next_syscall(SYS_writev, fd, parts, 3) < 0)
        abort();
    next_syscall(SYS_close, fd);
    errno = saved;
}

/* The path of fd, or of name beside it, when it is below TORTURE_DIRECTORY; else NULL. */
static const char *path_of(int fd, const char *name, char path[PATH_BYTES])
{
    const char *directory = getenv("TORTURE_DIRECTORY");
    char link[64];
    ssize_t n = 0;

    if (directory == NULL)
        return NULL;
    if (name == NULL || (name[0] != '/' && fd != AT_FDCWD)) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, PATH_BYTES - 256);
        if (n < 0)
            return NULL;
    }
    path[n] = '\0';
    if (name != NULL)
        snprintf(path + n, (size_t)(PATH_BYTES - n), n > 0 ? "/%s" : "%s", name);
    return strncmp(path, directory, strlen(directory)) == 0 ? path : NULL;
}

static uint64_t file_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static bool is_traced(int fd)
{
    char path[PATH_BYTES];

    return path_of(fd, NULL, path) != NULL;
}

static void put_name(enum op op, uint64_t file, const char *path, const char *to)
{
    struct entry entry = {.op = op, .file = file, .name_bytes = (uint32_t)strlen(path)};

    entry.bytes = to == NULL ? 0 : strlen(to);
    put(&entry, path, to);
}

static int open_at(int directory, const char *name, int flags, mode_t mode)
{
    char path[PATH_BYTES];
    bool makes =
        (flags & O_CREAT) != 0 && path_of(directory, name, path) != NULL && access(path, F_OK) != 0;
    int fd = (int)next_syscall(SYS_openat, directory, name, flags, mode);

    if (fd >= 0 && makes)
        put_name(CREATE, file_of(fd), path, NULL);
    return fd;
}

#define OPEN_MODE(flags)                                                                           \
    mode_t mode = 0;                                                                               \
    if (((flags)&O_CREAT) != 0) {                                                                  \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }

EXPORT int open(const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

EXPORT int open64(const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

EXPORT int openat(int directory, const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return open_at(directory, name, flags, mode);
}

EXPORT int openat64(int directory, const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return open_at(directory, name, flags, mode);
}

static void put_done(uint64_t job, int64_t result)
{
    put(&(struct entry){.op = DONE, .job = job, .result = result}, "", NULL);
}

static void put_write(int fd, const void *p, size_t n, off_t offset, uint64_t job)
{
    bool durable = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;

    put(&(struct entry){.op = WRITE,
                        .file = file_of(fd),
                        .offset = (uint64_t)offset,
                        .bytes = n,
                        .job = job,
                        .durable = durable},
        "", p);
}

/* A call that returns when it is done is its own job. */
static uint64_t own_job(void)
{
    static uint64_t last;

    return (uint64_t)getpid() << 20 | (++last & 0xfffff) | (uint64_t)1 << 63;
}

EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t offset)
{
    bool traced = is_traced(fd);
    uint64_t job = own_job();
    ssize_t result;

    if (traced)
        put_write(fd, p, n, offset, job);
    result = next_syscall(SYS_pwrite64, fd, p, n, offset);
    if (traced)
        put_done(job, result);
    return result;
}

EXPORT ssize_t pwrite64(int fd, const void *p, size_t n, off_t offset)
{
    return pwrite(fd, p, n, offset);
}

static int sync_file(long number, int fd)
{
    bool traced = is_traced(fd);
    uint64_t job = own_job();
    int result;

    if (traced)
        put(&(struct entry){.op = SYNC, .file = file_of(fd), .job = job}, "", NULL);
    result = (int)next_syscall(number, fd);
    if (traced)
        put_done(job, result);
    return result;
}

EXPORT int fsync(int fd)
{
    return sync_file(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    return sync_file(SYS_fdatasync, fd);
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t n)
{
    int result = next_syscall(SYS_fallocate, fd, 0, offset, n) == 0 ? 0 : errno;

    if (result == 0 && is_traced(fd))
        put(&(struct entry){.op = SIZE, .file = file_of(fd), .offset = (uint64_t)(offset + n)}, "",
            NULL);
    return result;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t n)
{
    return posix_fallocate(fd, offset, n);
}

EXPORT int ftruncate(int fd, off_t n)
{
    int result = (int)next_syscall(SYS_ftruncate, fd, n);

    if (result == 0 && is_traced(fd))
        put(&(struct entry){.op = TRUNCATE, .file = file_of(fd), .offset = (uint64_t)n}, "", NULL);
    return result;
}

EXPORT int ftruncate64(int fd, off_t n)
{
    return ftruncate(fd, n);
}

EXPORT int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    char from_path[PATH_BYTES], to_path[PATH_BYTES];
    bool traced = path_of(from_directory, from, from_path) != NULL &&
                  path_of(to_directory, to, to_path) != NULL;

    if (traced)
        put_name(RENAME, 0, from_path, to_path);
    return (int)next_syscall(SYS_renameat, from_directory, from, to_directory, to);
}

EXPORT int unlinkat(int directory, const char *name, int flags)
{
    char path[PATH_BYTES];

    if (path_of(directory, name, path) != NULL)
        put_name(UNLINK, 0, path, NULL);
    return (int)next_syscall(SYS_unlinkat, directory, name, flags);
}

EXPORT int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

EXPORT int mkdir(const char *name, mode_t mode)
{
    int result = (int)next_syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    char path[PATH_BYTES];

    if (result == 0 && path_of(AT_FDCWD, name, path) != NULL)
        put_name(MKDIR, 0, path, NULL);
    return result;
}

static void put_said(int fd, const char *p, size_t n)
{
    static const char success[] = "HTTP/1.1 2";

    if (fd == STDOUT_FILENO ||
        (n > sizeof(success) && memcmp(p, success, sizeof(success) - 1) == 0))
        put(&(struct entry){.op = SAY, .bytes = n}, "", p);
}

EXPORT ssize_t write(int fd, const void *p, size_t n)
{
    put_said(fd, p, n);
    return next_syscall(SYS_write, fd, p, n);
}

EXPORT ssize_t send(int fd, const void *p, size_t n, int flags)
{
    put_said(fd, p, n);
    return next_syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    for (size_t i = 0; i < message->msg_iovlen; i++)
        put_said(fd, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    return next_syscall(SYS_sendmsg, fd, message, flags);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    for (int i = 0; i < count; i++)
        put_said(fd, parts[i].iov_base, parts[i].iov_len);
    return next_syscall(SYS_writev, fd, parts, count);
}

static void put_submitted(const struct iocb *iocb)
{
    int fd = (int)iocb->aio_fildes;

    if (!is_traced(fd))
        return;
    if (iocb->aio_lio_opcode == IOCB_CMD_PWRITE)
        put_write(fd, (const void *)(uintptr_t)iocb->aio_buf, iocb->aio_nbytes, iocb->aio_offset,
                  iocb->aio_data);
    else
        put(&(struct entry){.op = SYNC, .file = file_of(fd), .job = iocb->aio_data}, "", NULL);
}

EXPORT long syscall(long number, ...)
{
    long a[6], result;
    va_list rest;

    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_io_submit)
        put_submitted(((struct iocb **)a[2])[0]);
    result = next_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (long i = 0; number == SYS_io_getevents && i < result; i++) {
        const struct io_event *event = (const struct io_event *)a[3] + i;

        put_done(event->data, event->res);
    }
    return result;
}
