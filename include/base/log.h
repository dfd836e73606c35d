/* Log lines to standard error, one write each. Values of the caller are escaped, so that a line
 * is always one line; secrets are never passed in. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/macros.h"

#include <stdbool.h>

struct err;

#define LOG_LEVELS(X)                                                                              \
    X(LOG_DEBUG, "debug")                                                                          \
    X(LOG_INFO, "info")                                                                            \
    X(LOG_WARN, "warn")                                                                            \
    X(LOG_ERROR, "error")
#define LOG_FORMATS(X)                                                                             \
    X(LOG_TEXT, "text")                                                                            \
    X(LOG_JSON, "json")

enum log_level { LOG_LEVELS(AS_SYMBOL) };
enum log_format { LOG_FORMATS(AS_SYMBOL) };

/* Default: LOG_INFO, LOG_TEXT, standard error. */
void log_configure(enum log_level level, enum log_format format);
void log_to(int fd);
bool log_enabled(enum log_level level);
/* `area` is the module's name. Text: `2026-01-31T12:00:00.000Z info area: message`. */
void log_line(enum log_level level, const char *area, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What came of an error that nobody else is told of: `what: message`. Frees it. False for NULL, of
 * which nothing is said. */
bool log_failed(enum log_level level, const char *area, const char *what, struct err *e);

#define log_debug(area, ...)                                                                       \
    (log_enabled(LOG_DEBUG) ? log_line(LOG_DEBUG, area, __VA_ARGS__) : (void)0)
#define log_info(area, ...) log_line(LOG_INFO, area, __VA_ARGS__)
#define log_warn(area, ...) log_line(LOG_WARN, area, __VA_ARGS__)
#define log_error(area, ...) log_line(LOG_ERROR, area, __VA_ARGS__)

#endif
