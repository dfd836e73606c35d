/* A chain of chunks, filled from the front. `last` is the chunk being filled, of which `room` is
 * left; each new one is twice as big as it. What fits into no chunk of that size gets a chunk of
 * its own, which is linked behind `last` without becoming it, so that the room left in `last` is
 * still used. */
#include "base/arena.h"

#include "base/mem.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    FIRST_CHUNK = 4 * 1024,
    FIRST_CHUNK_MOST = 64 * 1024,
    CHUNK_MOST = 1024 * 1024,
};

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of the data */
    _Alignas(max_align_t) char data[];
};

static struct arena_chunk *chunk_new(size_t size)
{
    struct arena_chunk *chunk = mem_alloc(sizeof(*chunk) + size);

    chunk->next = NULL;
    chunk->size = size;
    return chunk;
}

/* A chunk whose block, with its head, is `bytes` long. */
static struct arena_chunk *chunk_of_block(size_t bytes)
{
    return chunk_new(bytes - sizeof(struct arena_chunk));
}

static size_t block_bytes(const struct arena_chunk *chunk)
{
    return chunk->size + sizeof(*chunk);
}

static void free_chain(struct arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;

        mem_free(chunk);
        chunk = next;
    }
}

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_done(struct arena *a)
{
    if (a == NULL)
        return;
    free_chain(a->first);
    arena_init(a);
}

static size_t rounded(size_t n)
{
    MUST(n <= PTRDIFF_MAX / 2);
    return (MAX(n, 1) + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1);
}

static void fill_next(struct arena *a, struct arena_chunk *chunk)
{
    a->last = chunk;
    a->room = chunk->data;
    a->room_bytes = chunk->size;
}

/* An arena that overflowed its first chunk gets one twice as big: after a few requests of a kind
 * the chunk fits them. */
void arena_reset(struct arena *a)
{
    struct arena_chunk *first = a->first;

    if (first == NULL)
        return;
    if (first->next != NULL) {
        size_t bytes = MIN(2 * block_bytes(first), FIRST_CHUNK_MOST);

        free_chain(first);
        first = chunk_of_block(bytes);
    }
    a->first = first;
    a->used_bytes = 0;
    fill_next(a, first);
}

static struct arena_chunk *link_behind(struct arena_chunk *last, struct arena_chunk *chunk)
{
    chunk->next = last->next;
    last->next = chunk;
    return chunk;
}

/* A chunk of n bytes alone, or NULL when there is room for them now in the one being filled. */
static struct arena_chunk *make_room(struct arena *a, size_t n)
{
    size_t next_bytes;

    if (a->first == NULL) {
        a->first = chunk_of_block(FIRST_CHUNK);
        fill_next(a, a->first);
    }
    if (n <= a->room_bytes)
        return NULL;
    next_bytes = MIN(2 * block_bytes(a->last), CHUNK_MOST);
    if (n > (next_bytes - sizeof(struct arena_chunk)) / 2)
        return link_behind(a->last, chunk_new(n));
    fill_next(a, link_behind(a->last, chunk_of_block(next_bytes)));
    return NULL;
}

void *arena_alloc_slowly(struct arena *a, size_t n)
{
    size_t bytes = rounded(n);
    struct arena_chunk *alone = make_room(a, bytes);

    if (alone == NULL)
        return arena_alloc(a, bytes);
    a->used_bytes += bytes;
    return alone->data;
}

/* True when the room begins where `old` ends, and that is now n long. */
static bool grow_in_place(struct arena *a, const char *old, size_t old_n, size_t n)
{
    size_t more = rounded(n) - rounded(old_n);

    if (old + rounded(old_n) != a->room || more > a->room_bytes)
        return false;
    a->room += more;
    a->room_bytes -= more;
    a->used_bytes += more;
    return true;
}

void *arena_grow(struct arena *a, void *old, size_t old_n, size_t n)
{
    void *grown;

    if (old != NULL && (n <= old_n || grow_in_place(a, old, old_n, n)))
        return old;
    grown = arena_alloc(a, n);
    if (old != NULL)
        memcpy(grown, old, old_n);
    return grown;
}

struct span arena_copy(struct arena *a, struct span s)
{
    char *copy = arena_alloc(a, s.n + 1);

    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return span_of(copy, s.n);
}

struct span arena_u64(struct arena *a, uint64_t value)
{
    return span_u64(value, arena_alloc(a, SPAN_U64_BYTES));
}

/* Most texts fit into the room there is; only the others are formatted twice. */
struct span arena_printf(struct arena *a, const char *fmt, ...)
{
    size_t room = a->room_bytes;
    va_list args, again;
    char *text;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(a->room, room, fmt, args);
    MUST(n >= 0);
    text = arena_alloc(a, (size_t)n + 1);
    if ((size_t)n >= room)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return span_of(text, (size_t)n);
}
