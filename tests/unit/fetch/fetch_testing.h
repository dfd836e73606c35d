/* What the tests of fetch share: a receiver, a fetcher that sends to it, and one fetch with what
 * became of it. */
#ifndef FETCH_TESTING_H
#define FETCH_TESTING_H

#include "fetch/egress.h"
#include "fetch/fetch.h"
#include "fetch/resolve.h"
#include "receiver.h"

enum { TURNS_MOST = 200000 };

extern struct loop loop;
extern struct receiver receiver;
extern struct resolver *resolver;
extern struct egress_rules rules;
extern struct fetcher *fetcher;
extern char hosts_path[80], settings_path[80]; /* the resolver's files */

/* Makes all of these. `hosts`: what the hosts file says; without it, that name.test is 127.0.0.1.
 */
void begin_fetching_with(const char *hosts, const struct fetch_options *options);
void begin_fetching(void);
void end_fetching(void);
void write_file(const char *path, const char *text);
/* Of the process. */
unsigned count_threads(void);

/* One fetch and what became of it. */
struct job {
    struct fetch fetch;
    struct fetch_result result;
    unsigned calls;
    char url[256];
    char body[8192]; /* of the answer, as far as kept */
    size_t body_bytes;
    void (*then)(struct job *job);
};

/* A GET. The receiver's port for `%u`, here and in job_run. */
void job_init(struct job *job, const char *url);
void job_start(struct job *job);
/* Until it has ended. */
void job_await(struct job *job);
/* All three. */
void job_run(struct job *job, const char *url);
void with_port(char *out, size_t size, const char *url);
/* The job has failed so, and the reason holds the text, or one of several with '|' between. */
void expect_error(const struct job *job, enum fetch_error error, const char *text);
void expect_ok(const struct job *job, int status);
/* The number of turns that the loop makes in that time. */
unsigned pass_ms(uint64_t ms);

#endif
