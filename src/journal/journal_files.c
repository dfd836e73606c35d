/* Names and the lock. The lock is on a file of its own, which holds the owner's process id for the
 * message to whoever comes second. */
#include "journal/journal_files.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* The last write of a killed server, in the helper process, still holds the lock. */
#define LOCK_TRIES 50
#define LOCK_PAUSE_NS 10000000

void journal_close_file(int *fd)
{
    int error = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = error;
}

static struct err *in_use(const char *directory, int fd)
{
    char owner[24] = "";
    ssize_t n = pread(fd, owner, sizeof(owner) - 1, 0);

    owner[n < 0 ? 0 : strcspn(owner, "\n")] = '\0';
    return ERR(ERR_STORAGE_FAILURE, "the journal directory %s is in use by another process%s%s",
               directory, owner[0] == '\0' ? "" : ", number ", owner);
}

static struct err *lock(const char *directory, int fd)
{
    int tries = LOCK_TRIES;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return ERR(ERR_STORAGE_FAILURE, "cannot lock %s/lock: %s", directory, strerror(errno));
        if (--tries == 0)
            return in_use(directory, fd);
        nanosleep(&(struct timespec){0, LOCK_PAUSE_NS}, NULL);
    }
    return NULL;
}

/* Only for the message: whether it succeeds does not matter. */
static void write_owner(const char *directory, int fd)
{
    char owner[24];

    snprintf(owner, sizeof(owner), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, owner, strlen(owner), 0) < 0)
        log_debug("journal", "cannot write %s/lock: %s", directory, strerror(errno));
}

struct err *journal_lock(const char *directory, int directory_fd, int *out_lock_fd)
{
    int fd = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct err *e;

    if (fd < 0)
        return ERR(ERR_STORAGE_FAILURE, "cannot open %s/lock: %s", directory, strerror(errno));
    e = lock(directory, fd);
    if (e != NULL) {
        close(fd);
        return e;
    }
    write_owner(directory, fd);
    *out_lock_fd = fd;
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

DIR *journal_names(int directory_fd)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);

    if (names == NULL && fd >= 0)
        close(fd);
    return names;
}

struct err *journal_list(const char *directory, int directory_fd, uint64_t **out_numbers,
                         size_t *out_count)
{
    DIR *names = journal_names(directory_fd);
    uint64_t *numbers = NULL, number;
    size_t count = 0, size = 0;
    const struct dirent *entry;

    if (names == NULL)
        return ERR(ERR_STORAGE_FAILURE, "cannot read the directory %s: %s", directory,
                   strerror(errno));
    while ((entry = readdir(names)) != NULL) {
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

struct err *journal_check_numbers(const char *directory, const uint64_t *numbers, size_t count,
                                  size_t *out_place)
{
    char name[JOURNAL_NAME_BYTES];

    *out_place = count;
    if (count > 0 && numbers[count - 1] > UINT32_MAX)
        return ERR(ERR_STORAGE_FAILURE,
                   "%s: a segment has the number %" PRIu64 ", which is too high", directory,
                   numbers[count - 1]);
    for (size_t i = 1; i < count; i++) {
        if (numbers[i] == numbers[i - 1] + 1)
            continue;
        *out_place = i;
        segment_file_name(numbers[i - 1] + 1, name);
        return ERR(ERR_STORAGE_FAILURE,
                   "%s/%s is missing, though there are segments before and after it; restore a "
                   "backup, or see `svc-journal repair %s`",
                   directory, name, directory);
    }
    return NULL;
}
