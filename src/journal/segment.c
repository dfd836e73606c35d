/* clang-format off */
/* Segment files, format version 3. All numbers are little-endian; offsets and lengths in bytes.
 *
 * A journal is a directory of segments `journal-<number, 16 hex digits>.seg` with consecutive
 * numbers. A segment is a file of whole blocks of 4096 bytes: block 0 is the header, records begin
 * in block 1, and zeros go from the last record to the end of the file.
 *
 *   header
 *        0     8  magic `SVCJRNL` and a line feed
 *        8     4  version of the format
 *       12     4  0
 *       16    16  UUID of the journal
 *       32     8  number of the segment
 *       40     8  serial of its first record
 *       48     8  when it was made, nanoseconds since 1970
 *       56     8  bytes of all records in the segment before; 0 in the first segment
 *       64  4028  0
 *     4092     4  CRC-32C of the 4092 bytes before
 *
 *   record, at a multiple of 8
 *        0     4  n, bytes of the body
 *        4     4  checksum: CRC-32C of the journal's UUID, bytes 0 to 3, bytes 8 to 23 and the
 *                 body; where that is 0, 1 stands for it
 *        8     8  serial
 *       16     2  kind
 *       18     2  flags: 1 commit_start, 2 more, 4 after_sync; other bits are 0
 *       20     4  serials; 0: it takes none
 *       24     n  body
 *     24+n   0-7  0, up to a multiple of 8: with these it has as many bytes as count in a header
 *
 * A record that takes no serial is a copy of what an earlier one says, which cleaning has made
 * (docs/design/journal.md, "Cleaning"). Its own serial is that of the record to come.
 *
 * A commit is one write of whole blocks. Its first record has commit_start and stands at a block
 * offset, the others follow without gaps, zeros fill the last block: a block that holds something
 * acknowledged is never written again. A change is a run of records all of which but the last have
 * `more`; it lies within one commit, so within one segment.
 *
 * Validity. At the end of the header the scan expects a commit_start record, or the end. A record
 * is valid when it lies within the file, its checksum and padding hold, its flags are known, its
 * serial is the one expected (that of the record before plus its `serials`), and it has
 * commit_start if zeros were skipped before it, and commit_start only at a block offset. Eight
 * bytes of zeros where a record could begin (no record begins so: its checksum is not 0) mean that
 * the commit is over: everything up to the next block offset must be 0, and there the next commit
 * begins. If there are zeros again, the segment ends, and everything up to the end of the file must
 * be 0. So every bit of the file is accounted for: none can change without being noticed. A file
 * may be cut short after the last record.
 *
 * Recovery. Segments are read in the order of their numbers; each must begin with the serial where
 * the one before ended, and say how many bytes of records that one has: copies that are missing at
 * its end would leave no gap between serials. Records are handed on change by change. Bytes in the
 * last segment that are no valid record, or a change without its last record, are what an
 * interrupted write left, provided that no block from there on begins with a valid commit_start
 * record that has after_sync and a serial not yet seen (that of the record to come is none that was
 * seen: it may be a copy's). Such a record proves that the broken bytes had been on stable storage:
 * that is damage, and the journal refuses to start. So does anything wrong in another segment: a
 * segment is synced before the next one is begun. A torn tail is overwritten with zeros, durably,
 * and the next commit goes to the next block. (after_sync is missing where Fsync is not `always`,
 * and the writes before were not synced yet: these may reach the disk in any order.)
 *
 * Version 2 is the same, but bytes 56 to 63 of the header are 0: it says nothing of the segment
 * before. In version 1, moreover, every record takes a serial at least. Both are read; what is
 * appended to a journal of an older version goes to a new segment, so that a program that knows no
 * other names the version and takes nothing for damage.
 *
 * Changing the format. Magic, version and the place of the header's checksum stay for ever, so that
 * any program can tell a newer segment from a damaged one. Whatever else changes, raise
 * SEGMENT_FORMAT_VERSION, describe the new format here beside the old one, go on reading the old
 * version (header.version says which), and write new segments only in the new one; cleaning then
 * moves a journal over by itself. A new kind of record body is the store's business and no change
 * of this format. */
/* clang-format on */
#include "journal/segment.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/text.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES 4096u
#define RECORD_ALIGNMENT 8u

