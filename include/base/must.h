/* Checks for our own bugs. They stay on in release builds. Input is never checked with these:
 * bad input becomes a `struct err`. */
#ifndef BASE_MUST_H
#define BASE_MUST_H

/* Prints the broken expectation with its place to standard error and aborts. */
_Noreturn void must_fail(const char *what, const char *function, const char *file, int line);

#define MUST(condition)                                                                            \
    ((condition) ? (void)0 : must_fail(#condition, __func__, __FILE__, __LINE__))

#define MUST_NOT_REACH() must_fail("unreachable", __func__, __FILE__, __LINE__)

/* An object that travels through a library's `void *` begins with `unsigned kind`, set to a
 * constant of its own. MUST_BE turns the `void *` back and aborts when it is something else. */
#define MUST_BE(type, kind_constant, pointer)                                                      \
    __extension__({                                                                                \
        type *object_ = (pointer);                                                                 \
        MUST(object_ != NULL && object_->kind == (kind_constant));                                 \
        object_;                                                                                   \
    })

#endif
