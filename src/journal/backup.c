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
#include "journal/backup.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/reader.h"
#include "base/span.h"

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

/* Piece by piece. ---------------------------------------------------------------------- */

/* The phases follow each other as the parts of the file do. What the head says of the number of
 * bytes bounds everything behind it: a segment that would not fit into the rest is damage before a
 * byte of it is taken. */
enum phase { AT_HEAD, AT_SEGMENT_HEAD, IN_SEGMENT, AT_SEGMENT_END, AT_END, BEHIND };

static struct err *damaged(const char *why)
{
    return ERR(ERR_STORAGE_FAILURE, "the copy is damaged: %s", why);
}

void backup_stream_init(struct backup_stream *s)
{
    *s = (struct backup_stream){.phase = AT_HEAD, .digest = digest_new()};
}

void backup_stream_done(struct backup_stream *s)
{
    digest_free(s->digest);
    s->digest = NULL;
}

/* n bytes from the front; at least so many are there. */
static struct span take(struct backup_stream *s, struct span *bytes, size_t n)
{
    struct span taken = span_sub(*bytes, 0, n);

    *bytes = span_sub(*bytes, n, bytes->n);
    s->received += n;
    return taken;
}

/* Gathers a part of n bytes; false: some are still to come. */
static bool gather(struct backup_stream *s, struct span *bytes, size_t n)
{
    struct span piece = take(s, bytes, MIN(bytes->n, n - s->part_bytes));

    if (piece.n > 0)
        memcpy(s->part + s->part_bytes, piece.p, piece.n);
    s->part_bytes += piece.n;
    return s->part_bytes == n;
}

/* The part, which has been gathered. */
static struct span part_of(struct backup_stream *s)
{
    struct span part = span_of(s->part, s->part_bytes);

    s->part_bytes = 0;
    return part;
}

/* What the segments may still have, which have not begun. */
static uint64_t room_left(const struct backup_stream *s)
{
    uint64_t behind =
        (uint64_t)(s->head.segments - s->segments) * BACKUP_SEGMENT_HEAD_BYTES + BACKUP_END_BYTES;
    uint64_t left = s->head.bytes - s->received;

    return left > behind ? left - behind : 0;
}

static uint8_t after_segment(const struct backup_stream *s)
{
    return s->segments < s->head.segments ? AT_SEGMENT_HEAD : AT_END;
}

static struct err *take_head(struct backup_stream *s)
{
    struct span part = part_of(s);

    TRY(backup_file_read_head(part, &s->head));
    if (s->head.bytes < backup_file_bytes(s->head.segments, 0))
        return damaged("its head and its size do not fit");
    digest_add(s->digest, part);
    s->phase = after_segment(s);
    return NULL;
}

static struct err *take_segment_head(struct backup_stream *s)
{
    struct span part = part_of(s);

    backup_file_read_segment_head(part, &s->segment);
    if (s->segment.number != s->head.first_number + s->segments)
        return damaged("its segments are not in order");
    s->segments++;
    if (s->segment.bytes > room_left(s))
        return damaged("a segment is longer than the whole");
    digest_add(s->digest, part);
    s->left = s->segment.bytes;
    s->phase = s->left > 0 ? IN_SEGMENT : AT_SEGMENT_END;
    return NULL;
}

static struct span take_bytes(struct backup_stream *s, struct span *bytes)
{
    struct span taken = take(s, bytes, (size_t)MIN((uint64_t)bytes->n, s->left));

    digest_add(s->digest, taken);
    s->left -= taken.n;
    if (s->left == 0)
        s->phase = AT_SEGMENT_END;
    return taken;
}

static struct err *take_end(struct backup_stream *s)
{
    uint8_t found[DIGEST_BYTES];

    digest_end(s->digest, found);
    if (!backup_file_is_end(part_of(s), found))
        return damaged("its SHA-256 is not the one at its end");
    if (s->received != s->head.bytes)
        return damaged("its head and its size do not fit");
    s->phase = BEHIND;
    return NULL;
}

struct err *backup_stream_next(struct backup_stream *s, struct span *bytes,
                               enum backup_step *out_step, struct span *out_bytes)
{
    *out_step = BACKUP_STEP_MORE;
    switch ((enum phase)s->phase) {
    case AT_HEAD:
        if (!gather(s, bytes, BACKUP_HEAD_BYTES))
            break;
        TRY(take_head(s));
        *out_step = BACKUP_STEP_HEAD;
        break;
    case AT_SEGMENT_HEAD:
        if (!gather(s, bytes, BACKUP_SEGMENT_HEAD_BYTES))
            break;
        TRY(take_segment_head(s));
        *out_step = BACKUP_STEP_SEGMENT;
        break;
    case IN_SEGMENT:
        if (bytes->n == 0)
            break;
        *out_bytes = take_bytes(s, bytes);
        *out_step = BACKUP_STEP_BYTES;
        break;
    case AT_SEGMENT_END:
        s->phase = after_segment(s);
        *out_step = BACKUP_STEP_SEGMENT_END;
        break;
    case AT_END:
        if (!gather(s, bytes, BACKUP_END_BYTES))
            break;
        TRY(take_end(s));
        *out_step = BACKUP_STEP_WHOLE;
        break;
    case BEHIND:
        if (bytes->n > 0)
            return damaged("more comes behind its end");
        break;
    }
    return NULL;
}
