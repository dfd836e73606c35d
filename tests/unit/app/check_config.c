/* The configuration file, as far as the black-box tests cannot see it. */
#include "testing.h"

#include "app/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(char name[], const char *text)
{
    int fd = mkstemp(name);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* NULL, or the error. */
static struct err *read_text(struct config *c, const char *text)
{
    char name[] = "/tmp/check-config-XXXXXX";
    const struct config_arguments arguments = {.file = name};
    struct err *e;

    write_file(name, text);
    config_init(c);
    e = config_read(c, &arguments);
    unlink(name);
    return e;
}

static const struct {
    const char *number;
    int64_t value;
} numbers[] = {
    {"0", 0},
    {"1e3", 1000},
    {"9007199254740993", 9007199254740992}, /* a double holds no more */
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775808", INT64_MAX},
};

START_TEST(whole_numbers)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct config c;
        char text[80];

        snprintf(text, sizeof(text), "{\"Limits\": {\"MemoryBytes\": %s}}", numbers[i].number);
        ck_ok(read_text(&c, text));
        ck_assert_int_eq(c.limits.memory_bytes, numbers[i].value);
        config_done(&c);
    }
}
END_TEST

static const char *const wrong_numbers[] = {"-1", "0.5", "9223372036854779904", "1e400", "\"1\""};

START_TEST(wrong_numbers_are_named)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong_numbers); i++) {
        struct config c;
        char text[80];

        snprintf(text, sizeof(text), "{\"Limits\": {\"MemoryBytes\": %s}}", wrong_numbers[i]);
        ck_fails(read_text(&c, text), ERR_INVALID_ENTITY, "Limits.MemoryBytes: ");
        config_done(&c);
    }
}
END_TEST

void testing_cases(TCase *tc)
{
    tcase_add_test(tc, whole_numbers);
    tcase_add_test(tc, wrong_numbers_are_named);
}
