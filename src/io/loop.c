/* A turn on libuv: uv_run calls the idle handle, then the prepare handle, then sleeps in epoll and
 * runs what the sockets brought. The prepare handle is the end of the turn that the last sleep
 * began. The idle handle does nothing itself: while it is active libuv does not sleep. */
#include "io/loop.h"

#include "io/timer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/must.h"

#include <signal.h>

/* A turn: what a piece of work can fill in its part of one, and more. */
enum { GIVEN_BACK_BYTES = 6 << 20 };

static void run_hooks(struct loop *loop)
{
    struct list_link *link = list_first(&loop->hooks);

    while (link != NULL) {
        struct loop_hook *hook = CONTAINER_OF(link, struct loop_hook, link);

        loop->next_hook = list_next(&loop->hooks, link);
        hook->run(hook);
        link = loop->next_hook;
    }
}

static void on_turn_end(uv_prepare_t *turn_end)
{
    struct loop *loop = CONTAINER_OF(turn_end, struct loop, turn_end);
    struct list_link mark = {NULL, NULL}; /* divides this turn's tasks from those of the next */
    struct list_link *link;

    loop->turns++;
    timer_fire_due(loop);
    uv_idle_stop(&loop->busy); /* who has work for another turn from here on starts it again */
    list_push_back(&loop->tasks, &mark);
    run_hooks(loop);
    while ((link = list_pop_front(&loop->tasks)) != &mark) {
        struct loop_task *task = CONTAINER_OF(link, struct loop_task, link);

        task->run(task);
    }
    if (mem_has_to_give_back()) {
        mem_give_back(GIVEN_BACK_BYTES);
        loop_wake(loop);
    }
    loop->waits++;
}

struct err *loop_init(struct loop *loop)
{
    int status;

    *loop = (struct loop){0};
    status = uv_loop_init(&loop->uv);
    if (status != 0)
        return ERR(ERR_UNKNOWN, "event loop: %s", uv_strerror(status));
    loop->uv.data = loop;
    signal(SIGPIPE, SIG_IGN);
    list_init(&loop->hooks);
    list_init(&loop->tasks);
    timer_attach(loop);
    loop->scratch = mem_alloc(LOOP_SCRATCH_BYTES);

    /* None of these can fail on an initialised loop. */
    uv_idle_init(&loop->uv, &loop->busy);
    uv_timer_init(&loop->uv, &loop->alarm);
    uv_prepare_init(&loop->uv, &loop->turn_end);
    uv_prepare_start(&loop->turn_end, on_turn_end);
    uv_unref((uv_handle_t *)&loop->turn_end);
    return NULL;
}

static void log_left_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    log_error("loop", "a handle is left: %s", uv_handle_type_name(handle->type));
}

void loop_done(struct loop *loop)
{
    int status;

    if (loop == NULL || loop->uv.data == NULL)
        return;
    MUST(list_empty(&loop->hooks));
    MUST(list_empty(&loop->tasks));
    MUST(heap_first(loop->timers) == NULL);
    uv_close((uv_handle_t *)&loop->turn_end, NULL);
    uv_close((uv_handle_t *)&loop->busy, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    status = uv_loop_close(&loop->uv);
    if (status != 0)
        uv_walk(&loop->uv, log_left_handle, NULL);
    MUST(status == 0);
    heap_done(loop->timers);
    mem_free(loop->timers);
    mem_free(loop->scratch);
    loop->uv.data = NULL;
}

void loop_run(struct loop *loop)
{
    loop_wake(loop);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_run_once(struct loop *loop)
{
    /* libuv runs no turn when nothing is alive, and knows nothing of a clock that a test set. */
    if (!uv_loop_alive(&loop->uv) || timer_any_due(loop))
        loop_wake(loop);
    uv_run(&loop->uv, UV_RUN_ONCE);
}

void loop_add_hook(struct loop *loop, struct loop_hook *hook)
{
    list_push_back(&loop->hooks, &hook->link);
}

void loop_remove_hook(struct loop *loop, struct loop_hook *hook)
{
    if (loop->next_hook == &hook->link)
        loop->next_hook = list_next(&loop->hooks, &hook->link);
    list_remove(&loop->hooks, &hook->link);
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    if (loop_posted(task))
        return;
    list_push_back(&loop->tasks, &task->link);
    loop_wake(loop);
}

void loop_unpost(struct loop *loop, struct loop_task *task)
{
    if (loop_posted(task))
        list_remove(&loop->tasks, &task->link);
}

bool loop_posted(const struct loop_task *task)
{
    return list_linked(&task->link);
}

static void on_busy(uv_idle_t *busy)
{
    (void)busy;
}

void loop_wake(struct loop *loop)
{
    uv_idle_start(&loop->busy, on_busy);
}

uint64_t loop_now_ms(const struct loop *loop)
{
    (void)loop;
    return clock_mono_ms();
}
