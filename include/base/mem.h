/* The process's heap, counted. Out of memory prints one line to standard error and aborts: every
 * size that comes from outside is bounded before it reaches this module. Libraries (libuv, curl,
 * ...) use the allocator they bring; what they cannot get comes back as their error. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/macros.h"
#include "base/span.h"

#include <stddef.h>

/* Never NULL, also for n = 0. Memory of mem_zero is zeroed, that of mem_alloc is not. */
void *mem_alloc(size_t n) MUST_USE;
void *mem_zero(size_t n) MUST_USE;
/* Grows or shrinks; p may be NULL. */
void *mem_resize(void *p, size_t n) MUST_USE;
/* A NUL-terminated copy. */
char *mem_string(struct span s) MUST_USE;
/* NULL is allowed. */
void mem_free(void *p);
/* Zeroes n bytes in a way the compiler keeps: for secrets. */
void mem_wipe(void *p, size_t n);

#define NEW(type) ((type *)mem_zero(sizeof(type)))

/* Fixes which blocks get a mapping of their own. Once, when the process starts. */
void mem_init(void);

/* From here on large blocks that are freed go back to the kernel when mem_give_back is called: of a
 * hundred MiB that takes ten milliseconds and more, page by page. Until then they count as
 * allocated. At most MEM_KEPT_BYTES are kept so. `later` false: all go, and later ones at once. */
void mem_free_large_later(bool later);
/* Gives back so many bytes of them, if there are; a page more or less. */
void mem_give_back(size_t bytes);
/* There are such. */
bool mem_has_to_give_back(void);

#define MEM_KEPT_BYTES ((size_t)128 << 20)

/* What is allocated now: bytes, with what malloc keeps beside each block, and number of blocks. */
size_t mem_bytes(void);
size_t mem_blocks(void);
/* The nth allocation from now on fails as if the machine had no memory; 0 switches this off.
 * For torture tests. */
void mem_fail_at(size_t nth);

#endif
