/* Simulates a cluster of whole servers under random seeds, over a scripted etcd, network, disks and
 * clocks (docs/design/cluster.md). Each seed is a process of its own, several at a time; one that
 * breaks a promise is named with its step, and the same seed does the same again.
 *
 *     cluster_simulation [--seed N] [--seeds N] [--steps N] [--jobs N] [--directory PATH]
 *                        [--plant NAME] [--tell 1]
 *     cluster_simulation --self-test 1
 *
 * --plant puts a fault in on purpose; --tell says all that happens. --self-test sees to it that
 * each such fault is found, by the promise that it breaks, and that a seed does the same again. */
#include "plants.h"
#include "script.h"

#include "base/log.h"
#include "base/must.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MOST = 64, PATH_BYTES = 96, PLANT_SEEDS = 60, REPLAYED = 4, PLANT_STEPS = 30000 };

struct arguments {
    uint64_t seed, seeds, steps, jobs, tells, tests_itself;
    const char *directory;
    enum plant plant;
};

struct run {
    pid_t pid; /* 0: none */
    uint64_t seed;
    char directory[PATH_BYTES + 32];
};

/* What the processes have come to, shared with them. */
static struct script_counts *total;

static void usage(void)
{
    fprintf(stderr, "usage: cluster_simulation [--seed N] [--seeds N] [--steps N] [--jobs N] "
                    "[--directory PATH] [--plant NAME] [--tell 1] [--self-test 1]\n");
    exit(2);
}

static bool read_argument(struct arguments *a, const char *name, struct span value)
{
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {{"--seed", &a->seed}, {"--seeds", &a->seeds}, {"--steps", &a->steps},
                   {"--jobs", &a->jobs}, {"--tell", &a->tells},  {"--self-test", &a->tests_itself}};

    for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
        if (strcmp(name, numbers[k].name) == 0)
            return span_to_u64(value, numbers[k].value);
    if (strcmp(name, "--plant") == 0)
        return plant_find(value, &a->plant);
    a->directory = value.p;
    return strcmp(name, "--directory") == 0;
}

static struct arguments read_arguments(int argc, char **argv)
{
    struct arguments a = {.seed = 1, .seeds = 20, .steps = 20000, .jobs = 4};

    a.directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !read_argument(&a, argv[i], span_str(argv[i + 1])))
            usage();
    if (a.jobs == 0 || a.jobs > JOBS_MOST)
        usage();
    return a;
}

static void add_to_total(const struct script_counts *counts)
{
    const uint64_t *from = (const uint64_t *)counts;
    uint64_t *to = (uint64_t *)total;

    for (size_t i = 0; i < sizeof(*counts) / sizeof(uint64_t); i++)
        __atomic_add_fetch(&to[i], from[i], __ATOMIC_RELAXED);
}

static void start(struct run *run, uint64_t seed, const struct arguments *a)
{
    run->seed = seed;
    snprintf(run->directory, sizeof(run->directory), "%.*s/simulation-XXXXXX", PATH_BYTES - 32,
             a->directory);
    MUST(mkdtemp(run->directory) != NULL);
    fflush(NULL);
    run->pid = fork();
    MUST(run->pid >= 0);
    if (run->pid == 0) {
        struct script_counts counts;

        planted = a->plant;
        sim.is_told = a->tells != 0;
        if (a->tells == 0)
            log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
        counts = script_run(seed, a->steps, run->directory);
        add_to_total(&counts);
        exit(0);
    }
}

static void say_failed(const struct run *run, int status, const struct arguments *a)
{
    printf("seed %" PRIu64 " failed (status %#x), its files are in %s; again: cluster_simulation "
           "--seed %" PRIu64 " --seeds 1 --steps %" PRIu64 "%s%s --tell 1\n",
           run->seed, (unsigned)status, run->directory, run->seed, a->steps,
           a->plant == PLANT_NONE ? "" : " --plant ",
           a->plant == PLANT_NONE ? "" : plant_infos[a->plant].name);
}

static int wait_for(pid_t *out_pid)
{
    int status;

    do
        *out_pid = wait(&status);
    while (*out_pid < 0 && errno == EINTR);
    MUST(*out_pid > 0);
    return status;
}

