/* What every unit test program shares: the main function, a fixture that fails when memory is
 * left allocated, and assertions on spans and errors. A module's file defines `testing_cases`,
 * which the build calls otherwise for each (tests/unit/meson.build), since a floor's are one
 * program. */
#ifndef TESTING_H
#define TESTING_H

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

#include <check.h>

/* Adds the module's test functions (START_TEST) to the case. Each test starts with fresh random
 * numbers from a fixed seed and must end with no block of mem_alloc outstanding. */
void testing_cases(TCase *tc);

/* The modules of the program: the build makes the list, which ends with NULL. */
struct testing_module {
    const char *name; /* check_<floor>_<module>: a program of that name runs this one alone */
    void (*cases)(TCase *tc);
};
extern const struct testing_module testing_modules[];

/* A new directory of the test's own; its path is written there. One that is below a place that is
 * in memory, where there is one, is for tests that do not look at what a disk does. */
enum { TESTING_PATH_BYTES = 40 };
void testing_make_directory(char out_path[TESTING_PATH_BYTES]);
void testing_make_directory_in_memory(char out_path[TESTING_PATH_BYTES]);
/* With the files in it. It has no directories. */
void testing_remove_directory(const char *path);
/* Before the next look at whether something has come that a disk or another process does, in a loop
 * that does not wait by itself; `looks` is how many there were. At first it costs nothing, then a
 * millisecond, and it fails when no machine can be as slow as that. */
void testing_await(unsigned looks);

/* Check writes a file at each assertion that holds, to tell where a test was that dies. Under
 * sanitizers this takes longer than most tests: here it is done once for each line of a test. */
void testing_passed(const char *file, int line);
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr) ? testing_passed(__FILE__, __LINE__)                                                   \
            : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", __VA_ARGS__))

#define ck_span_eq(actual, expected_literal) ck_span_is((actual), SPAN(expected_literal))
#define ck_span_is(actual, expected)                                                               \
    do {                                                                                           \
        struct span a_ = (actual), e_ = (expected);                                                \
        ck_assert_msg(span_eq(a_, e_), "is '%.*s', should be '%.*s'", SPAN_FMT(a_), SPAN_FMT(e_)); \
    } while (0)

/* The call succeeds; an error is printed. */
#define ck_ok(call)                                                                                \
    do {                                                                                           \
        struct err *e_ = (call);                                                                   \
        if (e_ != NULL)                                                                            \
            ck_abort_msg(#call ": %.*s", SPAN_FMT(err_message(e_)));                               \
    } while (0)

/* The call fails with this code, and the message contains `text`. */
#define ck_fails(call, code, text)                                                                 \
    do {                                                                                           \
        struct err *e_ = (call);                                                                   \
        ck_assert_msg(e_ != NULL, #call " did not fail");                                          \
        ck_assert_msg(err_code(e_) == (code), #call ": code %d (%.*s)", (int)err_code(e_),         \
                      SPAN_FMT(err_message(e_)));                                                  \
        ck_assert_msg(span_find(err_message(e_), span_str(text)) != SIZE_MAX,                      \
                      #call ": '%.*s' lacks '%s'", SPAN_FMT(err_message(e_)), text);               \
        err_free(e_);                                                                              \
    } while (0)

#endif
