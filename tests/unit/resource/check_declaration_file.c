/* Content of binary resources that lies in files beside the configuration. */
#include "testing.h"

#include "base/arena.h"
#include "base/blob.h"
#include "resource/declaration.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;
static char directory[TESTING_PATH_BYTES];

static const char *path_of(const char *name)
{
    return arena_printf(&arena, "%s/%s", directory, name).p;
}

static void begin(void)
{
    arena_init(&arena);
    testing_make_directory(directory);
}

static void end(void)
{
    testing_remove_directory(directory);
    arena_done(&arena);
}

static void write_file(const char *name, const char *text)
{
    int fd = open(path_of(name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const struct {
    const char *name, *text; /* of the refusal; NULL: it is read */
} files[] = {
    {"a.txt", NULL},
    {"./a.txt", NULL},
    {"/etc/passwd", "leads out of"},
    {"..", "leads out of"},
    {"x/../a.txt", "leads out of"},
    {"x/..", "leads out of"},
    {"..a", "No such file"},
    {"", "it is no file"},
    {".", "it is no file"},
    {"none", "No such file"},
};

START_TEST(a_file_lies_in_its_folder)
{
    struct blob *content;

    write_file("a.txt", "text");
    if (files[_i].text != NULL) {
        ck_fails(declaration_read_file(directory, span_str(files[_i].name), &arena, &content),
                 ERR_INVALID_ENTITY, files[_i].text);
        return;
    }
    ck_ok(declaration_read_file(directory, span_str(files[_i].name), &arena, &content));
    ck_span_eq(blob_span(content), "text");
    blob_unref(content);
}
END_TEST

/* Nobody writes to it: opening it would wait for that. */
START_TEST(a_pipe_is_no_file)
{
    struct blob *content;

    ck_assert_int_eq(mkfifo(path_of("a.txt"), 0600), 0);
    ck_fails(declaration_read_file(directory, SPAN("a.txt"), &arena, &content), ERR_INVALID_ENTITY,
             "a.txt': it is no file");
}
END_TEST

START_TEST(a_file_may_be_too_large)
{
    enum { MOST = 64 << 20 };
    struct blob *content;

    write_file("a.txt", "");
    ck_assert_int_eq(truncate(path_of("a.txt"), MOST + 1), 0);
    ck_fails(declaration_read_file(directory, SPAN("a.txt"), &arena, &content), ERR_INVALID_ENTITY,
             "it is larger than 67108864 bytes");
    ck_assert_int_eq(truncate(path_of("a.txt"), MOST), 0);
    ck_ok(declaration_read_file(directory, SPAN("a.txt"), &arena, &content));
    ck_assert_uint_eq(blob_span(content).n, MOST);
    blob_unref(content);
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, a_file_lies_in_its_folder, 0, ARRAY_LEN(files));
    tcase_add_test(tc, a_pipe_is_no_file);
    tcase_add_test(tc, a_file_may_be_too_large);
}
