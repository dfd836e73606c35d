/* The journal's directory: made, opened, locked and tidied. */
#include "journal_private.h"

#include "io/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

    journal_close_file(&fd);
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

/* Whoever may write here may put another journal in this one's place. A group may have been given
 * the directory for this server to be in it. */
static struct err *check_owner(const struct journal *j)
{
    struct stat status;

    if (fstat(j->directory_fd, &status) != 0)
        return ERR(ERR_STORAGE_FAILURE, "journal directory %s: %s", j->directory, strerror(errno));
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return ERR(
            ERR_STORAGE_FAILURE,
            "journal directory %s: it belongs to user %u, neither to root nor to this server",
            j->directory, (unsigned)status.st_uid);
    if ((status.st_mode & S_IWOTH) != 0)
        return ERR(
            ERR_STORAGE_FAILURE,
            "journal directory %s: everybody may write there: its mode is %04o: chmod o-w %s",
            j->directory, (unsigned)status.st_mode & 07777, j->directory);
    return NULL;
}

struct err *journal_directory_open(struct journal *j)
{
    TRY(open_directory(j));
    TRY(check_owner(j));
    return journal_lock(j->directory, j->directory_fd, &j->lock_fd);
}

static bool is_prepared(struct span name)
{
    return span_starts(name, SPAN("journal-")) && span_ends(name, SPAN(".tmp"));
}

struct err *journal_directory_tidy(struct journal *j)
{
    DIR *names = journal_names(j->directory_fd);
    const struct dirent *entry;

    if (names == NULL)
        return ERR(ERR_STORAGE_FAILURE, "cannot read the directory %s: %s", j->directory,
                   strerror(errno));
    while ((entry = readdir(names)) != NULL)
        if (is_prepared(span_str(entry->d_name)))
            journal_unlink(j, entry->d_name);
    closedir(names);
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
