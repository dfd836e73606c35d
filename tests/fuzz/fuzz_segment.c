/* Journal segments. The input is a list of records to write and of bytes to overwrite: what is read
 * back is a run of the records written, from the first on, unless a header says otherwise; never
 * anything else. Checksums are written by us, so the damage behind them is reached. */
#include "base/err.h"
#include "base/mem.h"
#include "fuzzing.h"
#include "journal/segment.h"

enum { RECORDS_MOST = 64, BLOCK = 4096 };

static struct span take_bytes(struct input *in)
{
    size_t n = input_byte(in);

    return span_of((const char *)in->p, MIN(in->n, n));
}

struct written {
    struct segment_header header;
    struct buf file;
    struct segment_record records[RECORDS_MOST];
    size_t count;
};

static void pad_to_block(struct buf *b)
{
    static const char zeros[BLOCK];

    buf_add(b, span_of(zeros, (BLOCK - b->n % BLOCK) % BLOCK));
}

/* Of a format in which each takes one at least, or of this one. */
static uint32_t serials_of(const struct written *w, unsigned what)
{
    return w->header.version == 1 ? 1 + what % 3 : what >> 5 & 3;
}

static void write_records(struct written *w, struct input *in)
{
    uint64_t serial = 1;

    w->count = input_byte(in) % RECORDS_MOST;
    for (size_t i = 0; i < w->count; i++) {
        unsigned what = input_byte(in);
        struct segment_record *r = &w->records[i];

        *r = (struct segment_record){
            .serial = serial,
            .serials = serials_of(w, what),
            .kind = (uint16_t)(1 + input_byte(in) % 9),
            .commit_start = i == 0 || (what & 4) != 0,
            .after_sync = (what & 8) != 0,
            .more = (what & 16) != 0,
        };
        r->after_sync = r->after_sync && r->commit_start;
        r->body = take_bytes(in);
        if (r->commit_start)
            pad_to_block(&w->file);
        r->offset = w->file.n;
        segment_add_record(&w->file, &w->header, r);
        serial += r->serials;
    }
    pad_to_block(&w->file);
}

/* Returns where the first byte was changed. */
static size_t damage(struct written *w, struct input *in)
{
    size_t first = w->file.n;

    while (in->n >= 4) {
        size_t at = (input_byte(in) << 16 | input_byte(in) << 8 | input_byte(in)) % w->file.n;
        char before = w->file.p[at];

        w->file.p[at] = (char)(before ^ (char)input_byte(in));
        if (w->file.p[at] != before && at < first)
            first = at;
    }
    return first;
}

static void check_read(const struct written *w, size_t damaged_at)
{
    struct segment_scan scan;
    struct segment_record r;
    struct err *e = segment_scan_start(&scan, buf_span(&w->file));
    enum segment_next next = SEGMENT_BROKEN;
    uint64_t later;

    if (e != NULL) {
        MUST(damaged_at < SEGMENT_HEADER_BYTES);
        err_free(e);
        return;
    }
    for (size_t i = 0; damaged_at >= SEGMENT_HEADER_BYTES; i++) {
        next = segment_scan_next(&scan, &r);
        if (next != SEGMENT_RECORD)
            break;
        MUST(i < w->count && r.offset == w->records[i].offset && r.serial == w->records[i].serial);
        MUST(r.offset + SEGMENT_RECORD_HEADER_BYTES + r.body.n <= w->file.n);
    }
    if (next == SEGMENT_BROKEN && damaged_at >= SEGMENT_HEADER_BYTES) {
        MUST(damaged_at < w->file.n && scan.why != NULL);
        if (segment_scan_finds_later(&scan, &later))
            MUST(later > scan.offset || later % BLOCK == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct written *w = NEW(struct written);
    struct input in = {data, n};

    w->header = (struct segment_header){
        .version = 1 + n % SEGMENT_FORMAT_VERSION, .number = 1, .first_serial = 1};
    buf_init(&w->file, BUF_NO_CAP);
    segment_add_header(&w->file, &w->header);
    write_records(w, &in);
    check_read(w, damage(w, &in));
    buf_done(&w->file);
    mem_free(w);
    return 0;
}
