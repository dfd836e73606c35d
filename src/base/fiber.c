/* Contexts of the C library (getcontext, swapcontext): a switch costs a system call for the signal
 * mask, some tenths of a microsecond, which is nothing beside the milliseconds between two of them,
 * and it saves writing assembly for each processor. Stacks are mappings, a few of which are kept
 * for the next. */
#include "base/fiber.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/must.h"

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACKS_KEPT = 8 };

struct fiber {
    ucontext_t own, resumer;
    void (*run)(void *arg);
    void *arg;
    char *stack;
    struct list_link link; /* among those under way, oldest first */
    uint64_t number;
    bool has_ended;
    /* What the address sanitizer has to know of a stack that is left. */
    void *own_fake, *resumer_fake;
    const void *resumer_bottom;
    size_t resumer_bytes;
};

struct retired {
    struct list_link link;
    uint64_t number; /* of the youngest fiber that may point to it */
    void (*free_it)(void *what);
    void *what;
};

static struct {
    struct fiber *running;
    struct list under_way; /* struct fiber, oldest first */
    struct list retired;   /* struct retired */
    uint64_t begun;
    char *kept[STACKS_KEPT];
    unsigned kept_count;
} fibers = {
    .under_way.head = {&fibers.under_way.head, &fibers.under_way.head},
    .retired.head = {&fibers.retired.head, &fibers.retired.head},
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *take_stack(void)
{
    char *stack;

    if (fibers.kept_count > 0)
        return fibers.kept[--fibers.kept_count];
    stack = mmap(NULL, FIBER_STACK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    MUST(stack != MAP_FAILED); /* as with any memory that cannot be had */
    MUST(mprotect(stack, page_bytes(), PROT_NONE) == 0);
    return stack;
}

static void give_stack(char *stack)
{
    if (fibers.kept_count < STACKS_KEPT)
        fibers.kept[fibers.kept_count++] = stack;
    else
        munmap(stack, FIBER_STACK_BYTES);
}

void fiber_forget_stacks(void)
{
    while (fibers.kept_count > 0)
        munmap(fibers.kept[--fibers.kept_count], FIBER_STACK_BYTES);
}

static void enter(struct fiber *f)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&f->resumer_fake, f->stack, FIBER_STACK_BYTES);
#endif
    MUST(swapcontext(&f->resumer, &f->own) == 0);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(f->resumer_fake, NULL, NULL);
#endif
}

static void note_entered(struct fiber *f)
{
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(f->own_fake, &f->resumer_bottom, &f->resumer_bytes);
#else
    (void)f;
#endif
}

/* `save` NULL: for good. */
static void leave(struct fiber *f, void **save)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(save, f->resumer_bottom, f->resumer_bytes);
#else
    (void)save;
#endif
    MUST(swapcontext(&f->own, &f->resumer) == 0);
    note_entered(f);
}

static void begin(void)
{
    struct fiber *f = fibers.running;

    note_entered(f);
    f->run(f->arg);
    f->has_ended = true;
    leave(f, NULL);
    MUST_NOT_REACH();
}

struct fiber *fiber_new(void (*run)(void *arg), void *arg)
{
    struct fiber *f = NEW(struct fiber);

    f->run = run;
    f->arg = arg;
    f->stack = take_stack();
    MUST(getcontext(&f->own) == 0);
    f->own.uc_stack.ss_sp = f->stack;
    f->own.uc_stack.ss_size = FIBER_STACK_BYTES;
    makecontext(&f->own, begin, 0);
    f->number = ++fibers.begun;
    list_push_back(&fibers.under_way, &f->link);
    return f;
}

static void free_retired(void)
{
    const struct fiber *oldest = LIST_OBJECT(list_first(&fibers.under_way), struct fiber, link);
    uint64_t number = oldest == NULL ? UINT64_MAX : oldest->number;
    struct retired *r;

    while ((r = LIST_OBJECT(list_first(&fibers.retired), struct retired, link)) != NULL &&
           r->number < number) {
        list_remove(&fibers.retired, &r->link);
        r->free_it(r->what);
        mem_free(r);
    }
}

void fiber_retire(void (*free_it)(void *what), void *what)
{
    struct retired *r;

    if (list_empty(&fibers.under_way)) {
        free_it(what);
        return;
    }
    r = NEW(struct retired);
    *r = (struct retired){.number = fibers.begun, .free_it = free_it, .what = what};
    list_push_back(&fibers.retired, &r->link);
}

bool fiber_resume(struct fiber *f)
{
    MUST(fibers.running == NULL);
    fibers.running = f;
    enter(f);
    fibers.running = NULL;
    if (!f->has_ended)
        return true;
    list_remove(&fibers.under_way, &f->link);
    give_stack(f->stack);
    mem_free(f);
    free_retired();
    return false;
}

void fiber_yield(void)
{
    struct fiber *f = fibers.running;

    MUST(f != NULL);
    leave(f, &f->own_fake);
}

bool fiber_is_inside(void)
{
    return fibers.running != NULL;
}
