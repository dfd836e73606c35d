/* The clock is that of the thread's processor time: what other processes take is nobody's fault.
 * Reading it is a system call, so it is read once in BUDGET_STEP units.
 *
 * What runs in budget_run_pure never asks: a single step of a library may take seconds. An alarm
 * (SIGALRM, by the wall clock) interrupts it. On a fiber its handler yields: the signal's frame
 * stays on the fiber's stack, and when the fiber is resumed the handler returns to where it was. If
 * there is to be no later, the handler jumps out of it. The alarm is armed when the first such
 * piece of a turn begins, and disarmed with the turn's part. */
#include "base/budget.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/must.h"

#include <errno.h>
#include <sys/time.h>

enum { LEAST_ALARM_NS = 200000, RETRY_AFTER_S = 5 };

struct budget_now budget_now = {.left = INT64_MAX};

static bool is_handled;
static volatile sig_atomic_t is_armed;

void budget_init(struct budget *b, uint64_t most_ns)
{
    *b = (struct budget){
        .most_ns = most_ns, .first_ns = BUDGET_FIRST_NS, .slice_ns = BUDGET_SLICE_NS};
}

static uint64_t spent_ns(struct budget *b)
{
    uint64_t now_ns = clock_cpu_ns();

    if (b->began_ns == 0)
        b->began_ns = now_ns;
    return now_ns - b->began_ns;
}

static void set_alarm(uint64_t ns)
{
    struct itimerval at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000),
                                        .tv_usec = (suseconds_t)(ns % 1000000000 / 1000)}};

    is_armed = ns > 0;
    setitimer(ITIMER_REAL, &at, NULL);
}

/* This turn's part is over. */
void budget_leave_slowly(struct budget *b)
{
    uint64_t spent = spent_ns(b);

    if (is_armed)
        set_alarm(0);
    b->used_ns += spent;
    if (spent > b->longest_ns)
        b->longest_ns = spent;
    b->began_ns = 0;
}

static bool is_good(const struct budget *b)
{
    if (b->state != BUDGET_GOOD)
        budget_now.left = 0; /* so that it is told each time */
    return b->state == BUDGET_GOOD;
}

static bool yields(const struct budget *b)
{
    return b->is_on_fiber && b->holds == 0;
}

static void give_way(struct budget *b)
{
    budget_leave_slowly(b);
    b->turns++;
    fiber_yield();
    b->began_ns = 0;
    spent_ns(b);
    budget_now.left = BUDGET_STEP;
}

/* The time of the turn is up. False: it is told to stop. */
static bool give_way_or_stop(struct budget *b)
{
    if (yields(b))
        give_way(b);
    else if (b->may_begin_anew && b->holds == 0)
        b->state = BUDGET_NEEDS_FIBER;
    return is_good(b);
}

static bool has_spent_all(struct budget *b, uint64_t spent)
{
    if (b->most_ns == 0 || b->used_ns + spent <= b->most_ns)
        return false;
    b->state = BUDGET_SPENT;
    return true;
}

bool budget_look(void)
{
    struct budget *b = budget_now.current;
    uint64_t spent;

    if (b == NULL) {
        budget_now.left = INT64_MAX;
        return true;
    }
    if (!is_good(b))
        return false;
    budget_now.left = BUDGET_STEP;
    spent = spent_ns(b);
    if (has_spent_all(b, spent))
        return is_good(b);
    return spent < (yields(b) ? b->slice_ns : b->first_ns) || give_way_or_stop(b);
}

bool budget_may_begin(size_t units)
{
    struct budget *b = budget_now.current;

    if (b == NULL)
        return true;
    if (b->state == BUDGET_GOOD && b->may_begin_anew && b->holds == 0 && units >= BUDGET_FIRST_NS)
        b->state = BUDGET_NEEDS_FIBER;
    return is_good(b);
}

void budget_yield(void)
{
    struct budget *b = budget_now.current;

    MUST(b != NULL && b->is_on_fiber);
    give_way(b);
}

