/* Bytes go through buffers: one is filled, the others are on their way to the disk.
 *
 *   filled --full, or its segment ends--> writing --done--> free
 *
 * A segment's room is allocated when it begins, so that writes change no metadata that they would
 * wait for, and so that a full disk shows early. Once all of a segment is written it is synced,
 * while others are written; so few are open at a time. The directory is synced at the end.
 *
 * The first error ends it: what is under way is waited for, then it is told. */
#include "journal/copy_in.h"

#include "base/mem.h"
#include "base/must.h"
#include "io/disk.h"
#include "io/fault.h"
#include "journal/backup.h"
#include "journal/journal_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BUFFERS = 8, BUFFER_BYTES = 512 << 10, SEGMENTS_OPEN = 4 };

struct copied_segment {
    struct list_link link;
    struct copy_in *copy;
    struct disk_file *file;
    uint64_t bytes, offset; /* of the file; where the next buffer goes */
    unsigned writes;        /* under way */
    bool has_all;           /* no more writes will begin */
    struct disk_job sync;
    char name[JOURNAL_NAME_BYTES];
};

struct copied_buffer {
    struct list_link link; /* in `unused` */
    struct copy_in *copy;
    struct copied_segment *segment;
    struct disk_job job;
    char *p; /* BUFFER_BYTES */
    size_t n;
};

struct copy_in {
    struct loop *loop;
    struct copy_in_callbacks callbacks;
    char *directory;
    struct disk *disk;
    struct disk_file *names; /* the directory */
    struct backup_stream stream;
    struct copied_buffer buffers[BUFFERS];
    struct list unused;             /* struct copied_buffer */
    struct copied_buffer *filling;  /* NULL: none */
    struct list segments;           /* struct copied_segment, open; the last may get more */
    struct copied_segment *segment; /* that bytes are taken for; NULL: none */
    unsigned jobs;                  /* under way */
    struct disk_job sync;
    struct loop_task tell;
    bool has_head, is_whole, has_left; /* has_left: on_room is owed */
    bool is_synced;                    /* the directory too: it is at its end */
    bool has_ended;
    struct err *error; /* the first */
};

static void fail(struct copy_in *c, struct err *e)
{
    if (c->error == NULL)
        c->error = e;
    else
        err_free(e);
    loop_post(c->loop, &c->tell);
}

static struct err *failed(const struct copy_in *c, const char *name, int error)
{
    return ERR(ERR_STORAGE_FAILURE, "%s/%s: %s", c->directory, name, strerror(error));
}

static bool is_stopped(const struct copy_in *c)
{
    return c->error != NULL || c->has_ended;
}

/* Segments. --------------------------------------------------------------------------------- */

static void close_segment(struct copied_segment *s)
{
    list_remove(&s->copy->segments, &s->link);
    disk_close(s->file);
    mem_free(s);
}

static void on_directory_synced(void *context, int result)
{
    struct copy_in *c = context;

    c->jobs--;
    c->is_synced = result == 0;
    if (result != 0)
        fail(c, failed(c, ".", -result));
    loop_post(c->loop, &c->tell);
}

/* All of the file has come, and all of it is on stable storage but for the names. */
static void end_when_done(struct copy_in *c)
{
    if (!c->is_whole || !list_empty(&c->segments) || is_stopped(c) || c->sync.on_done != NULL)
        return;
    c->sync = (struct disk_job){.on_done = on_directory_synced, .context = c};
    c->jobs++;
    disk_sync(c->names, &c->sync);
}

static void on_segment_synced(void *context, int result)
{
    struct copied_segment *s = context;
    struct copy_in *c = s->copy;

    c->jobs--;
    if (result != 0)
        fail(c, failed(c, s->name, -result));
    close_segment(s);
    end_when_done(c);
    loop_post(c->loop, &c->tell);
}

/* The last block may have been written beyond its end. */
static void finish_segment(struct copied_segment *s)
{
    struct copy_in *c = s->copy;

    if (!s->has_all || s->writes > 0 || is_stopped(c))
        return;
    if (s->bytes % DISK_BLOCK_BYTES != 0 && ftruncate(disk_fd(s->file), (off_t)s->bytes) != 0) {
        fail(c, failed(c, s->name, errno));
        return;
    }
    s->sync = (struct disk_job){.on_done = on_segment_synced, .context = s};
    c->jobs++;
    disk_sync(s->file, &s->sync);
}

