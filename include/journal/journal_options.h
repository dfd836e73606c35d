/* What a journal is opened with. */
#ifndef JOURNAL_JOURNAL_OPTIONS_H
#define JOURNAL_JOURNAL_OPTIONS_H

#include "io/disk.h"

#define JOURNAL_FSYNC_POLICIES(X)                                                                  \
    X(JOURNAL_ALWAYS, "always")     /* committed = on stable storage */                            \
    X(JOURNAL_EVERYSEC, "everysec") /* committed = written; on stable storage within a second */   \
    X(JOURNAL_NO, "no")             /* committed = written; the kernel decides */

enum journal_fsync { JOURNAL_FSYNC_POLICIES(AS_SYMBOL) };

/* Size of a segment file when the options do not say. */
#define JOURNAL_SEGMENT_BYTES 16777216

struct journal_options {
    const char *directory; /* made, mode 0700, when it does not exist */
    enum journal_fsync fsync;
    enum disk_engine engine;
    uint64_t segment_bytes; /* multiple of 4096, at least 64 KiB; 0: JOURNAL_SEGMENT_BYTES */
};

#endif
