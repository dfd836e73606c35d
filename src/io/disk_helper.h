/* What the two sides of the helper engine say to each other: fixed messages over a SOCK_SEQPACKET
 * socketpair. */
#ifndef IO_DISK_HELPER_H
#define IO_DISK_HELPER_H

#include <stdint.h>

#define HELPER_FILES_MAX 16

enum helper_what {
    HELPER_OPEN,  /* the file's descriptor comes with the message; not answered */
    HELPER_CLOSE, /* not answered */
    HELPER_WRITE,
    HELPER_WRITE_DURABLE,
    HELPER_SYNC,
    HELPER_SYNC_DIRECTORY
};

struct helper_request {
    uint64_t job; /* comes back in the answer */
    uint32_t what;
    uint32_t slot;   /* which file */
    uint64_t memory; /* offset of the bytes in the shared memory */
    uint64_t bytes;
    uint64_t offset; /* in the file */
};

struct helper_answer {
    uint64_t job;
    int64_t result; /* bytes written, or a negative errno */
};

/* The helper's whole life, in the forked process. `lock` may be -1. */
_Noreturn void disk_helper_run(int socket, int memory, int lock);

#endif
