#include "wire.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void wire_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void set(int fd, int level, int option)
{
    if (setsockopt(fd, level, option, &(int){1}, sizeof(int)) != 0)
        wire_fail("setsockopt");
}

int wire_listen(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0)
        wire_fail("socket");
    set(fd, SOL_SOCKET, SO_REUSEADDR);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 4096) != 0)
        wire_fail("listen");
    return fd;
}

int wire_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

    if (fd >= 0)
        set(fd, IPPROTO_TCP, TCP_NODELAY);
    return fd;
}

int wire_connect(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        wire_fail("connect");
    set(fd, IPPROTO_TCP, TCP_NODELAY);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        wire_fail("fcntl");
    return fd;
}

void wire_watch(int epoll, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        wire_fail("epoll_ctl");
}

void wire_send(int fd, struct span bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            wire_fail("send");
        bytes = span_sub(bytes, n > 0 ? (size_t)n : 0, bytes.n);
    }
}

size_t wire_message(struct span bytes)
{
    const char *end = memmem(bytes.p, bytes.n, "\r\n\r\n", 4);
    struct span head, rest;
    uint64_t length = 0;

    if (end == NULL)
        return 0;
    head = span_sub(bytes, 0, (size_t)(end - bytes.p) + 4);
    rest = head;
    while (rest.p != NULL) {
        struct span value = span_split(&rest, '\n');

        if (span_ieq(span_split(&value, ':'), SPAN("content-length")))
            span_to_u64(span_trim(span_split(&value, '\r')), &length);
    }
    return head.n + length <= bytes.n ? head.n + length : 0;
}

struct wire_stamps *wire_stamps(const char *path, size_t slots)
{
    size_t bytes = sizeof(struct wire_stamps) + slots * sizeof(uint64_t);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *p;

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        wire_fail(path);
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        wire_fail("mmap");
    close(fd);
    return p;
}

struct span wire_read_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *p;

    if (fd < 0 || fstat(fd, &status) != 0)
        wire_fail(path);
    p = mem_alloc((size_t)status.st_size);
    if (read(fd, p, (size_t)status.st_size) != status.st_size)
        wire_fail(path);
    close(fd);
    return span_of(p, (size_t)status.st_size);
}

uint64_t wire_number(const char *text, uint64_t max)
{
    uint64_t value;

    if (span_to_u64(span_str(text), &value) && value <= max)
        return value;
    fprintf(stderr, "'%s' is not a number up to %llu\n", text, (unsigned long long)max);
    exit(EXIT_FAILURE);
}
