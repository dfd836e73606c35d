/* The format of a backup file: a journal as it was at one moment, in one piece, so that it can go
 * over a connection (docs/operations/backup.md). Pure functions; the format, with byte offsets, is
 * in the opening comment of backup.c. */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include "base/err.h"
#include "base/uuid.h"

struct digest;

#define BACKUP_FILE_VERSION 1u
enum { BACKUP_HEAD_BYTES = 64, BACKUP_SEGMENT_HEAD_BYTES = 16, BACKUP_END_BYTES = 40 };

struct backup_head {
    uint32_t segments;
    struct uuid journal;
    uint64_t first_number; /* of the segments, which are consecutive */
    uint64_t serial;       /* of the last record; 0: there is none */
    uint64_t bytes;        /* of the whole file */
    int64_t made_unix_ns;
};

struct backup_segment_head {
    uint64_t number;
    uint64_t bytes; /* of the segment file, which follow */
};

/* Of a file with so many segments, which have so many bytes together. */
uint64_t backup_file_bytes(uint32_t segments, uint64_t segment_bytes);

void backup_file_add_head(struct buf *b, const struct backup_head *head);
void backup_file_add_segment_head(struct buf *b, const struct backup_segment_head *head);
/* `digest`: SHA-256 of all before. */
void backup_file_add_end(struct buf *b, const uint8_t *digest);

/* Of the first BACKUP_HEAD_BYTES. ERR_STORAGE_FAILURE: it is no backup file, or of another version,
 * which the message names. */
struct err *backup_file_read_head(struct span bytes, struct backup_head *out_head) MUST_USE;
void backup_file_read_segment_head(struct span bytes, struct backup_segment_head *out_head);
/* Of the last BACKUP_END_BYTES: do they end a file with this digest? */
bool backup_file_is_end(struct span bytes, const uint8_t *digest);

/* One that comes piece by piece, as over a connection: bytes in, steps out. Nothing of it is to be
 * believed before BACKUP_STEP_WHOLE, which says that the digest at its end is right. */
enum backup_step {
    BACKUP_STEP_MORE,        /* all that was given is taken, and this is not the end */
    BACKUP_STEP_HEAD,        /* `head` is there */
    BACKUP_STEP_SEGMENT,     /* a segment begins: `segment` */
    BACKUP_STEP_BYTES,       /* of it, the next ones */
    BACKUP_STEP_SEGMENT_END, /* it has all its bytes */
    BACKUP_STEP_WHOLE,       /* the file is whole; once */
};

struct backup_stream {
    struct backup_head head;
    struct backup_segment_head segment;
    uint64_t received; /* bytes that were taken */
    /* Private. */
    uint8_t phase;
    uint32_t segments;            /* that have begun */
    uint64_t left;                /* bytes of the segment */
    char part[BACKUP_HEAD_BYTES]; /* of a head, or of the end */
    size_t part_bytes;
    struct digest *digest;
};

void backup_stream_init(struct backup_stream *s);
void backup_stream_done(struct backup_stream *s);
/* Takes from the front of *bytes up to the next step. *out_bytes, of BACKUP_STEP_BYTES, lie in
 * *bytes. ERR_STORAGE_FAILURE: it is no backup file, or a damaged one; nothing more may be given.
 */
struct err *backup_stream_next(struct backup_stream *s, struct span *bytes,
                               enum backup_step *out_step, struct span *out_bytes) MUST_USE;

#endif
