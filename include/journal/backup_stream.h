/* A backup file (backup_file.h) that comes piece by piece, as over a connection: bytes in, steps
 * out. Nothing of it is to be believed before BACKUP_STEP_WHOLE, which says that the digest at its
 * end is right. */
#ifndef JOURNAL_BACKUP_STREAM_H
#define JOURNAL_BACKUP_STREAM_H

#include "base/err.h"
#include "journal/backup_file.h"

struct digest;

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