/* Waits for one to end; false when it ended badly. */
static bool finish_one(struct run runs[JOBS_MOST], const struct arguments *a)
{
    pid_t pid;
    int status = wait_for(&pid);

    for (size_t i = 0; i < a->jobs; i++) {
        if (runs[i].pid != pid)
            continue;
        runs[i].pid = 0;
        if (status == 0)
            return rmdir(runs[i].directory) == 0;
        say_failed(&runs[i], status, a);
        return false;
    }
    MUST_NOT_REACH();
}

static size_t free_place(const struct run runs[JOBS_MOST], const struct arguments *a)
{
    for (size_t i = 0; i < a->jobs; i++)
        if (runs[i].pid == 0)
            return i;
    return SIZE_MAX;
}

static int run_all(const struct arguments *a)
{
    struct run runs[JOBS_MOST] = {{0}};
    uint64_t started = 0, ended = 0, failed = 0;

    while (ended < a->seeds) {
        size_t place = free_place(runs, a);

        if (place != SIZE_MAX && started < a->seeds) {
            start(&runs[place], a->seed + started++, a);
            continue;
        }
        failed += !finish_one(runs, a);
        ended++;
    }
    printf("%" PRIu64 " steps, %" PRIu64 " s; changes: %" PRIu64 " acknowledged, %" PRIu64
           " refused, %" PRIu64 " unknown; %" PRIu64 " batches, %" PRIu64 " epochs, %" PRIu64
           " faults, %" PRIu64 " starts, %" PRIu64 " deliveries\n",
           total->steps, total->seconds, total->acknowledged, total->refused, total->unknown,
           total->batches, total->epochs, total->faults, total->boots, total->deliveries);
    if (a->seeds == 1)
        printf("fingerprint %016" PRIx64 "\n", total->fingerprint);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", ended - failed, failed);
    return failed == 0 ? 0 : 1;
}

/* Self-test. -------------------------------------------------------------------------------- */

static void remove_files(const char *directory)
{
    pid_t pid = fork();

    MUST(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", directory, (char *)NULL);
        _exit(1);
    }
    MUST(waitpid(pid, NULL, 0) == pid);
}

/* The exit status of one seed, which says nothing. */
static int run_one(const struct arguments *a, uint64_t seed)
{
    struct run run;
    pid_t pid;
    int status;

    start(&run, seed, a);
    status = wait_for(&pid);
    remove_files(run.directory);
    return status;
}

static bool is_found(struct arguments a, enum plant plant)
{
    int expected = SIM_BROKEN + (int)plant_infos[plant].promise;

    a.plant = plant;
    for (uint64_t tries = 0; tries <= PLANT_SEEDS; tries++) {
        uint64_t seed = tries == 0 ? plant_infos[plant].seed : tries;
        int status = run_one(&a, seed);

        if (WIFEXITED(status) && WEXITSTATUS(status) == expected) {
            printf("%s (%s): found, seed %" PRIu64 "\n", plant_infos[plant].name,
                   plant_infos[plant].text, seed);
            return true;
        }
    }
    printf("%s (%s): NOT found: %s\n", plant_infos[plant].name, plant_infos[plant].text,
           sim_promise_text(plant_infos[plant].promise));
    return false;
}

static uint64_t fingerprint_of(const struct arguments *a, uint64_t seed)
{
    memset(total, 0, sizeof(*total));
    MUST(run_one(a, seed) == 0);
    return total->fingerprint;
}

static bool is_same_again(const struct arguments *a)
{
    for (uint64_t seed = 1; seed <= REPLAYED; seed++)
        if (fingerprint_of(a, seed) != fingerprint_of(a, seed)) {
            printf("seed %" PRIu64 " does not do the same again\n", seed);
            return false;
        }
    printf("%d seeds do the same again\n", REPLAYED);
    return true;
}

static int test_itself(struct arguments a)
{
    unsigned passed = 0, failed = 0;
    bool is_good;

    a.steps = PLANT_STEPS;
    for (unsigned plant = PLANT_NONE + 1; plant < PLANT_COUNT; plant++) {
        is_good = is_found(a, plant);
        passed += is_good;
        failed += !is_good;
    }
    is_good = is_same_again(&a);
    printf("%u passed, %u failed\n", passed + is_good, failed + !is_good);
    return failed == 0 && is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct arguments a = read_arguments(argc, argv);

    total = mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(total != MAP_FAILED);
    return a.tests_itself != 0 ? test_itself(a) : run_all(&a);
}
