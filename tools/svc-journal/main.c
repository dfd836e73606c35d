/* `svc-journal verify DIR` and `svc-journal dump DIR`: reads a journal without a server, or beside
 * one. Reads only, and needs no lock: beside a running server the end of the last segment may be in
 * motion. */
#include "base/json.h"
#include "base/mem.h"
#include "base/member.h"
#include "io/segment.h"
#include "store/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GOOD = 0, DAMAGED = 1, FAILED = 2 };

struct journal_files {
    const char *directory;
    uint64_t *numbers; /* sorted */
    size_t count;
};

/* What was read of a journal so far. */
struct walk {
    const struct journal_files *files;
    bool dumps;
    uint64_t records, next_serial;
    struct uuid journal; /* of the first segment */
    bool is_open;        /* the last record's change is not complete */
    struct buf line;
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool list_segments(struct journal_files *files)
{
    DIR *directory = opendir(files->directory);
    struct dirent *entry;
    uint64_t number;

    if (directory == NULL) {
        fprintf(stderr, "svc-journal: %s: %s\n", files->directory, strerror(errno));
        return false;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (!segment_number_of(span_str(entry->d_name), &number))
            continue;
        files->numbers = mem_resize(files->numbers, (files->count + 1) * sizeof(uint64_t));
        files->numbers[files->count++] = number;
    }
    closedir(directory);
    if (files->count > 0)
        qsort(files->numbers, files->count, sizeof(uint64_t), by_number);
    return true;
}

static bool map_file(const char *path, struct span *out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *p;

    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "svc-journal: %s: %s\n", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (st.st_size == 0) {
        close(fd);
        *out_bytes = (struct span){NULL, 0};
        return true;
    }
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) {
        fprintf(stderr, "svc-journal: %s: %s\n", path, strerror(errno));
        return false;
    }
    *out_bytes = span_of(p, (size_t)st.st_size);
    return true;
}

static void dump(struct walk *w, uint64_t segment, const struct segment_record *record)
{
    struct buf *b = &w->line;

    buf_clear(b);
    buf_add_char(b, '{');
    member_add_u64(b, SPAN("segment"), segment);
    member_add_u64(b, SPAN("offset"), record->offset);
    member_add_u64(b, SPAN("serial"), record->serial);
    member_add_u64(b, SPAN("serials"), record->serials);
    member_add_bool(b, SPAN("more"), record->more);
    json_add_name(b, SPAN("record"));
    record_add_dump(b, record->kind, record->body);
    buf_add_str(b, "}\n");
    fwrite(b->p, 1, b->n, stdout);
}

/* True when what follows `scan` is only a torn end, which a start would cut. */
static bool is_torn_end(const struct segment_scan *scan, bool is_last)
{
    uint64_t later;

    return is_last && !segment_scan_finds_later(scan, &later);
}

static int report_broken(const struct segment_scan *scan, const char *path, bool is_last)
{
    if (is_torn_end(scan, is_last)) {
        fprintf(stderr, "%s: a torn end at offset %llu (%s), which a start would cut\n", path,
                (unsigned long long)scan->offset, scan->why);
        return GOOD;
    }
    fprintf(stderr, "%s: damaged at offset %llu: %s; restore a backup\n", path,
            (unsigned long long)scan->offset, scan->why);
    return DAMAGED;
}

static int report_error(const char *path, struct err *e)
{
    fprintf(stderr, "%s: %.*s\n", path, SPAN_FMT(err_message(e)));
    err_free(e);
    return DAMAGED;
}

static struct err *check_record(const struct walk *w, const struct segment_record *record)
{
    if (record->commit_start && w->is_open)
        return ERR(ERR_STORAGE_FAILURE, "a commit begins within a change");
    return record_check(record->kind, record->body);
}

/* A record that is whole but makes no sense is damage too. */
static int take_record(struct walk *w, const struct segment_scan *scan,
                       const struct segment_record *record, const char *path)
{
    struct err *e = check_record(w, record);

    if (e != NULL)
        return report_error(
            path, err_prefix(e, "record at offset %llu: ", (unsigned long long)record->offset));
    if (w->dumps)
        dump(w, scan->header.number, record);
    w->is_open = record->more;
    w->records++;
    return GOOD;
}

