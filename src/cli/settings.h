/* Which server, and with which key. In this order: options, environment (SVC_URL, SVC_KEY), the
 * configuration file svc/config.json in XDG_CONFIG_HOME or ~/.config. A key is never a word of the
 * command line, which others can see. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "base/err.h"
#include "cli/args.h"

struct settings {
    struct span url; /* http://host:port/base, https://..., or unix:PATH */
    struct span key; /* absent: none */
};

/* Errors are misuse: a file that cannot be read, that others may read, or that holds something
 * else than {"Url","Key"}. Spans live in the arena. */
struct err *settings_read(const struct args *args, struct arena *a, struct settings *out) MUST_USE;
/* Is it one of the three kinds? */
struct err *settings_check_url(struct span url) MUST_USE;
/* Of what is sent requests, and is no server of ours; `what` is how errors call it. */
struct err *settings_check_receiver(const char *what, struct span url) MUST_USE;
/* A path below the directory of svc's own files; the absent span without a home. */
struct span settings_path(struct arena *a, const char *name);

#endif
