/* Small compile-time helpers. Nothing here has state. */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

#include <stddef.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The object that embeds `member`, from a pointer to that member. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define CONTAINER_OF_CONST(ptr, type, member)                                                      \
    ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

/* What a table of a header, `TABLE(X)` with a row `X(symbol, text)` each, is made into: the values
 * of an enum, and an array of the texts by them, as strings or spans. What stands behind in a row
 * is passed over. */
#define AS_SYMBOL(symbol, ...) symbol,
#define AS_TEXT(symbol, text, ...) [symbol] = (text),
#define AS_SPAN(symbol, text, ...) [symbol] = SPAN_INIT(text),

/* The compiler objects when the result of such a function is dropped. */
#define MUST_USE __attribute__((warn_unused_result))

/* Never NULL: lets the compiler see that `TRY` returns when there is an error. */
#define NEVER_NULL __attribute__((returns_nonnull))

#define PRINTF_LIKE(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))

/* Moves ownership out of a variable: yields its value and leaves NULL behind. */
#define TAKE(ptr)                                                                                  \
    __extension__({                                                                                \
        __typeof__(ptr) taken_ = (ptr);                                                            \
        (ptr) = NULL;                                                                              \
        taken_;                                                                                    \
    })

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
