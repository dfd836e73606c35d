#include "journal_testing.h"

#include "journal/segment.h"
#include "testing.h"

#include "base/rng.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BODY_PART = 1 << 16 };

void fx_add(struct fx_list *list, const struct fx_record *record)
{
    if (list->count == list->size) {
        list->size = list->size == 0 ? 64 : 2 * list->size;
        list->records = mem_resize(list->records, list->size * sizeof(*list->records));
    }
    list->records[list->count++] = *record;
}

/* The bytes of a body from a multiple of BODY_PART on. */
static const char *fx_part(uint64_t serial, size_t at)
{
    static char bytes[2 * BODY_PART];

    for (size_t i = 0; bytes[sizeof(bytes) - 1] == 0 && i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 256);
    return bytes + (serial * 31 + at / BODY_PART * 257) % BODY_PART;
}

static void fx_fill(char *p, size_t n, uint64_t serial)
{
    for (size_t at = 0; at < n; at += BODY_PART)
        memcpy(p + at, fx_part(serial, at), MIN(n - at, BODY_PART));
}

bool fx_body_holds(struct span body, uint64_t serial)
{
    for (size_t at = 0; at < body.n; at += BODY_PART) {
        if (memcmp(body.p + at, fx_part(serial, at), MIN(body.n - at, BODY_PART)) != 0)
            return false;
    }
    return true;
}

static struct err *fx_on_replay(void *context, const struct segment_record *record,
                                struct journal_place place)
{
    struct fixture *f = context;

    if (record->serial == f->refuse_serial)
        return ERR(ERR_INVALID_ENTITY, "the store does not like it");
    fx_add(&f->replayed, &(struct fx_record){
                             .serial = record->serial,
                             .serials = record->serials,
                             .kind = record->kind,
                             .n = record->body.n,
                             .more = record->more,
                             .body_holds = fx_body_holds(record->body, record->serial),
                             .place = place,
                         });
    return NULL;
}

static void fx_on_commit(void *context, uint64_t serial)
{
    struct fixture *f = context;

    if (serial < f->committed + !f->moves || f->failures > 0)
        ck_abort_msg("commit of %lu after %lu", (unsigned long)serial, (unsigned long)f->committed);
    f->committed = serial;
    f->commits++;
    if (f->then != NULL)
        f->then(f);
}

static void fx_on_failed(void *context, const char *what, int error_number)
{
    struct fixture *f = context;

    ck_assert_ptr_nonnull(what);
    f->failures++;
    f->error_number = error_number;
    if (f->then != NULL)
        f->then(f);
}

static void fx_init_in(struct fixture *f, const char *base, enum journal_fsync fsync,
                       enum disk_engine engine)
{
    *f = (struct fixture){.options = {.fsync = fsync, .engine = engine}};
    snprintf(f->directory, sizeof(f->directory), "%s/check-journal-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(f->directory));
    f->options.directory = f->directory;
    f->options.segment_bytes = FX_SEGMENT_BYTES;
    ck_ok(loop_init(&f->loop));
}

void fx_init(struct fixture *f, enum journal_fsync fsync, enum disk_engine engine)
{
    fx_init_in(f, "/tmp", fsync, engine);
}

void fx_init_fast(struct fixture *f, enum journal_fsync fsync, enum disk_engine engine)
{
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_DIRECT, 0600);

    fx_init_in(f, fd < 0 ? "/tmp" : "/dev/shm", fsync, engine);
    if (fd >= 0)
        close(fd);
}

struct err *fx_try_open(struct fixture *f)
{
    const struct journal_callbacks callbacks = {fx_on_replay, fx_on_commit, fx_on_failed, f};

    f->replayed.count = 0;
    f->commits = f->failures = 0;
    f->committed = 0;
    return journal_open(&f->loop, &f->options, &callbacks, &f->j);
}

void fx_open(struct fixture *f)
{
    ck_ok(fx_try_open(f));
}

void fx_turns(struct fixture *f, int count)
{
    while (count-- > 0) {
        loop_wake(&f->loop);
        loop_run_once(&f->loop);
    }
}

void fx_close(struct fixture *f)
{
    journal_close(TAKE(f->j));
    fx_turns(f, 1); /* frees what closes with the loop */
}

static void fx_remove_files(struct fixture *f)
{
    DIR *names = opendir(f->directory);
    struct dirent *entry;

    while ((entry = readdir(names)) != NULL)
        unlinkat(dirfd(names), entry->d_name, 0);
    closedir(names);
}

void fx_done(struct fixture *f)
{
    fx_close(f);
    loop_done(&f->loop);
    fx_remove_files(f);
    ck_assert_int_eq(rmdir(f->directory), 0);
    mem_free(f->appended.records);
    mem_free(f->replayed.records);
}

static uint64_t draft(struct journal *j, const struct journal_record *records, size_t count,
                      struct journal_place *places)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += segment_record_bytes(records[i].body.n);
    journal_draft_begin(j, bytes);
    for (size_t i = 0; i < count; i++)
        places[i] = journal_draft_add(j, &records[i], i + 1 < count);
    return journal_draft_end(j);
}

static uint32_t serials_of(const struct fixture *f, uint64_t serial, size_t change)
{
    return f->moves && change % 3 != 0 ? 0 : (uint32_t)(1 + serial % 3);
}

