/* Appending and committing.
 *
 * A change is encoded into the gathering batch, and so gets its place in a file, when it is
 * appended. When it does not fit into the rest of the last segment, that batch is sealed and
 * another begins in the next segment; `batches` is the queue. The commit of the first batch goes
 * through these steps, one job at a time, each decided by journal_advance from the state alone:
 *
 *   the batch is in the segment that is written:
 *       [everysec, once a second: sync] -> write -> committed
 *   it is the first of another segment:
 *       [unless all is synced: sync of the old one] -> write the new header, durably -> rename
 *       -> sync of the directory -> write -> committed
 *
 * Between two commits, segments that were dropped are deleted (journal_drop.c).
 *
 * What can go wrong. A job of the commit that fails, the helper process that dies, a rename that
 * fails: journal_fail, for good; what was gathered is thrown away, and nothing is tried again,
 * since nobody knows what the disk holds after a failed sync. No room: journal_reserve says so
 * before anything is appended (journal_room.c). Zeros that cannot be written, a segment that cannot
 * be deleted: logged, the journal goes on. */
#include "journal_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/must.h"
#include "journal/place.h"

#include <string.h>
#include <unistd.h>

#define BATCH_BYTES (64u << 10)     /* to begin with */
#define BATCH_KEEP_BYTES (1u << 20) /* of a batch that is used again */
#define SPARES_MOST 2 /* one gathers while another is written; between commits both rest */
#define SECOND_MS 1000

/* NULL: there is none. */
#define BATCH_OF(link_ptr) LIST_OBJECT(link_ptr, struct journal_batch, link)
#define FIRST_BATCH(j) BATCH_OF(list_first(&(j)->batches))

struct journal_segment *journal_last_segment(const struct journal *j)
{
    return SEGMENT_OF(list_last(&j->segments));
}

static void free_batch(struct journal *j, struct journal_batch *batch)
{
    if (batch == NULL)
        return;
    disk_memory_free(j->disk, batch->p, batch->size);
    mem_free(batch);
}

static void free_batches(struct journal *j, struct list *batches)
{
    struct journal_batch *batch;

    while ((batch = BATCH_OF(list_pop_front(batches))) != NULL)
        free_batch(j, batch);
}

void journal_free_batches(struct journal *j)
{
    free_batches(j, &j->batches);
    j->gathering = NULL;
    journal_draft_drop(j);
    free_batches(j, &j->spares);
}

void journal_wait_second(struct journal *j)
{
    if (!timer_running(&j->second))
        timer_start(j->loop, &j->second, SECOND_MS);
}

/* ---- appending ---- */

/* Room for n more bytes. */
static void grow_batch(struct journal *j, struct journal_batch *batch, size_t n)
{
    size_t size = MAX(batch->size, BATCH_BYTES);
    void *p;

    while (size < batch->n + n)
        size *= 2;
    if (size == batch->size)
        return;
    p = disk_memory(j->disk, size);
    if (batch->n > 0)
        memcpy(p, batch->p, batch->n);
    disk_memory_free(j->disk, batch->p, batch->size);
    batch->p = p;
    batch->size = size;
    batch->dirty = batch->n;
}

static struct journal_batch *new_batch(struct journal *j, struct journal_segment *segment)
{
    struct journal_batch *batch = BATCH_OF(list_pop_front(&j->spares));

    if (batch == NULL)
        batch = NEW(struct journal_batch);
    batch->segment = segment;
    batch->offset = segment->end;
    batch->n = 0;
    batch->first_sequence = j->sequence + 1;
    batch->first_serial = j->next_serial;
    list_push_back(&j->batches, &batch->link);
    return batch;
}

/* The segment for a change that begins a new batch. Room was reserved, says the contract. What
 * gathers in the one before takes nothing more, also if that change is a draft which is dropped:
 * serials go on where the new segment begins. */
static struct journal_segment *segment_for(struct journal *j, size_t n)
{
    struct journal_segment *segment = journal_last_segment(j);

    if (n <= journal_room_left(segment))
        return segment;
    MUST(journal_room_prepare(j, n) == NULL);
    j->gathering = NULL;
    return journal_room_take(j, n);
}

