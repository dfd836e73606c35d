#include "disk.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, MACHINES = 8 };

struct machine {
    const struct loop *loop;
    struct list disks;
    bool is_full;
};

struct disk {
    struct list_link link;
    struct machine *machine;
    struct list jobs;
    size_t files;
    struct list undo; /* of all files, oldest first */
    uint64_t order;
    bool is_off;
};

struct disk_file {
    struct disk *disk;
    int fd;
};

/* What a block of a file held before a write that is not durable yet. */
struct undo {
    struct list_link link;
    struct disk_file *file;
    uint64_t offset;
    uint64_t order;
    size_t n; /* less than a block at the end of the file */
    char before[DISK_BLOCK_BYTES];
};

struct sim_job {
    struct list_link link;
    struct disk_job *job;
    struct disk_file *file;
    char *copy;    /* of what is to be written, made at once; NULL: a sync */
    const void *p; /* where it must still be at the end */
    size_t n;
    uint64_t offset;
    uint64_t order;
    bool durable;
};

static struct machine machines[MACHINES];

static struct machine *machine_of(const struct loop *loop)
{
    struct machine *m = machines;

    while (m->loop != loop && m->loop != NULL)
        m++;
    MUST(m < machines + MACHINES);
    if (m->loop == NULL)
        list_init(&m->disks);
    m->loop = loop;
    return m;
}

static struct disk *disk_at(struct list_link *link)
{
    return CONTAINER_OF(link, struct disk, link);
}

struct err *disk_new(struct loop *loop, enum disk_engine engine, const char *directory, int lock,
                     struct disk **out_disk)
{
    struct disk *disk = NEW(struct disk);

    (void)engine, (void)directory, (void)lock;
    list_init(&disk->jobs);
    list_init(&disk->undo);
    disk->machine = machine_of(loop);
    list_push_back(&disk->machine->disks, &disk->link);
    *out_disk = disk;
    return NULL;
}

enum disk_engine disk_engine(const struct disk *disk)
{
    (void)disk;
    return DISK_AIO;
}

/* Jobs. ------------------------------------------------------------------------------------- */

static void drop_job(struct sim_job *job)
{
    list_remove(&job->file->disk->jobs, &job->link);
    mem_free(job->copy);
    mem_free(job);
}

static size_t jobs_of(const struct disk *disk)
{
    return disk->is_off ? 0 : list_count(&disk->jobs);
}

static struct sim_job *job_at(const struct machine *m, size_t place)
{
    struct list_link *at = list_first(&m->disks), *job;

    while (place >= jobs_of(disk_at(at))) {
        place -= jobs_of(disk_at(at));
        at = list_next(&m->disks, at);
    }
    job = list_first(&disk_at(at)->jobs);
    while (place-- > 0)
        job = list_next(&disk_at(at)->jobs, job);
    return CONTAINER_OF(job, struct sim_job, link);
}

static void drop_undo(struct undo *undo)
{
    list_remove(&undo->file->disk->undo, &undo->link);
    mem_free(undo);
}

/* A sync makes durable what was written before it began; a durable write only what it writes. */
static void forget_undo(const struct sim_job *job)
{
    LIST_EACH(&job->file->disk->undo, at) {
        struct undo *undo = CONTAINER_OF(at, struct undo, link);
        bool is_within = undo->offset >= job->offset && undo->offset < job->offset + job->n;

        if (undo->file == job->file && (job->copy == NULL ? undo->order < job->order : is_within))
            drop_undo(undo);
    }
}

static void keep_undo(const struct sim_job *job)
{
    for (uint64_t at = job->offset; at < job->offset + job->n; at += DISK_BLOCK_BYTES) {
        struct undo *undo = NEW(struct undo);

        undo->file = job->file;
        undo->offset = at;
        undo->order = job->order;
        undo->n = (size_t)pread(job->file->fd, undo->before, DISK_BLOCK_BYTES, (off_t)at);
        MUST(undo->n <= DISK_BLOCK_BYTES);
        list_push_back(&job->file->disk->undo, &undo->link);
    }
}

static void put(const struct disk_file *file, const char *p, size_t n, uint64_t offset)
{
    MUST(pwrite(file->fd, p, n, (off_t)offset) == (ssize_t)n);
}

static void carry_out(const struct sim_job *job)
{
    if (job->copy == NULL) {
        forget_undo(job);
        return;
    }
    MUST(memcmp(job->copy, job->p, job->n) == 0);
    if (job->durable)
        forget_undo(job);
    else
        keep_undo(job);
    put(job->file, job->copy, job->n, job->offset);
}

size_t sim_disk_jobs(const struct loop *loop)
{
    size_t count = 0;

    LIST_EACH(&machine_of(loop)->disks, at)
        count += jobs_of(disk_at(at));
    return count;
}

void sim_disk_finish(const struct loop *loop, size_t place, int result)
{
    struct sim_job *job = job_at(machine_of(loop), place);
    struct disk_job *done = job->job;

    if (result == 0)
        carry_out(job);
    drop_job(job);
    done->result = result;
    done->on_done(done->context, result);
}

