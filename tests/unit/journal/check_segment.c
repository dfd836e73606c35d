#include "testing.h"

#include "base/hash.h"
#include "base/rng.h"
#include "journal/segment.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 4096u
#define FILE_BYTES (6 * BLOCK)
#define RECORDS_MAX 64

static const struct segment_header header = {
    .version = SEGMENT_FORMAT_VERSION,
    .journal = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
    .number = 7,
    .first_serial = 100,
    .created_unix_ns = 1234567890,
    .bytes_before = 0x123456,
};

/* A segment that is built commit by commit. */
struct file {
    struct buf b;
    uint64_t serial;
    size_t commit_at[8]; /* offsets */
    size_t commits;
};

static void file_init(struct file *f)
{
    *f = (struct file){.serial = header.first_serial};
    buf_init(&f->b, 64u << 20);
    segment_add_header(&f->b, &header);
}

static void pad_to(struct buf *b, size_t n)
{
    size_t missing = n > b->n ? n - b->n : 0;

    memset(buf_reserve(b, missing + 1), 0, missing);
    buf_commit(b, missing);
}

/* One commit of `count` records with bodies of 0, 100, 200, ... bytes; each three are a change. */
static void add_commit(struct file *f, unsigned count, bool after_sync)
{
    char body[8192];

    f->commit_at[f->commits++] = f->b.n;
    for (unsigned i = 0; i < count; i++) {
        memset(body, 'a' + (int)i, sizeof(body));
        segment_add_record(&f->b, &header,
                           &(struct segment_record){
                               .serial = f->serial,
                               .serials = i + 1,
                               .kind = (uint16_t)(10 + i),
                               .commit_start = i == 0,
                               .after_sync = i == 0 && after_sync,
                               .more = i % 3 != 2 && i + 1 < count,
                               .body = span_of(body, 100 * (size_t)i),
                           });
        f->serial += i + 1;
    }
    pad_to(&f->b, (f->b.n + BLOCK - 1) / BLOCK * BLOCK);
}

/* Commits of 3, 12 (more than a block) and 2 records, then zeros. */
static void build(struct file *f, bool after_sync)
{
    file_init(f);
    add_commit(f, 3, after_sync);
    add_commit(f, 12, after_sync);
    add_commit(f, 2, after_sync);
    pad_to(&f->b, FILE_BYTES);
}

struct result {
    struct segment_record records[RECORDS_MAX];
    size_t count;
    enum segment_next end;
    struct segment_scan scan;
};

/* False when the header is refused. */
static bool scan_all(struct span file, struct result *out)
{
    struct err *e;

    out->count = 0;
    e = segment_scan_start(&out->scan, file);
    if (e != NULL) {
        err_free(e);
        return false;
    }
    do {
        if (out->count == RECORDS_MAX)
            ck_abort_msg("too many records");
        out->end = segment_scan_next(&out->scan, &out->records[out->count]);
    } while (out->end == SEGMENT_RECORD && ++out->count > 0);
    return true;
}

static bool same_record(const struct segment_record *a, const struct segment_record *b)
{
    return a->serial == b->serial && a->serials == b->serials && a->kind == b->kind &&
           a->commit_start == b->commit_start && a->after_sync == b->after_sync &&
           a->more == b->more && a->offset == b->offset && span_eq(a->body, b->body);
}

static bool is_prefix(const struct result *r, const struct result *whole)
{
    for (size_t i = 0; i < r->count; i++) {
        if (i >= whole->count || !same_record(&r->records[i], &whole->records[i]))
            return false;
    }
    return true;
}

static const struct name_case {
    const char *name;
    bool valid;
    uint64_t number;
} name_cases[] = {
    {"journal-0000000000000001.seg", true, 1},
    {"journal-00000000deadbeef.seg", true, 0xdeadbeef},
    {"journal-ffffffffffffffff.seg", true, UINT64_MAX},
    {"journal-00000000DEADBEEF.seg", false, 0},
    {"journal-000000000000001.seg", false, 0},
    {"journal-00000000000000001.seg", false, 0},
    {"journal-000000000000000g.seg", false, 0},
    {"journal-0000000000000001.tmp", false, 0},
    {"journal-0000000000000001.seg~", false, 0},
    {"lock", false, 0},
    {"", false, 0},
};

