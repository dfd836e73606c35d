/* Listening sockets that were open before the process began: passed by whoever started it ("socket
 * activation"), or kept by the program that it was before (app/anew.h). tcp_bind takes the one that
 * has the address it is asked for. */
#ifndef IO_TCP_PASSED_H
#define IO_TCP_PASSED_H

#include "io/tcp.h"

#define TCP_PASSED_MOST 32

enum tcp_passed_kind {
    TCP_PASSED_BY_OTHERS,
    TCP_PASSED_OWN,          /* of the same process, for an address that may be asked for again */
    TCP_PASSED_OWN_ANY_PORT, /* the same, of a port that the kernel chose */
    TCP_PASSED_KINDS
};

struct tcp_passed { /* zeroed: none */
    int fds[TCP_PASSED_MOST];
    uint8_t kinds[TCP_PASSED_MOST]; /* enum tcp_passed_kind */
    unsigned count;
};

/* Takes the descriptor over, also when it fails: ERR_UNKNOWN says why it cannot be listened on. */
struct err *tcp_passed_add(struct tcp_passed *passed, int fd, enum tcp_passed_kind kind) MUST_USE;
/* Adds copies of the listener's sockets: who connects waits in their queue, also when the listener
 * is closed, which then leaves the file of a UNIX socket. ERR_UNKNOWN: no more are taken. */
struct err *tcp_passed_keep(struct tcp_passed *passed, struct tcp_listener *listener) MUST_USE;
bool tcp_passed_has(const struct tcp_passed *passed, enum tcp_passed_kind kind);
/* Those of our own that nobody has taken go. */
void tcp_passed_close_own(struct tcp_passed *passed);
/* The address of one that nobody has taken yet; false when there is none. */
bool tcp_passed_any(const struct tcp_passed *passed, struct tcp_address *out_address);
/* Closes what nobody has taken. */
void tcp_passed_done(struct tcp_passed *passed);

#endif
