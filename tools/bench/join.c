/* Takes a copy of a server's journal as a node of a cluster does that joins by one, and says how
 * long that took: bench_join DIRECTORY http://HOST:PORT. tools/bench/join.py makes the server. */
#include "journal/join.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "journal/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define NS_PER_S 1e9
#define MB 1e6

/* The one node that there is, in place of what replica_nodes.c knows. */
static struct replica_node node = {
    .name = SPAN_INIT("a"), .role = REPLICA_FOLLOWING, .next = UINT64_MAX};

size_t replica_node_count(const struct replica *r)
{
    (void)r;
    return 1;
}

const struct replica_node *replica_node_at(const struct replica *r, size_t i)
{
    (void)r;
    (void)i;
    return &node;
}

static struct loop loop;
static uint64_t bytes, begun_ns;

static void authorize(void *context, struct span method, struct span target, struct buf *out_value)
{
    (void)context;
    (void)method;
    (void)target;
    buf_add_str(out_value, "none"); /* a server alone does not look at it */
}

static void on_progress(void *context, uint64_t at, uint64_t of_bytes)
{
    (void)context;
    (void)at;
    bytes = of_bytes;
}

static void on_failed(void *context, const char *why)
{
    (void)context;
    fprintf(stderr, "bench_join: %s\n", why);
    exit(1);
}

static void on_joined(void *context, uint64_t next)
{
    double s = (double)(clock_mono_ns() - begun_ns) / NS_PER_S;
    struct rusage use;

    (void)context;
    getrusage(RUSAGE_SELF, &use);
    printf("%" PRIu64 " bytes up to serial %" PRIu64
           " in %.2f s: %.0f MB/s; this process: %.2f s of "
           "processor, %ld MiB at most\n",
           bytes, next - 1, s, (double)bytes / MB / s,
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / MB,
           use.ru_maxrss / 1024);
    exit(0);
}

static void must(struct err *e)
{
    if (e == NULL)
        return;
    fprintf(stderr, "bench_join: %.*s\n", SPAN_FMT(err_message(e)));
    exit(1);
}

int main(int argc, char **argv)
{
    struct join_options options = {.node = "x",
                                   .base_path = "/",
                                   .begins = 1,
                                   .authorize = authorize,
                                   .on_progress = on_progress,
                                   .on_failed = on_failed,
                                   .on_joined = on_joined};
    struct resolver *resolver;
    struct egress_rules rules;
    bool is_refused;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_join DIRECTORY http://HOST:PORT\n");
        return 2;
    }
    mem_init();
    node.url = span_str(argv[2]);
    options.directory = argv[1];
    options.cluster = uuid_new();
    must(join_settle(argv[1], &is_refused)); /* what a run before has left */
    must(loop_init(&loop));
    must(resolver_new(&loop, &(struct resolve_options){0}, &resolver));
    egress_init(&rules);
    must(fetcher_new(&loop, resolver, &rules, &(struct fetch_options){0}, &options.fetcher));
    begun_ns = clock_mono_ns();
    loop_run(join_start(&loop, &options) != NULL ? &loop : NULL);
    return 1;
}