static int walk_records(struct walk *w, struct segment_scan *scan, const char *path, bool is_last)
{
    struct segment_record record;
    enum segment_next next;
    uint64_t first = scan->next_serial, before = w->records;

    while ((next = segment_scan_next(scan, &record)) == SEGMENT_RECORD)
        if (take_record(w, scan, &record, path) != GOOD)
            return DAMAGED;
    w->next_serial = scan->next_serial;
    if (!w->dumps)
        printf("%s: %llu records, serials %llu to %llu, %llu bytes used\n", path,
               (unsigned long long)(w->records - before), (unsigned long long)first,
               (unsigned long long)scan->next_serial - 1, (unsigned long long)scan->offset);
    if (next != SEGMENT_END)
        return report_broken(scan, path, is_last);
    if (w->is_open && !is_last)
        return report_error(path, ERR(ERR_STORAGE_FAILURE, "ends within a change"));
    return GOOD;
}

static struct err *check_header(struct walk *w, size_t place, const struct segment_header *h)
{
    if (h->number != w->files->numbers[place])
        return ERR(ERR_STORAGE_FAILURE, "its header says that it is segment %llu",
                   (unsigned long long)h->number);
    if (place == 0)
        w->journal = h->journal;
    if (!uuid_eq(&w->journal, &h->journal))
        return ERR(ERR_STORAGE_FAILURE, "it belongs to another journal");
    if (h->first_serial == 0 || (place > 0 && h->first_serial != w->next_serial))
        return ERR(ERR_STORAGE_FAILURE, "begins with serial %llu, the one before ends with %llu",
                   (unsigned long long)h->first_serial, (unsigned long long)w->next_serial - 1);
    return NULL;
}

static bool is_blank(struct span bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.p[i] != 0)
            return false;
    return true;
}

static int walk_bytes(struct walk *w, size_t place, const char *path, struct span bytes)
{
    bool is_last = place + 1 == w->files->count;
    struct segment_scan scan;
    struct err *e;

    if (is_last && is_blank(bytes)) {
        fprintf(stderr, "%s: blank, which a start would remove\n", path);
        return GOOD;
    }
    e = segment_scan_start(&scan, bytes);
    if (e == NULL)
        e = check_header(w, place, &scan.header);
    return e == NULL ? walk_records(w, &scan, path, is_last) : report_error(path, e);
}

static int walk_segment(struct walk *w, size_t place, const char *path)
{
    struct span bytes;
    int status;

    if (!map_file(path, &bytes))
        return FAILED;
    status = walk_bytes(w, place, path, bytes);
    if (bytes.n > 0)
        munmap((void *)(uintptr_t)bytes.p, bytes.n);
    return status;
}

static int walk_all(struct walk *w)
{
    const struct journal_files *files = w->files;
    char name[40], path[4096];
    int status = GOOD;

    for (size_t i = 0; i < files->count && status == GOOD; i++) {
        segment_file_name(files->numbers[i], name);
        snprintf(path, sizeof(path), "%s/%s", files->directory, name);
        if (i > 0 && files->numbers[i] != files->numbers[i - 1] + 1) {
            fprintf(stderr, "%s: the segment before it is missing; restore a backup\n", path);
            return DAMAGED;
        }
        status = walk_segment(w, i, path);
    }
    if (status == GOOD && w->is_open)
        fprintf(stderr, "the last change is not complete, a start would cut it\n");
    return status;
}

int main(int argc, char **argv)
{
    struct journal_files files = {.count = 0};
    struct walk w = {.files = &files};
    int status;

    if (argc != 3 || (strcmp(argv[1], "verify") != 0 && strcmp(argv[1], "dump") != 0)) {
        fputs("usage: svc-journal verify DIR   checks every record; exit status 1: damaged\n"
              "       svc-journal dump DIR     writes every record as a line of JSON\n",
              stderr);
        return FAILED;
    }
    files.directory = argv[2];
    w.dumps = strcmp(argv[1], "dump") == 0;
    buf_init(&w.line, BUF_NO_CAP);
    status = list_segments(&files) ? walk_all(&w) : FAILED;
    if (status == GOOD && files.count == 0) {
        fprintf(stderr, "svc-journal: %s: there is no journal\n", files.directory);
        status = FAILED;
    }
    if (status == GOOD && !w.dumps)
        printf("ok: %llu records\n", (unsigned long long)w.records);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("svc-journal: standard output cannot be written\n", stderr);
        status = FAILED;
    }
    buf_done(&w.line);
    mem_free(files.numbers);
    return status;
}
