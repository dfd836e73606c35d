/* What every unit test program shares: the main function, a fixture that fails when memory is
 * left allocated, and assertions on spans and errors. A program defines `testing_cases`. */
#ifndef TESTING_H
#define TESTING_H

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

#include <check.h>

/* Adds the program's test functions (START_TEST) to the case. Each test starts with fresh random
 * numbers from a fixed seed and must end with no block of mem_alloc outstanding. */
void testing_cases(TCase *tc);

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
