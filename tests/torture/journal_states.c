/* The journal alone, for lost_writes.py.
 *
 *   journal_states record ENGINE FSYNC DIRECTORY SEED   appends changes, rolls over, drops segments
 *   journal_states recover                     opens each directory named on standard input
 *
 * `record` says on standard output: REC and the record, before it is committed; ACK and a serial,
 * when it is; KEEP and a serial, before segments that hold only older ones are dropped. `recover`
 * answers a line per directory: the records, or an exclamation mark and the error. A record is
 * `serial:serials:kind:checksum of the body`, and `+` when the change goes on. */
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"
#include "base/rng.h"
#include "io/loop.h"
#include "journal/journal.h"
#include "journal/journal_options.h"
#include "journal/place.h"
#include "journal/segment.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENT_BYTES (64u << 10)
#define STEPS 150
#define CHANGE_RECORDS_MAX 4
#define CHANGES_MOST (3 * STEPS + 1)
#define BODY_MAX 9000u

struct run {
    struct loop loop;
    struct journal *j;
    size_t count;              /* of the records that were appended */
    size_t ends[CHANGES_MOST]; /* by journal_sequence: the count after that change */
    size_t begins[STEPS];      /* by number of the segment: the count before it */
    uint64_t segment;          /* the last one that was appended to */
    struct buf line;           /* what a directory holds */
    uint64_t random;
};

static void say(const char *text)
{
    MUST(write(STDOUT_FILENO, text, strlen(text)) >= 0);
}

static void add_record(struct buf *b, uint64_t serial, const struct journal_record *r, bool more)
{
    buf_printf(b, " %" PRIu64 ":%" PRIu32 ":%u:%08" PRIx32 "%s", serial, r->serials, r->kind,
               hash_crc32c(0, r->body.p, r->body.n), more ? "+" : "");
}

static struct err *on_replay(void *context, const struct segment_record *record,
                             struct journal_place place)
{
    struct run *run = context;

    (void)place;
    add_record(&run->line, record->serial,
               &(struct journal_record){record->kind, record->serials, record->body}, record->more);
    return NULL;
}

static void on_commit(void *context, uint64_t serial)
{
    struct run *run = context;
    char text[80];

    snprintf(text, sizeof(text), "ACK %" PRIu64 " %zu\n", serial,
             run->ends[journal_committed_sequence(run->j)]);
    say(text);
}

static void on_failed(void *context, const char *what, int error_number)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", what, strerror(error_number));
    _exit(1);
}

static struct err *open_journal(struct run *run, const char *directory, enum disk_engine engine,
                                enum journal_fsync fsync)
{
    const struct journal_options options = {directory, fsync, engine, SEGMENT_BYTES};
    const struct journal_callbacks callbacks = {on_replay, on_commit, on_failed, run};

    return journal_open(&run->loop, &options, &callbacks, &run->j);
}

/* A sequence of its own (xorshift): the same for a seed wherever it runs. */
static uint64_t below(struct run *run, uint64_t n)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random % n;
}

/* Which records a change and a segment begin and end with: their serials do not tell. */
static void note(struct run *run, uint64_t segment, size_t count)
{
    MUST(segment < STEPS && journal_sequence(run->j) < CHANGES_MOST);
    if (segment != run->segment)
        run->begins[segment] = run->count;
    run->segment = segment;
    run->count += count;
    run->ends[journal_sequence(run->j)] = run->count;
}

static void append(struct run *run)
{
    static char bytes[BODY_MAX];
    struct journal_record records[CHANGE_RECORDS_MAX];
    size_t count = 1 + below(run, CHANGE_RECORDS_MAX), total = 0;
    uint64_t most = below(run, 8) == 0 ? BODY_MAX : 300;
    uint64_t serial = journal_next_serial(run->j);
    uint32_t serials = below(run, 3) > 0; /* 0: it is a move */
    struct journal_place places[CHANGE_RECORDS_MAX];

    buf_clear(&run->line);
    buf_printf(&run->line, "REC");
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)below(run, 256);
    for (size_t i = 0; i < count; i++) {
        size_t n = below(run, most);

        records[i] =
            (struct journal_record){1, serials, span_of(bytes + below(run, BODY_MAX - n), n)};
        total += segment_record_bytes(n);
        add_record(&run->line, serial + i * serials, &records[i], i + 1 < count);
    }
    buf_printf(&run->line, "\n");
    MUST(journal_reserve(run->j, total, NULL) == NULL);
    say(buf_text(&run->line));
    journal_append(run->j, records, count, total, places);
    note(run, places[0].segment, count);
}

static void drop(struct run *run)
{
    size_t keep = run->begins[journal_oldest_number(run->j) + 1];
    char text[40];

    if (journal_second_first_serial(run->j) == 0 ||
        keep >= run->ends[journal_committed_sequence(run->j)])
        return;
    snprintf(text, sizeof(text), "KEEP %zu\n", keep);
    say(text);
    journal_drop_oldest(run->j);
}

static void record(struct run *run, char **arguments)
{
    enum disk_engine engine = strcmp(arguments[0], "aio") == 0 ? DISK_AIO : DISK_HELPER;
    enum journal_fsync fsync = strcmp(arguments[1], "always") == 0 ? JOURNAL_ALWAYS : JOURNAL_NO;

    run->random = (uint64_t)arguments[3][0] * 2654435761u + strlen(arguments[3]) + 1;
    for (const char *p = arguments[3]; *p != '\0'; p++)
        run->random = run->random * 31 + (uint64_t)*p;
    MUST(open_journal(run, arguments[2], engine, fsync) == NULL);
    for (int step = 0; step < STEPS; step++) {
        for (uint64_t n = 1 + below(run, 3); n > 0; n--)
            append(run);
        journal_commit(run->j);
        while (below(run, 3) > 0 && !journal_idle(run->j))
            loop_run_once(&run->loop);
        if (below(run, 12) == 0)
            drop(run);
    }
    while (!journal_idle(run->j))
        loop_run_once(&run->loop);
    journal_close(run->j);
}

static void recover(struct run *run, const char *directory)
{
    struct err *e;

    buf_clear(&run->line);
    e = open_journal(run, directory, DISK_HELPER, JOURNAL_ALWAYS);
    if (e == NULL) {
        printf("%s\n", buf_text(&run->line));
        journal_close(run->j);
    } else {
        printf("!%.*s\n", SPAN_FMT(err_message(e)));
        err_free(e);
    }
    fflush(stdout);
    loop_run_once(&run->loop);
}

static void recover_each(struct run *run)
{
    char directory[4096];

    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    while (fgets(directory, sizeof(directory), stdin) != NULL) {
        directory[strcspn(directory, "\n")] = '\0';
        recover(run, directory);
    }
}

int main(int argc, char **argv)
{
    struct run run = {.line = {.max = BUF_NO_CAP}};

    MUST(loop_init(&run.loop) == NULL);
    if (argc == 6 && strcmp(argv[1], "record") == 0)
        record(&run, argv + 2);
    else
        recover_each(&run);
    buf_done(&run.line);
    loop_done(&run.loop);
    return 0;
}
