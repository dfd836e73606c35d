/* Engine HELPER, the server's side: jobs go as messages to a forked process, their bytes through a
 * memfd that both share. Each file's descriptor is passed once; after that it is known by its slot.
 * The helper answers in order. When it is gone every job fails with EPIPE, now and later. */
#include "disk_helper.h"

#include "disk_engine.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct region {
    struct list_link link;
    char *p;
    size_t n;
    uint64_t offset; /* in the memfd */
};

/* `sockets`: the server's end, the helper's. */
static struct err *fork_helper(struct disk *disk, int lock, int sockets[2])
{
    struct disk_helper *helper = &disk->helper;

    helper->pid = fork();
    if (helper->pid < 0)
        return ERR(ERR_STORAGE_FAILURE, "fork: %s", strerror(errno));
    if (helper->pid == 0)
        disk_helper_run(sockets[1], helper->memory, lock);
    return NULL;
}

static struct err *helper_start(struct disk *disk, int lock)
{
    struct disk_helper *helper = &disk->helper;
    int sockets[2];
    struct err *e;

    *helper = (struct disk_helper){.memory = -1};
    list_init(&helper->regions);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return ERR(ERR_STORAGE_FAILURE, "socketpair: %s", strerror(errno));
    disk->fd = sockets[0];
    helper->memory = memfd_create("svcd-journal", MFD_CLOEXEC);
    if (helper->memory < 0)
        e = ERR(ERR_STORAGE_FAILURE, "memfd_create: %s", strerror(errno));
    else
        e = fork_helper(disk, lock, sockets);
    close(sockets[1]);
    return e;
}

static void helper_stop(struct disk *disk)
{
    struct disk_helper *helper = &disk->helper;

    if (disk->fd >= 0)
        close(disk->fd); /* ends the helper */
    disk->fd = -1;
    while (helper->pid > 0 && waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    helper->pid = 0;
    if (helper->memory >= 0)
        close(helper->memory);
    helper->memory = -1;
}

/* Fails everything under way; nothing is sent any more. */
static void lose_helper(struct disk *disk)
{
    log_error("disk", "the helper process has gone");
    disk->lost = true;
    LIST_EACH(&disk->under_way, link)
        disk_job_done(disk, CONTAINER_OF(link, struct disk_job, link), -EPIPE);
}

/* fd: passed along; -1: none. 0 or a negative errno. */
static int send_request(struct disk *disk, const struct helper_request *request, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct helper_request copy = *request;
    struct iovec bytes = {&copy, sizeof(copy)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

    if (fd >= 0) {
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    return sendmsg(disk->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static struct err *helper_add_file(struct disk_file *file, const char *path)
{
    struct disk_helper *helper = &file->disk->helper;
    int result;

    file->slot = 0;
    while (file->slot < HELPER_FILES_MAX && (helper->slots & 1u << file->slot) != 0)
        file->slot++;
    if (file->slot == HELPER_FILES_MAX)
        return ERR(ERR_STORAGE_FAILURE, "cannot open %s: the helper process has too many files",
                   path);
    helper->slots |= 1u << file->slot;
    result = send_request(
        file->disk, &(struct helper_request){.what = HELPER_OPEN, .slot = file->slot}, file->fd);
    if (result != 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot pass %s on to the helper process: %s", path,
                   strerror(-result));
    return NULL;
}

static void helper_remove_file(struct disk_file *file)
{
    struct disk *disk = file->disk;

    if (file->slot == HELPER_FILES_MAX)
        return;
    disk->helper.slots &= ~(1u << file->slot);
    if (!disk->lost)
        send_request(disk, &(struct helper_request){.what = HELPER_CLOSE, .slot = file->slot}, -1);
}

static void *helper_map(struct disk *disk, size_t n)
{
    struct disk_helper *helper = &disk->helper;
    struct region *region = NEW(struct region);
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    region->n = n;
    region->offset = helper->memory_end;
    helper->memory_end += (n + page_bytes - 1) / page_bytes * page_bytes;
    MUST(ftruncate(helper->memory, (off_t)helper->memory_end) == 0);
    region->p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, helper->memory, (off_t)region->offset);
    MUST(region->p != MAP_FAILED);
    list_push_back(&helper->regions, &region->link);
    return region->p;
}

static struct region *region_of(struct disk *disk, const char *p)
{
    LIST_EACH(&disk->helper.regions, link) {
        struct region *region = CONTAINER_OF(link, struct region, link);

        if (p >= region->p && p < region->p + region->n)
            return region;
    }
    MUST_NOT_REACH();
}

static void helper_unmap(struct disk *disk, void *p, size_t n)
{
    struct disk_helper *helper = &disk->helper;
    struct region *region = region_of(disk, p);

    MUST(region->p == p && region->n == n);
    munmap(p, n);
    fallocate(helper->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)region->offset,
              (off_t)n);
    list_remove(&helper->regions, &region->link);
    mem_free(region);
}

static int helper_submit(struct disk_file *file, struct disk_job *job,
                         const struct disk_request *request)
{
    struct helper_request message = {
        .job = (uintptr_t)job,
        .slot = file->slot,
        .bytes = request->n,
        .offset = request->offset,
    };

    if (request->p == NULL) {
        message.what = file->directory ? HELPER_SYNC_DIRECTORY : HELPER_SYNC;
    } else {
        const struct region *region = region_of(file->disk, request->p);

        message.what = request->durable ? HELPER_WRITE_DURABLE : HELPER_WRITE;
        message.memory = region->offset + (uint64_t)((const char *)request->p - region->p);
    }
    return send_request(file->disk, &message, -1);
}

static void helper_reap(struct disk *disk, bool wait)
{
    struct pollfd readable = {.fd = disk->fd, .events = POLLIN};
    struct helper_answer answer;

    if (wait)
        poll(&readable, 1, -1);
    while (!disk->lost) {
        ssize_t n = recv(disk->fd, &answer, sizeof(answer), MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n == (ssize_t)sizeof(answer))
            disk_job_done(disk, (struct disk_job *)(uintptr_t)answer.job, answer.result);
        else
            lose_helper(disk);
    }
}

const struct disk_ops disk_helper_ops = {
    .name = "helper process",
    .start = helper_start,
    .stop = helper_stop,
    .add_file = helper_add_file,
    .remove_file = helper_remove_file,
    .map = helper_map,
    .unmap = helper_unmap,
    .submit = helper_submit,
    .reap = helper_reap,
};