/* The first one in which a record may take no serial. */
#define VERSION_WITH_COPIES 2u
/* The first one whose header tells of the segment before. */
#define VERSION_WITH_BYTES_BEFORE 3u

#define HEADER_ZEROS_AT 64u
#define HEADER_CHECKSUM_AT (SEGMENT_HEADER_BYTES - 4u)

enum { FLAG_COMMIT_START = 1, FLAG_MORE = 2, FLAG_AFTER_SYNC = 4, FLAGS_KNOWN = 7 };

static const struct span magic = SPAN_INIT("SVCJRNL\n");

/* Offsets in a record header. */
enum {
    AT_LENGTH = 0,
    AT_CHECKSUM = 4,
    AT_SERIAL = 8,
    AT_KIND = 16,
    AT_FLAGS = 18,
    AT_SERIALS = 20
};

/* A number of n bytes. */
static uint64_t get_le(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return le64toh(v);
}

static void put_le(char *p, uint64_t v, size_t n)
{
    v = htole64(v);
    memcpy(p, &v, n);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Compares the bytes with themselves, shifted by one: memcmp is far faster than a loop. */
static bool all_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static bool is_known(uint64_t version)
{
    return version >= 1 && version <= SEGMENT_FORMAT_VERSION;
}

static void add_zeros(struct buf *b, size_t n)
{
    char *p = buf_reserve(b, n);

    if (p == NULL)
        return;
    memset(p, 0, n);
    buf_commit(b, n);
}

bool segment_tells_of_before(const struct segment_header *h)
{
    return h->version >= VERSION_WITH_BYTES_BEFORE;
}

void segment_add_header(struct buf *b, const struct segment_header *h)
{
    size_t start = b->n;

    MUST(h->bytes_before == 0 || segment_tells_of_before(h));
    buf_add(b, magic);
    buf_add_le32(b, h->version);
    buf_add_le32(b, 0);
    buf_add(b, span_of((const char *)h->journal.b, sizeof(h->journal.b)));
    buf_add_le64(b, h->number);
    buf_add_le64(b, h->first_serial);
    buf_add_le64(b, (uint64_t)h->created_unix_ns);
    buf_add_le64(b, h->bytes_before);
    add_zeros(b, HEADER_CHECKSUM_AT - HEADER_ZEROS_AT);
    if (!buf_over(b))
        buf_add_le32(b, hash_crc32c(0, b->p + start, HEADER_CHECKSUM_AT));
}

static bool has_header(struct span file)
{
    return file.n >= SEGMENT_HEADER_BYTES && span_starts(file, magic);
}

static bool is_header_whole(const char *p)
{
    return get_le(p + HEADER_CHECKSUM_AT, 4) == hash_crc32c(0, p, HEADER_CHECKSUM_AT);
}

bool segment_is_of_another_version(struct span file)
{
    return has_header(file) && is_header_whole(file.p) && !is_known(get_le(file.p + 8, 4));
}

struct err *segment_read_header(struct span file, struct segment_header *out_header)
{
    const char *p = file.p;
    struct segment_header h;

    if (!has_header(file))
        return ERR(ERR_STORAGE_FAILURE, "this is no journal segment");
    h.version = (uint32_t)get_le(p + 8, 4);
    if (!is_header_whole(p))
        return ERR(ERR_STORAGE_FAILURE, "the header is damaged: its checksum does not match");
    if (!is_known(h.version))
        return ERR(ERR_STORAGE_FAILURE,
                   "the segment has format version %" PRIu32
                   ", this program knows versions 1 to %u",
                   h.version, SEGMENT_FORMAT_VERSION);
    memcpy(h.journal.b, p + 16, sizeof(h.journal.b));
    h.number = get_le(p + 32, 8);
    h.first_serial = get_le(p + 40, 8);
    h.created_unix_ns = (int64_t)get_le(p + 48, 8);
    h.bytes_before = get_le(p + 56, 8);
    *out_header = h;
    return NULL;
}

bool segment_blank(struct span file)
{
    return all_zero(file.p, file.n);
}

size_t segment_record_bytes(size_t body_bytes)
{
    return round_up(SEGMENT_RECORD_HEADER_BYTES + body_bytes, RECORD_ALIGNMENT);
}

static bool may_take_none(const struct segment_header *h)
{
    return h->version >= VERSION_WITH_COPIES;
}

static uint32_t checksum(const struct segment_header *h, const char *head, struct span body)
{
    uint32_t crc = hash_crc32c(0, h->journal.b, sizeof(h->journal.b));

    crc = hash_crc32c(crc, head + AT_LENGTH, AT_CHECKSUM - AT_LENGTH);
    crc = hash_crc32c(crc, head + AT_SERIAL, SEGMENT_RECORD_HEADER_BYTES - AT_SERIAL);
    crc = hash_crc32c(crc, body.p, body.n);
    return crc == 0 ? 1 : crc;
}

void segment_add_record(struct buf *b, const struct segment_header *h,
                        const struct segment_record *record)
{
    size_t start = b->n;
    size_t bytes = segment_record_bytes(record->body.n);
    unsigned flags = (record->commit_start ? FLAG_COMMIT_START : 0u) |
                     (record->more ? FLAG_MORE : 0u) | (record->after_sync ? FLAG_AFTER_SYNC : 0u);
    char *head;

    MUST(record->body.n <= UINT32_MAX && (record->serials > 0 || may_take_none(h)));
    buf_add_le32(b, (uint32_t)record->body.n);
    buf_add_le32(b, 0);
    buf_add_le64(b, record->serial);
    buf_add_le16(b, record->kind);
    buf_add_le16(b, (uint16_t)flags);
    buf_add_le32(b, record->serials);
    buf_add(b, record->body);
    add_zeros(b, bytes - SEGMENT_RECORD_HEADER_BYTES - record->body.n);
    if (buf_over(b))
        return;
    head = b->p + start;
    put_le(head + AT_CHECKSUM, checksum(h, head, record->body), 4);
}

void segment_mark_after_sync(const struct segment_header *h, char *p)
{
    struct span body = span_of(p + SEGMENT_RECORD_HEADER_BYTES, (size_t)get_le(p + AT_LENGTH, 4));

    put_le(p + AT_FLAGS, get_le(p + AT_FLAGS, 2) | FLAG_AFTER_SYNC, 2);
    put_le(p + AT_CHECKSUM, checksum(h, p, body), 4);
}

uint32_t segment_body_bytes(const char head[SEGMENT_RECORD_HEADER_BYTES])
{
    return (uint32_t)get_le(head + AT_LENGTH, 4);
}

bool segment_record_valid(const struct segment_header *h,
                          const char head[SEGMENT_RECORD_HEADER_BYTES], struct span body)
{
    return body.n == segment_body_bytes(head) &&
           get_le(head + AT_CHECKSUM, 4) == checksum(h, head, body);
}

struct err *segment_scan_start(struct segment_scan *scan, struct span file)
{
    *scan = (struct segment_scan){.file = file, .offset = SEGMENT_HEADER_BYTES};
    TRY(segment_read_header(file, &scan->header));
    scan->next_serial = scan->header.first_serial;
    return NULL;
}

static enum segment_next broken(struct segment_scan *scan, const char *why)
{
    scan->why = why;
    return SEGMENT_BROKEN;
}

/* Decodes what stands at `offset`; NULL when that is a record of this journal, or what is wrong. */
static const char *read_record(const struct segment_scan *scan, uint64_t offset,
                               struct segment_record *out)
{
    const char *p = scan->file.p + offset;
    uint64_t left = scan->file.n - offset;
    unsigned flags;

    if (left < SEGMENT_RECORD_HEADER_BYTES ||
        left - SEGMENT_RECORD_HEADER_BYTES < segment_body_bytes(p))
        return "the record goes beyond the end of the file";
    flags = (unsigned)get_le(p + AT_FLAGS, 2);
    *out = (struct segment_record){
        .serial = get_le(p + AT_SERIAL, 8),
        .serials = (uint32_t)get_le(p + AT_SERIALS, 4),
        .kind = (uint16_t)get_le(p + AT_KIND, 2),
        .commit_start = (flags & FLAG_COMMIT_START) != 0,
        .after_sync = (flags & FLAG_AFTER_SYNC) != 0,
        .more = (flags & FLAG_MORE) != 0,
        .body = span_of(p + SEGMENT_RECORD_HEADER_BYTES, segment_body_bytes(p)),
        .offset = offset,
    };
    if (!segment_record_valid(&scan->header, p, out->body))
        return "the checksum does not match";
    if ((flags & ~(unsigned)FLAGS_KNOWN) != 0)
        return "the record has unknown flags";
    if ((out->serials == 0 && !may_take_none(&scan->header)) ||
        out->serial > UINT64_MAX - out->serials)
        return "the record takes an impossible number of serials";
    return NULL;
}

/* What a valid record must fulfil at this place of the scan. */
static const char *check_place(const struct segment_scan *scan, const struct segment_record *record,
                               bool start_expected)
{
    size_t end = record->offset + SEGMENT_RECORD_HEADER_BYTES + record->body.n;
    size_t next = record->offset + segment_record_bytes(record->body.n);

    if (record->serial != scan->next_serial)
        return "the record has not the serial that follows";
    if (record->commit_start && record->offset % BLOCK_BYTES != 0)
        return "a commit begins within a block";
    if (!record->commit_start && start_expected)
        return "the beginning of a commit is missing";
    if (!all_zero(scan->file.p + end, MIN(next, scan->file.n) - end))
        return "the bytes that fill the record up are not zero";
    return NULL;
}

static bool starts_record(const struct segment_scan *scan, uint64_t offset)
{
    return offset < scan->file.n &&
           !all_zero(scan->file.p + offset, MIN(RECORD_ALIGNMENT, scan->file.n - offset));
}

enum segment_next segment_scan_next(struct segment_scan *scan, struct segment_record *out_record)
{
    bool start_expected = scan->offset == SEGMENT_HEADER_BYTES;
    const char *why;

    if (!starts_record(scan, scan->offset)) {
        uint64_t block = MIN(round_up(scan->offset, BLOCK_BYTES), scan->file.n);

        if (!all_zero(scan->file.p + scan->offset, block - scan->offset))
            return broken(scan, "the bytes that fill the block up are not zero");
        scan->offset = block;
        if (!starts_record(scan, block))
            return all_zero(scan->file.p + block, scan->file.n - block)
                       ? SEGMENT_END
                       : broken(scan, "there are bytes after the end");
        start_expected = true;
    }
    why = read_record(scan, scan->offset, out_record);
    if (why == NULL)
        why = check_place(scan, out_record, start_expected);
    if (why != NULL)
        return broken(scan, why);
    scan->next_serial = out_record->serial + out_record->serials;
    scan->offset = MIN(scan->offset + segment_record_bytes(out_record->body.n), scan->file.n);
    return SEGMENT_RECORD;
}

/* Could this header be of a record that the scan has not seen and that proves damage? Asked first,
 * because the checksum has to read the body. */
static bool may_prove_damage(const struct segment_scan *scan, const char *p)
{
    unsigned flags = (unsigned)get_le(p + AT_FLAGS, 2);

    return (flags & FLAG_COMMIT_START) != 0 && (flags & FLAG_AFTER_SYNC) != 0 &&
           get_le(p + AT_SERIAL, 8) >= scan->next_serial;
}

/* A body that is full of forged headers would have itself checksummed once per block. When that
 * gets out of hand the answer is yes: refusing to start loses nothing. */
bool segment_scan_finds_later(const struct segment_scan *scan, uint64_t *out_offset)
{
    uint64_t budget = 16 * (uint64_t)scan->file.n;
    uint64_t offset = round_up(scan->offset, BLOCK_BYTES);
    struct segment_record record;

    for (; offset + SEGMENT_RECORD_HEADER_BYTES <= scan->file.n; offset += BLOCK_BYTES) {
        const char *p = scan->file.p + offset;
        uint64_t cost = segment_body_bytes(p);

        if (!may_prove_damage(scan, p) || cost > scan->file.n)
            continue;
        if (cost > budget || read_record(scan, offset, &record) == NULL) {
            *out_offset = offset;
            return true;
        }
        budget -= cost;
    }
    return false;
}

void segment_file_name(uint64_t number, char out_name[40])
{
    snprintf(out_name, 40, "journal-%016" PRIx64 ".seg", number);
}

bool segment_number_of(struct span file_name, uint64_t *out_number)
{
    size_t prefix = strlen("journal-");
    uint8_t bytes[8] = {0};
    char canonical[40];
    uint64_t number = 0;

    if (!text_from_hex(span_sub(file_name, prefix, prefix + 16), bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        number = number << 8 | bytes[i];
    segment_file_name(number, canonical);
    if (!span_eq(file_name, span_str(canonical)))
        return false;
    *out_number = number;
    return true;
}
