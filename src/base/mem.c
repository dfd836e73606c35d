/* Counts what malloc really handed out (malloc_usable_size), so that mem_bytes is what the process
 * pays for and no size has to be kept beside each block. malloc itself keeps one, in a word in
 * front of it: of a million small objects that is 8 MB, so it is weighed too. */
#include "base/mem.h"

#include "base/must.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)0)
#endif

enum { MMAP_BYTES = 1 << 18 }; /* what is longer gets a mapping of its own */

static size_t bytes_now;
static size_t blocks_now;
static size_t fail_in; /* allocations until one fails; 0: never */

/* What is freed, at the begin of its block. The block's end goes first. */
struct kept {
    struct kept *next;
    size_t bytes; /* from the block's begin, that have not gone yet */
};

static bool frees_later;
static struct kept *first_kept;
static size_t kept_bytes;

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

static bool keep(void *p, size_t n)
{
    struct kept *k = p;

    if (n < MMAP_BYTES || n > MEM_KEPT_BYTES - kept_bytes)
        return false;
    *k = (struct kept){first_kept, n};
    first_kept = k;
    kept_bytes += n;
    ASAN_POISON_MEMORY_REGION(k + 1, n - sizeof(*k));
    return true;
}

static void forget(struct kept *k, size_t bytes)
{
    k->bytes -= bytes;
    kept_bytes -= bytes;
    bytes_now -= bytes;
}

/* The pages behind `bytes` go; the block stays as long as it is, for malloc. Pages that cannot go,
 * as those that are locked, go with the block. */
static void shorten(struct kept *k, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)k;
    uintptr_t from = (begin + MAX(bytes, sizeof(*k)) + page - 1) / page * page;
    uintptr_t to = (begin + k->bytes) / page * page;

    if (from < to)
        (void)madvise((char *)k + (from - begin), to - from, MADV_DONTNEED);
    forget(k, k->bytes - bytes);
}

static void free_first(void)
{
    struct kept *k = first_kept;

    first_kept = k->next;
    forget(k, k->bytes);
    blocks_now--;
    ASAN_UNPOISON_MEMORY_REGION(k, malloc_usable_size(k));
    free(k);
}

void mem_free(void *p)
{
    if (p == NULL)
        return;
    MUST(blocks_now > 0);
    if (frees_later && keep(p, malloc_usable_size(p)))
        return;
    bytes_now -= malloc_usable_size(p);
    blocks_now--;
    free(p);
}

bool mem_has_to_give_back(void)
{
    return first_kept != NULL;
}

void mem_give_back(size_t bytes)
{
    while (first_kept != NULL && bytes > 0)
        if (first_kept->bytes > bytes) {
            shorten(first_kept, first_kept->bytes - bytes);
            bytes = 0;
        } else {
            bytes -= first_kept->bytes;
            free_first();
        }
}

void mem_free_large_later(bool later)
{
    frees_later = later;
    if (!later)
        mem_give_back(SIZE_MAX);
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
    return bytes_now + blocks_now * sizeof(size_t);
}

size_t mem_blocks(void)
{
    return blocks_now;
}

void mem_fail_at(size_t nth)
{
    fail_in = nth;
}
