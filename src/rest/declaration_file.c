/* Content of binary resources that lies in files beside the configuration. Read when the
 * configuration is, which is the one time that the server waits for a file. */
#include "base/blob.h"
#include "rest/declaration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST_BYTES = 64 << 20 };

static bool leaves_directory(struct span path)
{
    struct span rest = path;

    if (span_starts(path, SPAN("/")))
        return true;
    while (rest.p != NULL)
        if (span_eq(span_split(&rest, '/'), SPAN("..")))
            return true;
    return false;
}

static struct err *read_whole(int fd, size_t bytes, struct blob *blob)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = read(fd, blob->p + got, bytes - got);

        if (n <= 0)
            return ERR(ERR_INVALID_ENTITY, "%s", n < 0 ? strerror(errno) : "it was cut off");
        got += (size_t)n;
    }
    return NULL;
}

static struct err *read_open_file(int fd, struct blob **out_blob)
{
    struct blob *blob;
    struct stat st;
    struct err *e;

    if (fstat(fd, &st) != 0)
        return ERR(ERR_INVALID_ENTITY, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST_BYTES)
        return ERR(ERR_INVALID_ENTITY, "it is no file of at most %d bytes", FILE_MOST_BYTES);
    blob = blob_alloc((size_t)st.st_size);
    e = read_whole(fd, (size_t)st.st_size, blob);
    if (e != NULL)
        blob_unref(blob);
    else
        *out_blob = blob;
    return e;
}

struct err *declaration_read_file(const char *directory, struct span name, struct arena *a,
                                  struct blob **out_content)
{
    struct span path;
    struct err *e;
    int fd;

    if (leaves_directory(name))
        return ERR(ERR_INVALID_ENTITY, "File: '%.*s' leads out of the configuration's folder",
                   SPAN_FMT(name));
    path = arena_printf(a, "%s/%.*s", directory, SPAN_FMT(name));
    fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ERR(ERR_INVALID_ENTITY, "File: '%s': %s", path.p, strerror(errno));
    e = read_open_file(fd, out_content);
    close(fd);
    return e == NULL ? NULL : err_prefix(e, "File: '%s': ", path.p);
}
