/* The handler writes to a pipe, so that a wait in poll ends; a flag alone could be set just before
 * the wait begins. */
#include "cli/stop.h"

#include "base/must.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static int ends[2] = {-1, -1};
static volatile sig_atomic_t asked;

static void on_signal(int number)
{
    ssize_t n;

    (void)number;
    asked = 1;
    n = write(ends[1], "", 1);
    (void)n; /* a full pipe is readable as well */
}

void stop_watch(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    MUST(pipe(ends) == 0);
    sigemptyset(&action.sa_mask);
    MUST(sigaction(SIGINT, &action, NULL) == 0);
    MUST(sigaction(SIGTERM, &action, NULL) == 0);
}

bool stop_is_asked(void)
{
    return asked != 0;
}

int stop_fd(void)
{
    return ends[0];
}

void stop_wait_ms(int ms)
{
    struct pollfd end = {.fd = ends[0], .events = POLLIN};

    (void)poll(&end, 1, ms);
}
