/* How the oldest segments go: once everything that was appended before a segment was dropped is
 * committed and synced (what took the place of its records, or moved them), in order, and with the
 * directory synced after each, so that no crash leaves a gap between the segments. Those that a
 * copy still reads wait for it, within bounds (journal_copy.c).
 *
 * To delete a file of 16 MiB whose pages are cached (it was replayed, read back or copied) takes
 * two milliseconds, nine tenths of them for the pages. So these go first, a part each turn.
 * Shortening the file would do the same, but somebody may be copying it: svc-journal backup. */
#include "journal_private.h"

#include "base/log.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define UNCACHE_BYTES (1u << 20) /* a turn */

void journal_drop_oldest(struct journal *j)
{
    struct journal_segment *segment;

    MUST(journal_second_first_serial(j) != 0);
    segment = SEGMENT_OF(list_pop_front(&j->segments));
    segment->needed_until = j->sequence;
    list_push_back(&j->dropped, &segment->link);
    j->stats.bytes -= segment->size;
    j->dropped_bytes += segment->size;
    journal_room_forget(j, segment);
    journal_advance(j);
}

bool journal_is_dropping(const struct journal *j)
{
    return !list_empty(&j->dropped);
}

/* What cannot be done here only makes the deletion longer. */
static void uncache_part(struct journal *j, struct journal_segment *segment)
{
    int error = 0;

    if (j->uncache_fd < 0)
        j->uncache_fd = openat(j->directory_fd, segment->name, O_RDONLY | O_CLOEXEC);
    if (j->uncache_fd < 0)
        error = errno;
    else
        error = posix_fadvise(j->uncache_fd, (off_t)segment->uncached, UNCACHE_BYTES,
                              POSIX_FADV_DONTNEED);
    if (error != 0)
        log_debug("journal", "%s stays cached: %s", segment->name, strerror(error));
    segment->uncached = error != 0 ? segment->size : segment->uncached + UNCACHE_BYTES;
}

void journal_on_uncache(struct loop_task *task)
{
    struct journal *j = CONTAINER_OF(task, struct journal, uncache);
    struct journal_segment *segment = SEGMENT_OF(list_first(&j->dropped));

    uncache_part(j, segment);
    if (segment->uncached >= segment->size)
        journal_close_file(&j->uncache_fd);
    journal_advance(j);
}

static bool is_replaced(const struct journal *j, const struct journal_segment *segment)
{
    return segment->needed_until <= j->committed_sequence &&
           segment->file == NULL; /* or zeros are on their way to it */
}

static void delete_first(struct journal *j, struct journal_segment *segment)
{
    int error = journal_unlink(j, segment->name);

    if (error != 0) {
        log_warn("journal", "cannot delete %s/%s: %s", j->directory, segment->name,
                 strerror(error));
        j->drop_failed = true;
        journal_wait_second(j);
        return;
    }
    list_remove(&j->dropped, &segment->link);
    j->dropped_bytes -= segment->size;
    journal_read_forget(j, segment->header.number);
    journal_segment_free(segment);
    j->names_unsynced = true;
    j->no_room_for = 0; /* it may have made the room that was missing */
}

void journal_drop_advance(struct journal *j)
{
    struct journal_segment *segment = SEGMENT_OF(list_first(&j->dropped));

    if (segment->uncached < segment->size)
        loop_post(j->loop, &j->uncache);
    else if (!is_replaced(j, segment) || journal_copies_keep(j, segment->header.number))
        return;
    else if (j->unsynced)
        j->sync_due = true;
    else if (!j->busy && !j->names_unsynced)
        delete_first(j, segment);
}
