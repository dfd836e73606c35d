/* The format of journal segment files, as pure functions over bytes: journal.c writes and recovers
 * with them, svc-journal verifies and dumps with them. The format itself, with byte offsets, the
 * validity rule and the procedure for changing it, is in the opening comment of segment.c. */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include "base/uuid.h"

#define SEGMENT_HEADER_BYTES 4096u
#define SEGMENT_FORMAT_VERSION 3u
#define SEGMENT_RECORD_HEADER_BYTES 24u

struct segment_header {
    uint32_t version;
    struct uuid journal; /* one per journal; seeds every checksum, so that bytes of another journal,
                            or a payload that looks like records, are never taken for records */
    uint64_t number;     /* 1, 2, 3, ... without gaps */
    uint64_t first_serial;
    int64_t created_unix_ns;
    uint64_t bytes_before; /* of all records in the segment before: the sum of segment_record_bytes;
                              0 in the first one, and in versions 1 and 2 */
};

struct segment_record {
    uint64_t serial;
    uint32_t serials; /* how many this record takes: the next one has serial + serials. 0: it is a
                         copy of what an earlier record says, made by cleaning; not in version 1 */
    uint16_t kind;
    bool commit_start; /* the first record of one write; stands at a block offset */
    bool after_sync; /* of a commit_start: when its write began, everything before it was on stable
                        storage, so what is missing before it was damaged, not never written */
    bool more;       /* the record after it belongs to the same change: all or none */
    struct span body;
    uint64_t offset; /* of the record in the file */
};

/* Is bytes_before what it says? Else the format has no such member. */
bool segment_tells_of_before(const struct segment_header *h);

/* 4096 bytes. */
void segment_add_header(struct buf *b, const struct segment_header *h);
/* ERR_STORAGE_FAILURE: no journal segment, damaged, or of a newer format (the message says which
 * version it is and which this program knows: all from 1 to SEGMENT_FORMAT_VERSION). */
struct err *segment_read_header(struct span file, struct segment_header *out_header) MUST_USE;

/* It is whole, but of a version that this program does not know: no damage. */
bool segment_is_of_another_version(struct span file);

/* Nothing was ever written: zeros only, or no bytes at all. */
bool segment_blank(struct span file);

/* Bytes a record with this body takes, padding to 8 included. */
size_t segment_record_bytes(size_t body_bytes);
void segment_add_record(struct buf *b, const struct segment_header *h,
                        const struct segment_record *record);
/* Sets after_sync in a commit_start record that segment_add_record has written at p. */
void segment_mark_after_sync(const struct segment_header *h, char *p);

/* For a single record: how long the body is that this header announces, and whether header and
 * body belong together and to this journal. */
uint32_t segment_body_bytes(const char head[SEGMENT_RECORD_HEADER_BYTES]);
bool segment_record_valid(const struct segment_header *h,
                          const char head[SEGMENT_RECORD_HEADER_BYTES], struct span body);

enum segment_next {
    SEGMENT_RECORD, /* *out_record is valid */
    SEGMENT_END,    /* zeros to the end of the file */
    SEGMENT_BROKEN  /* bytes that are no record; scan->offset stands at them */
};

struct segment_scan {
    struct span file;
    struct segment_header header;
    uint64_t offset;
    uint64_t next_serial;
    const char *why; /* after SEGMENT_BROKEN: what is wrong, in words */
};

/* Begins after the header. */
struct err *segment_scan_start(struct segment_scan *scan, struct span file) MUST_USE;
enum segment_next segment_scan_next(struct segment_scan *scan, struct segment_record *out_record);
/* After SEGMENT_BROKEN: is there, at a block offset from there on, a valid commit_start record that
 * has after_sync? Then the damage is in the middle; otherwise it is a torn tail: nothing that was
 * on stable storage for certain is missing. *out_offset is where. */
bool segment_scan_finds_later(const struct segment_scan *scan, uint64_t *out_offset);

/* `journal-0000000000000001.seg` */
void segment_file_name(uint64_t number, char out_name[40]);
bool segment_number_of(struct span file_name, uint64_t *out_number);

#endif