START_TEST(names)
{
    const struct name_case *c = &name_cases[_i];
    uint64_t number = 0;
    char name[40];

    ck_assert_int_eq(segment_number_of(span_str(c->name), &number), c->valid);
    ck_assert_uint_eq(number, c->number);
    if (!c->valid)
        return;
    segment_file_name(number, name);
    ck_assert_str_eq(name, c->name);
}
END_TEST

START_TEST(header_comes_back)
{
    struct segment_header back;
    struct file f;

    file_init(&f);
    ck_assert_uint_eq(f.b.n, SEGMENT_HEADER_BYTES);
    ck_ok(segment_read_header(buf_span(&f.b), &back));
    ck_assert_uint_eq(back.version, header.version);
    ck_assert(uuid_eq(&back.journal, &header.journal));
    ck_assert_uint_eq(back.number, header.number);
    ck_assert_uint_eq(back.first_serial, header.first_serial);
    ck_assert_int_eq(back.created_unix_ns, header.created_unix_ns);
    ck_assert_uint_eq(back.bytes_before, header.bytes_before);
    buf_done(&f.b);
}
END_TEST

/* Bytes as documented, so that the format cannot change by accident. */
START_TEST(layout)
{
    static const char head[] = "SVCJRNL\n"
                               "\x03\0\0\0\0\0\0\0"
                               "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
                               "\x07\0\0\0\0\0\0\0"
                               "\x64\0\0\0\0\0\0\0"
                               "\xd2\x02\x96\x49\0\0\0\0"
                               "\x56\x34\x12\0\0\0\0\0";
    static const char tail[] = "\x05\x04\x03\x02\x01\0\0\0" /* serial */
                               "\x34\x12"                   /* kind */
                               "\x07\0"                     /* flags */
                               "\x09\0\0\0"                 /* serials */
                               "body\0\0\0\0";
    struct segment_record record = {
        .serial = 0x0102030405,
        .serials = 9,
        .kind = 0x1234,
        .commit_start = true,
        .after_sync = true,
        .more = true,
        .body = SPAN("body"),
    };
    uint32_t crc = hash_crc32c(0, header.journal.b, 16);
    struct file f;

    file_init(&f);
    segment_add_record(&f.b, &header, &record);
    ck_assert_mem_eq(f.b.p, head, sizeof(head) - 1);
    ck_assert_mem_eq(f.b.p + BLOCK, "\x04\0\0\0", 4);
    ck_assert_mem_eq(f.b.p + BLOCK + 8, tail, sizeof(tail) - 1);
    crc = hash_crc32c(hash_crc32c(crc, "\x04\0\0\0", 4), tail, 20);
    ck_assert_mem_eq(f.b.p + BLOCK + 4,
                     ((uint8_t[]){(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16),
                                  (uint8_t)(crc >> 24)}),
                     4);
    ck_assert_uint_eq(f.b.n, BLOCK + segment_record_bytes(4));
    buf_done(&f.b);
}
END_TEST

