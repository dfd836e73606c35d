/* Simulates the whole service under random seeds: store, turn, retry and delivery over a scripted
 * disk, network and clock (docs/operations/durability.md). Each seed is a process of its own,
 * several at a time; one that ends badly is named, and the same seed ends the same way.
 *
 *     simulation [--seed N] [--seeds N] [--steps N] [--jobs N] [--directory PATH] */
#include "script.h"

#include "base/log.h"
#include "base/must.h"
#include "base/span.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MOST = 64, PATH_BYTES = 96 };

struct arguments {
    uint64_t seed, seeds, steps, jobs;
    const char *directory;
};

struct run {
    pid_t pid; /* 0: none */
    uint64_t seed;
    char directory[PATH_BYTES + 16];
};

static void usage(void)
{
    fprintf(stderr, "usage: simulation [--seed N] [--seeds N] [--steps N] [--jobs N] "
                    "[--directory PATH]\n");
    exit(2);
}

static struct arguments read_arguments(int argc, char **argv)
{
    struct arguments a = {1, 100, 2000, 4, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"};
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {
        {"--seed", &a.seed}, {"--seeds", &a.seeds}, {"--steps", &a.steps}, {"--jobs", &a.jobs}};

    for (int i = 1; i < argc; i += 2) {
        bool is_known = false;

        if (i + 1 == argc)
            usage();
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            if (strcmp(argv[i], numbers[k].name) != 0)
                continue;
            is_known = span_to_u64(span_str(argv[i + 1]), numbers[k].value);
        }
        if (strcmp(argv[i], "--directory") == 0) {
            a.directory = argv[i + 1];
            is_known = true;
        }
        if (!is_known)
            usage();
    }
    if (a.jobs == 0 || a.jobs > JOBS_MOST || a.steps > UINT32_MAX)
        usage();
    return a;
}

static void start(struct run *run, uint64_t seed, const struct arguments *a,
                  struct script_counts *total)
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

        if (a->seeds > 1)
            log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
        counts = script_run(seed, (unsigned)a->steps, run->directory);
        __atomic_add_fetch(&total->steps, counts.steps, __ATOMIC_RELAXED);
        __atomic_add_fetch(&total->changes, counts.changes, __ATOMIC_RELAXED);
        __atomic_add_fetch(&total->attempts, counts.attempts, __ATOMIC_RELAXED);
        __atomic_add_fetch(&total->losses_of_power, counts.losses_of_power, __ATOMIC_RELAXED);
        __atomic_add_fetch(&total->dead_at_once, counts.dead_at_once, __ATOMIC_RELAXED);
        exit(0);
    }
}

/* Waits for one to end; false when it ended badly. */
static bool finish_one(struct run runs[JOBS_MOST], const struct arguments *a)
{
    int status;
    pid_t pid = wait(&status);

    MUST(pid > 0);
    for (size_t i = 0; i < a->jobs; i++) {
        if (runs[i].pid != pid)
            continue;
        runs[i].pid = 0;
        if (status == 0)
            return rmdir(runs[i].directory) == 0;
        printf("seed %llu failed (status %#x), its files are in %s; again: simulation --seed %llu "
               "--seeds 1 --steps %llu\n",
               (unsigned long long)runs[i].seed, (unsigned)status, runs[i].directory,
               (unsigned long long)runs[i].seed, (unsigned long long)a->steps);
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

int main(int argc, char **argv)
{
    const struct arguments a = read_arguments(argc, argv);
    struct script_counts *total =
        mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct run runs[JOBS_MOST] = {{0}};
    uint64_t started = 0, ended = 0, failed = 0;

    MUST(total != MAP_FAILED);
    while (ended < a.seeds) {
        size_t place = free_place(runs, &a);

        if (place != SIZE_MAX && started < a.seeds) {
            start(&runs[place], a.seed + started++, &a, total);
            continue;
        }
        failed += !finish_one(runs, &a);
        ended++;
    }
    printf("%llu steps, %llu changes, %llu attempts, %llu dead at once, %llu losses of power\n",
           (unsigned long long)total->steps, (unsigned long long)total->changes,
           (unsigned long long)total->attempts, (unsigned long long)total->dead_at_once,
           (unsigned long long)total->losses_of_power);
    printf("%llu passed, %llu failed\n", (unsigned long long)(ended - failed),
           (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}
