/* What the process may do: as root it becomes an ordinary user before it reads a request. */
#ifndef APP_PRIVILEGES_H
#define APP_PRIVILEGES_H

#include "base/err.h"

/* ERR_UNKNOWN, from "User: " on: there is no such user, or it is root. NULL: none is asked for. */
struct err *privileges_check(const char *user) MUST_USE;
/* Becomes that user for good, with its groups; then, unless it remains root for want of a user,
 * which is logged, the process has no capability and cannot gain any. Errors of privileges_check;
 * or the process is neither root nor that user; or something could not be given up. */
struct err *privileges_drop(const char *user) MUST_USE;

#endif