START_TEST(record_sizes)
{
    static const size_t cases[][2] = {{0, 24}, {1, 32}, {8, 32}, {9, 40}, {450, 480}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_uint_eq(segment_record_bytes(cases[i][0]), cases[i][1]);
}
END_TEST

START_TEST(refuses_what_is_no_segment)
{
    struct segment_header h;
    struct file f;

    file_init(&f);
    ck_fails(segment_read_header(span_sub(buf_span(&f.b), 0, BLOCK - 1), &h), ERR_STORAGE_FAILURE,
             "no journal segment");
    ck_fails(segment_read_header((struct span){0}, &h), ERR_STORAGE_FAILURE, "no journal segment");
    f.b.p[20] ^= 1;
    ck_fails(segment_read_header(buf_span(&f.b), &h), ERR_STORAGE_FAILURE, "damaged");
    f.b.p[0] ^= 1;
    ck_fails(segment_read_header(buf_span(&f.b), &h), ERR_STORAGE_FAILURE, "no journal segment");
    buf_done(&f.b);
}
END_TEST

START_TEST(names_a_newer_version)
{
    struct segment_header newer = header, h;
    struct buf b;

    ck_assert(!segment_is_of_another_version(SPAN("")));
    newer.version = 23;
    buf_init(&b, BLOCK);
    segment_add_header(&b, &newer);
    ck_fails(segment_read_header(buf_span(&b), &h), ERR_STORAGE_FAILURE,
             "format version 23, this program knows versions 1 to 3");
    ck_assert(segment_is_of_another_version(buf_span(&b)));
    b.p[40] ^= 1; /* damaged besides: then nobody knows what it was */
    ck_assert(!segment_is_of_another_version(buf_span(&b)));
    newer.version = 0;
    newer.bytes_before = 0;
    buf_clear(&b);
    segment_add_header(&b, &newer);
    ck_assert(segment_is_of_another_version(buf_span(&b)));
    buf_done(&b);
}
END_TEST

START_TEST(knows_older_versions)
{
    struct segment_header older = header, h;
    struct buf b;

    buf_init(&b, BLOCK);
    for (older.version = 1; older.version <= SEGMENT_FORMAT_VERSION; older.version++) {
        buf_clear(&b);
        older.bytes_before = older.version < 3 ? 0 : header.bytes_before;
        segment_add_header(&b, &older);
        ck_assert(!segment_is_of_another_version(buf_span(&b)));
        ck_ok(segment_read_header(buf_span(&b), &h));
        ck_assert_uint_eq(h.version, older.version);
        ck_assert_uint_eq(h.bytes_before, older.bytes_before);
        ck_assert(segment_tells_of_before(&h) == (older.version == 3));
    }
    buf_done(&b);
}
END_TEST

/* A copy's serial is that of the record to come; in version 1 there is none. */
START_TEST(records_without_serials)
{
    static const struct segment_record records[] = {
        {.serial = 100, .serials = 0, .commit_start = true, .body = SPAN_INIT("moved")},
        {.serial = 100, .serials = 0, .body = SPAN_INIT("moved too")},
        {.serial = 100, .serials = 2, .body = SPAN_INIT("new")},
        {.serial = 102, .serials = 0, .body = SPAN_INIT("moved again")},
    };
    struct segment_header first = header;
    struct result r;
    struct file f;

    file_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(records); i++)
        segment_add_record(&f.b, &header, &records[i]);
    pad_to(&f.b, FILE_BYTES);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_END);
    ck_assert_uint_eq(r.count, ARRAY_LEN(records));
    ck_assert_uint_eq(r.scan.next_serial, 102);
    first.version = 1;
    first.bytes_before = 0;
    buf_truncate(&f.b, 0);
    segment_add_header(&f.b, &first);
    segment_add_record(&f.b, &header, &records[0]);
    pad_to(&f.b, FILE_BYTES);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert_str_eq(r.scan.why, "the record takes an impossible number of serials");
    buf_done(&f.b);
}
END_TEST

/* A commit of copies alone proves as well that what is broken before it had been on disk. */
START_TEST(a_copy_proves_damage)
{
    const struct segment_record copy = {.serial = 100, .commit_start = true, .after_sync = true};
    struct result r;
    struct file f;
    uint64_t later;

    file_init(&f);
    for (int i = 0; i < 2; i++) {
        segment_add_record(&f.b, &header, &copy);
        pad_to(&f.b, f.b.n / BLOCK * BLOCK + BLOCK);
    }
    pad_to(&f.b, FILE_BYTES);
    f.b.p[BLOCK] ^= 1;
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert(segment_scan_finds_later(&r.scan, &later));
    ck_assert_uint_eq(later, 2 * BLOCK);
    buf_done(&f.b);
}
END_TEST

START_TEST(records_come_back)
{
    struct result r;
    struct file f;

    build(&f, true);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_END);
    ck_assert_uint_eq(r.count, 17);
    ck_assert_uint_eq(r.scan.next_serial, f.serial);
    ck_assert_uint_eq(r.records[3].offset, f.commit_at[1]);
    ck_assert(r.records[3].commit_start && r.records[3].more && !r.records[5].more);
    ck_assert_uint_eq(r.records[14].body.n, 1100);
    ck_assert_int_eq(r.records[14].body.p[1099], 'a' + 11);
    ck_assert_uint_eq(r.records[14].kind, 21);
    buf_done(&f.b);
}
END_TEST

