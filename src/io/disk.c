/* Jobs and files; how a job is carried out is the engine's business (disk_aio.c, disk_helper.c).
 * A job is in one of two lists: under_way, until the engine has its result, then done, until its
 * callback was called. One that fails at once goes to `done` directly and is reported by a task, so
 * that no callback runs inside the call that started the job. */
#include "disk_engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void disk_job_done(struct disk *disk, struct disk_job *job, int64_t result)
{
    list_remove(&disk->under_way, &job->link);
    job->result = (int)MIN(result, 0);
    if (result >= 0 && (uint64_t)result != job->bytes)
        job->result = -EIO;
    list_push_back(&disk->done, &job->link);
}

/* A callback may free the disk: its memory stays until the loop has closed the handle, and `done`
 * is empty then. Jobs that fail at once meanwhile wait for the report task. */
static void report_done(struct disk *disk)
{
    size_t left = list_count(&disk->done);
    struct disk_job *job;

    while (left-- > 0 &&
           (job = LIST_OBJECT(list_pop_front(&disk->done), struct disk_job, link)) != NULL)
        job->on_done(job->context, job->result);
}

static void on_report(struct loop_task *task)
{
    report_done(CONTAINER_OF(task, struct disk, report));
}

/* The loop goes on running for jobs under way, not for an idle disk. */
static void keep_loop(struct disk *disk)
{
    if (list_empty(&disk->under_way))
        uv_unref((uv_handle_t *)&disk->poll);
    else
        uv_ref((uv_handle_t *)&disk->poll);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct disk *disk = CONTAINER_OF(poll, struct disk, poll);

    (void)status; /* the engine finds out itself */
    (void)events;
    disk->ops->reap(disk, false);
    if (disk->lost)
        uv_poll_stop(poll);
    keep_loop(disk);
    report_done(disk);
}

static void submit(struct disk_file *file, struct disk_job *job, const struct disk_request *request)
{
    struct disk *disk = file->disk;
    int result;

    job->started_ns = clock_mono_ns();
    job->bytes = request->n;
    if (fault_hit("disk.submit"))
        result = -EAGAIN;
    else if (fault_hit(request->p == NULL ? "disk.sync" : "disk.write"))
        result = -EIO;
    else
        result = disk->lost ? -EPIPE : disk->ops->submit(file, job, request);

    if (result == 0) {
        list_push_back(&disk->under_way, &job->link);
        keep_loop(disk);
        return;
    }
    job->result = result;
    list_push_back(&disk->done, &job->link);
    loop_post(disk->loop, &disk->report);
}

void disk_write(struct disk_file *file, struct disk_job *job, const void *p, size_t n,
                uint64_t offset, bool durable)
{
    MUST(p != NULL && n > 0 && n % DISK_BLOCK_BYTES == 0 && offset % DISK_BLOCK_BYTES == 0);
    submit(file, job, &(struct disk_request){p, n, offset, durable});
}

void disk_sync(struct disk_file *file, struct disk_job *job)
{
    submit(file, job, &(struct disk_request){NULL, 0, 0, true});
}

static struct err *open_file(struct disk *disk, const char *path, int flags,
                             struct disk_file **out_file)
{
    struct disk_file *file = NEW(struct disk_file);
    struct err *e = NULL;

    *file = (struct disk_file){.disk = disk, .fd = -1, .direct = -1, .direct_durable = -1};
    file->directory = (flags & O_DIRECTORY) != 0;
    disk->files++;
    if (fault_hit("disk.open"))
        errno = EMFILE;
    else
        file->fd = open(path, flags | O_CLOEXEC, 0600);
    if (file->fd < 0)
        e = ERR(ERR_STORAGE_FAILURE, "cannot open %s: %s", path, strerror(errno));
    else
        e = disk->ops->add_file(file, path);
    if (e != NULL) {
        disk_close(file);
        return e;
    }
    *out_file = file;
    return NULL;
}

struct err *disk_create(struct disk *disk, const char *path, struct disk_file **out_file)
{
    return open_file(disk, path, O_RDWR | O_CREAT | O_EXCL, out_file);
}

struct err *disk_open(struct disk *disk, const char *path, struct disk_file **out_file)
{
    return open_file(disk, path, O_RDWR, out_file);
}

struct err *disk_open_directory(struct disk *disk, const char *path, struct disk_file **out_file)
{
    return open_file(disk, path, O_RDONLY | O_DIRECTORY, out_file);
}

void disk_close(struct disk_file *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0) {
        file->disk->ops->remove_file(file);
        close(file->fd);
    }
    file->disk->files--;
    mem_free(file);
}

int disk_fd(const struct disk_file *file)
{
    return file->fd;
}

void *disk_memory(struct disk *disk, size_t n)
{
    return disk->ops->map(disk, n);
}

void disk_memory_free(struct disk *disk, void *p, size_t n)
{
    if (p != NULL)
        disk->ops->unmap(disk, p, n);
}

