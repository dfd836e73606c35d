/* A backup file, format version 1. All numbers are little-endian, offsets and lengths in bytes.
 *
 *     0   8  `SVCBKUP` and a line feed
 *     8   4  version of the format, 1
 *    12   4  segments that follow
 *    16  16  UUID of the journal
 *    32   8  number of the first segment; the others follow one by one
 *    40   8  serial of the last record
 *    48   8  bytes of the whole file
 *    56   8  when it was made, nanoseconds since 1970
 *
 * For each segment:
 *
 *     0   8  its number
 *     8   8  n
 *    16   n  the first n bytes of the segment file
 *
 * At the end:
 *
 *     0   8  `SVCBKEN` and a line feed
 *     8  32  SHA-256 of everything before these 40 bytes
 *
 * Who has fewer bytes than the head says has a file that was cut off; who has them all, and another
 * digest, one that was damaged. What the records in it mean is the journal's (segment.c). A version
 * is raised when an older program could not read it. */
#include "journal/backup_file.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/reader.h"

#include <string.h>

static const struct span magic = SPAN_INIT("SVCBKUP\n");
static const struct span end_magic = SPAN_INIT("SVCBKEN\n");

uint64_t backup_file_bytes(uint32_t segments, uint64_t segment_bytes)
{
    return BACKUP_HEAD_BYTES + (uint64_t)segments * BACKUP_SEGMENT_HEAD_BYTES + segment_bytes +
           BACKUP_END_BYTES;
}

void backup_file_add_head(struct buf *b, const struct backup_head *head)
{
    buf_add(b, magic);
    buf_add_le32(b, BACKUP_FILE_VERSION);
    buf_add_le32(b, head->segments);
    buf_add(b, span_of((const char *)head->journal.b, sizeof(head->journal.b)));
    buf_add_le64(b, head->first_number);
    buf_add_le64(b, head->serial);
    buf_add_le64(b, head->bytes);
    buf_add_le64(b, (uint64_t)head->made_unix_ns);
}

void backup_file_add_segment_head(struct buf *b, const struct backup_segment_head *head)
{
    buf_add_le64(b, head->number);
    buf_add_le64(b, head->bytes);
}

void backup_file_add_end(struct buf *b, const uint8_t *digest)
{
    buf_add(b, end_magic);
    buf_add(b, span_of((const char *)digest, DIGEST_BYTES));
}

struct err *backup_file_read_head(struct span bytes, struct backup_head *out_head)
{
    struct reader r = {.rest = bytes};
    struct span id;
    uint32_t version;

    if (!span_eq(reader_bytes(&r, magic.n), magic))
        return ERR(ERR_STORAGE_FAILURE, "it is no backup file");
    version = reader_le32(&r);
    if (version != BACKUP_FILE_VERSION)
        return ERR(ERR_STORAGE_FAILURE,
                   "it is a backup file of version %u; this program knows version %u",
                   (unsigned)version, BACKUP_FILE_VERSION);
    *out_head = (struct backup_head){.segments = reader_le32(&r)};
    id = reader_bytes(&r, sizeof(out_head->journal.b));
    if (id.p != NULL)
        memcpy(out_head->journal.b, id.p, id.n);
    out_head->first_number = reader_le64(&r);
    out_head->serial = reader_le64(&r);
    out_head->bytes = reader_le64(&r);
    out_head->made_unix_ns = (int64_t)reader_le64(&r);
    return r.failed ? ERR(ERR_STORAGE_FAILURE, "it ends within its head") : NULL;
}

void backup_file_read_segment_head(struct span bytes, struct backup_segment_head *out_head)
{
    struct reader r = {.rest = bytes};

    out_head->number = reader_le64(&r);
    out_head->bytes = reader_le64(&r);
}

bool backup_file_is_end(struct span bytes, const uint8_t *digest)
{
    return bytes.n == BACKUP_END_BYTES && span_eq(span_sub(bytes, 0, end_magic.n), end_magic) &&
           digest_equal(bytes.p + end_magic.n, digest, DIGEST_BYTES);
}
