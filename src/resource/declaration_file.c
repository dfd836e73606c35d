/* Content of binary resources that lies in files beside the configuration. Read when the
 * configuration is, which is the one time that the server waits for a file. */
#include "base/blob.h"
#include "base/buf.h"
#include "resource/declaration.h"
#include "json/json.h"

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

/* A pipe would be waited for. */
static struct err *read_open_file(int fd, struct buf *b)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return ERR(ERR_INVALID_ENTITY, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return ERR(ERR_INVALID_ENTITY, "it is no file");
    if (!buf_read_all(b, fd))
        return ERR(ERR_INVALID_ENTITY, "%s", strerror(errno));
    if (buf_over(b))
        return ERR(ERR_INVALID_ENTITY, "it is larger than %d bytes", FILE_MOST_BYTES);
    return NULL;
}

struct err *declaration_read_file(const char *directory, struct span name, struct arena *a,
                                  struct blob **out_content)
{
    struct span path;
    struct err *e;
    struct buf b;
    int fd;

    if (leaves_directory(name))
        return ERR(ERR_INVALID_ENTITY, "File: '%.*s' leads out of the configuration's folder",
                   SPAN_FMT(name));
    path = arena_printf(a, "%s/%.*s", directory, SPAN_FMT(name));
    fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ERR(ERR_INVALID_ENTITY, "File: '%s': %s", path.p, strerror(errno));
    buf_init(&b, FILE_MOST_BYTES);
    e = read_open_file(fd, &b);
    close(fd);
    if (e == NULL)
        *out_content = blob_new(buf_span(&b));
    buf_done(&b);
    return e == NULL ? NULL : err_prefix(e, "File: '%s': ", path.p);
}
