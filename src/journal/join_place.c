/* From a whole copy to the journal: see the drawing in the header. Each step is durable before the
 * next one begins, and looks at what there is: so it does not matter which ones a killed process
 * had done. */
#include "join_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/fault.h"
#include "journal/cluster_file.h"
#include "journal/journal_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHECKED "replacing"
#define MOVING "replaced"

/* A data directory, or a copy in it. */
struct place {
    const char *path;
    int fd;
};

static struct err *failed(const char *directory, const char *name)
{
    return ERR(ERR_STORAGE_FAILURE, "%s/%s: %s", directory, name, strerror(errno));
}

/* Where a test may stop the process. */
static struct err *pass(const struct place *in, const char *name)
{
    if (!fault_hit("join.step"))
        return NULL;
    errno = EIO;
    return failed(in->path, name);
}

static struct err *sync_directory(const struct place *in)
{
    TRY(pass(in, "."));
    return fsync(in->fd) == 0 ? NULL : failed(in->path, ".");
}

static struct err *move(const struct place *from, const char *name, const struct place *to,
                        const char *new_name)
{
    TRY(pass(from, name));
    return renameat(from->fd, name, to->fd, new_name) == 0 ? NULL : failed(from->path, name);
}

static struct err *delete_file(const struct place *in, const char *name)
{
    TRY(pass(in, name));
    return unlinkat(in->fd, name, 0) == 0 || errno == ENOENT ? NULL : failed(in->path, name);
}