void fx_append_blindly(struct fixture *f, size_t count, size_t n)
{
    struct journal_record records[16];
    struct journal_place places[16];
    char *bodies = mem_alloc(count * n);
    uint64_t serial = journal_next_serial(f->j);
    size_t before = f->appended.count;

    for (size_t i = 0; i < count; i++) {
        struct fx_record r = {
            .serial = serial,
            .serials = serials_of(f, serial, before),
            .kind = (uint16_t)(serial % 7),
            .n = n,
            .more = i + 1 < count,
        };

        fx_fill(bodies + i * n, n, serial);
        records[i] = (struct journal_record){r.kind, r.serials, span_of(bodies + i * n, n)};
        fx_add(&f->appended, &r);
        serial += r.serials;
    }
    if ((f->drafts ? draft(f->j, records, count, places)
                   : journal_append(f->j, records, count, fx_bytes(count, n), places)) !=
        f->appended.records[before].serial)
        ck_abort_msg("wrong serial");
    for (size_t i = 0; i < count; i++)
        f->appended.records[before + i].place = places[i];
    if (journal_next_serial(f->j) != serial)
        ck_abort_msg("wrong next serial");
    mem_free(bodies);
}

size_t fx_bytes(size_t count, size_t n)
{
    return count * segment_record_bytes(n);
}

void fx_append(struct fixture *f, size_t count, size_t n)
{
    struct err *e = journal_reserve(f->j, fx_bytes(count, n), NULL);

    if (e != NULL)
        ck_abort_msg("%.*s", SPAN_FMT(err_message(e)));
    fx_append_blindly(f, count, n);
}

void fx_commit(struct fixture *f)
{
    journal_commit(f->j);
    for (int i = 0; i < 100000 && f->j != NULL && !journal_idle(f->j); i++)
        loop_run_once(&f->loop);
    ck_assert(f->j == NULL || journal_idle(f->j));
}

void fx_commit_many(struct fixture *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fx_append(f, 1 + (size_t)rng_below(4), (size_t)rng_below(900));
        fx_commit(f);
    }
}

static bool fx_same(const struct fx_record *a, const struct fx_record *b)
{
    return a->serial == b->serial && a->serials == b->serials && a->kind == b->kind &&
           a->n == b->n && a->more == b->more && a->place.segment == b->place.segment &&
           a->place.offset == b->place.offset;
}

void fx_check_replayed(const struct fixture *f, size_t from, uint64_t committed)
{
    const struct fx_list *seen = &f->replayed;

    ck_assert_uint_le(from + seen->count, f->appended.count);
    for (size_t i = 0; i < seen->count; i++) {
        if (!fx_same(&seen->records[i], &f->appended.records[from + i]) ||
            !seen->records[i].body_holds)
            ck_abort_msg("record %zu is not what was appended", i);
    }
    if (seen->count > 0)
        ck_assert(!seen->records[seen->count - 1].more);
    ck_assert_uint_gt(journal_next_serial(f->j), committed);
    ck_assert_uint_eq(journal_committed_sequence(f->j), 0);
    ck_assert_uint_eq(journal_committed_serial(f->j), journal_next_serial(f->j) - 1);
}

void fx_forget_lost(struct fixture *f)
{
    while (f->appended.count > 0 &&
           f->appended.records[f->appended.count - 1].serial >= journal_next_serial(f->j))
        f->appended.count--;
}

void fx_reopen(struct fixture *f)
{
    uint64_t committed = f->committed;

    fx_close(f);
    fx_open(f);
    fx_check_replayed(f, 0, committed);
}

void fx_reopen_whole(struct fixture *f)
{
    fx_reopen(f);
    ck_assert_uint_eq(f->replayed.count, f->appended.count);
}

const char *fx_path(const struct fixture *f, uint64_t number, char out_path[128])
{
    char name[40];

    segment_file_name(number, name);
    snprintf(out_path, 128, "%s/%s", f->directory, name);
    return out_path;
}

bool fx_exists(const struct fixture *f, uint64_t number)
{
    char path[128];

    return access(fx_path(f, number, path), F_OK) == 0;
}

char *fx_read_file(const struct fixture *f, uint64_t number, size_t *out_n)
{
    char path[128];
    int fd = open(fx_path(f, number, path), O_RDONLY);
    struct stat status;
    char *p;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    *out_n = (size_t)status.st_size;
    p = mem_alloc(*out_n);
    ck_assert_int_eq(read(fd, p, *out_n), status.st_size);
    close(fd);
    return p;
}

void fx_write_file(const struct fixture *f, uint64_t number, const char *p, size_t n)
{
    char path[128];
    int fd = open(fx_path(f, number, path), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        ck_abort_msg("cannot write %s", path);
    close(fd);
}

void fx_patch(const struct fixture *f, uint64_t number, size_t at, const char *p, size_t n)
{
    char path[128];
    int fd = open(fx_path(f, number, path), O_WRONLY);

    if (fd < 0 || pwrite(fd, p, n, (off_t)at) != (ssize_t)n)
        ck_abort_msg("cannot patch %s", path);
    close(fd);
}

void fx_flip(const struct fixture *f, uint64_t number, size_t at)
{
    char path[128];
    int fd = open(fx_path(f, number, path), O_RDONLY);
    char byte;

    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
    close(fd);
    byte ^= 0x10;
    fx_patch(f, number, at, &byte, 1);
}
