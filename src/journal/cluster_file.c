/* Written under another name first, which is made the file's own once the bytes are on stable
 * storage: so there is always a whole file, or none. */
#include "journal/cluster_file.h"

#include "base/span.h"
#include "io/fault.h"
#include "journal/journal_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = UUID_TEXT_BYTES + 1 };

static const char beside[] = CLUSTER_FILE_NAME ".tmp";

static struct err *failed(const char *directory, int error)
{
    return ERR(ERR_STORAGE_FAILURE, "%s/%s: %s", directory, CLUSTER_FILE_NAME, strerror(error));
}

static struct err *parse(const char *directory, struct span bytes, struct uuid *out_id)
{
    if (bytes.n == FILE_BYTES && bytes.p[FILE_BYTES - 1] == '\n' &&
        uuid_parse_own(span_sub(bytes, 0, UUID_TEXT_BYTES), out_id))
        return NULL;
    return ERR(ERR_STORAGE_FAILURE,
               "%s/%s: it is damaged: it should hold the UUID of the cluster that the journal "
               "belongs to, and a line feed",
               directory, CLUSTER_FILE_NAME);
}

/* One byte more than it has, so that a longer one is none. */
static struct err *read_file(const char *directory, int fd, struct uuid *out_id)
{
    char bytes[FILE_BYTES + 1];
    ssize_t n = fault_hit("cluster.read") ? -1 : read(fd, bytes, sizeof(bytes));

    return n < 0 ? failed(directory, errno != 0 ? errno : EIO)
                 : parse(directory, span_of(bytes, (size_t)n), out_id);
}

struct err *cluster_file_read(const char *directory, struct uuid *out_id, bool *out_found)
{
    int directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = directory_fd < 0 ? -1 : openat(directory_fd, CLUSTER_FILE_NAME, O_RDONLY | O_CLOEXEC);
    int error = errno;
    struct err *e = NULL;

    journal_close_file(&directory_fd);
    *out_found = fd >= 0;
    errno = 0;
    if (fd >= 0)
        e = read_file(directory, fd, out_id);
    else if (error != ENOENT)
        e = failed(directory, error);
    journal_close_file(&fd);
    return e;
}

/* False with errno. */
static bool write_whole(int fd, struct span bytes)
{
    ssize_t n = fault_hit("cluster.write") ? -1 : write(fd, bytes.p, bytes.n);

    if (n >= 0 && (size_t)n < bytes.n)
        errno = ENOSPC;
    return n == (ssize_t)bytes.n;
}

static bool put(int directory_fd, struct span bytes)
{
    int fd = openat(directory_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_whole = fd >= 0 && write_whole(fd, bytes) && fsync(fd) == 0;

    journal_close_file(&fd);
    return is_whole && !fault_hit("cluster.rename") &&
           renameat(directory_fd, beside, directory_fd, CLUSTER_FILE_NAME) == 0 &&
           fsync(directory_fd) == 0;
}

struct err *cluster_file_write(const char *directory, const struct uuid *id)
{
    int directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char text[UUID_TEXT_BYTES + 2];
    struct err *e = NULL;

    uuid_text(id, text);
    text[UUID_TEXT_BYTES] = '\n';
    errno = EIO;
    if (directory_fd < 0 || !put(directory_fd, span_of(text, FILE_BYTES)))
        e = failed(directory, errno);
    journal_close_file(&directory_fd);
    return e;
}
