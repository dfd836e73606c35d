/* Names and the lock. The lock is on a file of its own, which holds the owner's process id for the
 * message to whoever comes second. */
#include "journal_private.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The last write of a killed server, in the helper process, still holds the lock. */
#define LOCK_TRIES 50
#define LOCK_PAUSE_NS 10000000

const char *journal_path(const struct journal *j, const char *name, struct buf *b)
{
    buf_clear(b);
    buf_printf(b, "%s/%s", j->directory, name);
    return buf_text(b);
}

/* Makes the name of a new directory durable. 0 or an errno. */
static int sync_parent(const struct journal *j)
{
    int fd = openat(j->directory_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    return error;
}

static struct err *open_directory(struct journal *j)
{
    bool made = mkdir(j->directory, 0700) == 0;
    int error = made || errno == EEXIST ? 0 : errno;

    if (error == 0) {
        j->directory_fd = open(j->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = j->directory_fd < 0 ? errno : 0;
    }
    if (error == 0 && made)
        error = sync_parent(j);
    if (error != 0)
        return ERR(ERR_STORAGE_FAILURE, "journal directory %s: %s", j->directory, strerror(error));
    return NULL;
}

static struct err *in_use(const struct journal *j)
{
    char owner[24] = "";
    ssize_t n = pread(j->lock_fd, owner, sizeof(owner) - 1, 0);

    owner[n < 0 ? 0 : strcspn(owner, "\n")] = '\0';
    return ERR(ERR_STORAGE_FAILURE, "the journal directory %s is in use by another process%s%s",
               j->directory, owner[0] == '\0' ? "" : ", number ", owner);
}

static struct err *lock(struct journal *j)
{
    char owner[24];
    int tries = LOCK_TRIES;

    j->lock_fd = openat(j->directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->lock_fd < 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot open %s/lock: %s", j->directory, strerror(errno));
    while (flock(j->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return ERR(ERR_STORAGE_FAILURE, "cannot lock %s/lock: %s", j->directory,
                       strerror(errno));
        if (--tries == 0)
            return in_use(j);
        nanosleep(&(struct timespec){0, LOCK_PAUSE_NS}, NULL);
    }
    /* Only for the message: whether it succeeds does not matter. */
    snprintf(owner, sizeof(owner), "%d\n", (int)getpid());
    if (ftruncate(j->lock_fd, 0) != 0 || pwrite(j->lock_fd, owner, strlen(owner), 0) < 0)
        log_debug("journal", "cannot write %s/lock: %s", j->directory, strerror(errno));
    return NULL;
}

struct err *journal_directory_open(struct journal *j)
{
    TRY(open_directory(j));
    return lock(j);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* A directory stream of its own: readdir moves the position of its descriptor. */
static DIR *list_names(const struct journal *j)
{
    int fd = openat(j->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);

    if (names == NULL && fd >= 0)
        close(fd);
    return names;
}

static bool is_prepared(struct span name)
{
    return span_starts(name, SPAN("journal-")) && span_ends(name, SPAN(".tmp"));
}

struct err *journal_directory_list(struct journal *j, uint64_t **out_numbers, size_t *out_count)
{
    DIR *names = list_names(j);
    uint64_t *numbers = NULL;
    size_t count = 0, size = 0;
    const struct dirent *entry;

    if (names == NULL)
        return ERR(ERR_STORAGE_FAILURE, "cannot read the directory %s: %s", j->directory,
                   strerror(errno));
    while ((entry = readdir(names)) != NULL) {
        uint64_t number;

        if (is_prepared(span_str(entry->d_name)))
            journal_unlink(j, entry->d_name);
        if (!segment_number_of(span_str(entry->d_name), &number))
            continue;
        if (count == size) {
            size = MAX(16, 2 * size);
            numbers = mem_resize(numbers, size * sizeof(*numbers));
        }
        numbers[count++] = number;
    }
    closedir(names);
    if (count > 0)
        qsort(numbers, count, sizeof(*numbers), compare_numbers);
    *out_numbers = numbers;
    *out_count = count;
    return NULL;
}

int journal_rename(struct journal *j, const char *from, const char *to)
{
    if (fault_hit("disk.rename"))
        return EIO;
    return renameat(j->directory_fd, from, j->directory_fd, to) == 0 ? 0 : errno;
}

int journal_unlink(struct journal *j, const char *name)
{
    if (fault_hit("disk.unlink"))
        return EIO;
    return unlinkat(j->directory_fd, name, 0) == 0 ? 0 : errno;
}