enum disk_engine disk_engine(const struct disk *disk)
{
    return disk->engine;
}

static void on_probed(void *context, int result)
{
    int *out = context;

    *out = result;
}

/* Waits for one job without the loop. */
static int finish_probe(struct disk *disk, const int *result)
{
    while (*result > 0) {
        if (list_empty(&disk->done))
            disk->ops->reap(disk, true);
        report_done(disk);
    }
    loop_unpost(disk->loop, &disk->report);
    return *result;
}

/* Says nothing about the engine, and a journal must start on a full disk too. */
static bool is_lack_of_room(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* A sync and a write that work here will work for segments. */
static struct err *try_file(struct disk *disk, struct disk_file *file)
{
    int synced = 1, written = 1; /* until on_probed */
    struct disk_job sync = {.on_done = on_probed, .context = &synced};
    struct disk_job write = {.on_done = on_probed, .context = &written};
    void *p = disk_memory(disk, DISK_BLOCK_BYTES);

    disk_sync(file, &sync);
    if (finish_probe(disk, &synced) == 0) {
        disk_write(file, &write, p, DISK_BLOCK_BYTES, 0, false);
        finish_probe(disk, &written);
    }
    disk_memory_free(disk, p, DISK_BLOCK_BYTES);
    if (synced != 0)
        return ERR(ERR_STORAGE_FAILURE, "sync: %s", strerror(-synced));
    if (written != 0 && !is_lack_of_room(-written))
        return ERR(ERR_STORAGE_FAILURE, "write: %s", strerror(-written));
    return NULL;
}

static struct err *try_path(struct disk *disk, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* a killed process may have left it */
    struct disk_file *file;
    struct err *e;

    if (fd < 0)
        return is_lack_of_room(errno)
                   ? NULL
                   : ERR(ERR_STORAGE_FAILURE, "cannot make %s: %s", path, strerror(errno));
    close(fd);
    TRY(disk_open(disk, path, &file));
    e = try_file(disk, file);
    disk_close(file);
    return e;
}

static struct err *probe(struct disk *disk, const char *directory)
{
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;

    buf_printf(&path, "%s/disk-probe.tmp", directory);
    e = try_path(disk, buf_text(&path));
    unlink(buf_text(&path));
    buf_done(&path);
    return e;
}

static struct err *start(struct disk *disk, enum disk_engine engine, const char *directory,
                         int lock)
{
    struct err *e;

    disk->engine = engine;
    disk->ops = engine == DISK_AIO ? &disk_aio_ops : &disk_helper_ops;
    disk->lost = false;
    e = disk->ops->start(disk, lock);
    if (e == NULL)
        e = probe(disk, directory);
    if (e == NULL)
        return NULL;
    disk->ops->stop(disk);
    return err_prefix(e, "%s in %s: ", disk->ops->name, directory);
}

static struct err *start_any(struct disk *disk, enum disk_engine engine, const char *directory,
                             int lock)
{
    struct err *e;

    if (engine != DISK_AUTO)
        return start(disk, engine, directory, lock);
    e = start(disk, DISK_AIO, directory, lock);
    if (e == NULL)
        return NULL;
    log_info("disk", "%.*s; a helper process writes instead", SPAN_FMT(err_message(e)));
    err_free(e);
    return start(disk, DISK_HELPER, directory, lock);
}

struct err *disk_new(struct loop *loop, enum disk_engine engine, const char *directory, int lock,
                     struct disk **out_disk)
{
    struct disk *disk = NEW(struct disk);
    struct err *e;
    int status;

    *disk = (struct disk){.loop = loop, .fd = -1, .report = {.run = on_report}};
    list_init(&disk->under_way);
    list_init(&disk->done);
    e = start_any(disk, engine, directory, lock);
    if (e != NULL) {
        mem_free(disk);
        return e;
    }
    status = uv_poll_init(&loop->uv, &disk->poll, disk->fd);
    if (status != 0) {
        e = ERR(ERR_STORAGE_FAILURE, "%s: %s", disk->ops->name, uv_strerror(status));
        disk->ops->stop(disk);
        mem_free(disk);
        return e;
    }
    uv_poll_start(&disk->poll, UV_READABLE, on_readable);
    keep_loop(disk);
    *out_disk = disk;
    return NULL;
}

void disk_wait(struct disk *disk)
{
    while (!list_empty(&disk->under_way))
        disk->ops->reap(disk, true);
    while (list_pop_front(&disk->done) != NULL)
        continue;
    loop_unpost(disk->loop, &disk->report);
    keep_loop(disk);
}

static void on_closed(uv_handle_t *poll)
{
    mem_free(CONTAINER_OF((uv_poll_t *)poll, struct disk, poll));
}

void disk_free(struct disk *disk)
{
    if (disk == NULL)
        return;
    disk_wait(disk);
    MUST(disk->files == 0);
    uv_close((uv_handle_t *)&disk->poll, on_closed);
    disk->ops->stop(disk);
}