/* Without a block of its own: it may begin in the last block of the batch. */
static bool has_room(const struct journal_batch *batch, size_t n)
{
    const struct journal_segment *segment = batch->segment;

    return batch->offset + batch->n + n <= segment->size && n <= journal_records_left(segment);
}

static struct journal_batch *batch_for(struct journal *j, size_t n)
{
    struct journal_batch *batch = j->gathering;

    if (batch == NULL || !has_room(batch, n))
        batch = new_batch(j, segment_for(j, n));
    grow_batch(j, batch, n);
    j->gathering = batch;
    return batch;
}

/* The batch is not the journal's yet, or the segment's end is moved by who calls. */
static struct journal_place add_record(struct journal_batch *batch, uint64_t serial,
                                       const struct journal_record *record, bool more)
{
    struct journal_place place = {
        .segment = (uint32_t)batch->segment->header.number,
        .offset = (uint32_t)(batch->offset + batch->n),
    };
    /* A buffer over foreign memory: grow_batch has made room, so it never grows by itself. */
    struct buf b = {.p = batch->p, .n = batch->n, .size = batch->size, .max = batch->size};

    segment_add_record(&b, &batch->segment->header,
                       &(struct segment_record){
                           .serial = serial,
                           .serials = record->serials,
                           .kind = record->kind,
                           .commit_start = batch->n == 0,
                           .more = more,
                           .body = record->body,
                       });
    MUST(!buf_over(&b));
    batch->n = b.n;
    return place;
}

/* So much of the batch is in its segment, or will be. */
static void take_room(const struct journal_batch *batch, size_t n)
{
    batch->segment->records += n;
    batch->segment->end = disk_blocks(batch->offset + batch->n);
}

/* A change has been appended to it. */
static void end_change(struct journal *j, struct journal_batch *batch)
{
    j->sequence++;
    if (batch == NULL)
        return; /* a failed journal only counts */
    batch->last_sequence = j->sequence;
    batch->end_serial = j->next_serial;
}

uint64_t journal_append(struct journal *j, const struct journal_record *records, size_t count,
                        size_t bytes, struct journal_place *places)
{
    struct journal_batch *batch = NULL;
    uint64_t first = j->next_serial;
    size_t before = 0;

    MUST(count > 0 && j->draft == NULL);
    if (!j->stats.failed) {
        batch = batch_for(j, bytes);
        before = batch->n;
    }
    for (size_t i = 0; i < count; i++) {
        struct journal_place place = {0};

        if (batch != NULL)
            place = add_record(batch, j->next_serial, &records[i], i + 1 < count);
        if (places != NULL)
            places[i] = place;
        j->next_serial += records[i].serials;
    }
    if (batch != NULL)
        take_room(batch, batch->n - before);
    end_change(j, batch);
    return first;
}

/* ---- a long one ---- */

void journal_draft_begin(struct journal *j, size_t bytes)
{
    struct journal_segment *segment;

    MUST(j->draft == NULL);
    j->draft_serial = j->next_serial;
    if (j->stats.failed)
        return;
    segment = segment_for(j, bytes);
    j->draft = NEW(struct journal_batch);
    j->draft->segment = segment;
    j->draft->offset = segment->end;
    j->draft->first_serial = j->next_serial;
    grow_batch(j, j->draft, bytes);
}

struct journal_place journal_draft_add(struct journal *j, const struct journal_record *record,
                                       bool more)
{
    struct journal_place place = {0};

    if (j->draft != NULL)
        place = add_record(j->draft, j->draft_serial, record, more);
    j->draft_serial += record->serials;
    return place;
}

uint64_t journal_draft_end(struct journal *j)
{
    struct journal_batch *batch = TAKE(j->draft);
    uint64_t first = j->next_serial;

    j->next_serial = j->draft_serial;
    end_change(j, batch);
    if (batch == NULL)
        return first;
    MUST(batch->segment == journal_last_segment(j) && batch->offset == batch->segment->end &&
         batch->first_serial == first);
    batch->first_sequence = batch->last_sequence;
    list_push_back(&j->batches, &batch->link);
    j->gathering = batch;
    take_room(batch, batch->n);
    return first;
}

void journal_draft_drop(struct journal *j)
{
    free_batch(j, TAKE(j->draft));
}

