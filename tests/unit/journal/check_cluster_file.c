/* The file that names the cluster: what is written is read, what is damaged is said, and a write
 * that fails leaves what was there. */
#include "journal/cluster_file.h"

#include "testing.h"

#include "io/fault.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[32];

static const char *path(const char *name)
{
    static char text[64];

    snprintf(text, sizeof(text), "%s/%s", directory, name);
    return text;
}

static void begin(void)
{
    strcpy(directory, "/tmp/check-cluster-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void end(void)
{
    fault_set(NULL);
    unlink(path("cluster"));
    unlink(path("cluster.tmp"));
    ck_assert_int_eq(rmdir(directory), 0);
}

static void store(const char *name, struct span bytes)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_eq(write(fd, bytes.p, bytes.n), (ssize_t)bytes.n);
    close(fd);
}

static void check_holds(const struct uuid *id)
{
    struct uuid found;
    bool is_found;

    ck_ok(cluster_file_read(directory, &found, &is_found));
    ck_assert(is_found);
    ck_assert(uuid_eq(&found, id));
}

START_TEST(what_is_written_is_read)
{
    struct uuid first = uuid_new(), second = uuid_new(), found;
    char bytes[64];
    bool is_found = true;
    int fd;

    begin();
    ck_ok(cluster_file_read(directory, &found, &is_found));
    ck_assert(!is_found);
    store("cluster.tmp", SPAN("of a kill, and longer than what is written there next time"));
    ck_ok(cluster_file_write(directory, &first));
    check_holds(&first);
    ck_ok(cluster_file_write(directory, &second));
    check_holds(&second);
    fd = open(path("cluster"), O_RDONLY);
    ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), UUID_TEXT_BYTES + 1);
    ck_assert_int_eq(bytes[UUID_TEXT_BYTES], '\n');
    close(fd);
    ck_assert_int_ne(access(path("cluster.tmp"), F_OK), 0);
    end();
    ck_ok(cluster_file_read(directory, &found, &is_found)); /* no directory */
    ck_assert(!is_found);
    ck_fails(cluster_file_write(directory, &first), ERR_STORAGE_FAILURE, directory);
}
END_TEST

START_TEST(a_damaged_one_is_named)
{
    static const struct span contents[] = {
        SPAN_INIT(""),
        SPAN_INIT("0190b8d4-7d2a-7000-8000-00000000000a"),     /* no line feed */
        SPAN_INIT("0190b8d4-7d2a-7000-8000-00000000000a\n\n"), /* two */
        SPAN_INIT("0190b8d4-7d2a-7000-8000-00000000000a\nmore"),
        SPAN_INIT("0190B8D4-7D2A-7000-8000-00000000000A\n"), /* not as it is written */
        SPAN_INIT("0190b8d4-7d2a-7000-8000-0000000000\n"),
        SPAN_INIT("0190b8d4-7d2a-7000-8000-00000000000x\n"),
        SPAN_INIT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    };
    struct uuid found;
    bool is_found;

    begin();
    store("cluster", contents[_i]);
    ck_fails(cluster_file_read(directory, &found, &is_found), ERR_STORAGE_FAILURE,
             path("cluster: it is damaged"));
    end();
}
END_TEST

START_TEST(one_that_cannot_be_read)
{
    struct uuid found;
    bool is_found;

    begin();
    ck_assert_int_eq(symlink("cluster", path("cluster")), 0); /* to itself */
    ck_fails(cluster_file_read(directory, &found, &is_found), ERR_STORAGE_FAILURE,
             path("cluster: "));
    end();
}
END_TEST

#ifdef SVCD_FAULTS
START_TEST(a_write_that_fails_leaves_what_was_there)
{
    static const char *const faults[] = {"cluster.write:1", "cluster.rename:1"};
    struct uuid first = uuid_new(), second = uuid_new();

    begin();
    ck_ok(cluster_file_write(directory, &first));
    ck_assert(fault_set(faults[_i]));
    ck_fails(cluster_file_write(directory, &second), ERR_STORAGE_FAILURE, path("cluster: "));
    check_holds(&first);
    ck_ok(cluster_file_write(directory, &second));
    check_holds(&second);
    end();
}
END_TEST
#endif

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, what_is_written_is_read);
    tcase_add_loop_test(tc, a_damaged_one_is_named, 0, 8);
    tcase_add_test(tc, one_that_cannot_be_read);
#ifdef SVCD_FAULTS
    tcase_add_loop_test(tc, a_write_that_fails_leaves_what_was_there, 0, 2);
#endif
}
