/* One datagram a message: lines NAME=VALUE, to the manager's socket at a path or an abstract
 * address (`@`...). It is named in each call, as a manager that starts anew makes another. */
#include "app/notify.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { STATUS_BYTES = 512, MESSAGE_BYTES = 1024 };

/* flags: MSG_DONTWAIT, for what can be said later; otherwise the manager has a moment's time. */
static void send_message(struct notify *n, const char *message, int flags)
{
    if (n->fd < 0)
        return;
    if (sendto(n->fd, message, strlen(message), MSG_NOSIGNAL | flags,
               (const struct sockaddr *)&n->address, n->address_bytes) >= 0) {
        n->has_failed = false;
        return;
    }
    if (!n->has_failed)
        log_warn("notify", "the service manager was not told '%s': %s", message, strerror(errno));
    n->has_failed = true;
}

static void on_watchdog(struct timer *timer)
{
    struct notify *n = CONTAINER_OF(timer, struct notify, watchdog);

    send_message(n, "WATCHDOG=1", MSG_DONTWAIT);
    timer_start(n->loop, timer, n->watchdog_ms);
}

static bool set_address(struct notify *n, const char *text)
{
    size_t bytes = strlen(text);

    n->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((text[0] != '/' && text[0] != '@') || bytes >= sizeof(n->address.sun_path))
        return false;
    memcpy(n->address.sun_path, text, bytes);
    if (text[0] == '@')
        n->address.sun_path[0] = '\0';
    n->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    return true;
}

static void open_socket(struct notify *n)
{
    static const struct timeval patience = {.tv_sec = 1};

    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (n->fd < 0 || setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0)
        log_warn("notify", "the service manager cannot be told anything: %s", strerror(errno));
}

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t value;

    return text != NULL && span_to_u64(span_str(text), &value) ? value : 0;
}

void notify_init(struct notify *n, struct loop *loop)
{
    const char *where = getenv("NOTIFY_SOCKET");
    uint64_t pid = number_of("WATCHDOG_PID");

    *n = (struct notify){.loop = loop, .fd = -1};
    timer_init(&n->watchdog, on_watchdog);
    if (where == NULL)
        return;
    if (!set_address(n, where)) {
        log_warn("notify", "NOTIFY_SOCKET '%s' is neither a path nor an abstract address", where);
        return;
    }
    open_socket(n);
    if (pid == 0 || pid == (uint64_t)getpid()) /* twice as often as asked: sd_watchdog_enabled(3) */
        n->watchdog_ms = (number_of("WATCHDOG_USEC") / 2 + 999) / 1000;
}

void notify_done(struct notify *n)
{
    timer_stop(n->loop, &n->watchdog);
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

/* A line break in a value would begin another line. */
static void flatten(char *text)
{
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

void notify_state(struct notify *n, enum notify_state state, const char *fmt, ...)
{
    static const char *const lines[] = {
        [NOTIFY_STARTING] = "",
        [NOTIFY_READY] = "READY=1\n",
        [NOTIFY_RELOADING] = "RELOADING=1\n",
        [NOTIFY_STOPPING] = "STOPPING=1\n",
    };
    char status[STATUS_BYTES], message[MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(status, sizeof(status), fmt, arguments);
    va_end(arguments);
    flatten(status);
    /* The time says which RELOADING a READY answers; of other messages nobody reads it. */
    snprintf(message, sizeof(message), "%sMONOTONIC_USEC=%" PRIu64 "\nSTATUS=%s", lines[state],
             clock_mono_ns() / 1000, status);
    send_message(n, message, 0);
    if (state == NOTIFY_READY && n->watchdog_ms > 0 && !timer_running(&n->watchdog))
        timer_start(n->loop, &n->watchdog, 0);
}
