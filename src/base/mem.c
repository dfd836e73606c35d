/* Counts what malloc really handed out (malloc_usable_size), so that mem_bytes is what the process
 * pays for and no size has to be kept beside each block. */
#include "base/mem.h"

#include "base/must.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MMAP_BYTES = 1 << 20,   /* what is longer gets a mapping of its own */
    TRIM_BYTES = 128 << 10, /* free memory at its end that a heap keeps: the default of glibc */
    PROBE_BYTES = 31 << 20,
    MOST_MMAP_BYTES = 32 << 20, /* that mallopt takes */
    GROWN_BYTES = 64 << 20,     /* by which the heap grows at once */
    HUGE_BYTES = 2 << 20,
};

static size_t bytes_now;
static size_t blocks_now;
static size_t ready_for; /* where bytes_now may go before mem_expect has the heap grow again */
static size_t fail_in;   /* allocations until one fails; 0: never */

/* Nothing here may allocate: the message goes out by write(2) from the stack. */
static _Noreturn void out_of_memory(size_t n)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "svcd: out of memory (%zu bytes)\n", n);

    if (write(STDERR_FILENO, line, (size_t)length) < 0) {
        /* There is nowhere left to say so. */
    }
    abort();
}

static void check_failure(size_t n)
{
    if (fail_in > 0 && --fail_in == 0)
        out_of_memory(n);
}

static void *counted(void *p, size_t n)
{
    if (p == NULL)
        out_of_memory(n);
    bytes_now += malloc_usable_size(p);
    blocks_now++;
    return p;
}

/* malloc and realloc may answer 0 bytes with NULL. */
static size_t at_least_one(size_t n)
{
    return n > 0 ? n : 1;
}

void *mem_alloc(size_t n)
{
    check_failure(n);
    return counted(malloc(at_least_one(n)), n);
}

void *mem_zero(size_t n)
{
    check_failure(n);
    return counted(calloc(1, at_least_one(n)), n);
}

void *mem_resize(void *p, size_t n)
{
    check_failure(n);
    if (p != NULL) {
        bytes_now -= malloc_usable_size(p);
        blocks_now--;
    }
    return counted(realloc(p, at_least_one(n)), n);
}

char *mem_string(struct span s)
{
    char *copy = mem_alloc(s.n + 1);

    if (s.n > 0)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

void mem_free(void *p)
{
    if (p == NULL)
        return;
    MUST(blocks_now > 0);
    bytes_now -= malloc_usable_size(p);
    blocks_now--;
    free(p);
}

void mem_wipe(void *p, size_t n)
{
    if (n > 0)
        explicit_bzero(p, n);
}

void mem_init(void)
{
    /* Fixed, or glibc raises it and large tables are zeroed by hand instead of by the kernel. */
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
}

/* The heap grows when something does not fit into what it has: an allocation that is not used.
 * Where that fails, it grows as it always does, when it must. */
static void grow_heap(void)
{
    void *volatile probe; /* or the compiler leaves it out */

    mallopt(M_TRIM_THRESHOLD, -1); /* never */
    mallopt(M_MMAP_THRESHOLD, MOST_MMAP_BYTES);
    mallopt(M_TOP_PAD, GROWN_BYTES);
    probe = malloc(PROBE_BYTES);
    free(probe);
    mallopt(M_TOP_PAD, TRIM_BYTES);
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
}

void mem_expect(size_t n)
{
    char *from = sbrk(0), *to;

    if (bytes_now + n <= ready_for)
        return;
    grow_heap();
    to = sbrk(0);
    from += -(uintptr_t)from % HUGE_BYTES;
    /* Without huge pages all is as it was. */
    if (to > from && madvise(from, (size_t)(to - from), MADV_HUGEPAGE) == 0)
        ready_for = bytes_now + (size_t)(to - from) / 16 * 15; /* blocks are longer than counted */
}

void mem_expect_end(void)
{
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    ready_for = 0;
}

size_t mem_bytes(void)
{
    return bytes_now;
}

size_t mem_blocks(void)
{
    return blocks_now;
}

void mem_fail_at(size_t nth)
{
    fail_in = nth;
}
