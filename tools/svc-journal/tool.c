#include "tool.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct err *tool_list(struct tool *t)
{
    mem_free(t->numbers);
    t->numbers = NULL;
    t->count = 0;
    return journal_list(t->directory, t->directory_fd, &t->numbers, &t->count);
}

struct err *tool_open(struct tool *t, const char *directory)
{
    *t = (struct tool){.directory = directory};
    t->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->directory_fd < 0)
        return ERR(ERR_STORAGE_FAILURE, "%s: %s", directory, strerror(errno));
    TRY(tool_list(t));
    if (t->count == 0)
        return ERR(ERR_STORAGE_FAILURE, "%s: there is no journal", directory);
    return NULL;
}

void tool_close(struct tool *t)
{
    if (t->directory_fd >= 0)
        close(t->directory_fd);
    mem_free(t->numbers);
}

/* The walk's own context comes after the check. */
struct checked {
    struct err *(*on_record)(void *context, const struct segment_record *record);
    void *context;
};

static struct err *check_record(void *context, const struct segment_record *record)
{
    const struct checked *c = context;

    TRY(record_check(record->kind, record->body));
    return c->on_record == NULL ? NULL : c->on_record(c->context, record);
}

static struct err *walk_all(struct tool *t, struct tool_walk *w)
{
    bool is_blank = false;
    size_t gap;

    for (w->place = 0; w->place < t->count; w->place++) {
        bool is_last = w->place + 1 == t->count;
        uint64_t before = w->walk.records;

        if (w->place > 0)
            TRY(journal_check_numbers(t->directory, t->numbers + w->place - 1, 2, &gap));
        if (is_last && t->count > 1)
            TRY(journal_walk_is_blank(&w->walk, t->numbers[w->place], &is_blank));
        if (is_blank) {
            w->end = (struct journal_walk_end){0, "it is blank"};
        } else {
            TRY(journal_walk_segment(&w->walk, t->numbers[w->place], is_last, &w->end));
        }
        w->segment_records = w->walk.records - before;
        if (w->on_segment != NULL)
            w->on_segment(w);
    }
    return NULL;
}

struct err *tool_walk(struct tool *t, struct tool_walk *w)
{
    struct checked checked = {w->walk.on_record, w->walk.context};
    struct err *e;

    journal_walk_init(&w->walk, t->directory, t->directory_fd);
    w->walk.on_record = check_record;
    w->walk.context = &checked;
    e = walk_all(t, w);
    w->walk.on_record = checked.on_record;
    w->walk.context = checked.context;
    return e;
}

int tool_say(struct err *e, enum tool_status status)
{
    struct buf shown;

    if (e == NULL)
        return TOOL_GOOD;
    buf_init(&shown, BUF_NO_CAP);
    text_add_shown(&shown, err_message(e));
    fprintf(stderr, "svc-journal: %.*s\n", SPAN_FMT(buf_span(&shown)));
    buf_done(&shown);
    err_free(e);
    return status;
}
