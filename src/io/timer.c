/* A heap of deadlines. The uv_timer only wakes the loop: the timers themselves fire at the turn's
 * end, so that their place in the turn is fixed and a test's clock moves them. */
#include "io/timer.h"

#include "base/mem.h"
#include "base/must.h"
#include "io/loop.h"

static bool fires_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct timer *x = CONTAINER_OF_CONST(a, struct timer, node);
    const struct timer *y = CONTAINER_OF_CONST(b, struct timer, node);

    if (x->deadline_ms != y->deadline_ms)
        return x->deadline_ms < y->deadline_ms;
    return x->serial < y->serial;
}

static struct timer *earliest(const struct loop *loop)
{
    struct heap_node *first = heap_first(loop->timers);

    return first == NULL ? NULL : CONTAINER_OF(first, struct timer, node);
}

static void on_alarm(uv_timer_t *alarm)
{
    loop_wake(CONTAINER_OF(alarm, struct loop, alarm));
}

/* An alarm may come too early, then it is armed again: libuv counts from the beginning of its turn,
 * and an alarm stays when the earliest timer is moved on, as each request does with some. */
static void arm(struct loop *loop)
{
    const struct timer *first = earliest(loop);
    uint64_t now_ms;

    if (first == NULL) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    if (uv_is_active((uv_handle_t *)&loop->alarm) && loop->alarm_ms <= first->deadline_ms)
        return;
    now_ms = loop_now_ms(loop);
    loop->alarm_ms = first->deadline_ms;
    uv_timer_start(&loop->alarm, on_alarm, loop->alarm_ms - MIN(loop->alarm_ms, now_ms), 0);
}

void timer_attach(struct loop *loop)
{
    loop->timers = NEW(struct heap);
    heap_init(loop->timers, fires_before);
}

bool timer_any_due(const struct loop *loop)
{
    const struct timer *first = earliest(loop);

    return first != NULL && first->deadline_ms <= loop_now_ms(loop);
}

void timer_fire_due(struct loop *loop)
{
    uint64_t started = loop->timers_started;
    uint64_t now_ms;
    struct timer *timer;

    if (earliest(loop) == NULL)
        return;
    now_ms = loop_now_ms(loop);
    while ((timer = earliest(loop)) != NULL && timer->deadline_ms <= now_ms &&
           timer->serial < started) {
        heap_remove(loop->timers, &timer->node);
        timer->on_time(timer);
    }
    arm(loop);
}

void timer_init(struct timer *timer, void (*on_time)(struct timer *timer))
{
    MUST(!timer_running(timer));
    *timer = (struct timer){.on_time = on_time};
}

void timer_start(struct loop *loop, struct timer *timer, uint64_t delay_ms)
{
    uint64_t now_ms = loop_now_ms(loop);

    timer->deadline_ms = now_ms + MIN(delay_ms, UINT64_MAX - now_ms);
    timer->serial = loop->timers_started++;
    if (timer_running(timer))
        heap_update(loop->timers, &timer->node);
    else
        heap_add(loop->timers, &timer->node);
    arm(loop);
}

void timer_stop(struct loop *loop, struct timer *timer)
{
    if (!timer_running(timer))
        return;
    heap_remove(loop->timers, &timer->node);
    arm(loop);
}

bool timer_running(const struct timer *timer)
{
    return heap_contains(&timer->node);
}
