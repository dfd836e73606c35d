/* Memory of one request: allocated piece by piece, freed at once. A reset arena keeps its first
 * chunk, so that a warm request path does not allocate. Nothing from an arena is freed singly. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/macros.h"
#include "base/span.h"

#include <stddef.h>
#include <string.h>

struct arena_chunk;

struct arena {
    char *room;                /* of the chunk being filled */
    size_t room_bytes;         /* a multiple of ARENA_ALIGNMENT */
    struct arena_chunk *first; /* kept by arena_reset */
    struct arena_chunk *last;
    size_t used_bytes; /* handed out since the last reset */
};

#define ARENA_ALIGNMENT _Alignof(max_align_t)

void arena_init(struct arena *a);
void arena_done(struct arena *a);
void arena_reset(struct arena *a);
/* arena_alloc where there is no room, or nothing to be had. */
void *arena_alloc_slowly(struct arena *a, size_t n) MUST_USE;

/* Aligned for any type; never NULL; not zeroed / zeroed. Inline, as a request does it a dozen times
 * with sizes that the compiler knows. */
MUST_USE static inline void *arena_alloc(struct arena *a, size_t n)
{
    size_t taken = (n + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1);
    void *p = a->room;

    if (n == 0 || n > a->room_bytes)
        return arena_alloc_slowly(a, n);
    a->room += taken;
    a->room_bytes -= taken;
    a->used_bytes += taken;
    return p;
}

MUST_USE static inline void *arena_zero(struct arena *a, size_t n)
{
    return memset(arena_alloc(a, n), 0, n);
}

/* Extends the most recent allocation in place when it can, copies otherwise. */
void *arena_grow(struct arena *a, void *old, size_t old_n, size_t n) MUST_USE;
/* A copy, with a NUL behind it that is not counted. */
struct span arena_copy(struct arena *a, struct span s);
/* In decimal, without the cost of arena_printf. */
struct span arena_u64(struct arena *a, uint64_t value);
struct span arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define ARENA_NEW(a, type) ((type *)arena_zero((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_zero((a), sizeof(type) * (count)))

#endif
