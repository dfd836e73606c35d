/* What a program that is started anew gets: a shell takes its part, and tells. */
#include "app/anew.h"

#include "testing.h"

#include "base/buf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct buf said;

/* In a process of its own, whose output becomes `said`. */
static void exec_shell(const char *script, const struct tcp_passed *sockets)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script,
                    NULL};
    struct anew a = {.argv = argv, .program = "/bin/sh"};
    int out[2], status;
    pid_t child;
    ssize_t n;

    ck_assert_int_eq(pipe(out), 0);
    child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        err_free(anew_exec(&a, sockets));
        _exit(99);
    }
    close(out[1]);
    while ((n = read(out[0], buf_reserve(&said, 4096), 4096)) > 0)
        buf_commit(&said, (size_t)n);
    close(out[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* A listening socket; which one shows by its queue's length. */
static int listening(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(sockets_are_where_they_are_looked_for)
{
    struct tcp_passed sockets = {.count = 0};
    int first = listening(), second = listening(), other = open("/dev/null", O_RDONLY);

    buf_init(&said, BUF_NO_CAP);
    /* Each stands where another has to go. */
    ck_ok(tcp_passed_add(&sockets, second, TCP_PASSED_OWN_ANY_PORT));
    ck_ok(tcp_passed_add(&sockets, first, TCP_PASSED_BY_OTHERS));
    exec_shell("[ $LISTEN_PID = $$ ] && echo $LISTEN_FDS $LISTEN_FDNAMES; cd /proc/$$/fd; "
               "for f in 3 4 5 6 7 8 9 10 11 12; do readlink $f; done; exit 0",
               &sockets);
    ck_assert(span_starts(buf_span(&said), SPAN("2 svcd.own-any-port:svcd.passed\nsocket:[")));
    {
        struct span rest = buf_span(&said);
        char link[2][64];
        struct span lines[4];

        for (int i = 0; i < 4; i++)
            lines[i] = span_split(&rest, '\n');
        for (int i = 0; i < 2; i++) {
            char path[32];
            ssize_t n;

            snprintf(path, sizeof(path), "/proc/self/fd/%d", i == 0 ? second : first);
            n = readlink(path, link[i], sizeof(link[i]));
            ck_span_is(lines[1 + i], span_of(link[i], (size_t)n));
        }
        ck_assert_uint_eq(lines[3].n, 0); /* `other` is closed, and whatever else */
    }
    close(other);
    tcp_passed_done(&sockets);
    buf_done(&said);
}
END_TEST

START_TEST(signals_wait)
{
    const struct tcp_passed none = {.count = 0};

    buf_init(&said, BUF_NO_CAP);
    exec_shell("kill -HUP $$; kill -USR1 $$; kill -USR2 $$; echo $LISTEN_FDS here", &none);
    ck_span_eq(buf_span(&said), "0 here\n");
    buf_done(&said);
}
END_TEST

START_TEST(it_knows_its_program)
{
    static char *argv[] = {NULL};
    struct anew a;

    anew_init(&a, argv);
    ck_assert_ptr_nonnull(strstr(a.program, "check_app"));
    ck_assert_int_eq(a.program[0], '/');
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, sockets_are_where_they_are_looked_for);
    tcase_add_test(tc, signals_wait);
    tcase_add_test(tc, it_knows_its_program);
}
