/* The hosts file is read whole and kept as a map; a look at its status once a second tells whether
 * to read it again. Reading blocks, for a file of the machine's own and a few milliseconds at most.
 * A file that cannot be read is an empty one: names go to the name servers then. */
#include "resolve_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_MAX_BYTES (4u << 20)
#define READ_BYTES ((size_t)65536)

enum { LOOK_EVERY_MS = 1000 };

struct hosts_address {
    struct hosts_address *next;
    struct resolve_address address;
};

struct hosts_name {
    struct span name;
    unsigned count;
    struct hosts_address *first, *last;
};

bool resolve_address_parse(struct span text, struct resolve_address *out_address)
{
    struct resolve_address address = {.family = AF_INET};
    char copy[INET6_ADDRSTRLEN];

    if (text.n >= sizeof(copy) || memchr(text.p, '\0', text.n) != NULL)
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (inet_pton(AF_INET, copy, &address.ip.v4) != 1) {
        address.family = AF_INET6;
        if (inet_pton(AF_INET6, copy, &address.ip.v6) != 1)
            return false;
    }
    *out_address = address;
    return true;
}

void resolve_result_add(struct resolve_result *result, const struct resolve_address *address)
{
    struct sockaddr_storage *to;

    if (result->count == RESOLVE_MAX_ADDRESSES)
        return;
    to = &result->addresses[result->count++];
    *to = (struct sockaddr_storage){0};
    if (address->family == AF_INET)
        *(struct sockaddr_in *)to =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = address->ip.v4};
    else
        *(struct sockaddr_in6 *)to =
            (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = address->ip.v6};
}

void resolve_file_init(struct resolve_file *f, const char *path)
{
    *f = (struct resolve_file){.path = mem_string(span_str(path))};
    f->seen.st_ino = (ino_t)-1; /* no file's: the first look finds a change */
}

void resolve_file_done(struct resolve_file *f)
{
    mem_free(TAKE(f->path));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool resolve_file_changed(struct resolve_file *f, uint64_t now_ms)
{
    struct stat now = {0};
    bool changed;

    if (now_ms < f->look_again_ms)
        return false;
    f->look_again_ms = now_ms + LOOK_EVERY_MS;
    if (stat(f->path, &now) != 0)
        now = (struct stat){0};
    changed = !same_file(&now, &f->seen);
    f->seen = now;
    return changed;
}

static struct span name_of(const void *item)
{
    return ((const struct hosts_name *)item)->name;
}

void resolve_hosts_init(struct resolve_hosts *h, const char *path)
{
    resolve_file_init(&h->file, path);
    arena_init(&h->arena);
    map_init(&h->names, name_of);
}

void resolve_hosts_done(struct resolve_hosts *h)
{
    resolve_file_done(&h->file);
    map_done(&h->names);
    arena_done(&h->arena);
}

/* Cuts the first word off the front of *line; empty at the line's end. */
static struct span next_word(struct span *line)
{
    struct span rest = span_trim(*line), word;
    size_t n = 0;

    while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\t')
        n++;
    word = span_sub(rest, 0, n);
    *line = span_sub(rest, n, rest.n);
    return word;
}

static struct hosts_name *name_get(struct resolve_hosts *h, struct span word)
{
    size_t n = span_ends(word, SPAN(".")) ? word.n - 1 : word.n;
    struct span key = text_fold(&h->arena, span_sub(word, 0, n));
    struct hosts_name *name = map_find(&h->names, key);

    if (name == NULL) {
        name = ARENA_NEW(&h->arena, struct hosts_name);
        name->name = key;
        map_add(&h->names, name);
    }
    return name;
}

static void name_add(struct resolve_hosts *h, struct span word,
                     const struct resolve_address *address)
{
    struct hosts_name *name = name_get(h, word);
    struct hosts_address *node;

    if (name->count == RESOLVE_MAX_ADDRESSES)
        return;
    node = ARENA_NEW(&h->arena, struct hosts_address);
    node->address = *address;
    if (name->count++ == 0)
        name->first = node;
    else
        name->last->next = node;
    name->last = node;
}

static void line_add(struct resolve_hosts *h, struct span line)
{
    struct resolve_address address;
    struct span word;

    line = span_sub(line, 0, span_find_char(line, '#', 0));
    line = span_sub(line, 0, span_find_char(line, '\r', 0));
    if (!resolve_address_parse(next_word(&line), &address))
        return;
    while ((word = next_word(&line)).n > 0)
        if (word.n <= RESOLVE_NAME_BYTES)
            name_add(h, word, &address);
}

/* Up to the limit, then cut after the last whole line. Returns 0 or an errno. */
static int read_lines(const char *path, struct buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 ? errno : 0;
    ssize_t n = 1;

    while (error == 0 && n > 0 && b->n < HOSTS_MAX_BYTES) {
        size_t room = MIN(HOSTS_MAX_BYTES - b->n, READ_BYTES);

        n = read(fd, buf_reserve(b, room), room);
        error = n < 0 ? errno : 0;
        buf_commit(b, n < 0 ? 0 : (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    if (b->n == HOSTS_MAX_BYTES) {
        log_warn("resolve", "%s: only its first %u bytes are used", path, HOSTS_MAX_BYTES);
        while (b->n > 0 && b->p[b->n - 1] != '\n')
            buf_truncate(b, b->n - 1);
    }
    return error;
}

static void load(struct resolve_hosts *h)
{
    struct buf bytes;
    struct span rest;
    int error;

    map_done(&h->names);
    arena_done(&h->arena);
    buf_init(&bytes, HOSTS_MAX_BYTES);
    error = read_lines(h->file.path, &bytes);
    if (error != 0 && error != ENOENT)
        log_warn("resolve", "%s: %s", h->file.path, strerror(error));
    rest = buf_span(&bytes);
    while (rest.n > 0)
        line_add(h, span_split(&rest, '\n'));
    buf_done(&bytes);
}

bool resolve_hosts_find(struct resolve_hosts *h, struct span name, uint64_t now_ms,
                        struct resolve_result *out_result)
{
    const struct hosts_name *found;

    if (resolve_file_changed(&h->file, now_ms))
        load(h);
    found = map_find(&h->names, name);
    if (found == NULL)
        return false;
    for (const struct hosts_address *node = found->first; node != NULL; node = node->next)
        resolve_result_add(out_result, &node->address);
    return true;
}
