/* What the files of the module resolve share: addresses without padding, and the hosts file. */
#ifndef IO_RESOLVE_PRIVATE_H
#define IO_RESOLVE_PRIVATE_H

#include "io/resolve.h"

#include "base/arena.h"
#include "base/map.h"

#include <sys/stat.h>

#define RESOLVE_NAME_BYTES 253u /* longest name without its last dot (RFC 1035, section 2.3.4) */

/* A sockaddr_storage takes 128 bytes, and the cache holds up to 160 000 addresses. */
struct resolve_address {
    int family; /* AF_INET or AF_INET6 */
    union {
        struct in_addr v4;
        struct in6_addr v6;
    } ip;
};

/* An IPv4 or IPv6 address as text, without brackets, zone or port. */
bool resolve_address_parse(struct span text, struct resolve_address *out_address);
/* At most RESOLVE_MAX_ADDRESSES: what is beyond them is dropped. */
void resolve_result_add(struct resolve_result *result, const struct resolve_address *address);

/* A file that is read again when it has changed. */
struct resolve_file {
    char *path;
    struct stat seen; /* zeroed: it was not there */
    uint64_t look_again_ms;
};

void resolve_file_init(struct resolve_file *f, const char *path);
void resolve_file_done(struct resolve_file *f);
/* Has it changed since the last call? Looks at most once a second; true at the first call. */
bool resolve_file_changed(struct resolve_file *f, uint64_t now_ms);

/* The hosts file (hosts(5)): lines of an address and the names it has. */
struct resolve_hosts {
    struct resolve_file file;
    struct arena arena; /* of `names` */
    struct map names;   /* struct hosts_name */
};

void resolve_hosts_init(struct resolve_hosts *h, const char *path);
void resolve_hosts_done(struct resolve_hosts *h);
/* Adds the addresses of a name in lower case, in the file's order. False: the file has none. */
bool resolve_hosts_find(struct resolve_hosts *h, struct span name, uint64_t now_ms,
                        struct resolve_result *out_result);

#endif
