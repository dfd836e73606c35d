#include "testing.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/rng.h"

#include <stdlib.h>

static size_t blocks_before;

static void set_up(void)
{
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

int main(int argc, char **argv)
{
    Suite *suite = suite_create(argc > 0 ? argv[0] : "unit");
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 600); /* on however slow a machine */
    tcase_add_checked_fixture(tc, set_up, tear_down);
    testing_cases(tc);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