START_TEST(an_empty_segment_ends)
{
    struct result r;
    struct file f;

    file_init(&f);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_END);
    pad_to(&f.b, FILE_BYTES);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_END);
    ck_assert_uint_eq(r.scan.next_serial, header.first_serial);
    buf_done(&f.b);
}
END_TEST

/* A file cut at any byte yields a prefix; after the last record it is whole. */
START_TEST(cut_anywhere)
{
    struct result whole, r;
    struct file f;
    size_t body_end;

    build(&f, true);
    ck_assert(scan_all(buf_span(&f.b), &whole));
    body_end = (size_t)(whole.records[16].body.p + whole.records[16].body.n - f.b.p);
    for (size_t n = BLOCK; n < f.b.n; n += n < f.commit_at[2] - 8 || n > body_end + 8 ? 13 : 1) {
        char *copy = mem_alloc(n); /* of its own, so that reading past the end is noticed */

        memcpy(copy, f.b.p, n);
        if (!scan_all(span_of(copy, n), &r) || !is_prefix(&r, &whole))
            ck_abort_msg("cut at %zu: no prefix", n);
        if ((n >= body_end && r.count != 17) || (n > f.commit_at[2] && r.count < 15))
            ck_abort_msg("cut at %zu: %zu records", n, r.count);
        mem_free(copy);
    }
    buf_done(&f.b);
}
END_TEST

/* Every bit of the file matters, and damage before the last commit is told from a torn tail. (Few
 * assertions: each costs more than a scan.) */
START_TEST(flip_every_bit)
{
    struct result whole, r;
    struct file f;
    uint64_t later;

    build(&f, true);
    ck_assert(scan_all(buf_span(&f.b), &whole));
    for (size_t bit = (size_t)_i; bit < 8 * f.b.n; bit += 8) {
        size_t at = bit / 8;
        bool readable;

        f.b.p[at] ^= (char)(1 << bit % 8);
        readable = scan_all(buf_span(&f.b), &r);
        if (readable != (at >= BLOCK))
            ck_abort_msg("bit %zu: wrong judgement of the header", bit);
        if (readable && (r.end != SEGMENT_BROKEN || r.scan.offset > at || !is_prefix(&r, &whole)))
            ck_abort_msg("bit %zu: unnoticed", bit);
        if (readable && at < f.commit_at[2] && !segment_scan_finds_later(&r.scan, &later))
            ck_abort_msg("bit %zu: taken for a torn tail", bit);
        f.b.p[at] ^= (char)(1 << bit % 8);
    }
    buf_done(&f.b);
}
END_TEST

/* A lost block, in each combination, is noticed unless it was empty. */
START_TEST(zero_blocks)
{
    struct result r;
    struct file f;
    uint64_t later;

    build(&f, true);
    for (size_t at = BLOCK; at < f.b.n; at += BLOCK) {
        char saved[BLOCK];
        bool was_empty = at >= f.b.n || segment_blank(span_of(f.b.p + at, BLOCK));

        memcpy(saved, f.b.p + at, BLOCK);
        memset(f.b.p + at, 0, BLOCK);
        ck_assert(scan_all(buf_span(&f.b), &r));
        if (at < f.commit_at[2]) {
            ck_assert_int_eq(r.end, SEGMENT_BROKEN);
            ck_assert(segment_scan_finds_later(&r.scan, &later));
            ck_assert_uint_gt(later, at);
        } else {
            ck_assert_int_eq(r.end, SEGMENT_END);
            ck_assert_uint_eq(r.count, was_empty ? 17 : 15);
        }
        memcpy(f.b.p + at, saved, BLOCK);
    }
    buf_done(&f.b);
}
END_TEST

