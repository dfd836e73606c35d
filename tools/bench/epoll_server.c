/* The peer without a parser: an epoll loop that answers whatever one read brings with the bytes of
 * a file. What a server on this kernel cannot do better than.
 *
 *     bench_epoll_server PORT FILE */
#include "wire.h"

#include "base/mem.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, READ_BYTES = 65536 };

static void accept_all(int epoll, int listener)
{
    int fd;

    while ((fd = wire_accept(listener)) >= 0) {
        int *connection = mem_alloc(sizeof(*connection));

        *connection = fd;
        wire_watch(epoll, fd, EPOLLIN, connection);
    }
}

static void answer(int *connection, struct span bytes)
{
    static char request[READ_BYTES];

    if (recv(*connection, request, sizeof(request), 0) > 0) {
        wire_send(*connection, bytes);
        return;
    }
    close(*connection);
    mem_free(connection);
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(0), listener;
    struct span bytes;

    if (argc != 3)
        return EXIT_FAILURE;
    listener = wire_listen((uint16_t)wire_number(argv[1], UINT16_MAX));
    bytes = wire_read_file(argv[2]);
    wire_watch(epoll, listener, EPOLLIN, NULL);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_all(epoll, listener);
            else
                answer(events[i].data.ptr, bytes);
        }
    }
}
