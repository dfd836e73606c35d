/* The sockets are moved to where a service manager would have put them, from number 3 on, in two
 * steps, as one may stand where another has to go. They alone are left open for the new program.
 *
 * The path is looked at when the server starts: later the program may have been replaced, and then
 * the link in /proc says that it is deleted. */
#include "app/anew.h"

#include "app/activation.h"
#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";

void anew_init(struct anew *a, char **argv)
{
    ssize_t n = readlink(self, a->program, sizeof(a->program) - 1);

    a->argv = argv;
    a->program[n < 0 ? 0 : n] = '\0';
}

void anew_ignore_signals(void)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
}

/* False with errno. Descriptors of a process that executes another program end with it. */
static bool place_sockets(const struct tcp_passed *sockets)
{
    int above = ACTIVATION_FIRST_FD + (int)sockets->count, fds[TCP_PASSED_MOST];

    for (unsigned i = 0; i < sockets->count; i++) {
        fds[i] = fcntl(sockets->fds[i], F_DUPFD_CLOEXEC, above);
        if (fds[i] < 0)
            return false;
    }
    for (unsigned i = 0; i < sockets->count; i++)
        if (dup2(fds[i], ACTIVATION_FIRST_FD + (int)i) < 0)
            return false;
    return true;
}

/* Ours end at the execution anyway; this is for those of libraries. */
static void close_others(unsigned count)
{
    if (close_range(ACTIVATION_FIRST_FD + count, ~0u, 0) != 0)
        log_debug("anew", "close_range: %s", strerror(errno));
}

static bool set_number(const char *name, unsigned long value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lu", value);
    return setenv(name, text, 1) == 0;
}

static bool set_environment(const struct tcp_passed *sockets)
{
    struct buf names;
    bool is_set;

    buf_init(&names, BUF_NO_CAP);
    for (unsigned i = 0; i < sockets->count; i++)
        buf_printf(&names, "%s%s", i == 0 ? "" : ":", activation_name(sockets->kinds[i]));
    is_set = set_number("LISTEN_PID", (unsigned long)getpid()) &&
             set_number("LISTEN_FDS", sockets->count) &&
             setenv("LISTEN_FDNAMES", buf_text(&names), 1) == 0;
    buf_done(&names);
    return is_set;
}

struct err *anew_exec(const struct anew *a, const struct tcp_passed *sockets)
{
    int error;

    anew_ignore_signals();
    if (set_environment(sockets) && place_sockets(sockets)) {
        close_others(sockets->count);
        execv(a->program, a->argv);
        log_warn("anew", "%s cannot be executed: %s; this program is, as it was",
                 a->program[0] == '\0' ? "the program" : a->program, strerror(errno));
        execv(self, a->argv);
    }
    error = errno;
    return ERR(ERR_UNKNOWN, "cannot start anew: %s", strerror(error));
}
