#include "testing.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/macros.h"
#include "base/rng.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t blocks_before;
static bool has_passed[1 << 12]; /* by place, which two of a test seldom share */

void testing_passed(const char *file, int line)
{
    bool *here = &has_passed[((uintptr_t)file + (uintptr_t)line) % ARRAY_LEN(has_passed)];

    if (*here)
        return;
    *here = true;
    _mark_point(file, line);
}

static void set_up(void)
{
    memset(has_passed, 0, sizeof(has_passed));
    rng_seed(1);
    hash_set_key(1, 2);
    blocks_before = mem_blocks();
}

static void tear_down(void)
{
    clock_real();
    ck_assert_msg(mem_blocks() == blocks_before, "%zu blocks left allocated",
                  mem_blocks() - blocks_before);
}

static void make_below(const char *place, char out_path[TESTING_PATH_BYTES])
{
    snprintf(out_path, TESTING_PATH_BYTES, "%s/svcd-check-XXXXXX", place);
    ck_assert_ptr_nonnull(mkdtemp(out_path));
}

void testing_make_directory(char out_path[TESTING_PATH_BYTES])
{
    make_below("/tmp", out_path);
}

void testing_make_directory_in_memory(char out_path[TESTING_PATH_BYTES])
{
    make_below(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", out_path);
}

void testing_remove_directory(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *entry;

    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ck_assert_int_eq(unlinkat(dirfd(d), entry->d_name, 0), 0);
    closedir(d);
    ck_assert_int_eq(rmdir(path), 0);
}

void testing_await(unsigned looks)
{
    enum { SWIFT_LOOKS = 500, SLOW_LOOKS = 120000 };

    ck_assert_uint_lt(looks, SWIFT_LOOKS + SLOW_LOOKS);
    if (looks >= SWIFT_LOOKS)
        usleep(1000);
}

static Suite *suite_of(const struct testing_module *m)
{
    Suite *suite = suite_create(m->name);
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 600); /* on however slow a machine */
    tcase_add_checked_fixture(tc, set_up, tear_down);
    m->cases(tc);
    suite_add_tcase(suite, tc);
    return suite;
}

/* The one that the program is called by, or NULL: all of them. */
static const struct testing_module *called(const char *program)
{
    const char *slash = strrchr(program, '/');

    for (const struct testing_module *m = testing_modules; m->name != NULL; m++)
        if (strcmp(m->name, slash != NULL ? slash + 1 : program) == 0)
            return m;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct testing_module *one = called(argc > 0 ? argv[0] : "");
    SRunner *runner = srunner_create(NULL);
    int failed;

    for (const struct testing_module *m = testing_modules; m->name != NULL; m++)
        if (one == NULL || m == one)
            srunner_add_suite(runner, suite_of(m));
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