bool budget_give_way(void)
{
    struct budget *b = budget_now.current;

    if (b == NULL || !is_good(b))
        return b == NULL;
    return give_way_or_stop(b);
}

void budget_hold(void)
{
    if (budget_now.current != NULL)
        budget_now.current->holds++;
}

void budget_release(void)
{
    if (budget_now.current != NULL)
        budget_now.current->holds--;
}

unsigned budget_turns(void)
{
    return budget_now.current == NULL ? 0 : budget_now.current->turns;
}

static struct err *no_room(void)
{
    struct err *e = ERR(ERR_OVERLOADED, "the limit MemoryBytes is reached by what is being made");

    err_set_retry_after(e, RETRY_AFTER_S);
    return e;
}

struct err *budget_check(void)
{
    const struct budget *b = budget_now.current;

    if (b == NULL || b->state == BUDGET_GOOD)
        return NULL;
    if (b->state == BUDGET_SPENT)
        return ERR(ERR_REQUEST_TOO_COSTLY,
                   "the request takes more than the limit RequestCpuMs (%llu ms of processor time)",
                   (unsigned long long)(b->most_ns / 1000000));
    if (b->state == BUDGET_NO_ROOM)
        return no_room();
    return ERR(ERR_GIVES_WAY, "the request gives way to others");
}

/* ---- pieces without questions ---- */

static uint64_t alarm_ns(struct budget *b)
{
    uint64_t spent = spent_ns(b), most = UINT64_MAX;

    if (yields(b))
        most = b->slice_ns;
    else if (b->may_begin_anew && b->holds == 0)
        most = b->first_ns;
    else if (b->most_ns > 0)
        most = b->most_ns - MIN(b->most_ns, b->used_ns);
    return most == UINT64_MAX ? 0 : MAX(most - MIN(most, spent), (uint64_t)LEAST_ALARM_NS);
}

/* The time is up in the midst of it. */
static void interrupt(struct budget *b)
{
    b->is_interruptible = 0;
    has_spent_all(b, spent_ns(b));
    if (!is_good(b) || !give_way_or_stop(b))
        siglongjmp(*b->left, 1);
    set_alarm(alarm_ns(b));
    b->is_interruptible = 1;
}

/* The signal is not blocked meanwhile, neither here nor where it yields to: a jump out of here need
 * not restore the mask. One that comes before such a piece can be interrupted comes again: between
 * setting the alarm and saying so, others may have had the processor for as long as it takes. */
static void on_alarm(int number)
{
    struct budget *b = budget_now.current;
    int saved_errno = errno;

    (void)number;
    is_armed = false;
    if (b == NULL || b->left == NULL)
        return;
    if (b->is_interruptible)
        interrupt(b);
    else
        set_alarm(LEAST_ALARM_NS);
    errno = saved_errno;
}

static void handle_alarm(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER};

    sigemptyset(&action.sa_mask);
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    is_handled = true;
}

void budget_uninterrupted(void)
{
    if (budget_now.current != NULL)
        budget_now.current->is_interruptible = 0;
}

void budget_interruptible(void)
{
    struct budget *b = budget_now.current;

    if (b == NULL || b->left == NULL)
        return;
    if (!is_armed)
        set_alarm(alarm_ns(b));
    b->is_interruptible = 1;
}

bool budget_run_pure(void (*run)(void *arg), void *arg)
{
    struct budget *b = budget_now.current;
    sigjmp_buf left;

    if (b == NULL) {
        run(arg);
        return true;
    }
    if (!is_good(b))
        return false;
    if (!is_handled)
        handle_alarm();
    if (sigsetjmp(left, 0) != 0) {
        budget_now.current->left = NULL;
        return false;
    }
    b->left = &left;
    budget_interruptible();
    run(arg);
    b->is_interruptible = 0;
    b->left = NULL;
    return true;
}
