/* What a service manager hands to the process it starts: sockets (sd_listen_fds(3)). */
#ifndef APP_ACTIVATION_H
#define APP_ACTIVATION_H

#include "io/tcp_passed.h"

/* Takes over the sockets that LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES tell of, once: the
 * variables are removed. None when they are meant for another process. On ERR_UNKNOWN the message
 * names the socket, and *out_passed still has to be given up. */
struct err *activation_take(struct tcp_passed *out_passed) MUST_USE;

#endif
