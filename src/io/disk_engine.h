/* What disk.c and its two engines share. disk.c keeps the books (which jobs are under way, which
 * are done and not reported yet) and talks to the loop; an engine starts jobs and collects their
 * results. */
#ifndef IO_DISK_ENGINE_H
#define IO_DISK_ENGINE_H

#include "io/disk.h"

#include <sys/types.h>

#define DISK_JOBS_MAX 32 /* under way at once */

struct disk_request {
    const void *p; /* NULL: a sync */
    size_t n;
    uint64_t offset;
    bool durable;
};

struct disk_ops {
    const char *name;
    struct err *(*start)(struct disk *disk, int lock)MUST_USE;
    /* Also after a start that failed. */
    void (*stop)(struct disk *disk);
    /* The file's ordinary descriptor is open. remove_file is called even when add_file failed. */
    struct err *(*add_file)(struct disk_file *file, const char *path)MUST_USE;
    void (*remove_file)(struct disk_file *file);
    void *(*map)(struct disk *disk, size_t n);
    void (*unmap)(struct disk *disk, void *p, size_t n);
    /* 0: under way; or a negative errno. */
    int (*submit)(struct disk_file *file, struct disk_job *job, const struct disk_request *request);
    /* Calls disk_job_done for each result that is there; with `wait` for at least one. */
    void (*reap)(struct disk *disk, bool wait);
};

struct disk_helper {
    pid_t pid;
    int memory;          /* memfd: what the jobs write from */
    uint64_t memory_end; /* no offset in it is used twice */
    struct list regions; /* the parts of it that are mapped here */
    uint32_t slots;      /* bits: which names of files are taken */
};

struct disk {
    struct loop *loop;
    const struct disk_ops *ops;
    enum disk_engine engine;
    int fd;                    /* becomes readable when there are results */
    bool lost;                 /* the helper is gone: nothing works any more */
    uv_poll_t poll;            /* on fd, armed from beginning to end */
    struct list under_way;     /* struct disk_job */
    struct list done;          /* struct disk_job, not reported yet */
    struct loop_task report;   /* reports jobs that failed at once */
    size_t files;              /* open */
    unsigned long aio_context; /* the kernel's aio_context_t */
    struct disk_helper helper;
};

struct disk_file {
    struct disk *disk;
    int fd;
    bool directory;
    int direct;         /* AIO: with O_DIRECT; -1: none */
    int direct_durable; /* AIO: with O_DIRECT and O_DSYNC; -1: none */
    unsigned slot;      /* HELPER: its name in messages */
};

extern const struct disk_ops disk_aio_ops, disk_helper_ops;

/* Moves a job from those under way to those done. `result`: bytes written, or a negative errno. */
void disk_job_done(struct disk *disk, struct disk_job *job, int64_t result);

#endif