/* ---- committing ---- */

/* The last thing its caller does: the callback may close the journal. */
static void journal_fail(struct journal *j, const char *what, int error_number)
{
    j->stats.failed = true;
    timer_stop(j->loop, &j->second);
    journal_free_batches(j);
    log_error("journal", "%s failed in %s: %s; nothing more is stored", what, j->directory,
              strerror(error_number));
    j->callbacks.on_failed(j->callbacks.context, what, error_number);
}

/* A job of the commit is over; false: it failed, and the journal may be gone. */
static bool job_succeeded(struct journal *j, const char *what, int result)
{
    j->busy = false;
    if (result == 0)
        return true;
    journal_fail(j, what, -result);
    return false;
}

static struct disk_job *start_job(struct journal *j, disk_done_fn *on_done)
{
    j->busy = true;
    j->job.on_done = on_done;
    j->job.context = j;
    return &j->job;
}

static void on_synced(void *context, int result)
{
    struct journal *j = context;

    if (!job_succeeded(j, "sync", result))
        return;
    j->unsynced = false;
    j->sync_due = false;
    journal_advance(j);
}

static void on_names_synced(void *context, int result)
{
    struct journal *j = context;

    if (!job_succeeded(j, "sync of the directory", result))
        return;
    j->names_unsynced = false;
    journal_advance(j);
}

/* The new segment's header is durable: it gets its name, and writes go there from now on. */
static void on_header_written(void *context, int result)
{
    struct journal *j = context;
    struct journal_segment *segment = FIRST_BATCH(j)->segment;
    char name[JOURNAL_NAME_BYTES];
    int error;

    if (!job_succeeded(j, "write of a segment's header", result))
        return;
    segment_file_name(segment->header.number, name);
    error = journal_rename(j, segment->name, name);
    if (error != 0) {
        journal_fail(j, "rename of a segment", error);
        return;
    }
    memcpy(segment->name, name, sizeof(name));
    segment->named = true;
    if (j->written != NULL)
        journal_segment_seal(j, j->written);
    j->written = segment;
    j->names_unsynced = true;
    journal_advance(j);
}

static void begin_segment(struct journal *j, struct journal_segment *segment)
{
    struct buf page = {
        .p = j->header_page, .size = SEGMENT_HEADER_BYTES, .max = SEGMENT_HEADER_BYTES};

    segment_add_header(&page, &segment->header);
    disk_write(segment->file, start_job(j, on_header_written), j->header_page, SEGMENT_HEADER_BYTES,
               0, true);
}

static void recycle_batch(struct journal *j, struct journal_batch *batch)
{
    if (list_count(&j->spares) < SPARES_MOST && batch->size <= BATCH_KEEP_BYTES)
        list_push_front(&j->spares, &batch->link);
    else
        free_batch(j, batch);
}

static void on_written(void *context, int result)
{
    struct journal *j = context;
    uint64_t duration_ns = clock_mono_ns() - j->job.started_ns;
    struct journal_batch *batch = FIRST_BATCH(j);
    uint64_t serial;

    if (!job_succeeded(j, "write", result))
        return;
    serial = batch->end_serial - 1;
    j->committed_sequence = batch->last_sequence;
    list_remove(&j->batches, &batch->link);
    recycle_batch(j, batch);
    j->committed_serial = serial;
    j->stats.commits++;
    if (j->fsync == JOURNAL_EVERYSEC)
        journal_wait_second(j);
    journal_advance(j); /* the next commit first: the disk works while the callbacks run */
    if (j->times != NULL)
        histogram_add(j->times, duration_ns);
    j->callbacks.on_commit(j->callbacks.context, serial);
}

static void write_batch(struct journal *j, struct journal_batch *batch)
{
    size_t n = disk_blocks(batch->n);
    bool durable = j->fsync == JOURNAL_ALWAYS;

    /* The rest of the last block is zeros. Most often it is already: nothing longer was here. */
    if (batch->dirty > batch->n)
        memset(batch->p + batch->n, 0, MIN(n, batch->dirty) - batch->n);
    batch->dirty = MAX(batch->n, batch->dirty);
    if (!j->unsynced)
        segment_mark_after_sync(&batch->segment->header, batch->p);
    j->unsynced = !durable;
    j->stats.appended_bytes += n;
    if (j->gathering == batch)
        j->gathering = NULL;
    disk_write(batch->segment->file, start_job(j, on_written), batch->p, n, batch->offset, durable);
}

