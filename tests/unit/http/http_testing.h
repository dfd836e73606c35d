/* What the tests of connections share: a server on a port of the loopback address over a whole
 * service, and its clients, which are plain sockets of this process. The clock stands still, so
 * that time limits pass when a test says so; the disk may be held, so that nothing is committed.
 *
 * Every connection that the server closes must be expected, with its reason (peer_expect_closed).
 */
#ifndef HTTP_TESTING_H
#define HTTP_TESTING_H

#include "http/server.h"
#include "serving.h"

extern struct http_server *server; /* NULL: the test has closed it */
extern uint16_t server_port;

/* The service, open but not started, and the server, which listens. What the store says is
 * committed. */
void serve(void);
/* The same for clients that send a PROXY header first. */
void serve_proxied(const struct ip_ranges *trusted);
/* Closes the clients and the server, which must have seen no end but those expected. */
void end_serving(void);
/* Of the service; may be changed before the first request. */
struct limits *limits(void);
const struct metrics *metrics(void);
/* Of Shop.Message, stored. */
size_t count_messages(void);
/* Those that requests wait for. */
size_t count_scans(void);

/* Runs the loop until something holds, which must come about without the test. */
#define await(condition)                                                                           \
    do                                                                                             \
        while (!(condition))                                                                       \
            loop_run_once(&loop);                                                                  \
    while (0)
/* Runs turns that wait for nothing, until what was sent must have been read and answered, but for
 * what takes the disk. */
void settle(void);
/* This time passes, and then all that has to happen. */
void pass_ms(uint64_t ms);

/* From here on nothing is written: answers that show a change wait. */
void hold_disk(void);
void release_disk(void);

/* A client. `got` is what has come, of which `taken` bytes were taken as answers. */
struct peer {
    int fd; /* -1: closed */
    uv_poll_t poll;
    struct buf got;
    size_t taken;
    bool is_ended; /* the server sends no more */
    bool is_reset;
};

/* Connected to the server, or to another port; closed and freed by end_serving at the latest. */
struct peer *peer_open(void);
struct peer *peer_open_at(uint16_t port);
/* Somebody else has made a connection to the server. */
void expect_another_connection(void);
/* False when the server is not there. */
bool peer_may_connect(uint16_t port);
void peer_close(struct peer *p);
/* So that the server sees a reset. */
void peer_reset(struct peer *p);
/* Sends no more, but still reads. */
void peer_finish(struct peer *p);
/* The kernel takes all of it. */
void peer_send(struct peer *p, const char *text);
void peer_send_bytes(struct peer *p, struct span bytes);
/* What the kernel takes of it. */
size_t peer_try_to_send(struct peer *p, struct span bytes);
/* In pieces of so many bytes, each read by the server before the next is sent. */
void peer_send_pieces(struct peer *p, struct span bytes, size_t piece);
/* Reads what has come. */
void peer_read(struct peer *p);
/* What has come and was not taken as an answer. */
struct span peer_got(const struct peer *p);

struct answer {
    int status;
    struct span head, body; /* in the arena */
};

/* The next answer, once it is there whole. An interim answer counts as one. */
struct answer peer_answer(struct peer *p);
/* The same of a HEAD. */
struct answer peer_answer_to_head(struct peer *p);
/* The value of a field, or the absent span. */
struct span answer_field(const struct answer *a, struct span name);
/* The next answer has this status. */
void peer_expect(struct peer *p, int status);
/* Nothing has come, and the connection is open. */
void peer_expect_silence(struct peer *p);
/* The server ends the connection for this reason, without another byte. Closes it. */
void peer_expect_closed(struct peer *p, enum tcp_close_reason reason);
/* The same of several. */
void peers_expect_closed(struct peer **all, size_t count, enum tcp_close_reason reason);
/* The client has closed it already; the server has noted this reason. */
void expect_gone(enum tcp_close_reason reason);

#endif