/* Records are lost from the end of a commit exactly where a record begins. */
START_TEST(lost_records_before_a_commit)
{
    struct result whole, r;
    struct file f;
    uint64_t later = 0;

    build(&f, true);
    ck_assert(scan_all(buf_span(&f.b), &whole));
    memset(f.b.p + whole.records[2].offset, 0, f.commit_at[1] - whole.records[2].offset);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert_uint_eq(r.count, 2);
    ck_assert_uint_eq(r.scan.offset, f.commit_at[1]);
    ck_assert(segment_scan_finds_later(&r.scan, &later));
    ck_assert_uint_eq(later, f.commit_at[1]);
    buf_done(&f.b);
}
END_TEST

/* Writes that no sync had ordered may reach the disk in any order: no proof of damage. */
START_TEST(unsynced_commits_prove_nothing)
{
    struct result r;
    struct file f;
    uint64_t later = 0;

    build(&f, false);
    memset(f.b.p + f.commit_at[0], 0, BLOCK);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert(!segment_scan_finds_later(&r.scan, &later));
    segment_mark_after_sync(&header, f.b.p + f.commit_at[2]);
    ck_assert(segment_scan_finds_later(&r.scan, &later));
    ck_assert_uint_eq(later, f.commit_at[2]);
    buf_done(&f.b);
}
END_TEST

START_TEST(marking_is_like_writing)
{
    struct file marked, written;

    build(&marked, false);
    build(&written, true);
    for (size_t i = 0; i < marked.commits; i++)
        segment_mark_after_sync(&header, marked.b.p + marked.commit_at[i]);
    ck_assert_mem_eq(marked.b.p, written.b.p, written.b.n);
    buf_done(&marked.b);
    buf_done(&written.b);
}
END_TEST

