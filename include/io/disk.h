/* Asynchronous durable writes without threads: the one small interface behind which the journal's
 * two engines stand. DISK_AIO: kernel AIO on O_DIRECT descriptors, completions through an eventfd
 * on the loop. DISK_HELPER: a forked child process that is sent write and sync jobs over a
 * socketpair with the data in shared memory; for file systems and containers that refuse the
 * first. (docs/design/performance.md has the figures.) */
#ifndef IO_DISK_H
#define IO_DISK_H

#include "io/loop.h"

#define DISK_BLOCK_BYTES 4096u /* alignment of memory, offset and length of every write */

enum disk_engine { DISK_AUTO, DISK_AIO, DISK_HELPER };

struct disk;
struct disk_file;

/* result: 0, or a negative errno. A short write is reported as -EIO. Fires exactly once, from the
 * loop, never from the call that started the job. */
typedef void disk_done_fn(void *context, int result);

struct disk_job {
    struct list_link link;
    disk_done_fn *on_done; /* this and `context` are set by the caller, the others are disk's */
    void *context;
    uint64_t started_ns;
    size_t bytes; /* to be written */
    int result;
};

/* n, rounded up to whole blocks. */
static inline uint64_t disk_blocks(uint64_t n)
{
    return (n + DISK_BLOCK_BYTES - 1) / DISK_BLOCK_BYTES * DISK_BLOCK_BYTES;
}

/* DISK_AUTO tries AIO on a scratch file in `directory` and falls back to the helper, logging which
 * and why. The helper keeps the descriptor `lock` open as long as it lives, so that a lock on it
 * outlasts the last write even when this process is killed; -1: none. Error ERR_STORAGE_FAILURE. */
struct err *disk_new(struct loop *loop, enum disk_engine engine, const char *directory, int lock,
                     struct disk **out_disk) MUST_USE;
/* Blocks until no job is under way; their callbacks do not fire any more. */
void disk_wait(struct disk *disk);
/* Waits for jobs under way, as above. All files must be closed. NULL is allowed. */
void disk_free(struct disk *disk);
enum disk_engine disk_engine(const struct disk *disk);

/* Creates (exclusively, mode 0600) or opens for writing. Blocking, once a segment. */
struct err *disk_create(struct disk *disk, const char *path, struct disk_file **out_file) MUST_USE;
struct err *disk_open(struct disk *disk, const char *path, struct disk_file **out_file) MUST_USE;
/* For disk_sync only, which makes the names in it durable. */
struct err *disk_open_directory(struct disk *disk, const char *path,
                                struct disk_file **out_file) MUST_USE;
/* No job of it may be under way. NULL is allowed. */
void disk_close(struct disk_file *file);
/* An ordinary descriptor (without O_DIRECT), for everything else. */
int disk_fd(const struct disk_file *file);

/* Page-aligned zeroed memory that jobs may write from; shared with the helper where there is one.
 * Running out of memory ends the process, as in base/mem. */
void *disk_memory(struct disk *disk, size_t n);
void disk_memory_free(struct disk *disk, void *p, size_t n);

/* Writes n bytes (whole blocks, from disk_memory) at a block offset; with `durable` the bytes, and
 * the metadata to find them, are on stable storage when on_done says 0. The memory must stay
 * untouched until then. `job` is embedded in the caller's state. */
void disk_write(struct disk_file *file, struct disk_job *job, const void *p, size_t n,
                uint64_t offset, bool durable);
/* Makes everything written before durable. */
void disk_sync(struct disk_file *file, struct disk_job *job);

#endif