static int allocate(const struct copied_segment *s)
{
    if (s->bytes == 0)
        return 0;
    return fault_hit("disk.allocate") ? ENOSPC
                                      : posix_fallocate(disk_fd(s->file), 0, (off_t)s->bytes);
}

static struct err *begin_segment(struct copy_in *c)
{
    struct copied_segment *s = NEW(struct copied_segment);
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;
    int error;

    s->copy = c;
    s->bytes = c->stream.segment.bytes;
    segment_file_name(c->stream.segment.number, s->name);
    buf_printf(&path, "%s/%s", c->directory, s->name);
    e = disk_create(c->disk, buf_text(&path), &s->file);
    buf_done(&path);
    if (e != NULL) {
        mem_free(s);
        return e;
    }
    list_push_back(&c->segments, &s->link);
    c->segment = s;
    error = allocate(s);
    return error == 0 ? NULL : failed(c, s->name, error);
}

/* Buffers. ---------------------------------------------------------------------------------- */

static void on_written(void *context, int result)
{
    struct copied_buffer *b = context;
    struct copy_in *c = b->copy;
    struct copied_segment *s = b->segment;

    c->jobs--;
    s->writes--;
    b->segment = NULL;
    list_push_back(&c->unused, &b->link);
    if (result != 0)
        fail(c, failed(c, s->name, -result));
    finish_segment(s);
    loop_post(c->loop, &c->tell);
}

/* Whole blocks are written: zeros fill the last one up. */
static void write_buffer(struct copy_in *c)
{
    struct copied_buffer *b = TAKE(c->filling);
    struct copied_segment *s = c->segment;
    size_t n = (size_t)disk_blocks(b->n);

    memset(b->p + b->n, 0, n - b->n);
    b->segment = s;
    b->job = (struct disk_job){.on_done = on_written, .context = b};
    c->jobs++;
    s->writes++;
    disk_write(s->file, &b->job, b->p, n, s->offset, false);
    s->offset += n;
}

static void fill(struct copy_in *c, struct span bytes)
{
    struct copied_buffer *b = c->filling;

    memcpy(b->p + b->n, bytes.p, bytes.n);
    b->n += bytes.n;
    if (b->n == BUFFER_BYTES)
        write_buffer(c);
}

static void end_segment(struct copy_in *c)
{
    struct copied_segment *s = c->segment;

    if (c->filling != NULL && c->filling->n > 0)
        write_buffer(c);
    s->has_all = true;
    c->segment = NULL;
    finish_segment(s);
}

/* There is a buffer to be filled, and not too much is open. */
static bool can_take(struct copy_in *c)
{
    if (c->segment == NULL && list_count(&c->segments) >= SEGMENTS_OPEN)
        return false;
    if (c->filling != NULL)
        return true;
    c->filling = LIST_OBJECT(list_pop_front(&c->unused), struct copied_buffer, link);
    if (c->filling != NULL)
        c->filling->n = 0;
    return c->filling != NULL;
}

/* Bytes. ------------------------------------------------------------------------------------ */

/* What cannot fit is refused before the disk is full for the journal too. */
static struct err *check_room(struct copy_in *c)
{
    struct statvfs fs;
    uint64_t room;

    if (statvfs(c->directory, &fs) != 0)
        return failed(c, ".", errno);
    room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (fault_hit("copy.room"))
        room = 0;
    if (room >= c->stream.head.bytes)
        return NULL;
    return ERR(ERR_STORAGE_FAILURE,
               "%s: the disk has room for %" PRIu64 " bytes, and the copy has %" PRIu64,
               c->directory, room, c->stream.head.bytes);
}

/* Takes a step; false: it is the last one that can be done now. */
static struct err *step(struct copy_in *c, struct span *bytes, bool *out_goes_on)
{
    /* A piece that fits, since only what was taken off is measured. */
    struct span piece = span_sub(*bytes, 0, BUFFER_BYTES - c->filling->n), taken = {NULL, 0};
    size_t given = piece.n;
    enum backup_step next;

