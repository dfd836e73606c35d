/* The helper process: takes requests one after the other, carries them out with plain blocking
 * system calls, answers. It ends when the socket closes, that is with its parent at the latest.
 *
 * It is forked from a process with an event loop, so it uses nothing of what it inherits but the
 * descriptors it is given, and allocates nothing. */
#include "disk_helper.h"

#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where the descriptors are put, so that all others can be closed. Standard error stays. */
enum { SOCKET_FD = 0, MEMORY_FD = 1, LOCK_FD = 3, FIRST_OTHER_FD = 4 };

struct helper {
    int files[HELPER_FILES_MAX]; /* by slot; -1: none */
    size_t page_bytes;
};

static void place(int fd, int at)
{
    if (fd < 0 || dup2(fd, at) < 0)
        close(at);
}

static void keep_only(int socket, int memory, int lock)
{
    /* Out of the way first: one might stand where another has to go. */
    socket = fcntl(socket, F_DUPFD, FIRST_OTHER_FD);
    memory = fcntl(memory, F_DUPFD, FIRST_OTHER_FD);
    lock = lock < 0 ? -1 : fcntl(lock, F_DUPFD, FIRST_OTHER_FD);
    place(socket, SOCKET_FD);
    place(memory, MEMORY_FD);
    place(lock, LOCK_FD);
    if (close_range(FIRST_OTHER_FD, ~0u, 0) == 0)
        return;
    for (int fd = FIRST_OTHER_FD; fd < sysconf(_SC_OPEN_MAX); fd++)
        close(fd);
}

static int64_t write_all(int fd, const char *p, uint64_t n, uint64_t offset)
{
    uint64_t written = 0;

    while (written < n) {
        ssize_t step = pwrite(fd, p + written, n - written, (off_t)(offset + written));

        if (step <= 0)
            return step < 0 ? -errno : -EIO;
        written += (uint64_t)step;
    }
    return (int64_t)written;
}

/* Maps what this job writes, while it does: nothing has to be kept in step with the parent. */
static int64_t write_from_memory(const struct helper *helper, const struct helper_request *request)
{
    size_t before = request->memory % helper->page_bytes; /* a mapping begins at a page */
    size_t mapped = before + request->bytes;
    char *p =
        mmap(NULL, mapped, PROT_READ, MAP_SHARED, MEMORY_FD, (off_t)(request->memory - before));
    int64_t result;

    if (p == MAP_FAILED)
        return -errno;
    result = write_all(helper->files[request->slot], p + before, request->bytes, request->offset);
    munmap(p, mapped);
    return result;
}

static int64_t run(const struct helper *helper, const struct helper_request *request)
{
    int fd = helper->files[request->slot];
    int64_t result;

    switch ((enum helper_what)request->what) {
    case HELPER_WRITE:
        return write_from_memory(helper, request);
    case HELPER_WRITE_DURABLE:
        result = write_from_memory(helper, request);
        return result >= 0 && fdatasync(fd) != 0 ? -errno : result;
    case HELPER_SYNC:
        return fdatasync(fd) == 0 ? 0 : -errno;
    case HELPER_SYNC_DIRECTORY:
        return fsync(fd) == 0 ? 0 : -errno;
    default:
        return -EINVAL;
    }
}

/* The descriptor that came with a message; -1: none. */
static int received_fd(struct msghdr *message)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int fd = -1;

    if (header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

/* False when the parent is gone. */
static bool receive(struct helper_request *out_request, int *out_fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec bytes = {out_request, sizeof(*out_request)};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;

    do {
        n = recvmsg(SOCKET_FD, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    *out_fd = n < 0 ? -1 : received_fd(&message);
    return n == (ssize_t)sizeof(*out_request) && out_request->slot < HELPER_FILES_MAX;
}

static void set_file(struct helper *helper, uint32_t slot, int fd)
{
    if (helper->files[slot] >= 0)
        close(helper->files[slot]);
    helper->files[slot] = fd;
}

static void ignore_signals(void)
{
    /* They are meant for the server, which still has to write when it gets them. */
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ};

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        signal(numbers[i], SIG_IGN);
}

_Noreturn void disk_helper_run(int socket, int memory, int lock)
{
    struct helper helper = {.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    struct helper_request request;
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "svcd-disk");
    ignore_signals();
    keep_only(socket, memory, lock);
    for (size_t i = 0; i < HELPER_FILES_MAX; i++)
        helper.files[i] = -1;

    while (receive(&request, &fd)) {
        struct helper_answer answer = {.job = request.job};

        if (request.what == HELPER_OPEN || request.what == HELPER_CLOSE) {
            set_file(&helper, request.slot, fd);
            continue;
        }
        answer.result = run(&helper, &request);
        if (send(SOCKET_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}
