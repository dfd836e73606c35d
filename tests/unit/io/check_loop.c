#include "testing.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/loop.h"
#include "io/timer.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop loop;
static char trace[64]; /* the letters of the steps that ran, in order */

/* Anything that the loop can run, used as one of the three. */
struct step {
    struct loop_hook hook;
    struct loop_task task;
    struct timer timer;
    char letter;
    void (*then)(struct step *step);
};

static struct step a, b, c, d;

static void run_step(struct step *step)
{
    size_t n = strlen(trace);

    ck_assert_uint_lt(n + 1, sizeof(trace));
    trace[n] = step->letter;
    if (step->then != NULL)
        step->then(step);
}

static void on_hook(struct loop_hook *hook)
{
    run_step(CONTAINER_OF(hook, struct step, hook));
}

static void on_task(struct loop_task *task)
{
    run_step(CONTAINER_OF(task, struct step, task));
}

static void on_time(struct timer *timer)
{
    run_step(CONTAINER_OF(timer, struct step, timer));
}

static struct step step_of(char letter)
{
    struct step step = {.hook.run = on_hook, .task.run = on_task, .letter = letter};

    timer_init(&step.timer, on_time);
    return step;
}

static void begin(void)
{
    memset(trace, 0, sizeof(trace));
    a = step_of('a');
    b = step_of('b');
    c = step_of('c');
    d = step_of('d');
    ck_ok(loop_init(&loop));
}

static void end(const char *expected)
{
    loop_done(&loop);
    ck_assert_str_eq(trace, expected);
}

static void post_c(struct step *step)
{
    (void)step;
    loop_post(&loop, &c.task);
}

static void unpost_c(struct step *step)
{
    (void)step;
    loop_unpost(&loop, &c.task);
}

static void wake(struct step *step)
{
    (void)step;
    loop_wake(&loop);
}

static void remove_own_hook(struct step *step)
{
    loop_remove_hook(&loop, &step->hook);
}

static void remove_hook_b(struct step *step)
{
    (void)step;
    loop_remove_hook(&loop, &b.hook);
}

static void add_hook_d(struct step *step)
{
    step->then = NULL;
    loop_add_hook(&loop, &d.hook);
}

static void stop(struct step *step)
{
    (void)step;
    uv_stop(&loop.uv);
}

static void post_itself_twice(struct step *step)
{
    if (strlen(trace) < 3)
        loop_post(&loop, &step->task);
}

START_TEST(idle_loop_runs_one_turn)
{
    begin();
    loop_add_hook(&loop, &a.hook);
    loop_run(&loop);
    loop_run_once(&loop);
    loop_remove_hook(&loop, &a.hook);
    end("aa");
}
END_TEST

START_TEST(turn_end_order)
{
    begin();
    loop_post(&loop, &d.task);
    loop_add_hook(&loop, &b.hook);
    loop_add_hook(&loop, &c.hook);
    timer_start(&loop, &a.timer, 0);
    loop_run_once(&loop);
    loop_remove_hook(&loop, &b.hook);
    loop_remove_hook(&loop, &c.hook);
    end("abcd");
}
END_TEST

START_TEST(task_posted_by_timer_runs_in_its_turn)
{
    begin();
    a.then = post_c;
    loop_add_hook(&loop, &b.hook);
    timer_start(&loop, &a.timer, 0);
    loop_run(&loop);
    loop_remove_hook(&loop, &b.hook);
    end("abc");
}
END_TEST

START_TEST(task_posted_by_hook_runs_next_turn)
{
    begin();
    a.then = post_c;
    loop_add_hook(&loop, &a.hook);
    loop_run_once(&loop);
    ck_assert(loop_posted(&c.task));
    a.then = NULL;
    loop_run(&loop);
    loop_remove_hook(&loop, &a.hook);
    end("aac");
}
END_TEST

START_TEST(task_posted_by_task_runs_next_turn)
{
    begin();
    b.then = post_c;
    loop_add_hook(&loop, &a.hook);
    loop_post(&loop, &b.task);
    loop_run(&loop);
    loop_remove_hook(&loop, &a.hook);
    end("abac");
}
END_TEST

START_TEST(task_may_post_itself_again)
{
    begin();
    a.then = post_itself_twice;
    loop_post(&loop, &a.task);
    loop_run(&loop);
    end("aaa");
}
END_TEST

START_TEST(task_may_ask_for_another_turn)
{
    begin();
    a.then = wake;
    loop_post(&loop, &a.task);
    loop_add_hook(&loop, &b.hook);
    loop_run(&loop);
    loop_remove_hook(&loop, &b.hook);
    end("bab");
}
END_TEST

START_TEST(posted_twice_runs_once)
{
    begin();
    loop_post(&loop, &c.task);
    loop_post(&loop, &a.task);
    loop_post(&loop, &c.task);
    loop_run(&loop);
    end("ca");
}
END_TEST