    TRY(backup_stream_next(&c->stream, &piece, &next, &taken));
    *bytes = span_sub(*bytes, given - piece.n, bytes->n);
    switch (next) {
    case BACKUP_STEP_MORE:
        *out_goes_on = bytes->n > 0;
        break;
    case BACKUP_STEP_HEAD:
        c->has_head = true;
        return check_room(c);
    case BACKUP_STEP_SEGMENT:
        return begin_segment(c);
    case BACKUP_STEP_BYTES:
        fill(c, taken);
        break;
    case BACKUP_STEP_SEGMENT_END:
        end_segment(c);
        break;
    case BACKUP_STEP_WHOLE:
        c->is_whole = true;
        end_when_done(c);
        break;
    }
    return NULL;
}

size_t copy_in_take(struct copy_in *c, struct span bytes)
{
    size_t given = bytes.n;
    bool goes_on = true;
    struct err *e = NULL;

    while (goes_on && e == NULL && !is_stopped(c)) {
        c->has_left = !can_take(c);
        if (c->has_left)
            return given - bytes.n;
        e = step(c, &bytes, &goes_on);
    }
    if (e != NULL)
        fail(c, e);
    return given;
}

void copy_in_stop(struct copy_in *c, struct err *e)
{
    fail(c, e);
}

const struct backup_head *copy_in_head(const struct copy_in *c)
{
    return c->has_head ? &c->stream.head : NULL;
}

uint64_t copy_in_bytes(const struct copy_in *c)
{
    return c->stream.received;
}

static void end(struct copy_in *c)
{
    c->has_ended = true;
    c->callbacks.on_end(c->callbacks.context, TAKE(c->error));
}

static void on_tell(struct loop_task *task)
{
    struct copy_in *c = CONTAINER_OF(task, struct copy_in, tell);

    if (c->has_ended)
        return;
    if (c->error != NULL || c->is_synced) {
        if (c->jobs == 0)
            end(c);
        return;
    }
    if (c->has_left) {
        c->has_left = false;
        c->callbacks.on_room(c->callbacks.context);
    }
}

/* Made and freed. --------------------------------------------------------------------------- */

static struct err *start(struct copy_in *c)
{
    if (mkdir(c->directory, 0700) != 0)
        return ERR(ERR_STORAGE_FAILURE, "%s: %s", c->directory, strerror(errno));
    TRY(disk_new(c->loop, DISK_AUTO, c->directory, -1, &c->disk));
    TRY(disk_open_directory(c->disk, c->directory, &c->names));
    for (unsigned i = 0; i < BUFFERS; i++) {
        c->buffers[i].copy = c;
        c->buffers[i].p = disk_memory(c->disk, BUFFER_BYTES);
        list_push_back(&c->unused, &c->buffers[i].link);
    }
    return NULL;
}

struct err *copy_in_new(struct loop *loop, const char *directory,
                        const struct copy_in_callbacks *callbacks, struct copy_in **out_copy)
{
    struct copy_in *c = NEW(struct copy_in);
    struct err *e;

    c->loop = loop;
    c->callbacks = *callbacks;
    c->directory = mem_string(span_str(directory));
    c->tell.run = on_tell;
    list_init(&c->unused);
    list_init(&c->segments);
    backup_stream_init(&c->stream);
    e = start(c);
    if (e != NULL) {
        copy_in_free(c);
        return e;
    }
    *out_copy = c;
    return NULL;
}

void copy_in_free(struct copy_in *c)
{
    if (c == NULL)
        return;
    loop_unpost(c->loop, &c->tell);
    if (c->disk != NULL)
        disk_wait(c->disk);
    while (!list_empty(&c->segments))
        close_segment(CONTAINER_OF(list_first(&c->segments), struct copied_segment, link));
    for (unsigned i = 0; i < BUFFERS; i++)
        if (c->buffers[i].p != NULL)
            disk_memory_free(c->disk, c->buffers[i].p, BUFFER_BYTES);
    disk_close(c->names);
    disk_free(c->disk);
    backup_stream_done(&c->stream);
    err_free(c->error);
    mem_free(c->directory);
    mem_free(c);
}
