/* The command line: `svcd [--config FILE] [--data DIR] [--listen ADDR]... [--check] [--version]`
 * and `svcd hash-key` (docs/specification.md, section 9). */
#include "app/server.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/fault.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct arguments {
    struct config_arguments config;
    bool check;
};

static const char usage[] =
    "usage: svcd [--config FILE] [--data DIR] [--listen ADDR]... [--check] [--version]\n"
    "       svcd hash-key\n"
    "\n"
    "  --config FILE   read the configuration from FILE\n"
    "  --data DIR      keep the journal in DIR (default: svc-data)\n"
    "  --listen ADDR   host:port, [v6]:port or unix:PATH (default: 127.0.0.1:8080); may be "
    "repeated\n"
    "  --check         check the configuration and exit: 0 good, 2 bad\n"
    "  --version       print the version and exit\n"
    "  hash-key        read an API key from standard input, print its SHA-256 for KeySha256\n";

/* A message may quote the file, which a terminal is not to obey. */
static int bad_config(struct err *e)
{
    struct buf shown;

    buf_init(&shown, BUF_NO_CAP);
    text_add_shown(&shown, err_message(e));
    fprintf(stderr, "svcd: %.*s\n", SPAN_FMT(buf_span(&shown)));
    buf_done(&shown);
    err_free(e);
    return SERVER_BAD_CONFIG;
}

static int bad_usage(const char *why, const char *what)
{
    fprintf(stderr, "svcd: %s%s\n%s", why, what, usage);
    return SERVER_BAD_CONFIG;
}

static int hash_key(void)
{
    enum { MOST = 4096 };
    char key[MOST + 1];
    size_t n = fread(key, 1, sizeof(key), stdin);
    uint8_t digest[DIGEST_BYTES];

    while (n > 0 && (key[n - 1] == '\n' || key[n - 1] == '\r'))
        n--;
    if (n == 0 || n > MOST) {
        fprintf(stderr, "svcd: hash-key: the key must have 1 to %d bytes\n", MOST);
        return SERVER_BAD_CONFIG;
    }
    digest_sha256(span_of(key, n), digest);
    mem_wipe(key, sizeof(key));
    for (size_t i = 0; i < sizeof(digest); i++)
        printf("%02x", digest[i]);
    puts("");
    return 0;
}

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct arguments *out)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"data", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"check", no_argument, NULL, 'k'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->config.file = optarg;
            break;
        case 'd':
            out->config.data_directory = optarg;
            break;
        case 'l':
            if (out->config.listen_count == CONFIG_MAX_LISTENERS)
                return bad_usage("too many --listen", "");
            out->config.listen[out->config.listen_count++] = optarg;
            break;
        case 'k':
            out->check = true;
            break;
        case 'v':
            puts("svcd " SVCD_VERSION);
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            return bad_usage("unknown or incomplete option", "");
        }
    }
    if (optind < argc)
        return bad_usage("unexpected argument ", argv[optind]);
    return -1;
}

/* As many descriptors as the system gives: connections and deliveries need them. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn("main", "the limit of open files stays at %llu",
                 (unsigned long long)limit.rlim_cur);
}

/* The heap holds what nobody else may see: keys in flight, signing secrets. */
static void forbid_core_dumps(void)
{
#ifndef __SANITIZE_ADDRESS__ /* its search for leaks traces the process */
    if (prctl(PR_SET_DUMPABLE, 0) != 0)
        log_warn("main", "a crash may leave secrets in a core dump");
#endif
}

static void prepare_process(void)
{
    mem_init();
    raise_descriptor_limit();
    forbid_core_dumps();
    signal(SIGXFSZ, SIG_IGN); /* a file too large is an error of write, not the end */
#ifdef SVCD_FAULTS
    if (!fault_set(getenv("SVCD_FAULT")))
        fprintf(stderr, "svcd: SVCD_FAULT is malformed\n");
#endif
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.check = false};
    struct config config;
    struct anew anew;
    struct err *e;
    int status;

    if (argc == 2 && strcmp(argv[1], "hash-key") == 0)
        return hash_key();
    status = parse(argc, argv, &arguments);
    if (status >= 0)
        return status;
    prepare_process();
    e = config_read(&config, &arguments.config);
    if (e != NULL) {
        config_done(&config);
        return bad_config(e);
    }
    log_configure(config.log_level, config.log_format);
    anew_init(&anew, argv);
    status = server_run(&config, &arguments.config, &anew, arguments.check);
    config_done(&config);
    return status;
}
