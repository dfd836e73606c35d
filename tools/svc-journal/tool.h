/* What the commands of svc-journal share. */
#ifndef SVC_JOURNAL_TOOL_H
#define SVC_JOURNAL_TOOL_H

#include "journal/journal_files.h"

enum tool_status { TOOL_GOOD = 0, TOOL_DAMAGED = 1, TOOL_FAILED = 2 };

/* A journal's directory, opened, with its segments. */
struct tool {
    const char *directory;
    int directory_fd;
    uint64_t *numbers;
    size_t count;
};

/* Lists the segments. Call tool_close, also after an error. */
struct err *tool_open(struct tool *t, const char *directory) MUST_USE;
void tool_close(struct tool *t);
/* Lists them anew. */
struct err *tool_list(struct tool *t) MUST_USE;

/* A walk over all segments, from the first; what on_segment wants of it is called after each. */
struct tool_walk {
    struct journal_walk walk;
    size_t place;             /* of the segment walked last, or of the one that an error is about */
    uint64_t segment_records; /* of it */
    struct journal_walk_end end;
    void (*on_segment)(const struct tool_walk *w);
};
/* Checks that every record makes sense, then calls w->walk.on_record. */
struct err *tool_walk(struct tool *t, struct tool_walk *w) MUST_USE;

/* Says what went wrong and frees it; returns the status. */
int tool_say(struct err *e, enum tool_status status);

/* A directory, or a backup file. */
int tool_verify(const char *name);
struct dump_options {
    uint64_t from;    /* serial */
    const char *kind; /* NULL: all */
};
int tool_dump(const char *directory, const struct dump_options *options);
int tool_repair(const char *directory, bool cut);
/* Of a backup file: whether it is whole. */
int tool_verify_file(const char *file);
int tool_restore(const char *file, const char *target);
int tool_backup(const char *directory, const char *target);

#endif
