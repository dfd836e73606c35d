/* The journal's beginning and its end, which is the reverse, also of a beginning that failed. */
#include "journal_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "io/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void free_segments(struct list *segments)
{
    LIST_EACH(segments, at)
        journal_segment_free(SEGMENT_OF(at));
}

static struct journal *new_journal(struct loop *loop, const struct journal_options *options,
                                   const struct journal_callbacks *callbacks)
{
    struct journal *j = NEW(struct journal);

    j->loop = loop;
    j->callbacks = *callbacks;
    j->fsync = options->fsync;
    j->segment_bytes = options->segment_bytes == 0 ? JOURNAL_SEGMENT_BYTES : options->segment_bytes;
    j->directory = mem_string(span_str(options->directory));
    j->directory_fd = j->lock_fd = j->read_fd = j->uncache_fd = -1;
    j->next_serial = 1;
    list_init(&j->segments);
    list_init(&j->dropped);
    list_init(&j->copies);
    list_init(&j->batches);
    list_init(&j->spares);
    timer_init(&j->second, journal_on_second);
    j->uncache.run = journal_on_uncache;
    return j;
}

static struct err *check_segment_bytes(const struct journal *j)
{
    if (j->segment_bytes >= JOURNAL_SEGMENT_MIN && j->segment_bytes <= JOURNAL_SEGMENT_MAX &&
        j->segment_bytes % DISK_BLOCK_BYTES == 0)
        return NULL;
    return ERR(ERR_STORAGE_FAILURE,
               "a segment cannot have %" PRIu64 " bytes: it needs a multiple of %u, from %u to %u",
               j->segment_bytes, DISK_BLOCK_BYTES, JOURNAL_SEGMENT_MIN, JOURNAL_SEGMENT_MAX);
}

/* Errors of the running journal go to clients, whom the directory does not concern. */
static struct err *naming_directory(const struct journal *j, struct err *e)
{
    struct err *named =
        ERR(ERR_STORAGE_FAILURE, "%s: %.*s", j->directory, SPAN_FMT(err_message(e)));

    err_free(e);
    return named;
}

/* The helper process is forked before recovery makes this one large. A new journal's first segment
 * is written when there is something to commit. */
static struct err *start(struct journal *j, enum disk_engine engine)
{
    struct err *e;

    TRY(check_segment_bytes(j));
    TRY(journal_directory_open(j));
    TRY(disk_new(j->loop, engine, j->directory, j->lock_fd, &j->disk));
    TRY(disk_open_directory(j->disk, j->directory, &j->names));
    j->header_page = disk_memory(j->disk, SEGMENT_HEADER_BYTES);
    TRY(journal_recover(j));
    if (!list_empty(&j->segments))
        return NULL;
    j->id = uuid_new();
    e = journal_room_prepare(j, 0);
    if (e != NULL)
        return naming_directory(j, e);
    journal_room_take(j, 0);
    return NULL;
}

struct err *journal_open(struct loop *loop, const struct journal_options *options,
                         const struct journal_callbacks *callbacks, struct journal **out_journal)
{
    struct journal *j = new_journal(loop, options, callbacks);
    struct err *e = start(j, options->engine);

    if (e != NULL) {
        journal_close(j);
        return e;
    }
    journal_advance(j);
    *out_journal = j;
    return NULL;
}

/* Segments that were never begun are no part of the journal. */
static void delete_prepared(struct journal *j)
{
    struct journal_segment *segment;

    for (unsigned i = 0; i < ARRAY_LEN(j->ahead); i++)
        if (j->ahead[i] != NULL)
            journal_unlink(j, j->ahead[i]->name);
    while ((segment = journal_last_segment(j)) != NULL && !segment->named) {
        journal_unlink(j, segment->name);
        list_remove(&j->segments, &segment->link);
        journal_segment_free(segment);
    }
}

static void sync_at_end(struct journal *j)
{
    if (j->written == NULL || !j->unsynced || j->stats.failed)
        return;
    if (fault_hit("disk.sync") || fdatasync(disk_fd(j->written->file)) != 0)
        log_error("journal", "the last sync in %s failed: %s", j->directory, strerror(errno));
}

void journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    MUST(list_empty(&j->copies));
    timer_stop(j->loop, &j->second);
    loop_unpost(j->loop, &j->uncache);
    if (j->disk != NULL) {
        disk_wait(j->disk);
        sync_at_end(j);
        delete_prepared(j);
        journal_free_batches(j);
        disk_memory_free(j->disk, j->header_page, SEGMENT_HEADER_BYTES);
        disk_memory_free(j->disk, j->fill.zeros, JOURNAL_FILL_BYTES);
    }
    free_segments(&j->segments);
    free_segments(&j->dropped);
    for (unsigned i = 0; i < ARRAY_LEN(j->ahead); i++)
        journal_segment_free(j->ahead[i]);
    disk_close(j->names);
    disk_free(j->disk);
    journal_close_file(&j->read_fd);
    journal_close_file(&j->uncache_fd);
    journal_close_file(&j->directory_fd);
    journal_close_file(&j->lock_fd); /* last: the helper, which had it too, is gone */
    mem_free(j->directory);
    mem_free(j);
}
