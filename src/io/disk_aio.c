/* Engine AIO: the kernel's asynchronous input and output, through its raw system calls. A write on
 * an O_DIRECT descriptor of a file whose blocks are allocated does not block in io_submit; with
 * O_DSYNC its completion means stable storage, in one operation. Completions are counted by an
 * eventfd. */
#include "disk_engine.h"

#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct err *aio_start(struct disk *disk, int lock)
{
    (void)lock; /* a process that ends waits for its jobs before it loses its locks */
    disk->aio_context = 0;
    if (syscall(SYS_io_setup, DISK_JOBS_MAX, &disk->aio_context) != 0)
        return ERR(ERR_STORAGE_FAILURE, "io_setup: %s", strerror(errno));
    disk->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (disk->fd < 0)
        return ERR(ERR_STORAGE_FAILURE, "eventfd: %s", strerror(errno));
    return NULL;
}

static void aio_stop(struct disk *disk)
{
    if (disk->aio_context != 0)
        syscall(SYS_io_destroy, disk->aio_context);
    if (disk->fd >= 0)
        close(disk->fd);
    disk->aio_context = 0;
    disk->fd = -1;
}

static struct err *aio_add_file(struct disk_file *file, const char *path)
{
    if (file->directory)
        return NULL;
    file->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (file->direct >= 0)
        file->direct_durable = open(path, O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC);
    if (file->direct_durable < 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot open %s without the page cache: %s", path,
                   strerror(errno));
    return NULL;
}

static void aio_remove_file(struct disk_file *file)
{
    if (file->direct >= 0)
        close(file->direct);
    if (file->direct_durable >= 0)
        close(file->direct_durable);
}

static void *aio_map(struct disk *disk, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)disk;
    MUST(p != MAP_FAILED);
    return p;
}

static void aio_unmap(struct disk *disk, void *p, size_t n)
{
    (void)disk;
    munmap(p, n);
}

static int aio_submit(struct disk_file *file, struct disk_job *job,
                      const struct disk_request *request)
{
    struct disk *disk = file->disk;
    struct iocb iocb = {
        .aio_data = (uintptr_t)job,
        .aio_flags = IOCB_FLAG_RESFD,
        .aio_resfd = (uint32_t)disk->fd,
        .aio_buf = (uintptr_t)request->p,
        .aio_nbytes = request->n,
        .aio_offset = (int64_t)request->offset,
    };
    struct iocb *iocbs[] = {&iocb};

    if (request->p != NULL) {
        iocb.aio_lio_opcode = IOCB_CMD_PWRITE;
        iocb.aio_fildes = (uint32_t)(request->durable ? file->direct_durable : file->direct);
    } else {
        /* FDSYNC of a directory may leave names out: they do not change its size. */
        iocb.aio_lio_opcode = file->directory ? IOCB_CMD_FSYNC : IOCB_CMD_FDSYNC;
        iocb.aio_fildes = (uint32_t)file->fd;
    }
    return syscall(SYS_io_submit, disk->aio_context, 1, iocbs) == 1 ? 0 : -errno;
}

static void aio_reap(struct disk *disk, bool wait)
{
    struct io_event events[DISK_JOBS_MAX];
    uint64_t count;
    long n;

    if (read(disk->fd, &count, sizeof(count)) < 0 && !wait)
        return;
    do {
        n = syscall(SYS_io_getevents, disk->aio_context, wait ? 1 : 0, DISK_JOBS_MAX, events,
                    wait ? NULL : &(struct timespec){0, 0});
    } while (n < 0 && errno == EINTR);
    MUST(n >= 0); /* with valid arguments there is no other error */
    for (long i = 0; i < n; i++)
        disk_job_done(disk, (struct disk_job *)(uintptr_t)events[i].data, events[i].res);
}

const struct disk_ops disk_aio_ops = {
    .name = "kernel AIO",
    .start = aio_start,
    .stop = aio_stop,
    .add_file = aio_add_file,
    .remove_file = aio_remove_file,
    .map = aio_map,
    .unmap = aio_unmap,
    .submit = aio_submit,
    .reap = aio_reap,
};
