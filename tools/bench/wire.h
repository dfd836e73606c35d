/* What the programs of the benchmark share: sockets on 127.0.0.1, whole HTTP/1.1 messages, and
 * files that two processes look at. Nothing here recovers: what fails ends the program with a
 * message. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "base/span.h"

enum { WIRE_SERIAL_DIGITS = 10 };

/* One number a message: when it was seen, by the monotonic clock; 0: not seen. */
struct wire_stamps {
    uint64_t messages;
    uint64_t connections;
    uint64_t at_ns[];
};

_Noreturn void wire_fail(const char *what);
/* Without Nagle's delay, not blocking. */
int wire_listen(uint16_t port);
/* -1: nobody is waiting. */
int wire_accept(int listener);
int wire_connect(uint16_t port);
void wire_watch(int epoll, int fd, uint32_t events, void *data);
/* All of it; on a socket that does not block but has room. */
void wire_send(int fd, struct span bytes);
/* Bytes of the first message, its head with the blank line and its body by Content-Length; 0: it is
 * not whole yet. */
size_t wire_message(struct span bytes);
/* A file of stamps with so many slots, zeroed, mapped for all who open it. */
struct wire_stamps *wire_stamps(const char *path, size_t slots);
struct span wire_read_file(const char *path);
/* An argument that must be a whole number up to a maximum. */
uint64_t wire_number(const char *text, uint64_t max);

#endif
