/* The recovery of a journal. The input is a list of changes to a few entities, written into two
 * segments, and of bytes to overwrite or cut off. What is read back is a run of whole changes from
 * the first on; all of them when nothing was damaged; all of the first segment, unless the journal
 * is refused. The store is what these changes make of it. */
#include "base/mem.h"
#include "fuzzing.h"
#include "journal/journal_files.h"
#include "store/collection.h"
#include "store/entity.h"
#include "store/record.h"
#include "store/store.h"
#include "store/store_kind.h"
#include "store/stored.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Lesser serials were those of segments that are gone. */
enum { RECORDS_MOST = 40, SEGMENTS = 2, BLOCK = 4096, IDS = 8, FIRST_SERIAL = 100 };

/* ---- a directory that lives as long as the process ---- */

static struct {
    char directory[40], names[SEGMENTS][80];
    int directory_fd, fds[SEGMENTS];
} disk;

static void remove_disk(void)
{
    for (size_t i = 0; i < SEGMENTS; i++)
        unlink(disk.names[i]);
    rmdir(disk.directory);
}

static void make_disk(void)
{
    char name[JOURNAL_NAME_BYTES];

    snprintf(disk.directory, sizeof(disk.directory), "%s/svcd-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    MUST(mkdtemp(disk.directory) != NULL);
    disk.directory_fd = open(disk.directory, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < SEGMENTS; i++) {
        segment_file_name(i + 1, name);
        snprintf(disk.names[i], sizeof(disk.names[i]), "%s/%s", disk.directory, name);
        disk.fds[i] = open(disk.names[i], O_RDWR | O_CREAT, 0600);
        MUST(disk.fds[i] >= 0);
    }
    atexit(remove_disk);
}

static void store_file(size_t i, struct span bytes)
{
    MUST(ftruncate(disk.fds[i], 0) == 0);
    MUST(pwrite(disk.fds[i], bytes.p, bytes.n, 0) == (ssize_t)bytes.n);
}

/* ---- what is written ---- */

struct written {
    struct segment_header headers[SEGMENTS];
    struct buf files[SEGMENTS];
    struct segment_record records[RECORDS_MOST];
    struct record_entity after[RECORDS_MOST]; /* the entity that a record leaves; version 0: none */
    size_t count;
    size_t in_first; /* records of the first segment */
    uint64_t next_serial;
    struct record_entity entities[2][IDS]; /* as last written; version 0: not there */
    bool is_known[2][IDS];
    struct arena arena;
};

static void pad_to_block(struct buf *b)
{
    static const char zeros[BLOCK];

    buf_add(b, span_of(zeros, (BLOCK - b->n % BLOCK) % BLOCK));
}

/* Inserts it, or changes it when it is there. */
static void put_entity(struct record_entity *e, uint64_t serial, struct span json)
{
    if (e->version == 0)
        e->object_no = serial;
    e->version = serial;
    e->json = json;
}

/* An entity is inserted, changed, deleted, or written once more as the cleaner does, which may be
 * the first that is seen of it; that takes no serial. */
static struct span make_body(struct written *w, unsigned what, struct segment_record *r)
{
    unsigned id = what % IDS, place = what >> 3 & 1;
    struct span resource = place ? SPAN("Zoo.Animal") : SPAN("zoo.Note");
    const struct record_entity_gone gone = {resource, {.b = {[15] = (uint8_t)id}}};
    struct record_entity *e = &w->entities[place][id];
    bool is_gone = (what & 128) != 0, is_move = (what & 16) != 0;
    struct span json = arena_printf(&w->arena, "{\"n\":%u}", what);
    struct buf b;

    buf_init(&b, BUF_NO_CAP);
    r->kind = is_gone ? RECORD_ENTITY_GONE : RECORD_ENTITY;
    r->serials = is_gone || !is_move || (w->is_known[place][id] && e->version == 0);
    e->resource = resource;
    e->id = gone.id;
    if (is_gone)
        e->version = 0;
    else if (is_move && !w->is_known[place][id])
        put_entity(e, 1 + place * IDS + id, json);
    else if (!is_move || e->version == 0)
        put_entity(e, r->serial, json);
    w->is_known[place][id] = true;
    w->after[w->count] = *e;
    if (is_gone)
        record_add_entity_gone(&b, &gone);
    else
        record_add_entity(&b, e);
    return input_written(&b, &w->arena);
}

static uint64_t bytes_so_far(const struct written *w)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < w->count; i++)
        bytes += segment_record_bytes(w->records[i].body.n);
    return bytes;
}

/* The first record of a segment begins a commit, and no change goes beyond a segment's last. */
static void write_segment(struct written *w, size_t place, size_t count, struct input *in)
{
    struct buf *file = &w->files[place];

    w->headers[place] = (struct segment_header){.version = SEGMENT_FORMAT_VERSION,
                                                .number = place + 1,
                                                .first_serial = w->next_serial,
                                                .bytes_before = bytes_so_far(w)};
    segment_add_header(file, &w->headers[place]);
    for (size_t i = 0; i < count; i++) {
        struct segment_record *r = &w->records[w->count];
        unsigned flags = input_byte(in);
        bool in_change = i > 0 && r[-1].more;

        *r = (struct segment_record){.serial = w->next_serial};
        r->commit_start = i == 0 || (!in_change && (flags & 1) != 0);
        r->after_sync = r->commit_start && (flags & 2) != 0;
        r->more = (flags & 4) != 0 && i + 1 < count;
        r->body = make_body(w, input_byte(in), r);
        if (r->commit_start)
            pad_to_block(file);
        r->offset = file->n;
        segment_add_record(file, &w->headers[place], r);
        w->next_serial += r->serials;
        w->count++;
    }
    pad_to_block(file);
}

