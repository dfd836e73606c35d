/* Two levels are there at most: a data directory, and a copy of another's journal in it. */
#include "directories.h"

#include "base/must.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat status;

    MUST(in >= 0 && out >= 0 && fstat(in, &status) == 0);
    while (status.st_size > 0) {
        ssize_t n = sendfile(out, in, NULL, (size_t)status.st_size);

        MUST(n > 0);
        status.st_size -= n;
    }
    close(in);
    close(out);
}

static bool is_own(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void join(char path[PATH_BYTES], const char *directory, const char *name)
{
    MUST(snprintf(path, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES);
}

void directory_copy(const char *from, const char *to)
{
    DIR *d = opendir(from);
    const struct dirent *entry;

    MUST(d != NULL && mkdir(to, 0700) == 0);
    while ((entry = readdir(d)) != NULL) {
        char source[PATH_BYTES], target[PATH_BYTES];

        if (!is_own(entry->d_name))
            continue;
        join(source, from, entry->d_name);
        join(target, to, entry->d_name);
        if (entry->d_type == DT_DIR)
            directory_copy(source, target);
        else
            copy_file(source, target);
    }
    closedir(d);
}

void directory_remove(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *entry;

    if (d == NULL && errno == ENOENT)
        return;
    MUST(d != NULL);
    while ((entry = readdir(d)) != NULL) {
        char inside[PATH_BYTES];

        if (!is_own(entry->d_name))
            continue;
        join(inside, path, entry->d_name);
        if (entry->d_type == DT_DIR)
            directory_remove(inside);
        else
            MUST(unlink(inside) == 0);
    }
    closedir(d);
    MUST(rmdir(path) == 0);
}
