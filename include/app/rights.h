/* What the rights of the configuration's keys are on: names that lead nowhere are most often
 * misspelled. */
#ifndef APP_RIGHTS_H
#define APP_RIGHTS_H

#include "base/json.h"

struct access;
struct resources;

/* ERR_INVALID_ENTITY for an entry of an AllowAccess that allows nothing: without resources or
 * methods, or with a name that begins with `Svc.` and is no built-in resource's, nor a namespace of
 * any, or is that of one with none of the methods. The message begins with the key's place. */
struct err *rights_check(const struct access *access, const struct resources *resources) MUST_USE;
/* A warning in the log for each other name that `declared`, the configuration's Resources, does not
 * have: it may be one that is declared at run time. */
void rights_warn(const struct access *access, struct json_value declared);

#endif