/* The directory below; fd -1: it is not there. */
static struct err *open_below(const struct place *in, const char *name, struct place *out)
{
    *out = (struct place){name, openat(in->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    return out->fd >= 0 || errno == ENOENT ? NULL : failed(in->path, name);
}

/* Names. ------------------------------------------------------------------------------------ */

static bool is_own(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Of a journal: its segments, and those that were prepared. */
static bool is_of_journal(const char *name)
{
    uint64_t number;

    return segment_number_of(span_str(name), &number) ||
           (span_starts(span_str(name), SPAN("journal-")) &&
            span_ends(span_str(name), SPAN(".tmp")));
}

/* The first name of such; *out_name is to be freed, NULL: there is none. Names that are taken away
 * one by one are looked for anew each time, as what a stream yields of others then is open. */
static struct err *find(const struct place *in, bool (*is_such)(const char *name), char **out_name)
{
    DIR *names = journal_names(in->fd);
    const struct dirent *entry;

    *out_name = NULL;
    if (names == NULL)
        return failed(in->path, ".");
    while (*out_name == NULL && (entry = readdir(names)) != NULL)
        if (is_such(entry->d_name))
            *out_name = mem_string(span_str(entry->d_name));
    closedir(names);
    return NULL;
}

/* All such are moved; deleted, when `to` is NULL. */
static struct err *move_all(const struct place *from, bool (*is_such)(const char *name),
                            const struct place *to)
{
    struct err *e = NULL;
    char *name;

    do {
        TRY(find(from, is_such, &name));
        if (name != NULL)
            e = to == NULL ? delete_file(from, name) : move(from, name, to, name);
        mem_free(name);
    } while (name != NULL && e == NULL);
    return e;
}

static struct err *remove_directory(const struct place *in, const char *name)
{
    TRY(pass(in, name));
    return unlinkat(in->fd, name, AT_REMOVEDIR) == 0 ? NULL : failed(in->path, name);
}

static struct err *delete_below(const struct place *in, const char *name)
{
    struct place below;
    struct err *e;

    TRY(open_below(in, name, &below));
    if (below.fd < 0)
        return NULL;
    e = move_all(&below, is_own, NULL);
    close(below.fd);
    TRY(e);
    TRY(remove_directory(in, name));
    return sync_directory(in);
}

/* Is it a journal? ------------------------------------------------------------------------- */

static struct err *walk_all(struct journal_walk *w, const uint64_t *numbers, size_t count)
{
    struct journal_walk_end end;
    size_t gap;

    TRY(journal_check_numbers(w->directory, numbers, count, &gap));
    for (size_t i = 0; i < count; i++)
        TRY(journal_walk_segment(w, numbers[i], i + 1 == count, &end));
    return NULL;
}

/* As recovery will read it: what another node's disk has damaged is not to take the place of a
 * journal that can be read. */
static struct err *check(const struct place *copy)
{
    struct journal_walk walk;
    uint64_t *numbers;
    size_t count;
    struct err *e;

    TRY(journal_list(copy->path, copy->fd, &numbers, &count));
    journal_walk_init(&walk, copy->path, copy->fd);
    e = walk_all(&walk, numbers, count);
    journal_walk_done(&walk);
    mem_free(numbers);
    return e;
}

/* The steps. ------------------------------------------------------------------------------- */

static struct err *rename_durably(const struct place *in, const char *from, const char *to)
{
    TRY(move(in, from, in, to));
    return sync_directory(in);
}

static struct err *refuse(const struct place *in, struct err *why, bool *out_refused)
{
    log_error("join", "the copy of another node's journal cannot be read, and is deleted: %.*s",
              SPAN_FMT(err_message(why)));
    err_free(why);
    *out_refused = true;
    return delete_below(in, JOIN_WHOLE);
}

static struct err *check_copy(const struct place *in, bool *out_refused)
{
    struct place copy;
    struct err *e;

    TRY(open_below(in, JOIN_WHOLE, &copy));
    if (copy.fd < 0)
        return NULL;
    e = check(&copy);
    close(copy.fd);
    return e == NULL ? rename_durably(in, JOIN_WHOLE, CHECKED) : refuse(in, e, out_refused);
}

static struct err *delete_journal(const struct place *in)
{
    if (faccessat(in->fd, CHECKED, F_OK, 0) != 0)
        return errno == ENOENT ? NULL : failed(in->path, CHECKED);
    TRY(move_all(in, is_of_journal, NULL));
    TRY(sync_directory(in));
    return rename_durably(in, CHECKED, MOVING);
}

static struct err *move_copy(const struct place *in)
{
    struct place copy;
    struct err *e;

    TRY(open_below(in, MOVING, &copy));
    if (copy.fd < 0)
        return NULL;
    e = move_all(&copy, is_own, in);
    close(copy.fd);
    TRY(e);
    TRY(sync_directory(in));
    TRY(remove_directory(in, MOVING));
    TRY(sync_directory(in));
    log_info("join", "the copy of another node's journal has taken the journal's place");
    return NULL;
}

/* The oldest first: each may have been the last one that a killed process began. */
static struct err *settle(const struct place *in, bool *out_refused)
{
    TRY(move_copy(in));
    TRY(delete_journal(in));
    TRY(move_copy(in));
    TRY(check_copy(in, out_refused));
    TRY(delete_journal(in));
    TRY(move_copy(in));
    return delete_below(in, JOIN_COMING);
}

static bool has_any(const struct place *in)
{
    static const char *const names[] = {JOIN_COMING, JOIN_WHOLE, CHECKED, MOVING};
    bool has = false;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        has = has || faccessat(in->fd, names[i], F_OK, 0) == 0;
    return has;
}

/* Another server may be at work here. */
static struct err *settle_locked(const struct place *in, bool *out_refused)
{
    struct err *e;
    int lock;

    TRY(journal_lock(in->path, in->fd, &lock));
    e = settle(in, out_refused);
    close(lock);
    return e;
}

struct err *join_settle(const char *directory, bool *out_refused)
{
    struct place in = {directory, open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct err *e = NULL;

    *out_refused = false;
    if (in.fd < 0)
        return NULL; /* journal_open makes it, or says what is wrong */
    if (has_any(&in))
        e = settle_locked(&in, out_refused);
    close(in.fd);
    return e;
}

/* While the server runs. ------------------------------------------------------------------- */

static struct err *open_place(const char *directory, struct place *out)
{
    *out = (struct place){directory, open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    return out->fd >= 0 ? NULL : failed(directory, ".");
}

static struct err *clear_step(const struct place *in, bool *out_gone)
{
    struct place coming;
    char *name;
    struct err *e;

    TRY(open_below(in, JOIN_COMING, &coming));
    *out_gone = coming.fd < 0;
    if (*out_gone)
        return NULL;
    e = find(&coming, is_own, &name);
    if (e == NULL && name != NULL)
        e = delete_file(&coming, name);
    else if (e == NULL)
        e = remove_directory(in, JOIN_COMING);
    close(coming.fd);
    mem_free(name);
    return e;
}

struct err *join_clear_step(const char *directory, bool *out_gone)
{
    struct place in;
    struct err *e;

    TRY(open_place(directory, &in));
    e = clear_step(&in, out_gone);
    close(in.fd);
    return e;
}

struct err *join_seal(const char *directory, const struct uuid *cluster)
{
    struct place in;
    struct buf path = {.max = BUF_NO_CAP};
    struct err *e;

    TRY(open_place(directory, &in));
    buf_printf(&path, "%s/%s", directory, JOIN_COMING);
    e = cluster_file_write(buf_text(&path), cluster);
    buf_done(&path);
    if (e == NULL)
        e = rename_durably(&in, JOIN_COMING, JOIN_WHOLE);
    close(in.fd);
    return e;
}
