/* Listening sockets that whoever started the process opened and passed to it ("socket activation").
 * tcp_bind takes the one that has the address it is asked for. */
#ifndef IO_TCP_PASSED_H
#define IO_TCP_PASSED_H

#include "io/tcp.h"

#define TCP_PASSED_MOST 16

struct tcp_passed { /* zeroed: none */
    int fds[TCP_PASSED_MOST];
    unsigned count;
};

/* Takes the descriptor over, also when it fails: ERR_UNKNOWN says why it cannot be listened on. */
struct err *tcp_passed_add(struct tcp_passed *passed, int fd) MUST_USE;
/* The address of one that nobody has taken yet; false when there is none. */
bool tcp_passed_any(const struct tcp_passed *passed, struct tcp_address *out_address);
/* Closes what nobody has taken. */
void tcp_passed_done(struct tcp_passed *passed);

#endif