/* The one place that decides what happens next. */
static void start_step(struct journal *j)
{
    struct journal_batch *batch = FIRST_BATCH(j);
    bool is_new;

    if (batch != NULL && batch->first_sequence > j->wanted_sequence)
        batch = NULL; /* nobody wants it yet */
    is_new = batch != NULL && batch->segment != j->written;
    if (j->names_unsynced)
        disk_sync(j->names, start_job(j, on_names_synced));
    else if (j->unsynced && (j->sync_due || is_new))
        disk_sync(j->written->file, start_job(j, on_synced));
    else if (is_new)
        begin_segment(j, batch->segment);
    else if (batch != NULL && (j->fill.segment == NULL || !journal_room_fills(j, batch)))
        write_batch(j, batch);
}

void journal_advance(struct journal *j)
{
    if (j->stats.failed)
        return;
    if (!list_empty(&j->dropped) && !j->drop_failed)
        journal_drop_advance(j);
    if (!j->busy)
        start_step(j);
    journal_room_keep(j);
}

void journal_commit(struct journal *j)
{
    j->wanted_sequence = j->sequence;
    if (!j->busy)
        journal_advance(j);
}

uint64_t journal_cut(struct journal *j)
{
    MUST(j->sequence > 0);
    j->gathering = NULL;
    return j->sequence;
}

void journal_commit_to(struct journal *j, uint64_t cut)
{
    j->wanted_sequence = MAX(j->wanted_sequence, cut);
    if (!j->busy)
        journal_advance(j);
}

void journal_on_second(struct timer *timer)
{
    struct journal *j = CONTAINER_OF(timer, struct journal, second);

    j->no_room_for = 0;
    j->drop_failed = false;
    if (j->fsync == JOURNAL_EVERYSEC)
        j->sync_due = j->unsynced;
    journal_advance(j);
}

/* ---- what others want to know ---- */

uint64_t journal_next_serial(const struct journal *j)
{
    return j->next_serial;
}

uint64_t journal_committed_serial(const struct journal *j)
{
    return j->committed_serial;
}

uint64_t journal_sequence(const struct journal *j)
{
    return j->sequence;
}

uint64_t journal_committed_sequence(const struct journal *j)
{
    return j->committed_sequence;
}

/* What is not committed stands from the first batch on. */
bool journal_has_committed(const struct journal *j, struct journal_place place)
{
    const struct journal_batch *batch = FIRST_BATCH(j);

    if (j->stats.failed || batch == NULL)
        return !j->stats.failed;
    if (place.segment != batch->segment->header.number)
        return place.segment < batch->segment->header.number;
    return place.offset < batch->offset;
}

uint64_t journal_oldest_number(const struct journal *j)
{
    return SEGMENT_OF(list_first(&j->segments))->header.number;
}

uint64_t journal_newest_number(const struct journal *j)
{
    return journal_last_segment(j)->header.number;
}

/* The successor is on the disk. */
uint64_t journal_second_first_serial(const struct journal *j)
{
    struct list_link *first = list_first(&j->segments);

    if (j->written == NULL || first == &j->written->link)
        return 0;
    return SEGMENT_OF(list_next(&j->segments, first))->header.first_serial;
}

bool journal_idle(const struct journal *j)
{
    return list_empty(&j->batches);
}

void journal_stats(const struct journal *j, struct journal_stats *out_stats)
{
    const struct journal_segment *last = journal_last_segment(j);

    *out_stats = j->stats;
    out_stats->segments = list_count(&j->segments);
    out_stats->sealed_bytes = j->stats.bytes - (last == NULL ? 0 : last->size);
    for (unsigned i = 0; i < ARRAY_LEN(j->ahead); i++)
        out_stats->sealed_bytes -= j->ahead[i] == NULL ? 0 : j->ahead[i]->size;
    out_stats->reserve_bytes = j->ahead[1] == NULL ? 0 : j->ahead[1]->size;
}

void journal_time_commits(struct journal *j, struct histogram *times)
{
    j->times = times;
}