/* Each damage is four bytes: which file and where, and what to change there; or where to cut it
 * off. False when nothing was changed. */
static bool damage(struct written *w, struct input *in)
{
    bool changed = false;

    while (in->n >= 4) {
        unsigned what = input_byte(in);
        struct buf *file = &w->files[what % SEGMENTS];
        size_t at = file->n == 0 ? 0 : (input_byte(in) << 8 | input_byte(in)) % file->n;
        unsigned bits = input_byte(in);

        if (file->n == 0)
            continue;
        if (what & 2)
            buf_truncate(file, at);
        else
            file->p[at] = (char)(file->p[at] ^ (char)bits);
        changed = changed || (what & 2) != 0 || bits != 0;
    }
    return changed;
}

/* ---- what is read ---- */

static struct err *apply(struct store *s, const struct segment_record *r, struct span body)
{
    bool is_move = r->serials == 0;
    const struct store_origin origin = {
        .serial = r->serial - is_move, .is_move = is_move, .bytes = 1};

    return store_apply(s, r->kind, body, &origin);
}

struct reading {
    const struct written *written;
    struct store *store;
    size_t count;
};

static struct err *on_record(void *context, const struct segment_record *r)
{
    struct reading *reading = context;
    const struct segment_record *expected = &reading->written->records[reading->count];

    MUST(reading->count < reading->written->count);
    MUST(r->serial == expected->serial && r->serials == expected->serials);
    MUST(r->kind == expected->kind && r->more == expected->more);
    MUST(span_eq(r->body, expected->body));
    reading->count++;
    return apply(reading->store, r, r->body);
}

static uint64_t next_after(const struct reading *reading)
{
    const struct segment_record *last = reading->written->records + reading->count;

    return reading->count == 0 ? FIRST_SERIAL : last[-1].serial + last[-1].serials;
}

static struct err *read_all(struct reading *reading, bool *out_torn)
{
    struct journal_walk walk;
    struct journal_walk_end end = {0};
    struct err *e = NULL;

    journal_walk_init(&walk, disk.directory, disk.directory_fd);
    walk.on_record = on_record;
    walk.context = reading;
    for (size_t i = 0; i < SEGMENTS && e == NULL; i++) {
        e = journal_walk_segment(&walk, i + 1, i + 1 == SEGMENTS, &end);
        MUST(e != NULL || (end.offset <= walk.file.n && walk.next_serial == next_after(reading)));
        MUST(e == NULL || err_code(e) == ERR_STORAGE_FAILURE);
    }
    *out_torn = end.why != NULL;
    journal_walk_done(&walk);
    return e;
}

/* The last of the first `count` records on this entity, or NULL. */
static const struct record_entity *last_of(const struct written *w, size_t count,
                                           const struct record_entity *e)
{
    for (size_t i = count; i-- > 0;)
        if (uuid_eq(&w->after[i].id, &e->id) && span_eq(w->after[i].resource, e->resource))
            return &w->after[i];
    return NULL;
}

static void check_entity(struct store *store, const struct record_entity *last)
{
    const struct entity *e = collection_find(store_collection(store, last->resource), &last->id);

    MUST((e != NULL) == (last->version > 0));
    if (e != NULL)
        MUST(e->version == last->version && e->object_no == last->object_no &&
             span_eq(entity_json(e), last->json));
}

static void check_order(struct collection *c, void *arg)
{
    uint64_t before = 0;

    (void)arg;
    for (const struct entity *e = collection_first(c); e != NULL; e = collection_next(c, e)) {
        MUST(e->object_no > before);
        before = e->object_no;
    }
}

static void check_store(const struct reading *reading)
{
    const struct written *w = reading->written;
    size_t live = 0;

    MUST(store_loaded(reading->store) == NULL);
    for (size_t i = 0; i < reading->count; i++) {
        check_entity(reading->store, last_of(w, reading->count, &w->after[i]));
        live += w->after[i].version > 0 && last_of(w, reading->count, &w->after[i]) == &w->after[i];
    }
    MUST(store_live_count(reading->store) == live);
    store_each_collection(reading->store, check_order, NULL);
}

static void check_read(const struct written *w, bool is_damaged)
{
    struct reading reading = {.written = w, .store = store_new()};
    bool is_torn;
    struct err *e = read_all(&reading, &is_torn);

    MUST(reading.count == 0 || !w->records[reading.count - 1].more);
    MUST(e != NULL || reading.count >= w->in_first);
    MUST(is_damaged || (e == NULL && !is_torn && reading.count == w->count));
    check_store(&reading);
    store_free(reading.store);
    err_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct written *w = NEW(struct written);
    struct input in = {data, n};
    size_t count = input_byte(&in) % RECORDS_MOST;
    bool is_damaged;

    if (disk.directory[0] == '\0')
        make_disk();
    arena_init(&w->arena);
    w->next_serial = FIRST_SERIAL;
    w->in_first = input_byte(&in) % (count + 1);
    for (size_t i = 0; i < SEGMENTS; i++)
        buf_init(&w->files[i], BUF_NO_CAP);
    write_segment(w, 0, w->in_first, &in);
    write_segment(w, 1, count - w->in_first, &in);
    is_damaged = damage(w, &in);
    for (size_t i = 0; i < SEGMENTS; i++)
        store_file(i, buf_span(&w->files[i]));
    check_read(w, is_damaged);
    for (size_t i = 0; i < SEGMENTS; i++)
        buf_done(&w->files[i]);
    arena_done(&w->arena);
    mem_free(w);
    return 0;
}
