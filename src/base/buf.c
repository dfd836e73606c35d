/* The block is always one byte longer than `size`, so that buf_text and vsnprintf have room for
 * their NUL even at the cap. Sizes are 2^k - 1, which makes the blocks powers of two. */
#include "base/buf.h"

#include "base/mem.h"
#include "base/must.h"
#include "base/text.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_SIZE = 63, READ_BYTES = 65536 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_init_arena(struct buf *b, struct arena *a)
{
    *b = (struct buf){.max = BUF_NO_CAP, .arena = a};
}

void buf_free_bytes(struct buf *b)
{
    if (b->arena == NULL)
        mem_free(b->p);
    *b = (struct buf){.max = b->max, .arena = b->arena};
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->over = false;
}

static void set_size(struct buf *b, size_t size)
{
    b->p = b->arena == NULL ? mem_resize(b->p, size + 1)
                            : arena_grow(b->arena, b->p, b->p == NULL ? 0 : b->size + 1, size + 1);
    b->size = size;
}

void buf_shrink(struct buf *b, size_t keep_bytes)
{
    buf_clear(b);
    if (b->size <= keep_bytes)
        return;
    if (keep_bytes == 0)
        buf_done(b);
    else
        set_size(b, keep_bytes);
}

bool buf_over(const struct buf *b)
{
    return b->over;
}

struct span buf_span(const struct buf *b)
{
    return span_of(b->p, b->n);
}

const char *buf_text(struct buf *b)
{
    if (b->p == NULL)
        return "";
    b->p[b->n] = '\0';
    return b->p;
}

char *buf_reserve_long(struct buf *b, size_t n)
{
    size_t need;

    if (n > b->max - b->n) {
        b->over = true;
        return NULL;
    }
    need = b->n + n;
    if (need > b->size || b->p == NULL)
        set_size(b, MIN(b->max, MAX(need, MAX(2 * b->size + 1, LEAST_SIZE))));
    return b->p + b->n;
}

void buf_commit(struct buf *b, size_t n)
{
    MUST(n <= b->size - b->n);
    b->n += n;
}

void buf_add_long(struct buf *b, struct span s)
{
    char *to = buf_reserve(b, s.n);

    if (to == NULL)
        return;
    memcpy(to, s.p, s.n);
    b->n += s.n;
}

void buf_add_str(struct buf *b, const char *text)
{
    buf_add(b, span_str(text));
}

bool buf_read_all(struct buf *b, int fd)
{
    char more = 0;
    ssize_t n;

    while (b->n < b->max) {
        size_t left = MIN(b->max - b->n, READ_BYTES);

        n = read(fd, buf_reserve(b, left), left);
        if (n <= 0)
            return n == 0;
        buf_commit(b, (size_t)n);
    }
    n = read(fd, &more, 1);
    b->over = n > 0;
    return n >= 0;
}

void buf_add_utf8(struct buf *b, struct span s)
{
    if (text_is_utf8(s)) {
        buf_add(b, s);
        return;
    }
    for (size_t i = 0; i < s.n && !b->over;) {
        struct span rest = span_sub(s, i, s.n);
        size_t n = text_utf8_bytes(rest);

        buf_add(b, n > 0 ? span_of(rest.p, n) : SPAN("\xef\xbf\xbd"));
        i += MAX(n, 1);
    }
}

void buf_add_u64(struct buf *b, uint64_t value)
{
    char room[SPAN_U64_BYTES];

    buf_add(b, span_u64(value, room));
}

void buf_add_i64(struct buf *b, int64_t value)
{
    if (value < 0)
        buf_add_char(b, '-');
    buf_add_u64(b, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Most texts fit into the room there is; only the others are formatted twice. */
void buf_printf(struct buf *b, const char *fmt, ...)
{
    size_t room = b->p != NULL ? b->size - b->n : 0;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(b->p != NULL ? b->p + b->n : NULL, b->p != NULL ? room + 1 : 0, fmt, args);
    va_end(args);
    if (n < 0) {
        b->over = true;
    } else if ((size_t)n <= room) {
        b->n += (size_t)n;
    } else if (buf_reserve(b, (size_t)n) != NULL) {
        va_start(args, fmt);
        b->n += (size_t)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, args);
        va_end(args);
    }
}

void buf_drop_front(struct buf *b, size_t n)
{
    MUST(n <= b->n);
    if (n == 0)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n);
}

void buf_truncate(struct buf *b, size_t n)
{
    MUST(n <= b->n);
    b->n = n;
}

void buf_add_le16(struct buf *b, uint16_t v)
{
    v = htole16(v);
    buf_add(b, span_of((const char *)&v, sizeof(v)));
}

void buf_add_le32(struct buf *b, uint32_t v)
{
    v = htole32(v);
    buf_add(b, span_of((const char *)&v, sizeof(v)));
}

void buf_add_le64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_add(b, span_of((const char *)&v, sizeof(v)));
}
