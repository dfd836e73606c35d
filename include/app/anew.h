/* Starting anew: the program is executed in the place of the running one, in the same process, with
 * the same arguments and environment. Listening sockets stay open: whoever connects meanwhile waits
 * in their queues. For a program that was upgraded, and for a state that is to be forgotten. */
#ifndef APP_ANEW_H
#define APP_ANEW_H

#include "io/tcp_passed.h"

#include <limits.h>

struct anew {
    char **argv;
    char program[PATH_MAX]; /* empty: not known */
};

/* At the start, as main was called. argv is borrowed. */
void anew_init(struct anew *a, char **argv);
/* What asks for the attention of a running server is ignored until the next one attends to it:
 * once signals are not handled any more. */
void anew_ignore_signals(void);
/* Does not return: the sockets are passed on as a service manager's are (app/activation.h), and all
 * other descriptors but the first three are closed. What the new program finds at the path of this
 * one is executed, which may be another version; this one, when there is none. Everything that
 * outlasts a process is to be closed before. ERR_UNKNOWN: it could not be executed; descriptors are
 * not what they were. */
struct err *anew_exec(const struct anew *a, const struct tcp_passed *sockets) MUST_USE;

#endif
