/* Reads little-endian binary from a span, the counterpart of buf_add_le*. Reading past the end
 * yields zeros and sets `failed`; callers read freely and look once at the end. It begins with all
 * of the bytes as its `rest`, and is through when that is empty. */
#ifndef BASE_READER_H
#define BASE_READER_H

#include "base/span.h"

struct reader {
    struct span rest;
    bool failed;
};

uint8_t reader_u8(struct reader *r);
uint16_t reader_le16(struct reader *r);
uint32_t reader_le32(struct reader *r);
uint64_t reader_le64(struct reader *r);
/* The next n bytes, pointing into the source; the absent span on failure. */
struct span reader_bytes(struct reader *r, size_t n);

#endif
