#include "base/reader.h"

#include <endian.h>
#include <string.h>

/* A failed reader has nothing left, so that every later read fails too. */
struct span reader_bytes(struct reader *r, size_t n)
{
    struct span taken;

    if (n > r->rest.n) {
        *r = (struct reader){.failed = true};
        return span_of(NULL, 0);
    }
    taken = span_sub(r->rest, 0, n);
    r->rest = span_sub(r->rest, n, r->rest.n);
    return taken;
}

static inline uint64_t read_le(struct reader *r, size_t n)
{
    struct span bytes = reader_bytes(r, n);
    uint64_t value = 0;

    if (bytes.n == n)
        memcpy(&value, bytes.p, n);
    return le64toh(value);
}

uint8_t reader_u8(struct reader *r)
{
    return (uint8_t)read_le(r, 1);
}

uint16_t reader_le16(struct reader *r)
{
    return (uint16_t)read_le(r, 2);
}

uint32_t reader_le32(struct reader *r)
{
    return (uint32_t)read_le(r, 4);
}

uint64_t reader_le64(struct reader *r)
{
    return read_le(r, 8);
}