/* Violations with correct checksums. */
START_TEST(wrong_records)
{
    static const struct wrong_case {
        struct segment_record record;
        const char *why;
    } cases[] = {
        {{.serial = 100, .serials = 1}, "beginning of a commit"},
        {{.serial = 101, .serials = 1, .commit_start = true}, "serial that follows"},
        {{.serial = 99, .serials = 1, .commit_start = true}, "serial that follows"},
        {{.serial = UINT64_MAX, .serials = 2, .commit_start = true}, "impossible number"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        struct file f;

        file_init(&f);
        segment_add_record(&f.b, &header, &cases[i].record);
        pad_to(&f.b, FILE_BYTES);
        ck_assert(scan_all(buf_span(&f.b), &r));
        ck_assert_int_eq(r.end, SEGMENT_BROKEN);
        ck_assert_uint_eq(r.scan.offset, BLOCK);
        ck_assert_msg(strstr(r.scan.why, cases[i].why) != NULL, "%s", r.scan.why);
        buf_done(&f.b);
    }
}
END_TEST

START_TEST(a_commit_begins_at_a_block)
{
    struct segment_record record = {.serial = 100, .serials = 1, .commit_start = true};
    struct result r;
    struct file f;

    file_init(&f);
    segment_add_record(&f.b, &header, &record);
    record.serial = 101;
    segment_add_record(&f.b, &header, &record);
    pad_to(&f.b, FILE_BYTES);
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert_uint_eq(r.count, 1);
    buf_done(&f.b);
}
END_TEST

/* Bodies of a block's size that are commits of this journal, or of another one. */
START_TEST(payload_is_not_taken_for_records)
{
    struct segment_header other = header;
    struct result r;
    struct file f;
    struct buf body;
    uint64_t later;

    other.journal.b[0] ^= 1;
    buf_init(&body, 1u << 20);
    pad_to(&body, BLOCK - SEGMENT_RECORD_HEADER_BYTES); /* what follows is at a block offset */
    segment_add_record(&body, &other,
                       &(struct segment_record){
                           .serial = 500, .serials = 1, .commit_start = true, .after_sync = true});
    file_init(&f);
    segment_add_record(
        &f.b, &header,
        &(struct segment_record){
            .serial = 100, .serials = 1, .commit_start = true, .body = buf_span(&body)});
    pad_to(&f.b, FILE_BYTES);
    f.b.p[BLOCK] ^= 1; /* torn */
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert(!segment_scan_finds_later(&r.scan, &later));
    buf_done(&f.b);
    buf_done(&body);
}
END_TEST

/* A forged header in each block, each announcing half the file: the answer comes at once. */
START_TEST(forged_headers_cost_little)
{
    size_t n = 8u << 20;
    struct result r;
    struct file f;
    uint64_t later;

    file_init(&f);
    pad_to(&f.b, n);
    for (size_t at = BLOCK; at < n; at += BLOCK) {
        static const char forged[] = "\0\0\x40\0"
                                     "\x01\x01\x01\x01"
                                     "\xff\0\0\0\0\0\0\0"
                                     "\0\0\x05\0"
                                     "\x01\0\0\0";

        memcpy(f.b.p + at, forged, SEGMENT_RECORD_HEADER_BYTES);
    }
    ck_assert(scan_all(buf_span(&f.b), &r));
    ck_assert_int_eq(r.end, SEGMENT_BROKEN);
    ck_assert(segment_scan_finds_later(&r.scan, &later)); /* cannot tell, so yes */
    buf_done(&f.b);
}
END_TEST

/* Whatever the bytes are: no crash, no endless loop, records within the file. */
START_TEST(random_bytes)
{
    struct result r;
    struct file f;
    uint64_t later;

    for (int round = 0; round < 1000; round++) {
        build(&f, rng_below(2) == 0);
        for (uint64_t i = rng_below(20) + 1; i > 0; i--) {
            size_t at = BLOCK + (size_t)rng_below(f.b.n - BLOCK);
            size_t n = (size_t)rng_below(MIN(64, f.b.n - at) + 1);

            if (rng_below(2) == 0)
                rng_secret(f.b.p + at, n);
            else
                memmove(f.b.p + at, f.b.p + BLOCK + rng_below(f.b.n - BLOCK - n + 1), n);
        }
        ck_assert(scan_all(buf_span(&f.b), &r));
        for (size_t i = 0; i < r.count; i++) {
            if (r.records[i].body.p + r.records[i].body.n > f.b.p + f.b.n)
                ck_abort_msg("a record beyond the end");
        }
        if (r.end == SEGMENT_BROKEN)
            segment_scan_finds_later(&r.scan, &later);
        buf_done(&f.b);
    }
}
END_TEST

START_TEST(single_records)
{
    struct result whole;
    struct file f;

    build(&f, true);
    ck_assert(scan_all(buf_span(&f.b), &whole));
    for (size_t i = 0; i < whole.count; i++) {
        char *head = f.b.p + whole.records[i].offset;
        struct span body = whole.records[i].body;

        ck_assert_uint_eq(segment_body_bytes(head), body.n);
        ck_assert(segment_record_valid(&header, head, body));
        ck_assert(!segment_record_valid(&header, head, span_of(body.p, body.n + 1)));
        head[8] ^= 1;
        ck_assert(!segment_record_valid(&header, head, body));
    }
    buf_done(&f.b);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_loop_test(tc, names, 0, ARRAY_LEN(name_cases));
    tcase_add_test(tc, header_comes_back);
    tcase_add_test(tc, layout);
    tcase_add_test(tc, record_sizes);
    tcase_add_test(tc, refuses_what_is_no_segment);
    tcase_add_test(tc, names_a_newer_version);
    tcase_add_test(tc, knows_older_versions);
    tcase_add_test(tc, records_without_serials);
    tcase_add_test(tc, a_copy_proves_damage);
    tcase_add_test(tc, records_come_back);
    tcase_add_test(tc, an_empty_segment_ends);
    tcase_add_test(tc, cut_anywhere);
    tcase_add_loop_test(tc, flip_every_bit, 0, 8);
    tcase_add_test(tc, zero_blocks);
    tcase_add_test(tc, lost_records_before_a_commit);
    tcase_add_test(tc, unsynced_commits_prove_nothing);
    tcase_add_test(tc, marking_is_like_writing);
    tcase_add_test(tc, wrong_records);
    tcase_add_test(tc, a_commit_begins_at_a_block);
    tcase_add_test(tc, payload_is_not_taken_for_records);
    tcase_add_test(tc, forged_headers_cost_little);
    tcase_add_test(tc, random_bytes);
    tcase_add_test(tc, single_records);
}