static void add_job(struct disk_file *file, struct disk_job *job, const void *p, size_t n,
                    uint64_t offset, bool durable)
{
    struct sim_job *added = NEW(struct sim_job);

    *added = (struct sim_job){.job = job,
                              .file = file,
                              .p = p,
                              .n = n,
                              .offset = offset,
                              .order = file->disk->order++,
                              .durable = durable};
    if (p != NULL) {
        added->copy = mem_alloc(n);
        memcpy(added->copy, p, n);
    }
    list_push_back(&file->disk->jobs, &added->link);
}

void disk_write(struct disk_file *file, struct disk_job *job, const void *p, size_t n,
                uint64_t offset, bool durable)
{
    MUST(p != NULL && n > 0 && n % DISK_BLOCK_BYTES == 0 && offset % DISK_BLOCK_BYTES == 0);
    add_job(file, job, p, n, offset, durable);
}

void disk_sync(struct disk_file *file, struct disk_job *job)
{
    add_job(file, job, NULL, 0, 0, true);
}

void disk_wait(struct disk *disk)
{
    struct list_link *first;

    while ((first = list_first(&disk->jobs)) != NULL) {
        struct sim_job *job = CONTAINER_OF(first, struct sim_job, link);

        if (!disk->is_off)
            carry_out(job);
        drop_job(job);
    }
}

void disk_free(struct disk *disk)
{
    if (disk == NULL)
        return;
    disk_wait(disk);
    MUST(disk->files == 0 && list_empty(&disk->undo));
    list_remove(&disk->machine->disks, &disk->link);
    mem_free(disk);
}

/* Files and memory. ------------------------------------------------------------------------- */

static struct err *open_file(struct disk *disk, const char *path, int flags,
                             struct disk_file **out_file)
{
    struct disk_file *file;
    int fd = -1;

    if (disk->machine->is_full && (flags & O_CREAT) != 0)
        errno = ENOSPC;
    else
        fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot open %s: %s", path, strerror(errno));
    file = NEW(struct disk_file);
    *file = (struct disk_file){disk, fd};
    disk->files++;
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

/* Closing makes nothing durable; the simulation follows files only while they are open. */
void disk_close(struct disk_file *file)
{
    if (file == NULL)
        return;
    LIST_EACH(&file->disk->undo, at)
        if (CONTAINER_OF(at, struct undo, link)->file == file)
            drop_undo(CONTAINER_OF(at, struct undo, link));
    close(file->fd);
    file->disk->files--;
    mem_free(file);
}

int disk_fd(const struct disk_file *file)
{
    return file->fd;
}

void *disk_memory(struct disk *disk, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)disk;
    MUST(p != MAP_FAILED);
    return p;
}

void disk_memory_free(struct disk *disk, void *p, size_t n)
{
    (void)disk;
    if (p != NULL)
        munmap(p, n);
}

void sim_disk_set_full(const struct loop *loop, bool is_full)
{
    machine_of(loop)->is_full = is_full;
}

bool sim_disk_is_synced(const struct loop *loop)
{
    bool is_synced = true;

    LIST_EACH(&machine_of(loop)->disks, at)
        is_synced = is_synced && list_empty(&disk_at(at)->undo);
    return is_synced;
}

/* Loss of power. ---------------------------------------------------------------------------- */

/* Which sectors of a run reach the disk: none, all, those in front, any. */
static uint64_t first_sectors(size_t count)
{
    switch (rng_below(3)) {
    case 0:
        return 0;
    case 1:
        return count;
    default:
        return rng_below(count + 1);
    }
}

static void write_some(const struct sim_job *job)
{
    size_t count = job->n / SECTOR_BYTES;
    bool is_any = rng_below(4) == 0;
    uint64_t first = first_sectors(count);

    for (size_t i = 0; i < count; i++)
        if (is_any ? rng_below(2) == 0 : i < first)
            put(job->file, job->copy + i * SECTOR_BYTES, SECTOR_BYTES,
                job->offset + i * SECTOR_BYTES);
}

static void undo_some(const struct undo *undo)
{
    uint64_t first = first_sectors(undo->n / SECTOR_BYTES);

    for (size_t i = 0; i < first; i++)
        put(undo->file, undo->before + i * SECTOR_BYTES, SECTOR_BYTES,
            undo->offset + i * SECTOR_BYTES);
}

static void lose_power(struct disk *disk)
{
    struct list_link *last;

    LIST_EACH(&disk->jobs, at)
        if (CONTAINER_OF(at, struct sim_job, link)->copy != NULL)
            write_some(CONTAINER_OF(at, struct sim_job, link));
    while ((last = list_last(&disk->undo)) != NULL) {
        undo_some(CONTAINER_OF(last, struct undo, link));
        drop_undo(CONTAINER_OF(last, struct undo, link));
    }
    disk->is_off = true;
}

void sim_disk_lose_power(const struct loop *loop)
{
    LIST_EACH(&machine_of(loop)->disks, at)
        lose_power(disk_at(at));
}

static void end_process(struct disk *disk)
{
    LIST_EACH(&disk->jobs, at)
        if (rng_below(2) == 0)
            carry_out(CONTAINER_OF(at, struct sim_job, link));
    while (!list_empty(&disk->undo))
        drop_undo(CONTAINER_OF(list_first(&disk->undo), struct undo, link));
    disk->is_off = true;
}

void sim_disk_kill(const struct loop *loop)
{
    LIST_EACH(&machine_of(loop)->disks, at)
        end_process(disk_at(at));
}