START_TEST(unposted_does_not_run)
{
    begin();
    loop_unpost(&loop, &c.task);
    loop_post(&loop, &c.task);
    loop_unpost(&loop, &c.task);
    ck_assert(!loop_posted(&c.task));
    a.then = unpost_c; /* in the turn in which c would run */
    loop_post(&loop, &a.task);
    loop_post(&loop, &c.task);
    loop_post(&loop, &b.task);
    loop_run(&loop);
    end("ab");
}
END_TEST

START_TEST(hook_may_remove_itself)
{
    begin();
    a.then = remove_own_hook;
    loop_add_hook(&loop, &a.hook);
    loop_add_hook(&loop, &b.hook);
    loop_run(&loop);
    loop_run(&loop);
    loop_remove_hook(&loop, &b.hook);
    end("abb");
}
END_TEST

START_TEST(hook_may_remove_the_next)
{
    begin();
    a.then = remove_hook_b;
    loop_add_hook(&loop, &a.hook);
    loop_add_hook(&loop, &b.hook);
    loop_add_hook(&loop, &c.hook);
    loop_run(&loop);
    loop_remove_hook(&loop, &a.hook);
    loop_remove_hook(&loop, &c.hook);
    end("ac");
}
END_TEST

START_TEST(hook_may_add_another)
{
    begin();
    a.then = add_hook_d;
    loop_add_hook(&loop, &a.hook);
    loop_add_hook(&loop, &b.hook);
    loop_run(&loop);
    loop_remove_hook(&loop, &a.hook);
    loop_remove_hook(&loop, &b.hook);
    loop_remove_hook(&loop, &d.hook);
    end("abd");
}
END_TEST

START_TEST(stop_ends_the_run)
{
    begin();
    a.then = stop;
    loop_post(&loop, &a.task);
    timer_start(&loop, &b.timer, 60000);
    loop_run(&loop);
    timer_stop(&loop, &b.timer);
    end("a");
}
END_TEST

START_TEST(waiting_does_not_spin)
{
    begin();
    loop_add_hook(&loop, &a.hook);
    loop_post(&loop, &b.task);
    timer_start(&loop, &c.timer, 40);
    loop_run(&loop);
    loop_remove_hook(&loop, &a.hook);
    loop_done(&loop);
    ck_assert_msg(strlen(trace) < 10, "ran '%s'", trace);
}
END_TEST

START_TEST(one_run_waits_once)
{
    uint64_t began;

    begin();
    timer_start(&loop, &a.timer, 20);
    began = clock_mono_ms();
    while (timer_running(&a.timer))
        loop_run_once(&loop);
    ck_assert_uint_ge(clock_mono_ms() - began, 20);
    end("a");
}
END_TEST

START_TEST(init_ignores_sigpipe)
{
    struct sigaction action;

    begin();
    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &action), 0);
    ck_assert(action.sa_handler == SIG_IGN);
    end("");
}
END_TEST

START_TEST(done_takes_what_never_began)
{
    struct loop zeroed = {0};

    loop_done(NULL);
    loop_done(&zeroed);
}
END_TEST

START_TEST(done_completes_closes_under_way)
{
    uv_timer_t handle;

    begin();
    uv_timer_init(&loop.uv, &handle);
    uv_close((uv_handle_t *)&handle, NULL);
    end("");
}
END_TEST

/* Runs in a child process, which ends here. */
static void leave_a_handle(int log_fd)
{
    uv_idle_t handle;

    log_to(log_fd);
    begin();
    uv_idle_init(&loop.uv, &handle);
    loop_done(&loop);
    _exit(0);
}

START_TEST(done_names_the_handle_left)
{
    char text[512] = "";
    int fds[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(fds), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        leave_a_handle(fds[1]);
    close(fds[1]);
    ck_assert_int_gt(read(fds[0], text, sizeof(text) - 1), 0);
    close(fds[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_msg(strstr(text, "a handle is left: idle") != NULL, "logged '%s'", text);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, idle_loop_runs_one_turn);
    tcase_add_test(tc, turn_end_order);
    tcase_add_test(tc, task_posted_by_timer_runs_in_its_turn);
    tcase_add_test(tc, task_posted_by_hook_runs_next_turn);
    tcase_add_test(tc, task_posted_by_task_runs_next_turn);
    tcase_add_test(tc, task_may_post_itself_again);
    tcase_add_test(tc, task_may_ask_for_another_turn);
    tcase_add_test(tc, posted_twice_runs_once);
    tcase_add_test(tc, unposted_does_not_run);
    tcase_add_test(tc, hook_may_remove_itself);
    tcase_add_test(tc, hook_may_remove_the_next);
    tcase_add_test(tc, hook_may_add_another);
    tcase_add_test(tc, stop_ends_the_run);
    tcase_add_test(tc, waiting_does_not_spin);
    tcase_add_test(tc, one_run_waits_once);
    tcase_add_test(tc, init_ignores_sigpipe);
    tcase_add_test(tc, done_takes_what_never_began);
    tcase_add_test(tc, done_completes_closes_under_way);
    tcase_add_test(tc, done_names_the_handle_left);
}
