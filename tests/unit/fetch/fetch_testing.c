#include "fetch_testing.h"

#include "testing.h"

#include "base/clock.h"
#include "base/macros.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct loop loop;
struct receiver receiver;
struct resolver *resolver;
struct egress_rules rules;
struct fetcher *fetcher;
char hosts_path[80], settings_path[80];
static char directory[64];
static uv_udp_t silent_names; /* a name server that never answers */

void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

unsigned count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;

    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static void start_resolver(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int n = sizeof(address);
    char servers[64];
    struct resolve_options options = {
        .hosts_file = hosts_path, .resolv_file = settings_path, .servers = servers};

    uv_udp_init(&loop.uv, &silent_names);
    ck_assert_int_eq(uv_udp_bind(&silent_names, (struct sockaddr *)&address, 0), 0);
    uv_udp_getsockname(&silent_names, (struct sockaddr *)&address, &n);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(address.sin_port));
    ck_ok(resolver_new(&loop, &options, &resolver));
}

void begin_fetching_with(const char *hosts, const struct fetch_options *options)
{
    snprintf(directory, sizeof(directory), "/tmp/check_fetch_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(hosts_path, sizeof(hosts_path), "%s/hosts", directory);
    snprintf(settings_path, sizeof(settings_path), "%s/resolv.conf", directory);
    write_file(hosts_path, hosts);
    write_file(settings_path, "");
    ck_ok(loop_init(&loop));
    receiver_listen(&receiver, &loop, "127.0.0.1", 0);
    start_resolver();
    egress_init(&rules);
    ck_ok(fetcher_new(&loop, resolver, &rules, options, &fetcher));
}

void begin_fetching(void)
{
    begin_fetching_with("127.0.0.1 name.test\n", &(struct fetch_options){0});
}

void end_fetching(void)
{
    ck_assert_uint_eq(count_threads(), 1);
    fetcher_free(fetcher);
    resolver_free(resolver);
    receiver_close(&receiver);
    uv_close((uv_handle_t *)&silent_names, NULL);
    loop_done(&loop);
    egress_done(&rules);
    unlink(hosts_path);
    unlink(settings_path);
    rmdir(directory);
}

static void job_on_done(struct fetch *fetch, const struct fetch_result *result)
{
    struct job *job = CONTAINER_OF(fetch, struct job, fetch);

    job->result = *result;
    job->calls++;
    job->body_bytes = MIN(result->body.n, sizeof(job->body));
    if (job->body_bytes > 0)
        memcpy(job->body, result->body.p, job->body_bytes);
    ck_assert_int_eq(result->error == FETCH_OK, result->why[0] == '\0');
    if (job->then != NULL)
        job->then(job);
}

void with_port(char *out, size_t size, const char *url)
{
    size_t at = span_find(span_str(url), SPAN("%u"));

    if (at == SIZE_MAX)
        snprintf(out, size, "%s", url);
    else
        snprintf(out, size, "%.*s%u%s", (int)at, url, receiver.port, url + at + strlen("%u"));
}

void job_init(struct job *job, const char *url)
{
    *job = (struct job){.fetch = {.method = SPAN("GET"), .on_done = job_on_done}};
    with_port(job->url, sizeof(job->url), url);
    job->fetch.url = span_str(job->url);
}

void job_start(struct job *job)
{
    unsigned calls = job->calls;

    job->fetch.origin = fetch_origin_get(fetcher, job->fetch.url);
    fetch_start(fetcher, &job->fetch);
    fetch_origin_put(job->fetch.origin);
    ck_assert_uint_eq(job->calls, calls);
}

void job_await(struct job *job)
{
    for (unsigned turn = 0; job->calls == 0; turn++) {
        ck_assert_uint_lt(turn, TURNS_MOST);
        loop_run_once(&loop);
    }
    ck_assert_uint_eq(job->calls, 1);
}

void job_run(struct job *job, const char *url)
{
    job_init(job, url);
    job_start(job);
    job_await(job);
}

static void timer_ignored(struct timer *timer)
{
    (void)timer;
}

unsigned pass_ms(uint64_t ms)
{
    uint64_t until_ms = clock_mono_ms() + ms;
    struct timer timer = {0};
    unsigned turns = 0;

    timer_init(&timer, timer_ignored);
    timer_start(&loop, &timer, ms);
    for (; clock_mono_ms() < until_ms; turns++)
        loop_run_once(&loop);
    timer_stop(&loop, &timer);
    return turns;
}

/* `texts`: one, or several with '|' between them. */
static bool holds_one(const char *why, const char *texts)
{
    struct span rest = span_str(texts);
    bool holds = false;

    while (rest.p != NULL)
        holds = span_find(span_str(why), span_split(&rest, '|')) != SIZE_MAX || holds;
    return holds;
}

void expect_error(const struct job *job, enum fetch_error error, const char *text)
{
    ck_assert_msg(job->result.error == error, "%d, should be %d: %s", (int)job->result.error,
                  (int)error, job->result.why);
    ck_assert_msg(holds_one(job->result.why, text), "'%s' lacks '%s'", job->result.why, text);
}

void expect_ok(const struct job *job, int status)
{
    ck_assert_msg(job->result.error == FETCH_OK, "%d: %s", (int)job->result.error, job->result.why);
    ck_assert_int_eq(job->result.status, status);
}
