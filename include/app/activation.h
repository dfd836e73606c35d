/* What a service manager hands to the process it starts: sockets (sd_listen_fds(3)). */
#ifndef APP_ACTIVATION_H
#define APP_ACTIVATION_H

#include "io/tcp_passed.h"

enum { ACTIVATION_FIRST_FD = 3 }; /* SD_LISTEN_FDS_START */

/* Takes over the sockets that LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES tell of, once: the
 * variables are removed. None when they are meant for another process. On ERR_UNKNOWN the message
 * names the socket, and *out_passed still has to be given up. */
struct err *activation_take(struct tcp_passed *out_passed) MUST_USE;
/* What LISTEN_FDNAMES calls a socket that this program passes to itself; any other name is of one
 * that was passed by others. */
const char *activation_name(enum tcp_passed_kind kind);

#endif
