/* Counts what malloc really handed out (malloc_usable_size), so that mem_bytes is what the process
 * pays for and no size has to be kept beside each block. */
#include "base/mem.h"

#include "base/must.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MMAP_BYTES = 1 << 20 }; /* what is longer gets a mapping of its own */

static size_t bytes_now;
static size_t blocks_now;
static size_t fail_in; /* allocations until one fails; 0: never */

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
