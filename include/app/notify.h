/* Tells the service manager how the process is doing (sd_notify(3)), and that its loop turns, when
 * NOTIFY_SOCKET and WATCHDOG_USEC ask for it. Otherwise every call does nothing. */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

#include "base/macros.h"
#include "io/timer.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    struct loop *loop;
    int fd; /* -1: nobody wants to know */
    struct sockaddr_un address;
    socklen_t address_bytes;
    uint64_t watchdog_ms; /* from one sign of life to the next; 0: none */
    struct timer watchdog;
    bool has_failed; /* which was logged */
};

enum notify_state {
    NOTIFY_STARTING,
    NOTIFY_READY,     /* signs of life begin */
    NOTIFY_RELOADING, /* READY follows, whatever comes of it */
    NOTIFY_STOPPING
};

/* Errors are logged, here and later: who does not hear from the process will act on that. */
void notify_init(struct notify *n, struct loop *loop);
/* Before the loop is to end: there are no signs of life any more. */
void notify_done(struct notify *n);
/* The format makes the one line of text that the manager shows. */
void notify_state(struct notify *n, enum notify_state state, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
