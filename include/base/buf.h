/* A growing byte buffer with a cap. Appending past the cap drops the append and sets `over`;
 * callers append freely and look once, with buf_over(), at the end.
 *
 * Invariants: n <= size <= max; p may be NULL only when size is 0. The bytes are not terminated
 * (see buf_text). A zeroed struct with `max` set is a valid empty buffer. What is appended must not
 * lie in the buffer itself. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/arena.h"
#include "base/macros.h"
#include "base/span.h"

#include <string.h>

struct buf {
    char *p;
    size_t n;
    size_t size;
    size_t max;
    struct arena *arena; /* NULL: the bytes are the buffer's own */
    bool over;
};

#define BUF_NO_CAP ((size_t)1 << 40)

void buf_init(struct buf *b, size_t max);
/* Over memory of the arena, without a cap: what was appended stays valid as long as the arena's
 * other memory, and buf_done is not needed. */
void buf_init_arena(struct buf *b, struct arena *a);
/* buf_done of a buffer that has bytes. */
void buf_free_bytes(struct buf *b);
/* Frees the bytes; the buffer is empty and usable again with the same cap. NULL is allowed. */
static inline void buf_done(struct buf *b)
{
    if (b == NULL)
        return;
    if (b->p != NULL)
        buf_free_bytes(b);
    b->over = false;
}

/* Empties and clears `over`; keeps the memory. */
void buf_clear(struct buf *b);
/* Empties, and gives memory beyond keep_bytes back. */
void buf_shrink(struct buf *b, size_t keep_bytes);
bool buf_over(const struct buf *b);
/* The content; valid until the next call that changes b. */
struct span buf_span(const struct buf *b);
/* The content with a NUL behind it, which is not counted in n. */
const char *buf_text(struct buf *b);

/* The short way, for most appends, is in place; the long way makes room first. */
void buf_add_long(struct buf *b, struct span s);

static inline void buf_add(struct buf *b, struct span s)
{
    if (s.n == 0)
        return;
    if (s.n > b->size - b->n) {
        buf_add_long(b, s);
        return;
    }
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
}

static inline void buf_add_char(struct buf *b, char c)
{
    if (b->n == b->size) {
        buf_add_long(b, (struct span){&c, 1});
        return;
    }
    b->p[b->n++] = c;
}

void buf_add_str(struct buf *b, const char *text);
/* What comes of it until its end, which may be waited for; `over` when that is more than the cap.
 * False: errno says why. */
bool buf_read_all(struct buf *b, int fd) MUST_USE;
/* Text of unknown origin as valid UTF-8: every byte that is not becomes U+FFFD. */
void buf_add_utf8(struct buf *b, struct span s);
void buf_add_u64(struct buf *b, uint64_t value);
void buf_add_i64(struct buf *b, int64_t value);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Makes room for n more bytes and returns where they go; the caller fills up to n of them and
 * calls buf_commit with how many. NULL when that would pass the cap (`over` is then set). */
char *buf_reserve_long(struct buf *b, size_t n);

static inline char *buf_reserve(struct buf *b, size_t n)
{
    return b->p != NULL && n <= b->size - b->n ? b->p + b->n : buf_reserve_long(b, n);
}

void buf_commit(struct buf *b, size_t n);
/* Drops bytes from the front, or everything from `n` on. */
void buf_drop_front(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t n);

/* Little-endian binary, for records. */
void buf_add_le16(struct buf *b, uint16_t v);
void buf_add_le32(struct buf *b, uint32_t v);
void buf_add_le64(struct buf *b, uint64_t v);

#endif
